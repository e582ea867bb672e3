"""Counters and gauges over a window -> rates. Resets, gaps and single outliers do not change the result."""

from collections.abc import Iterable
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from adapter.core.samples import Array, first_known

Mask = NDArray[np.bool_]
_JUMP = 10.0  # of all other rises of the window together
_LEAST_POINTS_OF_A_STALL = 5
_POINTS_OF_A_RISE = 5  # four rates, three changes
_STILL_SPANS = 2.0  # in half windows: a counter without a step for a whole window stands still


def since_reset(values: Array) -> Mask:
    """Which points are at or after the last reset of a counter (X-04): a rate over these points sees no reset.

    values: shape (points, rows), oldest first, NaN where there was no sample. Returns the same shape.
    """
    usable, highest = np.ones(values.shape, dtype=bool), np.full(values.shape[1], -np.inf)
    for point, value in enumerate(values):
        fell = value < highest
        usable[:point, fell] = False
        highest = np.where(fell, value, np.fmax(highest, value))
    return usable


def since_jump(values: Array) -> Mask:
    """Which points are at or after the last rise that is too large for the work of one tick.

    A group that skips records, and a part of a sum that returns after a missing sample, look like that. A real step of
    that size has a rate half a window later. Shapes as in since_reset.
    """
    usable, last, rises = np.ones(values.shape, dtype=bool), np.full(values.shape[1], np.nan), np.zeros(values.shape)
    for point, value in enumerate(values):
        rises[point] = np.maximum(value - last, 0.0)
        last = first_known(value, last)
    rises = np.nan_to_num(rises)
    others = rises.sum(axis=0) - rises
    jumps = (others > 0) & (rises > _JUMP * others)
    for point in range(1, len(values)):
        usable[:point, jumps[point]] = False
    return usable


def ends_gap(known: Mask) -> Mask:
    """Whether the newest point follows a missing one, and the last two before the gap were of successive ticks.

    A source that is read at every second tick has no gaps.
    known: shape (points, rows). Returns shape (rows,).
    """
    first, last = np.full(known.shape[1], -1), np.full(known.shape[1], -2)  # of the run before the gap
    for point, seen in enumerate(known[:-1]):
        first = np.where(seen & (last != point - 1), point, first)
        last = np.where(seen, point, last)
    ends: Mask = known[-1] & (last < len(known) - 2) & (last > first)
    return ends


def counter_rate(at_s: Array, values: Array, near: Mask, far: Mask, least_span_s: Array) -> Array:
    """How fast a counter rises. It may rise in steps, because it is committed or scraped rarely.

    A counter that rises at every near point is measured from the first to the last of them. A counter that rises in
    steps is measured by its slope over the far points, because the time of a step is known only to a tick. A counter
    has stopped if it has not risen for twice its longest step; one that never rose needs a longer window.
    at_s: shape (points,), increasing. values, near, far: shape (points, rows). least_span_s: positive, shape (rows,).
    Returns shape (rows,), units of the counter per second; NaN with a single step, or over less than least_span_s.
    """
    close, wide = np.where(near, values, np.nan), _Steps(at_s, np.where(far, values, np.nan))
    return first_known(
        np.where(rises_always(close), _Steps(at_s, close).rate(least_span_s), np.nan),
        wide.slope_rate(least_span_s, _slope(at_s, np.where(far, values, np.nan))),
        wide.zero_rate(_STILL_SPANS * least_span_s),
    )


def _slope(at_s: Array, values: Array) -> Array:
    """The least squares slope over all known points. For a staircase it is better than any two steps."""
    seen = np.isfinite(values)
    count = np.maximum(seen.sum(axis=0), 1)
    times_s = np.where(seen, (at_s - at_s[-1])[:, None], 0.0)  # small numbers: the result must not depend on the date
    apart_s = np.where(seen, times_s - total(times_s) / count, 0.0)
    spread = total(apart_s * apart_s)
    risen = np.where(seen, values - np.fmin.reduce(values, axis=0, initial=np.nan), 0.0)
    return total(apart_s * risen) / np.where(spread > 0, spread, np.nan)


