"""Rescales -> how long each one stopped the job, so that the measured pause replaces `rescale_pause_s`."""

from dataclasses import replace

import numpy as np

from adapter.core.grouping import largest
from adapter.core.observe import Tick
from adapter.core.rates import Mask
from adapter.core.rescale_stop import RescaleStop
from adapter.core.samples import Array, IntArray
from adapter.core.state import Fast, Slow, State

LEAST_RESCALES = 3  # the median of fewer would follow a single odd rescale
_SEARCH_S = 300.0  # from the last change of the workers: new workers start, and metrics are late
_LOW_RATIO = 0.75  # of the throughput before: commits every few seconds do not make as large a drop
_STOOD_RATIO = 0.25
_LONGEST_S = 3600.0


def measure_stop(tick: Tick) -> State:
    """The state with this tick's part of every rescale that is being measured.

    A stop is the work that is missing, as time at the throughput before; a job that only has less input misses none.
    The longest stop of a rescale counts.
    """
    state, fast, index = tick.state, tick.state.fast, tick.workload_index
    stop = _begun(fast, index)
    measuring = np.isfinite(stop.longest_s)
    if not measuring.any():
        return state
    stop = _extended(fast, stop)
    over = _over(fast, stop, index)
    longest_s = largest(stop.longest_s, index, len(over))
    ended = measuring & over[index]
    stop = replace(stop, longest_s=np.where(ended, np.nan, stop.longest_s))
    return State(fast=replace(fast, stop=stop), slow=_remembered(state.slow, over & np.isfinite(longest_s), longest_s))


def _begun(fast: Fast, index: IntArray) -> RescaleStop:
    """The measurements, also of the rescales that this tick is the first to show."""
    stop, before = fast.stop, fast.signals.throughput_records_per_s
    rescaled = (fast.spec_changed_at_s == fast.at_s[-1])[index] & np.isnan(stop.longest_s) & (before > 0)
    if len(fast.at_s) < 2 or not rescaled.any():
        return stop
    begins = rescaled & _rises_steadily(fast.processed[:-1])
    return RescaleStop(
        before_records_per_s=np.where(begins, before, stop.before_records_per_s),
        counted_at_s=np.where(begins, fast.at_s[-2], stop.counted_at_s),
        processed_records=np.where(begins, fast.processed[-2], stop.processed_records),
        backlog_records=np.where(begins, fast.backlog[-2], stop.backlog_records),
        lost_s=np.where(begins, 0.0, stop.lost_s),
        longest_s=np.where(begins, 0.0, stop.longest_s),
    )


def _rises_steadily(processed: Array) -> Mask:
    """Whether a counter rises at every point: one that is committed rarely seems to stop. Its newest point is known."""
    steps = np.diff(processed, axis=0)
    rises: Mask = (steps > 0).any(axis=0) & ~(steps <= 0).any(axis=0) & np.isfinite(processed[-1])
    return rises


def _extended(fast: Fast, stop: RescaleStop) -> RescaleStop:
    """The measurements after the newest sample. Counters may begin anew with the restart."""
    processed, backlog = fast.processed[-1], fast.backlog[-1]
    known = np.isfinite(stop.longest_s) & np.isfinite(processed + backlog)
    span_s = fast.at_s[-1] - stop.counted_at_s
    done = np.where(processed < stop.processed_records, processed, processed - stop.processed_records)
    arrived = done + backlog - stop.backlog_records
    usual = np.where(known, stop.before_records_per_s * span_s, 1.0)
    missing_ratio = np.maximum(np.fmin(arrived, usual) - done, 0.0) / usual
    low, stood = missing_ratio > 1 - _LOW_RATIO, missing_ratio > 1 - _STOOD_RATIO
    lost_s = stop.lost_s + np.where(low, missing_ratio * span_s, 0.0)
    # A job that warms up misses work, too. After a standstill that is no part of the stop.
    continues = stood | (low & (stop.lost_s <= _LOW_RATIO * span_s))
    return RescaleStop(
        before_records_per_s=stop.before_records_per_s,
        counted_at_s=np.where(known, fast.at_s[-1], stop.counted_at_s),
        processed_records=np.where(known, processed, stop.processed_records),
        backlog_records=np.where(known, backlog, stop.backlog_records),
        lost_s=np.where(known, np.where(continues, lost_s, 0.0), stop.lost_s),
        longest_s=np.where(known, np.fmax(stop.longest_s, lost_s), stop.longest_s),
    )


def _over(fast: Fast, stop: RescaleStop, index: IntArray) -> Mask:
    """Which workloads have had time for their stop, and none of their stages stands still or is silent."""
    now_s = fast.at_s[-1]
    open_ = np.isfinite(stop.longest_s) & ((stop.lost_s > 0) | (stop.counted_at_s < now_s))
    busy = largest(open_.astype(np.float64), index, len(fast.changed_at_s)) == 1
    over: Mask = (now_s - fast.changed_at_s > _SEARCH_S) & ~busy
    return over


def _remembered(slow: Slow, measured: Mask, longest_s: Array) -> Slow:
    """The pauses of the last rescales with the newest ones, and their median."""
    if not measured.any():
        return slow
    was = slow.pauses_s
    pauses_s = np.where(measured, np.vstack([was[1:], np.minimum(longest_s, _LONGEST_S)]), was)
    known = pauses_s[:, measured]
    enough = np.isfinite(known).sum(axis=0) >= LEAST_RESCALES
    pause_s = slow.pause_s.copy()
    pause_s[measured] = np.where(enough, np.nanmedian(known, axis=0), np.nan)
    return replace(slow, pauses_s=pauses_s, pause_s=pause_s)
