"""Measure the start of workers, the pause, the delay and the warm-up of each rescale, which replace the settings."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from adapter.core.aggregation import first_largest, largest, pick
from adapter.core.observe import Tick
from adapter.core.rates import Mask
from adapter.core.rescale_stop import LONGEST_WARM_UP_S, LOW_RATIO, SEARCH_S, STOOD_RATIO, RescaleCost, RescaleStop
from adapter.core.samples import Array, IntArray, first_known
from adapter.core.state import Fast, Slow, State

LEAST_RESCALES = 3  # fewer may all be odd
_NOTHING_RATIO = 0.1  # less counts as nothing: a tick may begin or end outside the stop
_LONGEST_S = 3600.0
_FASTER_RATIO = 1.05  # less is noise, or the end of the warm-up
_STEADY_S = 90.0  # no faster for so long: the job is warm
_RISING_S = 45.0  # faster within this time: the job warms up
_BEHIND_S = 10.0  # with a shorter backlog time, the input limits the throughput
# Used from the first rescale on: Kubernetes counts the start of workers exactly, and without the delay, a rate mixes
# samples from before and after the rescale.
_EARLY = ("start_s", "delay_s")


def _second_longest(costs: Array) -> Array:
    """The second-longest of at least two known costs, so that one odd rescale changes nothing."""
    second: Array = np.sort(np.where(np.isnan(costs), -np.inf, costs), axis=0)[-2]
    return second


_USUAL: dict[str, Callable[[Array], Array]] = {
    "start_s": lambda costs: np.nanmedian(costs, axis=0),
    "pause_s": lambda costs: np.nanmedian(costs, axis=0),
    # Where removed workers stay until the pause ends, a scale-down shows the delay without the pause.
    "delay_s": _second_longest,
    # A rescale whose backlog ends early shows only a part of it.
    "warm_up_s": lambda costs: np.nanmax(costs, axis=0),
}


def measure_stop(tick: Tick) -> State:
    """The state with this tick's part of every rescale that is being measured.

    A stop is the work that is missing, as time at the throughput before: what has arrived, and while nothing is
    processed also the backlog. A job that merely has less input misses no work.
    The longest stop of a rescale counts. After it the job warms up: with a backlog, its throughput rises.
    """
    state, fast, index = tick.state, tick.state.fast, tick.workload_index
    stop = _begin(fast, index)
    measuring = np.isfinite(stop.longest_s)
    if not measuring.any():
        return state
    stop = _extend(fast, stop, index)
    over = _has_ended(fast, stop, index)
    stage = first_largest([np.nan_to_num(stop.longest_s)], measuring, index, len(over))
    cost = _cost(fast, stop, stage)
    ended = measuring & over[index]
    stop = replace(stop, longest_s=np.where(ended, np.nan, stop.longest_s))
    return State(fast=replace(fast, stop=stop), slow=_add_costs(state.slow, over & np.isfinite(cost.pause_s), cost))


def _begin(fast: Fast, index: IntArray) -> RescaleStop:
    """The measurements, also of the rescales that this tick is the first to show."""
    stop, before, now_s = fast.stop, fast.signals.throughput_records_per_s, fast.at_s[-1]
    # The first count is no change.
    changed = (fast.spec_changed_at_s == now_s) & (fast.changed_at_s == now_s)
    rescaled = changed[index] & np.isnan(stop.longest_s) & (before > 0)
    if len(fast.at_s) < 2 or not rescaled.any():
        return stop
    begins = rescaled & _rises_steadily(fast.processed[:-1]) & np.isfinite(fast.backlog[-2])
    return replace(
        stop,
        before_records_per_s=np.where(begins, before, stop.before_records_per_s),
        counted_at_s=np.where(begins, fast.at_s[-2], stop.counted_at_s),
        processed_records=np.where(begins, fast.processed[-2], stop.processed_records),
        backlog_records=np.where(begins, fast.backlog[-2], stop.backlog_records),
        lost_s=np.where(begins, 0.0, stop.lost_s),
        longest_s=np.where(begins, 0.0, stop.longest_s),
        delay_s=np.where(begins, np.nan, stop.delay_s),
        # Without a stop there is no warm-up.
        fastest_records_per_s=np.where(begins, np.inf, stop.fastest_records_per_s),
        fastest_at_s=np.where(begins, np.nan, stop.fastest_at_s),
    )


def _rises_steadily(processed: Array) -> Mask:
    """Whether a counter rises at every point: one that is committed rarely seems to stop. Its newest point is known."""
    steps = np.diff(processed, axis=0)
    rises: Mask = (steps > 0).any(axis=0) & ~(steps <= 0).any(axis=0) & np.isfinite(processed[-1])
    return rises


def _extend(fast: Fast, stop: RescaleStop, index: IntArray) -> RescaleStop:
    """The measurements after the newest sample. Counters may begin anew with the restart."""
    processed, backlog = fast.processed[-1], fast.backlog[-1]
    known = np.isfinite(stop.longest_s) & np.isfinite(processed + backlog)
    span_s = np.where(known, fast.at_s[-1] - stop.counted_at_s, np.nan)
    done = np.where(processed < stop.processed_records, processed, processed - stop.processed_records)
    missing_ratio = _missing_ratio(stop, done, backlog, span_s)
    low, stood = missing_ratio > 1 - LOW_RATIO, missing_ratio > 1 - STOOD_RATIO
    # A job that warms up misses work, too. After a standstill that is no part of the stop.
    continues = stood | (low & (stop.lost_s <= LOW_RATIO * span_s))
    lost_s = stop.lost_s + np.where(low, missing_ratio * span_s, 0.0)
    longer, rate = lost_s > stop.longest_s, done / span_s
    faster = rate > _FASTER_RATIO * stop.fastest_records_per_s
    behind = backlog > _BEHIND_S * stop.before_records_per_s
    changed = fast.changed_at_s[index] > stop.resumed_at_s
    # The rest of a warm-up that still goes on when the workers change again is unknown.
    cut_off = changed & np.isfinite(stop.fastest_records_per_s) & (fast.at_s[-1] - stop.fastest_at_s < _RISING_S)
    return RescaleStop(
        before_records_per_s=stop.before_records_per_s,
        counted_at_s=np.where(known, fast.at_s[-1], stop.counted_at_s),
        processed_records=np.where(known, processed, stop.processed_records),
        backlog_records=np.where(known, backlog, stop.backlog_records),
        lost_s=np.where(known, np.where(continues, lost_s, 0.0), stop.lost_s),
        longest_s=np.where(longer, lost_s, stop.longest_s),
        delay_s=np.where(longer, np.maximum(fast.at_s[-1] - lost_s - fast.changed_at_s[index], 0.0), stop.delay_s),
        resumed_at_s=np.where(longer, fast.at_s[-1], stop.resumed_at_s),
        ready_at_s=_first_ready_at_s(stop, fast.spec_changed_at_s[index], fast.all_ready_at_s[index]),
        # Without a backlog the input limits the throughput, and after another change other workers do.
        fastest_records_per_s=np.select(
            [longer, known & (changed | ~behind), faster], [0.0, np.inf, rate], stop.fastest_records_per_s
        ),
        fastest_at_s=np.select(
            [longer, known & cut_off, faster & behind & ~changed],
            [fast.at_s[-1], np.nan, stop.counted_at_s],
            stop.fastest_at_s,
        ),
    )


def _first_ready_at_s(stop: RescaleStop, requested_at_s: Array, all_ready_at_s: Array) -> Array:
    """When all desired workers were first ready since they were requested; NaN until then. Some may be lost later."""
    ready_at_s = np.where(all_ready_at_s >= requested_at_s, all_ready_at_s, np.nan)
    return np.where(stop.ready_at_s >= requested_at_s, stop.ready_at_s, ready_at_s)


def _missing_ratio(stop: RescaleStop, done: Array, backlog: Array, span_s: Array) -> Array:
    """The work that is missing since the last count, as a share of what the job did before; NaN if it is unknown."""
    usual = stop.before_records_per_s * span_s
    arrived = done + backlog - stop.backlog_records
    # A smaller job, a slow sink or records that no consumer can read also leave a backlog, but something is processed.
    waiting = np.where(done < _NOTHING_RATIO * usual, stop.backlog_records, 0.0)
    ratio: Array = np.maximum(np.minimum(waiting + arrived, usual) - done, 0.0) / usual
    return ratio


def _has_ended(fast: Fast, stop: RescaleStop, index: IntArray) -> Mask:
    """Whether the measurement of each workload is over.

    A stop has had time to show, and no stage stands still, is silent or warms up.
    """
    now_s = fast.at_s[-1]
    warms_up = np.isfinite(stop.fastest_records_per_s) & (now_s - stop.fastest_at_s < _STEADY_S)
    warms_up &= now_s - stop.resumed_at_s < LONGEST_WARM_UP_S
    open_ = np.isfinite(stop.longest_s) & ((stop.lost_s > 0) | (stop.counted_at_s < now_s) | warms_up)
    busy = largest(open_.astype(np.float64), index, len(fast.changed_at_s)) == 1
    over: Mask = (now_s - fast.changed_at_s > SEARCH_S) & ~busy
    return over


def _cost(fast: Fast, stop: RescaleStop, stage: IntArray) -> RescaleCost:
    """The cost of each workload's rescale so far: that of the stage with the longest stop."""
    pause_s, resumed_at_s = pick(stop.longest_s, stage), pick(stop.resumed_at_s, stage)
    return RescaleCost(
        start_s=_start_s(fast, pause_s, resumed_at_s, pick(stop.ready_at_s, stage)),
        pause_s=np.minimum(pause_s, _LONGEST_S),
        delay_s=pick(stop.delay_s, stage),
        warm_up_s=pick(stop.fastest_at_s - stop.resumed_at_s, stage),
    )


