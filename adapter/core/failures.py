"""Restart counters -> the failures of each workload (S4-09)."""

from dataclasses import replace

import numpy as np

from adapter.core.gates import settle_s
from adapter.core.ingest import reindex
from adapter.core.rates import Mask
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array, Samples, first_known
from adapter.core.state import Fast, State


def count_failures(state: State, samples: Samples, rules: RuleColumns) -> State:
    """The state with unplanned restarts counted: those that do not follow a rescale."""
    restarts = reindex([samples.whole("restarts")], samples.workloads, state.slow.workloads)[0]
    was, seen_at_s = state.slow.history, state.fast.restarts_seen_at_s
    fast = replace(state.fast, restarts_seen_at_s=np.where(np.isfinite(restarts), samples.at_s, seen_at_s))
    state = replace(state, fast=fast)
    if not (np.isfinite(restarts) & (restarts != was.restarts)).any():
        return state
    rescaled_s = _rescaled_at_s(state.fast, rules)
    planned = (samples.at_s - rescaled_s < _clean_s(rules) + rules.worker_start_s) | (rescaled_s > seen_at_s)
    # Restarts during a long gap of the counter may be old.
    watched = samples.at_s - seen_at_s <= rules.error_after_s
    lost_few = samples.at_s - state.fast.few_moved_at_s < _clean_s(rules)
    recent = samples.at_s - was.failed_at_s <= rules.failures_window_s
    # All restarts with the loss and the return of a few workers, as of a spot node, are one failure.
    ignored = lost_few & recent & ~_soon_lost_again(state.fast, was.failed_at_s, samples.at_s, rules)
    unplanned = (restarts > was.restarts) & ~planned & watched
    failed, few_failed = unplanned & ~ignored, unplanned & lost_few
    total = np.where(recent, was.failures, 0.0) + np.where(lost_few, 1.0, restarts - was.restarts)
    history = replace(
        was,
        # After a fall, the next count is only a new start: the fall may have been a missing pod.
        restarts=np.where(restarts < was.restarts, np.nan, first_known(restarts, was.restarts)),
        failures=np.where(failed, total, was.failures),
        failed_at_s=np.where(failed, samples.at_s, was.failed_at_s),
    )
    fast = replace(fast, few_failed_at_s=np.where(few_failed, samples.at_s, fast.few_failed_at_s))
    return State(fast=fast, slow=replace(state.slow, history=history))


def _clean_s(rules: RuleColumns) -> Array:
    """Seconds after a change until the rates show nothing of it."""
    return settle_s(rules) + rules.rate_window_s


def _soon_lost_again(fast: Fast, failed_at_s: Array, at_s: float, rules: RuleColumns) -> Mask:
    """Whether a few workers were lost again before the rates were clean after the last failure or loss.

    So a pod that crashes about once a minute holds the target, and nodes that are lost now and then do not.
    """
    last_s = np.fmax(failed_at_s, fast.few_failed_at_s)
    is_other_loss: Mask = ~(last_s >= fast.few_lost_at_s)
    return is_other_loss & (at_s - last_s <= _clean_s(rules))


def _rescaled_at_s(fast: Fast, rules: RuleColumns) -> Array:
    """When the workers last changed in a rescale: within in_flight_timeout_s, or before all of them were ready.

    A change after that may be a failure, so it does not count.
    """
    changed_s, spec_s = fast.changed_at_s, fast.spec_changed_at_s
    lasts = (changed_s - spec_s < rules.in_flight_timeout_s) | ~(fast.all_ready_at_s >= spec_s)
    return np.where(lasts, np.fmax(changed_s, spec_s), spec_s)
