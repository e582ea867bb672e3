"""Merge the samples of several sources: one value for each signal of a stage, and the backlogs that contradict."""

from collections.abc import Container, Mapping

import numpy as np

from adapter.core.rates import Mask
from adapter.core.samples import COUNTERS, Array, Dispute, IntArray, Names, SampleColumns, usable

_TWICE = 2.0  # a broker and an engine count at different times, so a smaller ratio proves nothing
_BACKLOG = "backlog_records"
_CLAIM = "fleet"  # a workload that two fleets discover is a fault, whatever their sources


def first_sources(place: IntArray, rank: IntArray, used: Mask) -> Mask:
    """The rows to use: at each place, those of the source with the lowest rank that has a value."""
    _, at = np.unique(place, return_inverse=True)
    lowest = np.full(len(place), np.iinfo(np.int64).max)
    np.minimum.at(lowest, at[used], rank[used])
    chosen: Mask = rank == lowest[at]
    return chosen


def chosen_rows(columns: Mapping[str, Names], rank: IntArray, value: Array) -> Mask:
    """Which rows of one tick to keep where several sources report the same signal of the same stage."""
    workload, stage, signal = (columns[name] for name in ("workload", "stage", "signal"))
    place = (workload.codes * len(stage.names) + stage.codes) * len(signal.names) + signal.codes
    used = usable(value)
    return _named(signal, {_CLAIM}) | ~used | first_sources(place, rank, used)


def with_counter_sources(columns: SampleColumns, rank: IntArray) -> SampleColumns:
    """Add, for each counter that several sources may report, a row that states which source was chosen."""
    signal, value = columns.signal, columns.value
    counters = np.flatnonzero(usable(value) & (rank > 0) & _named(signal, COUNTERS))
    rows = np.concatenate([np.arange(len(rank)), counters])
    names = (*signal.names, *(COUNTERS.get(name, "") for name in signal.names))
    return SampleColumns(
        workload=Names(columns.workload.names, columns.workload.codes[rows]),
        stage=Names(columns.stage.names, columns.stage.codes[rows]),
        signal=Names(names, np.concatenate([signal.codes, signal.codes[counters] + len(signal.names)])),
        value=np.concatenate([value, rank[counters]]),
    )


def disputes(columns: Mapping[str, Names], rank: IntArray, value: Array) -> dict[str, Dispute]:
    """The workloads for which a source reports more than twice, or less than half, the backlog of the chosen source."""
    workload, signal, source = columns["workload"], columns["signal"], columns["source"].sorted()
    counted = _named(signal, {_BACKLOG}) & usable(value)
    if len(np.unique(source.codes[counted])) < 2:
        return {}
    rows = np.stack([column[counted] for column in (workload.codes, rank, source.codes)], axis=1)
    keys, at = np.unique(rows, axis=0, return_inverse=True)
    sums = np.bincount(at.ravel(), weights=value[counted])
    _, first, of_workload = np.unique(keys[:, 0], return_index=True, return_inverse=True)
    leading = first[of_workload.ravel()]
    low, high = np.sort([sums, sums[leading]], axis=0)
    found: dict[str, Dispute] = {}
    for row in sorted(np.flatnonzero(high > _TWICE * low).tolist(), key=lambda row: float(high[row] - low[row])):
        used = leading[row]
        first_name, other_name = (source.names[keys[place, 2]] for place in (used, row))
        counts = f"{sums[used]:,.0f} records according to {first_name} and {sums[row]:,.0f} according to {other_name}"
        ranked = keys[used, 1] < keys[row, 1]
        why = f"{first_name} comes first in read and has precedence" if ranked else "the larger one is used"
        text = f"two sources contradict: the backlog is {counts}; check both; {why}"
        found[workload.names[keys[row, 0]]] = Dispute(records=float(high[row] - low[row]), sentence=text)
    return found


def _named(signal: Names, names: Container[str]) -> Mask:
    return np.array([name in names for name in signal.names], dtype=bool)[signal.codes]