def is_stalled(values: Array, usable: Mask) -> Mask:
    """Whether a counter that rose at every usable point, at least twice, has not risen at the last two; shape (rows,).

    This finds an interruption on the second tick. One rise alone may be the step of a counter that rises in steps.
    """
    if len(values) < _LEAST_POINTS_OF_A_STALL:
        return np.zeros(values.shape[1], dtype=bool)
    rose = np.diff(values, axis=0) > 0
    known = usable[1:] & usable[:-1] & np.isfinite(values[1:]) & np.isfinite(values[:-1])
    still = np.cumprod((known & ~rose)[::-1], axis=0)[::-1].astype(bool)  # the run at the end
    before = known & ~still
    stands: Mask = (still.sum(axis=0) >= 2) & (before.sum(axis=0) >= 2) & (rose | ~before).all(axis=0)
    return stands


def last_rate(at_s: Array, values: Array, usable: Mask) -> Array:
    """How fast a counter rose between its last two points; NaN if it rises in steps.

    A counter that stood still once, for at least two ticks, and has risen twice since was interrupted.
    Shapes as in counter_rate. Returns shape (rows,), units of the counter per second.
    """
    if len(at_s) < 2:
        return np.full(values.shape[1], np.nan)
    known, rose = usable[1:] & usable[:-1], np.diff(values, axis=0)
    stands = known & (rose <= 0)
    stops = stands[0] + (stands[1:] & ~stands[:-1]).sum(axis=0)
    long = stands[0] | (stands.sum(axis=0) >= 2)  # the first points may show only the end of it
    interrupted = (stops == 1) & long & (rose[-2:] > 0).all(axis=0)
    return np.where(known[-1] & ((stops == 0) | interrupted), rose[-1] / (at_s[-1] - at_s[-2]), np.nan)


def confirmed_rate(at_s: Array, values: Array, usable: Mask) -> Array:
    """The lower of the last two rates, so one that two ticks confirm. Shapes and NaN as in last_rate."""
    if len(at_s) < 3:
        return np.full(values.shape[1], np.nan)
    return np.minimum(last_rate(at_s[:-1], values[:-1], usable[:-1]), last_rate(at_s, values, usable))


def rate_rise(at_s: Array, values: Array, usable: Mask) -> Array:
    """How fast the rate of a counter rises: the least of its last three changes, at least 0.

    A step of the rate changes at most two of them, so it is no rise.
    Shapes as in counter_rate. Returns shape (rows,), units of the counter per second squared; NaN if one of the last
    five points is unknown or the counter did not rise between them.
    """
    points = slice(-_POINTS_OF_A_RISE, None)
    if len(at_s) < _POINTS_OF_A_RISE:
        return np.full(values.shape[1], np.nan)
    spans_s = np.diff(at_s[points])[:, None]
    rates = np.diff(values[points], axis=0) / spans_s
    known = usable[points].all(axis=0) & (rates > 0).all(axis=0)
    # A rate belongs to the middle of its interval.
    rises = np.diff(rates, axis=0) / ((spans_s[1:] + spans_s[:-1]) / 2)
    return np.where(known, np.maximum(rises.min(axis=0), 0.0), np.nan)


def is_rising(at_s: Array, values: Array, usable: Mask) -> Mask:
    """Whether all usable points of the newer half exceed all of the older half; shape (rows,).

    A sawtooth does not rise, whatever its phase relative to the ticks.
    """
    seen = usable & np.isfinite(values)
    times = np.where(seen, at_s[:, None], np.nan)
    middle_s = (np.fmin.reduce(times, axis=0) + np.fmax.reduce(times, axis=0)) / 2
    older, newer = seen & (times <= middle_s), seen & (times > middle_s)
    highest = np.fmax.reduce(np.where(older, values, np.nan), axis=0)
    above: Mask = np.fmin.reduce(np.where(newer, values, np.nan), axis=0) > highest
    return above