def _start_s(fast: Fast, pause_s: Array, resumed_at_s: Array, ready_at_s: Array) -> Array:
    """The time from a scale-up until its workers are ready, or until the job stops for them; NaN if it is unknown."""
    requested_at_s = fast.spec_changed_at_s
    before = (pause_s > 0) & (resumed_at_s < requested_at_s)  # the stop belongs to an earlier change
    known = (fast.spec_raised_at_s == requested_at_s) & ~before
    stopped_at_s = np.where(pause_s > 0, resumed_at_s - pause_s, np.inf)
    return np.where(known, np.maximum(np.minimum(ready_at_s, stopped_at_s) - requested_at_s, 0.0), np.nan)


def _add_costs(slow: Slow, measured: Mask, cost: RescaleCost) -> Slow:
    """Add the newest costs to those of the last rescales, and update the usual costs."""
    if not measured.any():
        return slow
    last, usual = {}, {}
    for name in _USUAL:
        was, now = getattr(slow.last_rescales, name), getattr(cost, name)
        last[name] = np.where(measured, np.vstack([was[1:], now]), was)
        usual[name] = np.where(measured, np.nan, getattr(slow.usual_rescale, name))
        usual[name][measured] = _usual(name, last[name][:, measured])
    # The last ones may all be scale-downs, which start no worker.
    usual["start_s"] = first_known(usual["start_s"], slow.usual_rescale.start_s)
    usual["delay_s"] = np.where(usual["pause_s"] == 0, _lasting_delay_s(slow), usual["delay_s"])
    return replace(slow, last_rescales=RescaleCost(**last), usual_rescale=RescaleCost(**usual))


def _lasting_delay_s(slow: Slow) -> Array:
    """The delay that counts while most rescales show no pause; NaN unless three have shown it before.

    Fewer stops may be chance. With workers to spare, the work that a short pause delays is done before the next sample.
    """
    was = slow.usual_rescale
    known = (np.isfinite(slow.last_rescales.delay_s).sum(axis=0) >= LEAST_RESCALES) | (was.pause_s == 0)
    return np.where(known, was.delay_s, np.nan)


def _usual(name: str, costs: Array) -> Array:
    """The usual value of a cost. With too few rescales it is NaN, or for costs of _EARLY the largest one."""
    shown, usual = np.isfinite(costs).sum(axis=0), np.full(costs.shape[1], np.nan)
    enough, early = shown >= LEAST_RESCALES, (shown > 0) & (shown < LEAST_RESCALES) & (name in _EARLY)
    usual[enough] = _USUAL[name](costs[:, enough])
    usual[early] = np.nanmax(costs[:, early], axis=0)
    return usual
