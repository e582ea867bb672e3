"""What was seen at one tick, as aligned arrays: one row a stage, one entry a workload."""

from collections.abc import Iterable, Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class Names:
    """A column of texts: the different ones, and which of them each row has."""

    names: Sequence[str]
    codes: IntArray

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Names":
        """The column of these texts."""
        code = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        return cls(tuple(code), np.array([code[text] for text in texts], dtype=np.int64))

    def sorted(self) -> "Names":
        """The same column with its names in order."""
        order = sorted(range(len(self.names)), key=self.names.__getitem__)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return Names(tuple(self.names[place] for place in order), rank[self.codes])


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleColumns:
    """The values of one tick, one a row, in any order."""

    workload: Names
    stage: Names
    signal: Names
    value: Array


def assemble(
    at_s: float,
    rows: Iterable[tuple[str, str, str, float]],
    faults: Iterable[tuple[str, str]] = (),
) -> Samples:
    """assemble_columns for rows of (workload, stage, signal, value)."""
    workload, stage, signal, value = zip(*rows, strict=True) if (rows := tuple(rows)) else ((), (), (), ())
    columns = SampleColumns(
        workload=Names.of(workload),
        stage=Names.of(stage),
        signal=Names.of(signal),
        value=np.array(value, dtype=np.float64),
    )
    return assemble_columns(at_s, columns, faults)


def assemble_columns(at_s: float, columns: SampleColumns, faults: Iterable[tuple[str, str]] = ()) -> Samples:
    """The values of one tick as aligned arrays.

    A value that is negative, not finite (X-06), beyond a 64-bit count, or not of a known signal (OVERRIDES among them)
    is left out: every signal counts something, so that -1 and NaN are ways to say unknown. Of two values for one place
    the larger counts, so that the order of rows cannot change the result.
    faults: (workload, sentence); the different ones of one workload become one, in alphabetical order, joined by "; ".
    """
    known = np.array([signal in _KNOWN_SIGNALS for signal in columns.signal.names], dtype=bool)
    used = (columns.value >= 0) & (columns.value <= _LARGEST) & known[columns.signal.codes]
    value, signal = columns.value[used] + 0.0, columns.signal.codes[used]  # + 0.0: there is one zero
    workload, stage = columns.workload.sorted(), columns.stage.sorted()
    of_workload, of_stage = workload.codes[used], stage.codes[used]
    by_signal = {name: np.flatnonzero(signal == code) for code, name in enumerate(columns.signal.names)}
    seen = {name: by_signal[name] for name in _SIGNALS if len(by_signal.get(name, ()))}
    place = of_workload * max(len(stage.names), 1) + of_stage
    staged = [rows for name, rows in seen.items() if name in _STAGE_SIGNALS]
    places = np.unique(place[np.concatenate(staged)]) if staged else np.empty(0, dtype=np.int64)
    workloads = np.unique(of_workload)
    owners, stages = np.divmod(places, max(len(stage.names), 1))
    return Samples(
        at_s=at_s,
        workloads=tuple(workload.names[code] for code in workloads),
        stages=tuple(
            (workload.names[w], stage.names[s]) for w, s in zip(owners.tolist(), stages.tolist(), strict=True)
        ),
        by_stage={n: _column(places, place[rows], value[rows]) for n, rows in seen.items() if n in _STAGE_SIGNALS},
        by_workload={
            n: _column(workloads, of_workload[rows], value[rows]) for n, rows in seen.items() if n not in _STAGE_SIGNALS
        },
        faults=_joined(faults),
    )


def _joined(faults: Iterable[tuple[str, str]]) -> dict[str, str]:
    sentences: dict[str, list[str]] = {}
    for workload, sentence in sorted(set(faults)):
        sentences.setdefault(workload, []).append(sentence)
    return {workload: "; ".join(each) for workload, each in sentences.items()}


def _column(places: IntArray, place: IntArray, value: Array) -> Array:
    """The values at their places, NaN where there is none; of two at one place the larger."""
    column = np.full(len(places), np.nan)
    np.fmax.at(column, np.searchsorted(places, place), value)
    return column


_STAGE_SIGNALS = frozenset(STAGE_SIGNALS)
_SIGNALS = (*STAGE_SIGNALS, *WORKLOAD_SIGNALS, *OVERRIDES)
_KNOWN_SIGNALS = frozenset(_SIGNALS)


def first_known(*choices: Array) -> Array:
    """Of each place the first value that is not NaN."""
    found = choices[0]
    for choice in choices[1:]:
        found = np.where(np.isnan(found), choice, found)
    return found