def total(rows: Iterable[Array]) -> Array:
    """The sum point by point. np.sum has another order for one stage, so neighbours would change the last bits."""
    return reduce(add, rows)


def rises_always(values: Array) -> Mask:
    """Whether a counter rises at each known point after its first one; shape (rows,)."""
    stands: Mask = values[1:] <= np.fmax.accumulate(values, axis=0)[:-1]  # False where a point is unknown
    rises: Mask = ~np.logical_or.reduce(stands, axis=0)
    return rises


class _Steps:
    """The first and last point of each row's counter, and its first and last rise."""

    def __init__(self, at_s: Array, values: Array) -> None:
        known, highest = np.isfinite(values), np.fmax.accumulate(values, axis=0)
        rose = np.zeros_like(known)
        rose[1:] = values[1:] > highest[:-1]
        known_s, risen_s = np.where(known, at_s[:, None], np.nan), np.where(rose, at_s[:, None], np.nan)
        steps_s = risen_s[1:] - np.fmax.accumulate(risen_s, axis=0)[:-1]
        self.first_s, self.last_s = np.fmin.reduce(known_s, axis=0), np.fmax.reduce(known_s, axis=0)
        self.first, self.last = np.fmin.reduce(values, axis=0), highest[-1]
        self.began_s, self.rose_s = np.fmin.reduce(risen_s, axis=0), np.fmax.reduce(risen_s, axis=0)
        self.longest_s = np.fmax.reduce(steps_s, axis=0, initial=0.0)

    def rate(self, least_span_s: Array) -> Array:
        """The rate from the first point to the last, for counters that rose at every point."""
        span_s = self.last_s - self.first_s
        rate: Array = (self.last - self.first) / np.where(span_s >= least_span_s, span_s, np.nan)
        return rate

    def slope_rate(self, least_span_s: Array, slope: Array) -> Array:
        """The slope of a counter with two steps; 0 if the last step is too long ago."""
        known = self.rose_s - self.began_s >= least_span_s
        stopped = self.last_s - self.rose_s > 2 * self.longest_s
        return np.where(known, np.where(stopped, 0.0, slope), np.nan)

    def zero_rate(self, least_span_s: Array) -> Array:
        """0 for a counter that never rose, otherwise NaN."""
        span_s = self.last_s - self.first_s
        return np.where(np.isnan(self.rose_s) & (span_s >= least_span_s), 0.0, np.nan)


def robust_slope(at_s: Array, values: Array, usable: Mask, least_span_s: Array) -> Array:
    """The median of the slopes between all pairs of usable points (Theil 1950, Sen 1968).

    Shapes as in counter_rate. A single outlier among five points does not move it.
    Returns shape (rows,), units of the gauge per second; NaN where the points span less than least_span_s.
    """
    some = usable.any(axis=1)  # the pairs grow with the square of the points
    at_s, seen = at_s[some], np.where(usable, values, np.nan)[some]
    older, newer = np.triu_indices(len(at_s), k=1)
    slopes = ((seen[newer] - seen[older]) / (at_s[newer] - at_s[older])[:, None]).T
    ordered = np.sort(slopes, axis=1)  # NaN sorts last
    count = np.isfinite(slopes).sum(axis=1)
    rows = np.arange(len(ordered))
    if not ordered.shape[1]:
        return np.full(len(ordered), np.nan)
    low, high = ordered[rows, (count - 1) // 2], ordered[rows, count // 2]
    when = np.where(np.isfinite(seen), at_s[:, None], np.nan)
    span_s = np.fmax.reduce(when) - np.fmin.reduce(when)
    return np.where(span_s >= least_span_s, (low + high) / 2, np.nan)
