"""Find the rescales in a timeline: how long each stopped the job, and how fast the job recovered."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from adapter.backtest.timelines import Timeline
from adapter.core.rescale_stop import LONGEST_WARM_UP_S, LOW_RATIO, SEARCH_S, STOOD_RATIO
from adapter.core.samples import Array, IntArray

_BEFORE_S = 120.0  # window of the median throughput before a change
_BACK_RATIO = 0.9
_WARM_RATIO = 0.95
_LONGEST_START_S = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescale:
    """One change of the workers; NaN where the timeline does not show a value.

    A pause shorter than a tick is underestimated, because the job catches up within the tick. Speeds after the pause
    are known only while records wait.
    """

    at_s: float
    up: bool
    start_s: float  # from desired to ready workers
    pause_s: float  # the length of a full stop that loses the same throughput
    shows_while_down: bool  # whether a tick in the stop reports a backlog
    first_ratio: float  # speed of a worker right after the pause / its capacity
    warm_up_s: float  # from the end of the pause until full speed


def rescales(
    timeline: Timeline, worker_capacity_records_per_s: float = np.nan, scaling_exponent: float = 1.0
) -> tuple[Rescale, ...]:
    """The changes of the ready workers, oldest first; changes within SEARCH_S of each other are merged.

    n workers carry n ** scaling_exponent times the capacity of one, which only the warm-up needs.
    """
    capacity = timeline.workers**scaling_exponent * worker_capacity_records_per_s
    return tuple(_rescale(timeline, tick, capacity) for tick in _changes(timeline))


def worker_changes(workers: Array) -> IntArray:
    """The ticks whose number of workers differs from the last known one before."""
    return np.flatnonzero(np.nan_to_num(np.diff(_carry(workers)))) + 1


def _carry(values: Array) -> Array:
    """The values; an unknown one is the last known one before."""
    known = np.where(np.isfinite(values), np.arange(len(values)), 0)
    return values[np.maximum.accumulate(known)]


def _changes(timeline: Timeline) -> Iterator[int]:
    """The ticks at which the number of workers changes."""
    workers, last_s = timeline.workers, -np.inf
    for tick in worker_changes(workers).tolist():
        if workers[tick] > 0:
            if timeline.at_s[tick] - last_s > SEARCH_S:
                yield tick
            last_s = timeline.at_s[tick]


def _rescale(timeline: Timeline, tick: int, capacity: Array) -> Rescale:
    workers, before = _carry(timeline.workers), _before(timeline, tick)
    begin, end = _stop(timeline, tick, before)
    is_seen = np.isfinite(before)  # not in an outage, whose end says nothing about the stop
    first_ratio, warm_up_s = _warm_up(timeline, end, capacity) if is_seen else (np.nan, np.nan)
    return Rescale(
        at_s=float(timeline.at_s[tick]),
        up=bool(workers[tick] > workers[tick - 1]),
        start_s=_start(timeline, tick),
        pause_s=_pause(timeline, before, begin, end),
        shows_while_down=bool(np.isfinite(timeline.backlog_records[begin:end]).any()),
        first_ratio=first_ratio,
        warm_up_s=warm_up_s,
    )


def _start(timeline: Timeline, tick: int) -> float:
    """The time from the request for this number of workers until they are ready."""
    spec = timeline.spec_workers
    requested = worker_changes(spec[: tick + 1])
    if timeline.ready_workers[tick] != _carry(spec)[tick] or not len(requested) or np.isnan(spec[requested[-1] - 1]):
        return np.nan
    waited_s = float(timeline.at_s[tick] - timeline.at_s[requested[-1]])
    return waited_s if waited_s <= _LONGEST_START_S else np.nan


def _before(timeline: Timeline, tick: int) -> float:
    """The median throughput before the change, NaN where it is unknown."""
    first = max(tick - round(2 * _BEFORE_S / timeline.step_s), 0)
    earlier = timeline.throughput_records_per_s[first:tick]
    return float(np.nanmedian(earlier)) if np.isfinite(earlier).any() else np.nan


def _stop(timeline: Timeline, tick: int, before: float) -> tuple[int, int]:
    """The ticks [begin, end) of the largest drop of the throughput near the change; empty without one."""
    if not before > 0:
        return tick, tick
    # A job that reports nothing while it is down has no throughput then.
    lost = 1 - np.nan_to_num(timeline.throughput_records_per_s) / before
    reach = round(SEARCH_S / timeline.step_s)
    first = max(tick - reach // 4, 0)
    low = lost[first : tick + reach] > 1 - LOW_RATIO
    edges = np.flatnonzero(np.diff(np.concatenate([[0], low.astype(np.int8), [0]]))).reshape(-1, 2) + first
    if not len(edges):
        return tick, tick
    begin, end = max(edges.tolist(), key=lambda edge: float(lost[edge[0] : edge[1]].sum()))
    # A job that recovers slowly has a low throughput for longer than the stop.
    stood = np.flatnonzero(lost[begin:end] > 1 - STOOD_RATIO) + begin
    return (int(stood[0]), int(stood[-1]) + 1) if len(stood) else (begin, end)


def _pause(timeline: Timeline, before: float, begin: int, end: int) -> float:
    """Lost records / throughput before; includes the ticks around the stop whose rates reach into it.

    A job that resumes within a tick resumes at the speed of the next tick.
    """
    if not before > 0:
        return np.nan
    if begin == end:
        return 0.0
    edge = round(timeline.pace_s / timeline.step_s)
    rate = np.nan_to_num(timeline.throughput_records_per_s)
    expected = np.full(len(rate), before)
    again = end if rate[begin] < STOOD_RATIO * before else end - 1
    if edge == 1 and again + 1 < len(rate):
        expected[again] = max(rate[again + 1], rate[again], 1e-9 if again == end else before)
    around = slice(max(begin - edge, 0), end + edge)
    lost = np.where(rate < _BACK_RATIO * expected, 1 - rate / expected, 0.0)[around]
    return float(lost.sum() * timeline.step_s)


def _warm_up(timeline: Timeline, end: int, capacity: Array) -> tuple[float, float]:
    """Initial speed after a stop and the time until full speed; NaN where too few records wait to measure them.

    The rate in which the job resumes includes a part of the stop, and is no speed.
    """
    last = min(end + round(LONGEST_WARM_UP_S / timeline.step_s), len(timeline.at_s))
    edge = round(timeline.pace_s / timeline.step_s)
    able = capacity[end:last]
    ratio = timeline.throughput_records_per_s[end:last] / np.where(able > 0, able, np.nan)
    waits = timeline.backlog_time_s[end:last] > 2 * timeline.pace_s
    full = np.flatnonzero((ratio >= _WARM_RATIO) & waits)
    if len(full) and full[0] <= edge:
        return 1.0, 0.0
    if not len(full) or not (waits & np.isfinite(ratio))[: full[0]].all():
        return np.nan, np.nan
    return float(np.clip(ratio[edge], 0.0, 1.0)), float(full[0] * timeline.step_s)
