"""The samples of one tick as aligned arrays: one element a stage, one element a workload."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from adapter.core.rules import Rules

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

# The signals of a stage. Counters are cumulative and may reset.
STAGE_SIGNALS = (
    "processed_records",  # counter: records processed (committed offsets, summed)
    "appended_records",  # counter: records appended to the input (log-end offsets, summed)
    "backlog_records",  # gauge: records waiting
    "throughput_records_per_s",  # gauge, from sources that have only the rate
    "input_rate_records_per_s",  # gauge, from sources that have only the rate
    "utilization_ratio",  # gauge, 0..1: busy time, the mean of the subtasks
    "cpu_ratio",  # gauge, 0..1: CPU that the workers use / their limit
    "memory_ratio",  # gauge, 0..1: memory that the workers use / their limit
    "network_ratio",  # gauge, 0..1: network traffic of the workers / their limit
    "busiest_subtask_ratio",  # gauge, 0..1: busy time of the busiest subtask
    "backpressured_ratio",  # gauge, 0..1: time spent waiting for downstream stages
    "stuck_backlog_records",  # gauge: the part of the backlog in partitions whose offset does not move
    "highest_partition_backlog_records",  # gauge: the largest backlog of a single partition
    "hottest_partition_ratio",  # gauge, >= 1: input of the heaviest partition / input of the mean one
    "slowest_worker_ratio",  # gauge: throughput of the slowest worker / throughput of the median one
)
# Counter -> the workload signal that names the source of its values: two sources count from different starts.
COUNTERS = {"processed_records": "processed_source", "appended_records": "appended_source"}
# The signals of a whole workload.
WORKLOAD_SIGNALS = (
    "partitions",  # gauge: Kafka partitions or Pravega segments of the input
    "uncommitted_partitions",  # gauge: partitions without a committed offset; the counters leave them out
    "spec_workers",  # gauge: requested workers (spec.replicas of the scale target)
    "workers",  # gauge: existing workers (status.replicas)
    "ready_workers",  # gauge: ready workers
    "min_workers",  # gauge: the HPA's minReplicas
    "max_workers",  # gauge: the HPA's maxReplicas
    "pause_up",  # 1 while scale-up is paused, else 0
    "pause_down",  # 1 while scale-down is paused, else 0
    "fleet",  # index of the fleet that discovered the workload
    "running",  # 1 while the job runs, 0 while it does not
    "restarts",  # counter: restarts of the job
    "sink_healthy",  # 1 while the system that the job writes to is healthy, else 0
    "bad_annotations",  # gauge: annotations of the workload's HPA that cannot be parsed
    "processed_source",  # position in `read` of the source of processed_records, if several sources report it
    "appended_source",  # the same for appended_records
    "failover",  # 1 while scale-down is blocked because traffic may return, else 0
)
OVERRIDE = "rule."  # prefix of a workload signal that overrides a parameter; see core.parameters
OVERRIDES = tuple(
    OVERRIDE + setting.name for setting in fields(Rules) if setting.metadata.keys().isdisjoint(("hidden", "fixed"))
)
_LARGEST = 2.0**63
MOST_FAULTS = 5  # of one workload in its sentence
EVERY = "*"  # the workload of a fault that concerns every workload without a sample
WHOLE = ""  # the stage of a workload whose stages are not visible


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispute:
    """Two sources report backlogs that contradict."""

    records: float  # the difference
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """One tick of one shard. NaN is an unknown value."""

    at_s: float  # Unix seconds of the tick
    workloads: tuple[str, ...] = ()  # "namespace/name", sorted, unique
    stages: tuple[tuple[str, str], ...] = ()  # (workload, stage), sorted, unique; WHOLE if stages are not visible
    by_stage: Mapping[str, Array] = field(default_factory=dict)  # STAGE_SIGNALS -> shape (len(stages),)
    by_workload: Mapping[str, Array] = field(default_factory=dict)  # other signals -> shape (len(workloads),)
    faults: Mapping[str, str] = field(default_factory=dict)  # workload or EVERY -> why samples are missing
    assumed: frozenset[str] = frozenset()  # workloads whose faults are only assumptions: no source failed
    disputes: Mapping[str, Dispute] = field(default_factory=dict)  # of workloads

    def stage(self, signal: str) -> Array:
        """A stage signal, shape (len(stages),); all NaN if no source has it."""
        return self.by_stage.get(signal, np.full(len(self.stages), np.nan))

    def whole(self, signal: str) -> Array:
        """A workload signal, shape (len(workloads),); all NaN if no source has it."""
        return self.by_workload.get(signal, np.full(len(self.workloads), np.nan))


@dataclass(frozen=True, slots=True)
class Names:
    """A column of texts."""

    names: Sequence[str]  # the distinct texts
    codes: IntArray  # index of the text of each row

    def sorted(self) -> "Names":
        """The same column with sorted names."""
        order = sorted(range(len(self.names)), key=self.names.__getitem__)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return Names(tuple(self.names[place] for place in order), rank[self.codes])


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleColumns:
    """The values of one tick, one value a row, in any order."""

    workload: Names
    stage: Names
    signal: Names
    value: Array


def assemble_columns(at_s: float, columns: SampleColumns, faults: Iterable[tuple[str, str]] = ()) -> Samples:
    """Align the values of one tick.

    Ignores values of unknown signals and values that are negative, not finite (X-06) or larger than a 64-bit count:
    every signal is a count or a ratio, so -1 and NaN mean unknown. Of two values for one place the larger one counts,
    so that the order of rows does not matter. A workload that two fleets find has a fault and no values.
    faults: (workload, message). The first MOST_FAULTS messages of one workload are sorted and joined by "; ".
    """
    known = np.array([signal in _KNOWN_SIGNALS for signal in columns.signal.names], dtype=bool)
    claims = _claims(columns)
    used = usable(columns.value) & known[columns.signal.codes]
    if claims:
        used &= ~np.isin(columns.workload.codes, list(claims)) | _is_fleet(columns)
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
        faults=_join_faults(
            [*faults, *((columns.workload.names[at], fleet_conflict(each)) for at, each in claims.items())]
        ),
    )


def usable(value: Array) -> NDArray[np.bool_]:
    """Which values are a count or a ratio: not negative, not NaN and at most a 64-bit count."""
    fits: NDArray[np.bool_] = (value >= 0) & (value <= _LARGEST)
    return fits


def fleet_conflict(fleets: Iterable[float]) -> str:
    """The fault of a workload that several fleets find. fleets: their indices in the configuration."""
    names = " and ".join(f"fleets[{fleet:g}]" for fleet in fleets)
    return f"{names} both find this workload: change their match, groups or namespace so that one of them does"


def _is_fleet(columns: SampleColumns) -> NDArray[np.bool_]:
    return np.array([signal == "fleet" for signal in columns.signal.names], dtype=bool)[columns.signal.codes]


def _claims(columns: SampleColumns) -> dict[int, list[float]]:
    """The workloads that more than one fleet finds, by their code, each with its fleets."""
    rows = _is_fleet(columns) & (columns.value >= 0)
    workload, fleet = columns.workload.codes[rows], columns.value[rows]
    lowest, highest = np.full((2, len(columns.workload.names)), [[np.inf], [-np.inf]])
    np.fmin.at(lowest, workload, fleet)
    np.fmax.at(highest, workload, fleet)
    return {code: np.unique(fleet[workload == code]).tolist() for code in np.flatnonzero(lowest < highest).tolist()}


def _join_faults(faults: Iterable[tuple[str, str]]) -> dict[str, str]:
    sentences: dict[str, list[str]] = {}
    for workload, sentence in sorted(set(faults)):
        sentences.setdefault(workload, []).append(sentence)
    return {workload: _join_sentences(each) for workload, each in sentences.items()}


def _join_sentences(sentences: list[str]) -> str:
    more = len(sentences) - MOST_FAULTS
    return "; ".join([*sentences[:MOST_FAULTS], *([f"{more} more"] if more > 0 else [])])


def _column(places: IntArray, place: IntArray, value: Array) -> Array:
    """The values at their places, NaN without a value; of two values at one place the larger one."""
    column = np.full(len(places), np.nan)
    np.fmax.at(column, np.searchsorted(places, place), value)
    return column


_STAGE_SIGNALS = frozenset(STAGE_SIGNALS)
_SIGNALS = (*STAGE_SIGNALS, *WORKLOAD_SIGNALS, *OVERRIDES)
_KNOWN_SIGNALS = frozenset(_SIGNALS)


def first_known(*choices: Array) -> Array:
    """The first value at each place that is not NaN."""
    found = choices[0]
    for choice in choices[1:]:
        found = np.where(np.isnan(found), choice, found)
    return found
