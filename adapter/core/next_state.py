"""A decision -> the next state: target, scale-down window, pause budget and the trial of the last scale-up."""

from dataclasses import replace

import numpy as np

from adapter.core import gates
from adapter.core.capacity import OBSERVED, rate_at
from adapter.core.decide import DecisionResult, is_onward
from adapter.core.decision_input import DecisionInput, budget_s
from adapter.core.estimates import extend_blocks
from adapter.core.observe import Tick
from adapter.core.rates import Mask
from adapter.core.reasons import REASONS, Reason
from adapter.core.relayed_load import relays_at_capacity
from adapter.core.samples import Array, first_known
from adapter.core.scale_down_cost import REVERSAL_WEIGHT, REVERSAL_WITHIN_S, seconds_to_pay
from adapter.core.scale_down_window import bucket_width_s, due_worth_s, recent_downs
from adapter.core.state import BUCKETS, Slow, State

_STANDSTILL = [REASONS.index(reason) for reason in (Reason.STUCK, Reason.NOT_RUNNING)]


def next_state(tick: Tick, inputs: DecisionInput, result: DecisionResult) -> State:
    """The state after the decision."""
    fast, current, served = tick.state.fast, inputs.status.current_workers, result.served
    same = (served == fast.target_workers) | (np.isnan(served) & np.isnan(fast.target_workers))
    onward = is_onward(inputs.status, served)
    committed = ~same & np.isfinite(served)
    stalled = tick.largest(tick.rates.stalled.astype(np.float64)) == 1
    peak, slow = _update_window(tick, inputs, result)
    slow = _charge_budget(tick, slow, committed & ~onward & (served < current))
    slow = _count_reversals(tick, slow, committed & ~onward & (served > current))
    slow = _start_trials(tick, inputs, slow, committed & (served > current))
    slow = _block_unschedulable(tick, slow, result.gate == REASONS.index(Reason.UNSCHEDULABLE))
    fast = replace(
        fast,
        target_workers=served,
        committed_at_s=np.where(same | onward, fast.committed_at_s, tick.at_s),
        peak_workers=peak,
        disturbed_at_s=np.where(stalled | np.isin(result.gate, _STANDSTILL), tick.at_s, fast.disturbed_at_s),
    )
    return State(fast=fast, slow=slow)


