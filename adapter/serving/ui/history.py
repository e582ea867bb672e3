"""The last minutes of every workload, for sparklines; in memory alone."""

import threading
from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import isnan

from adapter.serving.snapshots.snapshot import Snapshot

WINDOW_S = 600.0
MOST_TICKS = 600
MOST_POINTS = 120
SERIES = ("input_rate_records_per_s", "throughput_records_per_s", "backlog_time_s", "required_workers", "ready_workers")


@dataclass(frozen=True, slots=True)
class _Tick:
    at_s: float
    number: int  # of the tick on the clock's grid
    place: dict[str, int]  # workload -> index; one dictionary for all ticks of the same workloads
    values: "array[float]"  # SERIES of one workload after the other, NaN where unknown


class History:
    """Samples of every workload, one a tick, bounded in time and ticks. 1 000 workloads take 20 kB a tick."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self.window_s = window_s
        self._ticks: deque[_Tick] = deque(maxlen=MOST_TICKS)
        self._lock = threading.Lock()

    def add(self, snapshot: Snapshot) -> None:
        """Add a snapshot, unless it is not newer than the last."""
        with self._lock:
            last = self._ticks[-1] if self._ticks else None
            if last is not None and snapshot.at_s <= last.at_s:
                return
            self._ticks.append(_tick(snapshot, last))
            while self._ticks[0].at_s < snapshot.at_s - self.window_s:
                self._ticks.popleft()

    def series(self, workloads: Sequence[str]) -> tuple[list[float], dict[str, dict[str, list[float | None]]]]:
        """Times (Unix seconds, at most MOST_POINTS + 1) and workload -> series -> a value for each time, None unknown.

        A workload that is not known has None everywhere.
        """
        with self._lock:
            ticks = _thin(tuple(self._ticks))
        return [tick.at_s for tick in ticks], {
            workload: {name: [_value(tick, workload, offset) for tick in ticks] for offset, name in enumerate(SERIES)}
            for workload in workloads
        }


def _tick(snapshot: Snapshot, last: _Tick | None) -> _Tick:
    place = {workload: index for index, workload in enumerate(snapshot.entries.workloads)}
    if last is not None and place == last.place:
        place = last.place
    values = chain.from_iterable(zip(*map(snapshot.entries.number, SERIES), strict=True))
    return _Tick(snapshot.at_s, round(snapshot.at_s / snapshot.tick_s), place, array("f", values))


def _thin(ticks: tuple[_Tick, ...]) -> tuple[_Tick, ...]:
    """The last tick of each interval of the clock's grid, so that a curve keeps its points as it moves on."""
    numbers = ticks[-1].number - ticks[0].number + 1 if ticks else 0
    stride = max(1, -(-numbers // MOST_POINTS))
    return tuple({tick.number // stride: tick for tick in ticks}.values())


def _value(tick: _Tick, workload: str, offset: int) -> float | None:
    index = tick.place.get(workload)
    if index is None:
        return None
    value = tick.values[index * len(SERIES) + offset]
    return None if isnan(value) else round(value, 3)
