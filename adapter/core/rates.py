"""Counters and gauges over a window -> rates. Resets, gaps and single outliers do not reach the result."""

import numpy as np
from numpy.typing import NDArray

from adapter.core.samples import Array

Mask = NDArray[np.bool_]


def since_reset(*counters: Array) -> Mask:
    """Which points lie at or after the last fall of any of the counters (X-04).

    counters: shape (points, rows), oldest first, NaN where there was no sample.
    Returns shape (points, rows): a rate over these points sees no reset.
    """
    usable = np.ones(counters[0].shape, dtype=bool)
    for values in counters:
        highest = np.full(values.shape[1], -np.inf)
        for point, value in enumerate(values):
            fell = value < highest
            usable[:point, fell] = False
            highest = np.where(fell, value, np.fmax(highest, value))
    return usable


def mean_rate(at_s: Array, values: Array, usable: Mask, least_span_s: Array) -> Array:
    """How fast a counter rose between its first and last usable point.

    at_s: shape (points,), increasing. values, usable: shape (points, rows). least_span_s: shape (rows,).
    Returns shape (rows,), units of the counter per second; NaN where the points span less than least_span_s.
    """
    seen = usable & np.isfinite(values)
    first, last = seen.argmax(axis=0), len(at_s) - 1 - seen[::-1].argmax(axis=0)
    rows = np.arange(values.shape[1])
    span_s = np.where(seen.any(axis=0), at_s[last] - at_s[first], 0.0)
    known = (span_s > 0) & (span_s >= least_span_s)
    rise = values[last, rows] - values[first, rows]
    return np.where(known, rise / np.where(known, span_s, 1.0), np.nan)


def robust_slope(at_s: Array, values: Array, usable: Mask, least_span_s: Array) -> Array:
    """The median of the slopes between all pairs of usable points (Theil 1950, Sen 1968).

    Shapes as in mean_rate. A single outlier among five points does not move it.
    Returns shape (rows,), units of the gauge per second; NaN where the points span less than least_span_s.
    """
    seen = np.where(usable, values, np.nan)
    older, newer = np.triu_indices(len(at_s), k=1)
    slopes = ((seen[newer] - seen[older]) / (at_s[newer] - at_s[older])[:, None]).T
    ordered = np.sort(slopes, axis=1)  # NaN sorts last
    count = np.isfinite(slopes).sum(axis=1)
    rows = np.arange(len(ordered))
    if not ordered.shape[1]:
        return np.full(len(ordered), np.nan)
    low, high = (
        ordered[rows, np.maximum(count - 1, 0) // 2],
        ordered[rows, np.minimum(count // 2, ordered.shape[1] - 1)],
    )
    known = np.isfinite(mean_rate(at_s, seen, usable, least_span_s))
    return np.where(known & (count > 0), (low + high) / 2, np.nan)
