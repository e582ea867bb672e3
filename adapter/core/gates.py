"""Before the policy: an ordered table of reasons not to decide. The first that applies wins and holds the target."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from adapter.core.decisions import Reason
from adapter.core.rates import Mask
from adapter.core.samples import Array, IntArray

REASONS = tuple(Reason)
OPEN = -1  # no gate applies: the policy decides


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What the gates look at; every array has the shape (workloads,). Ages in seconds, NaN when it never happened."""

    paused: Mask
    sample_age_s: Array
    workers_age_s: Array
    changed_age_s: Array
    asked_age_s: Array
    incomplete: Mask
    rates_known: Mask
    nothing_moves: Mask
    rules: Mapping[str, Array]


def table(see: Situation) -> tuple[tuple[Reason, Mask], ...]:
    """Every gate in the order in which it is asked."""
    rules = see.rules
    disturbed = see.changed_age_s < rules["settle_s"] + rules["rate_window_s"]
    return (
        (Reason.PAUSED, see.paused),
        (Reason.NO_DATA, np.isnan(see.sample_age_s)),
        (Reason.EXPIRED, see.sample_age_s > rules["error_after_s"]),
        (Reason.STALE, see.sample_age_s > 0),  # a tick that did not see all decides nothing
        (Reason.NO_WORKERS, ~(see.workers_age_s <= rules["stale_after_s"])),
        (Reason.IN_FLIGHT, see.incomplete & (see.asked_age_s < rules["in_flight_timeout_s"])),
        (Reason.SETTLING, (see.changed_age_s < rules["settle_s"]) | (disturbed & ~see.rates_known)),
        (Reason.NO_DATA, ~see.rates_known),
        (Reason.NO_PROGRESS, see.nothing_moves),
    )


def first_closed(see: Situation) -> IntArray:
    """The first gate that applies to each workload, as an index into REASONS; OPEN where none does."""
    gates = table(see)
    return np.select([mask for _, mask in gates], [REASONS.index(reason) for reason, _ in gates], OPEN).astype(np.int64)
