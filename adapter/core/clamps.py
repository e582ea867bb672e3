"""Apply the bounds: a size -> the size after every bound, and the last bound that changed it."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from adapter.core import gates
from adapter.core.aggregation import pick
from adapter.core.bounds import BOUNDS, Bound
from adapter.core.capacity import CARRIED, confidence_at, rate_at
from adapter.core.decision_input import DecisionInput
from adapter.core.limits import Range, one_more
from adapter.core.partitions import fewest_workers, whole
from adapter.core.policies.interface import PolicyResult
from adapter.core.policies.sizing import policy_has
from adapter.core.rates import Mask
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array, IntArray, first_known
from adapter.core.scale_down_cost import warm_after_s


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundInputs:
    """What the bounds read; every array has the shape (workloads,)."""

    held: Mask  # a gate holds the target
    no_up: Mask  # scale-ups are paused
    no_down: Mask  # scale-downs are paused
    failover: Mask  # traffic of another region may come back
    expecting: Mask  # an event with more input begins soon, or lasts
    sink_unhealthy: Mask
    misses_metrics: Mask  # of a stage, or of some partitions
    behind: Mask  # the backlog time exceeds short_backlog_time_s
    helpful_workers: Array  # more workers than these gained too little; NaN without such a scale-up
    in_up_cooldown: Mask  # too soon after a change for a scale-up
    in_down_cooldown: Mask  # too soon after a change for a scale-down
    unaffordable: Mask  # the pause budget is too small for a scale-down
    suspect: Mask  # behind at low utilization
    hot_workers: Array  # more workers do not relieve the hot partition; NaN without a hot partition
    window_workers: Array  # the largest size needed in the scale-down window, NaN for none
    minute_workers: Array  # the target, between two minutes of a policy that decides once a minute; NaN for none
    pending_workers: Array  # a target that is not enacted yet and still stands, NaN for none


class Clamp(NamedTuple):
    """One bound in numbers, shape (workloads,). NaN, or None for all workloads, does not limit the size."""

    name: Bound
    least: Array | None
    most: Array | None


def bound_inputs_of(inputs: DecisionInput, policy_result: PolicyResult, stage: IntArray, gate: IntArray) -> BoundInputs:
    """The inputs of the bounds at one tick."""
    status, rules, current = inputs.status, inputs.status.rules, inputs.status.current_workers
    behind = pick(inputs.policy_input.backlog_time_s, stage) > rules.short_backlog_time_s
    idle = pick(inputs.blockers.hottest_utilization_ratio, stage) < rules.low_cpu_ratio
    helpful = first_known(pick(inputs.blockers.tried_from_workers, stage), current)
    free, safe, target = gate == gates.OPEN, rules.safety != 0, status.target_workers
    # A further step of the input delays the next scale-up, and does not withdraw the last one.
    in_step = status.in_step | (policy_result.outlook.in_step > 0)
    stands = (status.committed_age_s < rules.latch_s) | (in_step & (target > current))
    pending = np.where(free & stands, target, np.nan)
    more, fewer = free & ~(pending > current), free & ~(pending < current)
    suspect = free & behind & idle & (current > 0)
    # Published policies wait after a change, not when a workload is first seen.
    waits = policy_has("waits_until_warm", rules) | status.rescaled
    return BoundInputs(
        held=~free,
        no_up=status.no_up,
        no_down=status.no_down,
        failover=status.failover,
        expecting=status.expecting,
        sink_unhealthy=status.sink_unhealthy & (safe | policy_has("checks_the_job", rules)),
        misses_metrics=free & safe & status.misses_metrics,
        behind=behind,
        helpful_workers=np.where(more & (pick(inputs.blockers.blocked_s, stage) > 0), helpful, np.nan),
        in_up_cooldown=more & _is_in_up_cooldown(inputs, waits, suspect),
        in_down_cooldown=fewer & waits & (status.spec_changed_age_s < rules.cooldown_down_s),
        unaffordable=fewer & (status.budget_s < rules.rescale_pause_s),
        suspect=suspect,
        hot_workers=np.where(free & safe, pick(_hot_partition_limit(inputs), stage), np.nan),
        window_workers=np.where(free, _window_workers(inputs, policy_result.needed_workers, pending), np.nan),
        minute_workers=np.where(free & status.between_minutes, target, np.nan),
        pending_workers=pending,
    )


def _is_in_up_cooldown(inputs: DecisionInput, waits: Mask, suspect: Mask) -> Mask:
    """Whether a scale-up is too soon after the last change.

    The gain of a scale-up is unknown until its workers are warm. With excess input, a scale-up does not wait for them,
    unless more workers may not help. After a stop, cold workers explain a backlog at low utilization.
    """
    status, rules, changed_age_s = inputs.status, inputs.status.rules, inputs.gate_inputs.changed_age_s
    changed, warm_s = np.isfinite(changed_age_s), warm_after_s(rules)
    patient = policy_has("waits_until_warm", rules) & (suspect | ~inputs.gate_inputs.excess_input)
    cooldown_up_s = first_known(rules.cooldown_up_s, np.where(patient & changed, warm_s, np.nan))
    separate = policy_has("separate_cooldowns", rules)
    age_s = np.where(separate, status.raised_age_s, status.spec_changed_age_s)
    cold_s = np.where(separate & status.rescaled & (rules.safety != 0), np.fmin(warm_s, cooldown_up_s), 0.0)
    cold = status.spec_changed_age_s < cold_s
    cooling: Mask = cold | (waits & (age_s < cooldown_up_s)) | (suspect & (changed_age_s < rules.warm_up_s))
    return cooling


def _window_workers(inputs: DecisionInput, needed: Array, pending: Array) -> Array:
    """The largest size needed in the scale-down window, or the current one if a smaller one is within the tolerance.

    A scale-down that is not enacted yet has passed the window. Only the size that is needed now can stop it.
    """
    status, rules, current = inputs.status, inputs.status.rules, inputs.status.current_workers
    window = np.fmax(np.where(pending < current, np.nan, status.peak_workers), needed)
    near = policy_has("waits_until_warm", rules) & (window >= current * (1 - rules.tolerance_ratio))
    return np.where(rules.down_window_s > 0, np.where(near, np.fmax(window, current), window), np.nan)


def _hot_partition_limit(inputs: DecisionInput) -> Array:
    """The largest useful size of a stage whose hottest partition alone fills a subtask; NaN for other stages.

    The other partitions need the workers for their input all the same, so only a catch-up is cut.
    """
    policy_input, heaviest = inputs.policy_input, inputs.blockers.hottest_partition_ratio
    rules, one, slots = policy_input.rules, np.ones(len(heaviest)), policy_input.rules.slots_per_worker
    known = confidence_at(policy_input.table, one) > CARRIED
    able = np.where(known, rate_at(policy_input.table, one, one) / slots, np.nan)
    arriving = policy_input.input_rate_records_per_s
    load = heaviest * arriving / policy_input.partitions
    most = fewest_workers(policy_input.partitions, heaviest, slots)
    needed = whole(arriving / (able * slots * rules.target_utilization_ratio))
    return np.where(load > rules.high_utilization_ratio * able, np.fmax(most, needed), np.nan)


def table(
    wanted: Array, current: Array, rules: RuleColumns, range_: Range, bound_inputs: BoundInputs
) -> tuple[Clamp, ...]:
    """Every bound in its order. Without a current size, the bounds that are relative to it do not apply."""

    def hold(mask: Mask) -> Array:
        return np.where(mask, current, np.nan)

    unhealthy, by_partitions = bound_inputs.sink_unhealthy, range_.by_partitions & ~bound_inputs.held
    window = np.minimum(whole(bound_inputs.window_workers), current)
    return (
        Clamp(Bound.WINDOW, window, None),
        _latch(np.fmax(wanted, window), current, window, bound_inputs.pending_workers),
        Clamp(Bound.MINUTE, bound_inputs.minute_workers, bound_inputs.minute_workers),
        Clamp(Bound.PAUSE, hold(bound_inputs.no_down), hold(bound_inputs.no_up)),
        Clamp(Bound.FAILOVER, hold(bound_inputs.failover), None),
        Clamp(Bound.EXPECTED, hold(bound_inputs.expecting), None),
        Clamp(Bound.MISSING_METRICS, hold(bound_inputs.misses_metrics), None),
        Clamp(Bound.SINK, hold(unhealthy & bound_inputs.behind), hold(unhealthy)),
        Clamp(Bound.INEFFECTIVE, None, np.maximum(bound_inputs.helpful_workers, current)),
        Clamp(Bound.COOLDOWN, hold(bound_inputs.in_down_cooldown), hold(bound_inputs.in_up_cooldown)),
        Clamp(Bound.BUDGET, hold(bound_inputs.unaffordable), None),
        Clamp(Bound.TRIAL, None, np.where(bound_inputs.suspect, one_more(current, rules), np.nan)),
        Clamp(Bound.HOT, None, np.maximum(bound_inputs.hot_workers, current)),
        Clamp(Bound.STEP, current - rules.max_step_down_workers, current + rules.max_step_up_workers),
        Clamp(Bound.PARTITIONS, None, np.where(by_partitions, range_.most, np.nan)),
        Clamp(Bound.MAX, None, range_.allowed),
        Clamp(Bound.MIN, np.where(range_.by_memory, np.nan, range_.least), None),
        Clamp(Bound.MEMORY, np.where(range_.by_memory, range_.least, np.nan), None),
    )


def _latch(size: Array, current: Array, window: Array, pending: Array) -> Clamp:
    """A pending target stands until the wanted size is on the other side of the current one.

    A pending scale-up may grow. A pending scale-down may not go further, because the HPA could then rescale twice. It
    also stops at the window.
    """
    up = (pending > current) & (size >= current)
    down = (pending < current) & (size <= current)
    stands = np.where(down, np.fmax(pending, window), np.nan)
    return Clamp(Bound.LATCH, np.where(up, pending, stands), stands)


def apply_bounds(
    wanted: Array, current: Array, rules: RuleColumns, range_: Range, bound_inputs: BoundInputs
) -> tuple[Array, IntArray]:
    """The bounded size, and the last bound that changed it (an index into BOUNDS). An unknown size stays unknown.

    Where the other bounds hold a job at its minimum, the minimum is named, because it remains when they end.

    Partitions, maximum, minimum and memory come last, so they apply even during a pause. The partitions do not lower a
    target that a gate holds: while a job restarts, some of them may be missing from the count.
    """
    size, left, which = wanted, wanted, np.full(len(wanted), BOUNDS.index(Bound.NONE), dtype=np.int64)
    for bound in table(wanted, current, rules, range_, bound_inputs):
        after = clamp(size, bound)
        which = np.where((after == size) | np.isnan(size), which, BOUNDS.index(bound.name))
        size, left = after, left if bound.name.record.in_range else after
    minimum = np.where(range_.by_memory, BOUNDS.index(Bound.MEMORY), BOUNDS.index(Bound.MIN))
    held_at_minimum = (wanted < left) & (left == range_.least) & ~range_.cut
    return size, np.where(held_at_minimum, minimum, which)


def clamp(size: Array, bound: Clamp) -> Array:
    """The size after one bound; an unknown size stays unknown."""
    raised = size if bound.least is None else np.fmax(size, bound.least)
    lowered = raised if bound.most is None else np.fmin(raised, bound.most)
    return np.where(np.isnan(size), np.nan, lowered)
