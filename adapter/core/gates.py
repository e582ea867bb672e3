"""The gates: an ordered table of reasons not to decide. The first that applies holds the target."""

from dataclasses import dataclass

import numpy as np

from adapter.core.policies.sizing import policy_has
from adapter.core.rates import Mask
from adapter.core.reasons import REASONS, Reason
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array, IntArray

OPEN = -1  # no gate applies: the policy decides


@dataclass(frozen=True, slots=True, kw_only=True)
class GateInputs:
    """What the gates read; every array has the shape (workloads,). Ages in seconds, NaN if it never happened."""

    paused: Mask
    excluded: Mask
    sample_age_s: Array
    workers_age_s: Array
    changed_age_s: Array
    spec_changed_age_s: Array
    in_flight: Mask  # the existing workers differ from the desired ones, or fewer are ready
    too_few: Mask  # some workers are ready, more than a few are not, and the desired ones were never all ready
    stopped: Mask  # the job reports that it does not run
    failures: Array  # unplanned restarts within failures_window_s
    rates_known: Mask
    excess_input: Mask  # the input exceeds what all workers process when warm: the policy need not wait
    discontinuous: Mask  # the backlog jumped more than the input explains
    nothing_moves: Mask  # a backlog waits and nothing is processed
    rules: RuleColumns


def settle_s(rules: RuleColumns) -> Array:
    """Seconds after a change in which the rates still show its pause, including the metric delay (S4-04, X-05)."""
    return np.maximum(rules.settle_s, rules.rescale_pause_s) + rules.metric_delay_s


def table(inputs: GateInputs) -> tuple[tuple[Reason, Mask], ...]:
    """Every gate in its order, and where it is closed."""
    rules = inputs.rules
    settled_s = settle_s(rules)
    overdue = inputs.spec_changed_age_s >= rules.in_flight_timeout_s
    disturbed = inputs.changed_age_s < settled_s + rules.rate_window_s
    settling = (inputs.changed_age_s < settled_s) | (disturbed & ~inputs.rates_known)
    safe = rules.safety != 0
    patient = safe & ~inputs.excess_input
    checked = safe | policy_has("checks_the_job", rules)
    failing = inputs.failures >= np.where(safe, rules.max_failures, 1.0)  # S4-09 aborts after one
    return (
        (Reason.PAUSED, inputs.paused),
        (Reason.EXCLUDED, inputs.excluded),
        (Reason.NO_DATA, np.isnan(inputs.sample_age_s)),
        (Reason.EXPIRED, inputs.sample_age_s > rules.error_after_s),
        (Reason.STALE, inputs.sample_age_s > 0),  # a tick with a missing sample decides nothing
        (Reason.NO_WORKERS, ~(inputs.workers_age_s <= rules.stale_after_s)),
        (Reason.NOT_RUNNING, inputs.stopped),
        (Reason.FAILURES, failing & checked),
        (Reason.UNSCHEDULABLE, inputs.too_few & overdue & safe),
        (Reason.IN_FLIGHT, inputs.in_flight & (inputs.spec_changed_age_s < rules.in_flight_timeout_s) & checked),
        (Reason.STUCK, inputs.nothing_moves & safe),
        (Reason.SETTLING, settling & patient),
        (Reason.NO_DATA, ~inputs.rates_known & patient),
        (Reason.DISCONTINUITY, inputs.discontinuous & safe),
    )


def first_closed(inputs: GateInputs) -> IntArray:
    """The first gate that applies to each workload, as an index into REASONS; OPEN where none does."""
    gates = table(inputs)
    return np.select([mask for _, mask in gates], [REASONS.index(reason) for reason, _ in gates], OPEN).astype(np.int64)
