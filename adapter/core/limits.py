"""The range that no decision leaves, the pauses in force, and the smallest step that an HPA takes."""

from dataclasses import dataclass

import numpy as np

from adapter.core.partitions import fewest_workers, whole
from adapter.core.rates import Mask
from adapter.core.rule_columns import RuleColumns
from adapter.core.rules import MAX_WORKERS_IF_UNKNOWN
from adapter.core.samples import Array, first_known
from adapter.core.state import WorkloadFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The sizes that are allowed, in workers; shape (workloads,)."""

    least: Array
    most: Array
    ceiling: Array  # the largest size of a scale-up: `most` without the workers that later stages keep
    allowed: Array  # `most` without the partitions
    by_partitions: Mask  # the partitions set `most`, or keep it at the present size
    by_memory: Mask  # max_partitions_per_worker sets `least`
    cut: Mask  # the partitions or the maximum set `least`, because the minimum is larger
    relayed: Array  # workers that later stages can use, see relayed_load.relayed_workers
    by_default: Mask  # no maximum is known, so `allowed` is the default one


def limits(rules: RuleColumns, facts: WorkloadFacts, relayed: Array, current: Array, target: Array) -> Range:
    """The range that rules, HPA, partitions (S0-16, S4-29) and memory (S4-35) leave; an unknown limit does not apply.

    The maximum wins over every minimum.
    target: the former one; a crash, which lowers the present size, does not lower the default maximum.
    """
    partitions = at_least_one(facts.partitions)
    known = np.fmin(rules.max_workers, at_least_one(facts.max_workers))
    allowed = first_known(known, default_maximum(rules.min_workers, np.fmax(current, target)))
    # Later stages may use more workers than the partitions feed.
    fed = np.maximum(whole(partitions / rules.slots_per_worker), np.nan_to_num(relayed))
    # The partitions take no workers from a job with later stages: their load changes and is unknown during a stop.
    kept = np.where((relayed >= 0) & (current > fed), current, fed)
    most = np.fmin(allowed, kept)
    minimum = np.fmax(rules.min_workers, facts.min_workers)
    floor, of_memory = np.minimum(minimum, most), fewest_workers(partitions, rules.max_partitions_per_worker)
    least = np.minimum(np.fmax(floor, of_memory), most)
    return Range(
        least=least,
        most=most,
        ceiling=np.fmax(np.fmin(allowed, fed), least),
        allowed=allowed,
        by_partitions=kept <= allowed,
        by_memory=least > floor,
        cut=np.fmax(minimum, of_memory) > most,
        relayed=relayed,
        by_default=np.isnan(known),
    )


def default_maximum(min_workers: Array | int, current: Array) -> Array:
    """The maximum where none is known. It removes no workers, because a source may miss an HPA for minutes."""
    return np.fmax(np.maximum(min_workers, MAX_WORKERS_IF_UNKNOWN), current)


def pauses(rules: RuleColumns, facts: WorkloadFacts, at_s: float) -> tuple[Mask, Mask]:
    """Whether scale-ups and whether scale-downs are paused, by the configuration or by an annotation of the HPA."""
    return (
        (at_s < rules.pause_up_until_s) | (facts.pause_up == 1),
        (at_s < rules.pause_down_until_s) | (facts.pause_down == 1),
    )


def at_least_one(count: Array) -> Array:
    """The count; 0 stands for a count that is not known yet, so it becomes NaN."""
    return np.where(count >= 1, count, np.nan)


def one_more(current: Array, rules: RuleColumns) -> Array:
    """The smallest larger size outside the tolerance of an HPA (X-07)."""
    more: Array = np.floor(current * (1 + rules.tolerance_ratio) + 1e-9) + 1
    return more
