"""After the policy: steps, minimum, maximum, partitions. Each cut is named."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from adapter.core.decisions import Bound
from adapter.core.rates import Mask
from adapter.core.samples import Array, IntArray

BOUNDS = tuple(Bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The range of each workload, in workers; shape (workloads,).

    by_partitions: the partitions made `most`. no_up, no_down: a pause of that direction is in force.
    """

    least: Array
    most: Array
    by_partitions: Mask
    no_up: Mask
    no_down: Mask


def limits(rules: Mapping[str, Array], facts: Mapping[str, Array], at_s: float) -> Limits:
    """The narrowest of rules, HPA and partitions (S0-16, S4-29); unknown ones do not narrow. The maximum wins.

    facts: core.samples.WORKLOAD_SIGNALS -> shape (workloads,), NaN where unknown.
    """
    allowed = np.fmin(rules["max_workers"], _at_least_one(facts["max_workers"]))
    most = np.fmin(allowed, _at_least_one(facts["partitions"]))
    return Limits(
        least=np.minimum(np.fmax(rules["min_workers"], facts["min_workers"]), most),
        most=most,
        by_partitions=most < allowed,
        no_up=(at_s < rules["pause_up_until_s"]) | (facts["pause_up"] == 1),
        no_down=(at_s < rules["pause_down_until_s"]) | (facts["pause_down"] == 1),
    )


def _at_least_one(count: Array) -> Array:
    """A cap of 0 is a count that is not known yet."""
    return np.where(count >= 1, count, np.nan)


def within(wanted: Array, current: Array, rules: Mapping[str, Array], limits: Limits) -> tuple[Array, IntArray]:
    """The bounded size, and which bound cut it (an index into BOUNDS).

    One decision moves at most max_step_up_workers or max_step_down_workers away from current (S4-29).
    Minimum, maximum and partitions hold even against a pause.
    """
    here = np.isfinite(current)  # steps and pauses are measured from the current size; unknown, they do not bind
    paused = np.where(limits.no_up & here, np.minimum(wanted, current), wanted)
    paused = np.where(limits.no_down & here, np.maximum(paused, current), paused)
    highest = np.nan_to_num(current + rules["max_step_up_workers"], nan=np.inf)
    lowest = np.nan_to_num(current - rules["max_step_down_workers"], nan=-np.inf)
    stepped = np.minimum(np.maximum(paused, lowest), highest)
    bounded = np.minimum(np.maximum(stepped, limits.least), limits.most)
    cuts = (
        (Bound.PARTITIONS, (stepped > limits.most) & limits.by_partitions),
        (Bound.MAX, stepped > limits.most),
        (Bound.MIN, stepped < limits.least),
        (Bound.STEP, stepped != paused),
        (Bound.PAUSE, paused != wanted),
    )
    which = np.select([mask for _, mask in cuts], [BOUNDS.index(name) for name, _ in cuts], BOUNDS.index(Bound.NONE))
    return bounded, np.where(np.isnan(bounded), BOUNDS.index(Bound.NONE), which).astype(np.int64)
