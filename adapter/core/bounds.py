"""After the policy: an ordered table of cuts, from what is remembered to what may never be exceeded. Each is named."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from adapter.core.decisions import Bound
from adapter.core.partitions import memory_floor, whole
from adapter.core.rates import Mask
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array, IntArray
from adapter.core.state import WorkloadFacts

BOUNDS = tuple(Bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What no decision leaves, in workers; shape (workloads,).

    by_partitions: the partitions made `most`. by_memory: the partitions a worker can hold made `least`.
    """

    least: Array
    most: Array
    by_partitions: Mask
    by_memory: Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundInputs:
    """What slows a decision down; every array has the shape (workloads,).

    no_up, no_down: a pause of that direction is in force. failover: traffic may come back. sink_unhealthy: what the
    job writes to is not well. behind: the backlog time is more than short. blocked: the last up gained nothing.
    cooling_up, cooling_down: too soon after a change. unaffordable: the pause budget has no room for a down.
    suspect: behind at low utilization. hot_workers: beyond them a hot partition leaves workers idle, NaN for no such
    cap. window_workers: the largest size needed within the window of downs, NaN for none. pending_workers: a target
    that is not enacted yet and still stands, NaN for none.
    """

    no_up: Mask
    no_down: Mask
    failover: Mask
    sink_unhealthy: Mask
    behind: Mask
    blocked: Mask
    cooling_up: Mask
    cooling_down: Mask
    unaffordable: Mask
    suspect: Mask
    hot_workers: Array
    window_workers: Array
    pending_workers: Array


class Clamp(NamedTuple):
    """A size is not left below `least` nor above `most`; NaN, or None for all, does not cut."""

    name: Bound
    least: Array | None
    most: Array | None


def limits(rules: RuleColumns, facts: WorkloadFacts) -> Range:
    """The narrowest of rules, HPA, partitions (S0-16, S4-29) and memory (S4-35); unknown ones do not narrow.

    The maximum wins over every minimum.
    """
    partitions = _at_least_one(facts.partitions)
    allowed = np.fmin(rules.max_workers, _at_least_one(facts.max_workers))
    most = np.fmin(allowed, whole(partitions / rules.slots_per_worker))
    asked = np.minimum(np.fmax(rules.min_workers, facts.min_workers), most)
    least = np.minimum(np.fmax(asked, memory_floor(partitions, rules.max_partitions_per_worker)), most)
    return Range(least=least, most=most, by_partitions=most < allowed, by_memory=least > asked)


def pauses(rules: RuleColumns, facts: WorkloadFacts, at_s: float) -> tuple[Mask, Mask]:
    """Whether ups and whether downs are paused, by the configuration or by an annotation of the HPA."""
    return (
        (at_s < rules.pause_up_until_s) | (facts.pause_up == 1),
        (at_s < rules.pause_down_until_s) | (facts.pause_down == 1),
    )


def _at_least_one(count: Array) -> Array:
    """A cap of 0 is a count that is not known yet."""
    return np.where(count >= 1, count, np.nan)


def table(
    wanted: Array, current: Array, rules: RuleColumns, range_: Range, bound_inputs: BoundInputs
) -> tuple[Clamp, ...]:
    """Every cut in the order in which it is made; those measured from a current size that is unknown do not cut."""
    stay = _Stay(current)
    unhealthy = bound_inputs.sink_unhealthy
    window = np.minimum(whole(bound_inputs.window_workers), current)
    return (
        Clamp(Bound.WINDOW, window, None),
        _latch(np.fmax(wanted, window), current, window, bound_inputs.pending_workers),
        Clamp(Bound.PAUSE, stay.where(bound_inputs.no_down), stay.where(bound_inputs.no_up)),
        Clamp(Bound.FAILOVER, stay.where(bound_inputs.failover), None),
        Clamp(Bound.SINK, stay.where(unhealthy & bound_inputs.behind), stay.where(unhealthy)),
        Clamp(Bound.INEFFECTIVE, None, stay.where(bound_inputs.blocked)),
        Clamp(Bound.COOLDOWN, stay.where(bound_inputs.cooling_down), stay.where(bound_inputs.cooling_up)),
        Clamp(Bound.BUDGET, stay.where(bound_inputs.unaffordable), None),
        Clamp(Bound.TRIAL, None, np.where(bound_inputs.suspect, one_more(current, rules), np.nan)),
        Clamp(Bound.HOT, None, np.maximum(bound_inputs.hot_workers, current)),
        Clamp(Bound.STEP, current - rules.max_step_down_workers, current + rules.max_step_up_workers),
        Clamp(Bound.MAX, None, np.where(range_.by_partitions, np.nan, range_.most)),
        Clamp(Bound.PARTITIONS, None, np.where(range_.by_partitions, range_.most, np.nan)),
        Clamp(Bound.MIN, np.where(range_.by_memory, np.nan, range_.least), None),
        Clamp(Bound.MEMORY, np.where(range_.by_memory, range_.least, np.nan), None),
    )


class _Stay(NamedTuple):
    current: Array

    def where(self, mask: Mask) -> Array:
        return np.where(mask, self.current, np.nan)


def _latch(size: Array, current: Array, window: Array, pending: Array) -> Clamp:
    """A pending target stands until the size asked for turns away from it; a pending down not below the window.

    An up may grow while it waits. A down may not: each piece that an HPA makes of it costs a pause.
    """
    up = (pending > current) & (size >= current)
    down = (pending < current) & (size <= current)
    stands = np.where(down, np.fmax(pending, window), np.nan)
    return Clamp(Bound.LATCH, np.where(up, pending, stands), stands)


def apply_bounds(
    wanted: Array, current: Array, rules: RuleColumns, range_: Range, bound_inputs: BoundInputs
) -> tuple[Array, IntArray]:
    """The bounded size, and the last cut that changed it (an index into BOUNDS). An unknown size stays unknown.

    Minimum, maximum, partitions and memory are cut last: they hold even against a pause.
    """
    size, which = wanted, np.full(len(wanted), BOUNDS.index(Bound.NONE), dtype=np.int64)
    for cut in table(wanted, current, rules, range_, bound_inputs):
        after = clamp(size, cut)
        which = np.where((after == size) | np.isnan(size), which, BOUNDS.index(cut.name))
        size = after
    return size, which


def one_more(current: Array, rules: RuleColumns) -> Array:
    """The next size that an HPA does not take for the present one (X-07)."""
    more: Array = np.floor(current * (1 + rules.tolerance_ratio) + 1e-9) + 1
    return more


def clamp(size: Array, cut: Clamp) -> Array:
    """The size after one cut; an unknown size stays unknown."""
    raised = size if cut.least is None else np.fmax(size, cut.least)
    lowered = raised if cut.most is None else np.fmin(raised, cut.most)
    return np.where(np.isnan(size), np.nan, lowered)
