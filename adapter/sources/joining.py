"""Join the samples of several sources: one value for each signal of a stage, and the backlogs that contradict."""

from collections.abc import Iterator, Mapping
from itertools import groupby

import numpy as np

from adapter.core.rates import Mask
from adapter.core.samples import Array, IntArray, Names

_TWICE = 2.0  # broker and engine count at different times, so smaller ratios prove nothing
_BACKLOG = "backlog_records"
_CLAIM = "fleet"  # two fleets that find one workload are a fault, whatever their sources


def first_sources(place: IntArray, rank: IntArray, used: Mask) -> Mask:
    """The rows that are used: of each place those of the source with the lowest rank that has a value."""
    _, at = np.unique(place, return_inverse=True)
    lowest = np.full(len(place), np.iinfo(np.int64).max)
    np.minimum.at(lowest, at[used], rank[used])
    chosen: Mask = rank == lowest[at]
    return chosen


def chosen_rows(columns: Mapping[str, Names], rank: IntArray, value: Array) -> Mask:
    """Which rows of one tick remain, where several sources report the same signal of the same stage."""
    workload, stage, signal = (columns[name] for name in ("workload", "stage", "signal"))
    place = (workload.codes * len(stage.names) + stage.codes) * len(signal.names) + signal.codes
    claims = np.array([name == _CLAIM for name in signal.names], dtype=bool)[signal.codes]
    return claims | ~(value >= 0) | first_sources(place, rank, value >= 0)


def disputes(columns: Mapping[str, Names], rank: IntArray, value: Array) -> dict[str, tuple[float, str]]:
    """Workload -> the difference of two sources' backlogs in records, and a sentence, where one is twice the other."""
    workload, signal, source = (columns[name] for name in ("workload", "signal", "source"))
    counted = np.array([name == _BACKLOG for name in signal.names], dtype=bool)[signal.codes] & (value >= 0)
    if not len(signal.names) or len(np.unique(source.codes[counted])) < 2:
        return {}
    sums: dict[tuple[int, int, int], float] = {}
    rows = (workload.codes, rank, source.codes, value)
    for *key, records in zip(*(column[counted].tolist() for column in rows), strict=True):
        place = (key[0], key[1], key[2])
        sums[place] = sums.get(place, 0.0) + records
    found = ((key, list(group)) for key, group in groupby(sorted(sums), key=lambda place: place[0]))
    return dict(_contradictions(found, sums, workload, source))


def _contradictions(
    found: Iterator[tuple[int, list[tuple[int, int, int]]]],
    sums: Mapping[tuple[int, int, int], float],
    workload: Names,
    source: Names,
) -> Iterator[tuple[str, tuple[float, str]]]:
    for code, places in found:
        first = places[0]
        other = max(places, key=lambda place: abs(sums[place] - sums[first]))
        low, high = sorted((sums[first], sums[other]))
        if high > _TWICE * low:
            names = [f"{sums[place]:,.0f} records by {source.names[place[2]]}" for place in (first, other)]
            text = f"two sources contradict: the backlog is {names[0]} and {names[1]}"
            fix = f"check both; {source.names[first[2]]} comes first in read and has precedence"
            yield workload.names[code], (high - low, f"{text}; {fix}")