def _update_window(tick: Tick, inputs: DecisionInput, result: DecisionResult) -> tuple[Array, Slow]:
    """The largest size needed in the running bucket of the scale-down window, and the closed buckets."""
    slow, peak, current = tick.state.slow, tick.state.fast.peak_workers, inputs.status.current_workers
    needed = np.where(result.gate == gates.OPEN, result.policy_result.needed_workers, np.nan)
    began_s, width_s = slow.history.bucket_at_s, bucket_width_s(tick)
    counts = width_s > 0
    passed = np.where(counts, (tick.at_s - began_s) // np.where(counts, width_s, 1.0), 0.0)
    lost = (passed - 1) * width_s > tick.rules.error_after_s
    slow, passed = _begin_bucket(tick, slow, passed, width_s), np.nan_to_num(passed)
    closed = passed > 0
    if closed.any():
        slow = _update_fewer_workers(slow, closed, began_s, np.where(lost, np.nan, peak), current)
        slow = replace(slow, peaks=_close_buckets(slow.peaks, passed, lost, peak, current))
        slow = _restart_fewer_workers(tick, slow, closed)
    return np.where(closed, needed, np.fmax(peak, needed)), slow


def _begin_bucket(tick: Tick, slow: Slow, passed: Array, width_s: Array) -> Slow:
    """The date of the running bucket after some have passed; the first one begins now."""
    bucket_at_s = np.where(np.isnan(passed), tick.at_s, slow.history.bucket_at_s + passed * width_s)
    return replace(slow, history=replace(slow.history, bucket_at_s=bucket_at_s))


def _close_buckets(peaks: Array, passed: Array, lost: Mask, peak: Array, current: Array) -> Array:
    """The closed buckets after some have passed: each replaces the oldest one.

    A bucket without samples holds the current size, because all workers may have been needed.
    """
    closed = first_known(peak, current)
    for number in range(int(min(passed.max(), BUCKETS + 1))):
        peaks = np.where(passed > number, np.vstack([peaks[1:], closed]), peaks)
        closed = np.where(lost, current, closed)
    return peaks


def _update_fewer_workers(slow: Slow, closed: Mask, began_s: Array, needed: Array, current: Array) -> Slow:
    """The time in which fewer workers were enough, after a closed bucket: when it began, and the size it needed.

    A bucket that needed all workers ends that time. A bucket without samples neither ends it nor counts.
    closed: the workloads of which a bucket was closed. began_s: of the bucket. needed: the workers needed in it, NaN if
    unknown.
    """
    was, unknown, ends = slow.history, np.isnan(needed), needed >= current
    unknown_s = np.where(unknown, was.bucket_at_s - began_s, 0.0)
    before = was.fewer_workers < current  # otherwise they were enough for a larger size than the present one
    before_s = np.where(before, was.fewer_since_s + unknown_s, np.nan)
    at_s = first_known(before_s, np.where(unknown, np.nan, began_s))
    workers = np.fmax(np.where(before, was.fewer_workers, np.nan), needed)
    history = replace(
        was,
        fewer_since_s=np.where(closed, np.where(ends, np.nan, at_s), was.fewer_since_s),
        fewer_workers=np.where(closed, np.where(ends, np.nan, workers), was.fewer_workers),
    )
    return replace(slow, history=history)


def _restart_fewer_workers(tick: Tick, slow: Slow, closed: Mask) -> Slow:
    """The time with fewer workers, of the closed buckets alone where these pay sooner: the need has fallen meanwhile.

    closed: the workloads of which a bucket was closed.
    """
    was, worth_s, current = slow.history, due_worth_s(tick), tick.current_workers
    workers, at_s = np.maximum.reduce(slow.peaks, axis=0), was.bucket_at_s - BUCKETS * bucket_width_s(tick)
    due_s = was.fewer_since_s + seconds_to_pay(was.fewer_workers, current, worth_s)
    sooner = closed & (at_s + seconds_to_pay(workers, current, worth_s) < np.nan_to_num(due_s, nan=np.inf))
    history = replace(
        was,
        fewer_since_s=np.where(sooner, at_s, was.fewer_since_s),
        fewer_workers=np.where(sooner, workers, was.fewer_workers),
    )
    return replace(slow, history=history)


def _block_unschedulable(tick: Tick, slow: Slow, unschedulable: Mask) -> Slow:
    """Block scale-ups for a while if workers are unschedulable."""
    blocked = unschedulable[tick.workload_index] & ~(slow.trial.blocked_until_s > tick.at_s)
    return extend_blocks(tick, slow, blocked)


def _charge_budget(tick: Tick, slow: Slow, down: Mask) -> Slow:
    """The pause budget and the count of scale-downs after those of this tick."""
    was, paid = slow.history, down & np.isfinite(tick.rules.pause_budget_ratio)
    history = replace(
        was,
        downs=np.where(down, recent_downs(tick) + 1, was.downs),
        downs_at_s=np.where(down, tick.at_s, was.downs_at_s),
        budget_s=np.where(paid, budget_s(tick) - tick.rules.rescale_pause_s, was.budget_s),
        budget_at_s=np.where(paid, tick.at_s, was.budget_at_s),
    )
    return replace(slow, history=history)


def _count_reversals(tick: Tick, slow: Slow, up: Mask) -> Slow:
    """Give extra weight to a scale-down that was soon reverted, so that the next ones wait longer."""
    was = slow.history
    soon = up & (tick.at_s - was.downs_at_s < REVERSAL_WITHIN_S)
    history = replace(
        was,
        downs=np.where(soon, recent_downs(tick) + REVERSAL_WEIGHT, was.downs),
        downs_at_s=np.where(soon, tick.at_s - REVERSAL_WITHIN_S, was.downs_at_s),  # once for each scale-down
    )
    return replace(slow, history=history)


def _start_trials(tick: Tick, inputs: DecisionInput, slow: Slow, up: Mask) -> Slow:
    """The capacity before each scale-up: the throughput of a stage that is behind or full, else the observed one."""
    begun = up[tick.workload_index]
    if not begun.any():
        return slow
    known, table = inputs.policy_input, inputs.policy_input.table
    observed = ((table.sizes == known.workers) & (table.confidence == OBSERVED)).any(axis=0)
    learned = np.where(observed, rate_at(table, known.workers, known.rules.scaling_exponent), np.nan)
    before = np.where(tick.behind | relays_at_capacity(tick), known.throughput_records_per_s, learned)
    trial = replace(
        slow.trial,
        from_workers=np.where(begun, known.workers, slow.trial.from_workers),
        from_records_per_s=np.where(begun, before, slow.trial.from_records_per_s),
    )
    return replace(slow, trial=trial)
