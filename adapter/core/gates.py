"""Before the policy: an ordered table of reasons not to decide. The first that applies wins and holds the target."""

from dataclasses import dataclass

import numpy as np

from adapter.core.rates import Mask
from adapter.core.reasons import REASONS, Reason
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array, IntArray

OPEN = -1  # no gate applies: the policy decides


@dataclass(frozen=True, slots=True, kw_only=True)
class GateInputs:
    """What the gates look at; every array has the shape (workloads,). Ages in seconds, NaN when it never happened.

    incomplete: fewer workers exist or are ready than desired. too_few: at least one is ready, but never
    were all that were asked for. stopped: the job says that it does not run. failures: restarts within
    failures_window_s that nobody planned. discontinuous: the backlog jumped as no input could make it. nothing_moves:
    a backlog waits and nothing is processed.
    """

    paused: Mask
    excluded: Mask
    sample_age_s: Array
    workers_age_s: Array
    changed_age_s: Array
    asked_age_s: Array
    incomplete: Mask
    too_few: Mask
    stopped: Mask
    failures: Array
    rates_known: Mask
    discontinuous: Mask
    nothing_moves: Mask
    rules: RuleColumns


def settle_s(rules: RuleColumns) -> Array:
    """So long after a change the rates still show the change: its pause, told metric_delay_s late (S4-04, X-05)."""
    return np.maximum(rules.settle_s, rules.rescale_pause_s) + rules.metric_delay_s


def table(see: GateInputs) -> tuple[tuple[Reason, Mask], ...]:
    """Every gate in the order in which it is asked."""
    rules = see.rules
    settled_s = settle_s(rules)
    overdue = see.asked_age_s >= rules.in_flight_timeout_s
    disturbed = see.changed_age_s < settled_s + rules.rate_window_s
    return (
        (Reason.PAUSED, see.paused),
        (Reason.EXCLUDED, see.excluded),
        (Reason.NO_DATA, np.isnan(see.sample_age_s)),
        (Reason.EXPIRED, see.sample_age_s > rules.error_after_s),
        (Reason.STALE, see.sample_age_s > 0),  # a tick that did not see all decides nothing
        (Reason.NO_WORKERS, ~(see.workers_age_s <= rules.stale_after_s)),
        (Reason.NOT_RUNNING, see.stopped),
        (Reason.FAILURES, see.failures >= rules.max_failures),
        (Reason.UNSCHEDULABLE, see.too_few & overdue),
        (Reason.IN_FLIGHT, see.incomplete & (see.asked_age_s < rules.in_flight_timeout_s)),
        (Reason.STUCK, see.nothing_moves),
        (Reason.SETTLING, (see.changed_age_s < settled_s) | (disturbed & ~see.rates_known)),
        (Reason.NO_DATA, ~see.rates_known),
        (Reason.DISCONTINUITY, see.discontinuous),
    )


def first_closed(see: GateInputs) -> IntArray:
    """The first gate that applies to each workload, as an index into REASONS; OPEN where none does."""
    gates = table(see)
    return np.select([mask for _, mask in gates], [REASONS.index(reason) for reason, _ in gates], OPEN).astype(np.int64)
