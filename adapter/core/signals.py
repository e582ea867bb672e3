"""Rates and counts -> the derived signals. Unknown is NaN, never 0."""

import numpy as np

from adapter.core.formatting import DAY_S
from adapter.core.rates import Mask
from adapter.core.samples import Array

HORIZON_S = DAY_S  # stands for an infinite time, which a Quantity cannot express
LEVEL_RATIO = 0.02  # of the throughput; members that commit at different times change the backlog by less
_STILL_PER_S = 1e-9  # one record in thirty years: a quotient by less means nothing and may overflow


def is_processing(rate: Array) -> Mask:
    """Whether anything is processed at all; False where the rate is unknown."""
    return rate > _STILL_PER_S


def input_rate(throughput: Array, growth: Array) -> Array:
    """Records that arrive a second: throughput + backlog growth (S3-02), at least 0."""
    return np.maximum(throughput + growth, 0.0)


def backlog_time(backlog: Array, throughput: Array) -> Array:
    """Seconds to clear the backlog if nothing new arrived: backlog / throughput (S0-03, S3-03).

    Both sides in one unit, records or bytes (X-12). 0 without backlog, even at no throughput (X-02);
    HORIZON_S where nothing moves (X-01).
    """
    processing = is_processing(throughput)
    times = np.where(processing, backlog / np.where(processing, throughput, 1.0), HORIZON_S)
    times = np.where(backlog <= 0, 0.0, np.minimum(times, HORIZON_S))
    return np.where(np.isnan(backlog) | np.isnan(throughput), np.nan, times)


def drain_time(backlog: Array, capacity: Array, arriving: Array) -> Array:
    """Seconds until the backlog is gone while input goes on: backlog / (capacity - input rate).

    HORIZON_S where capacity does not exceed the input.
    """
    return backlog_time(backlog, capacity - arriving)


def relative_lag_change(throughput: Array, growth: Array) -> Array:
    """The factor on the workers that stops the growth: 1 + growth / throughput (S1-12).

    At no throughput it counts as one record/s (S1-18), so that the answer is never infinite.
    """
    return 1.0 + growth / np.where(throughput <= _STILL_PER_S, 1.0, throughput)


def gated_lag_change(change: Array, backlog: Array, threshold: Array) -> Array:
    """The relative lag change as one of an HPA's two metrics: unchanged above the threshold, otherwise at most 0.

    S1-13 multiplies by the sign of backlog - threshold. That is undefined at the threshold, and below it a negative
    change would add workers. Neither adds workers here.
    """
    gated = np.where(backlog > threshold, change, 0.0 - np.abs(change))
    return np.where(np.isnan(backlog), np.nan, gated)
