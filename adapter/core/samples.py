"""What was seen at one tick, as aligned arrays: one row a stage, one entry a workload."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from adapter.core.rules import Rules

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

# What a source may say of a stage. Counters are cumulative and may reset; the rest are gauges.
STAGE_SIGNALS = (
    "processed_records",  # counter: records processed (committed offsets, summed)
    "appended_records",  # counter: records appended to the input (log-end offsets, summed)
    "backlog_records",  # gauge: records waiting
    "throughput_records_per_s",  # gauge, for sources that know only the rate
    "input_rate_records_per_s",  # gauge, for sources that know only the rate
    "utilization_ratio",  # gauge, 0..1: busy time or CPU
    "backpressured_ratio",  # gauge, 0..1: time spent waiting for what is downstream
    "stuck_backlog_records",  # gauge: the part of the backlog in partitions whose offset does not move
    "highest_partition_backlog_records",  # gauge: the largest backlog of a single partition
    "hottest_partition_ratio",  # gauge, >= 1: input of the heaviest partition / input of the mean one
    "slowest_worker_ratio",  # gauge: throughput of the slowest worker / throughput of the median one
)
# What a source may say of a whole workload.
WORKLOAD_SIGNALS = (
    "partitions",  # gauge: Kafka partitions or Pravega segments of the input
    "uncommitted_partitions",  # gauge: partitions without a committed offset; the counters leave them out
    "spec_workers",  # gauge: workers asked for (the scale target's spec)
    "workers",  # gauge: workers that exist (status)
    "ready_workers",  # gauge: workers that are ready
    "min_workers",  # gauge: the HPA's minReplicas
    "max_workers",  # gauge: the HPA's maxReplicas
    "pause_up",  # 1 while a pause of ups is in force, else 0
    "pause_down",  # 1 while a pause of downs is in force, else 0
    "fleet",  # index of the fleet that found the workload
    "running",  # 1 while the job runs, 0 while it does not
    "restarts",  # counter: how often the job was started again
    "sink_healthy",  # 1 while what the job writes to is well, 0 while it is not
    "bad_annotations",  # gauge: how many annotations of the workload's HPA are not understood
    "failover",  # 1 while downs are frozen because traffic may come back, else 0
)
OVERRIDE = "rule."  # and a parameter's name: a workload signal, the number by which `parameters` overrides it
OVERRIDES = tuple(
    OVERRIDE + setting.name for setting in fields(Rules) if setting.metadata.keys().isdisjoint(("hidden", "fixed"))
)
_LARGEST = 2.0**63
EVERY = "*"  # a fault that speaks of every workload without a sample
WHOLE = ""  # the stage of a workload whose stages are not visible


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """One tick of one shard.

    at_s: Unix seconds of the tick.
    workloads: "namespace/name", sorted, unique.
    stages: (workload, stage), sorted, unique; the stage is WHOLE where stages are not visible.
    by_stage: signal of STAGE_SIGNALS -> shape (len(stages),), NaN where it was not seen.
    by_workload: signal of WORKLOAD_SIGNALS or OVERRIDES -> shape (len(workloads),), NaN where it was not seen.
    faults: workload -> why a source could not tell; the key EVERY speaks of every workload without a sample.
    """

    at_s: float
    workloads: tuple[str, ...] = ()
    stages: tuple[tuple[str, str], ...] = ()
    by_stage: Mapping[str, Array] = field(default_factory=dict)
    by_workload: Mapping[str, Array] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)

    def stage(self, signal: str) -> Array:
        """A stage signal, shape (len(stages),); all NaN when nobody spoke of it."""
        return self.by_stage.get(signal, np.full(len(self.stages), np.nan))

    def whole(self, signal: str) -> Array:
        """A workload signal, shape (len(workloads),); all NaN when nobody spoke of it."""
        return self.by_workload.get(signal, np.full(len(self.workloads), np.nan))


def assemble(
    at_s: float,
    rows: Iterable[tuple[str, str, str, float]],
    faults: Iterable[tuple[str, str]] = (),
) -> Samples:
    """Rows of one tick, in any order, as aligned arrays.

    rows: (workload, stage, signal, value). A value that is negative, not finite (X-06), beyond a 64-bit count, or not
    of a known signal (OVERRIDES among them) is left out: every signal counts something, so that -1 and NaN are ways to
    say unknown. Of two values for one place the larger counts, so that the order of rows cannot change the answer.
    faults: (workload, sentence); the different ones of one workload become one, in alphabetical order, joined by "; ".
    """
    places: dict[str, dict[tuple[str, str], float]] = {}
    for workload, stage, signal, value in rows:
        if 0 <= value <= _LARGEST:
            place = (workload, stage if signal in _STAGE_SIGNALS else WHOLE)
            seen = places.setdefault(signal, {})
            seen[place] = max(value, seen.get(place, value))
    told = {signal: places[signal] for signal in _SIGNALS if signal in places}
    stages = sorted({place for signal in told if signal in _STAGE_SIGNALS for place in told[signal]})
    workloads = sorted({workload for seen in told.values() for workload, _ in seen})
    whole = [(workload, WHOLE) for workload in workloads]
    return Samples(
        at_s=at_s,
        workloads=tuple(workloads),
        stages=tuple(stages),
        by_stage={s: _column(told[s], stages) for s in STAGE_SIGNALS if s in told},
        by_workload={s: _column(told[s], whole) for s in told if s not in _STAGE_SIGNALS},
        faults=_joined(faults),
    )


def _joined(faults: Iterable[tuple[str, str]]) -> dict[str, str]:
    told: dict[str, list[str]] = {}
    for workload, sentence in sorted(set(faults)):
        told.setdefault(workload, []).append(sentence)
    return {workload: "; ".join(sentences) for workload, sentences in told.items()}


def _column(seen: Mapping[tuple[str, str], float], places: Iterable[tuple[str, str]]) -> Array:
    return np.array([seen.get(place, np.nan) for place in places], dtype=np.float64)


_STAGE_SIGNALS = frozenset(STAGE_SIGNALS)
_SIGNALS = (*STAGE_SIGNALS, *WORKLOAD_SIGNALS, *OVERRIDES)


def first_known(*choices: Array) -> Array:
    """Of each place the first value that is not NaN."""
    found = choices[0]
    for choice in choices[1:]:
        found = np.where(np.isnan(found), choice, found)
    return found
