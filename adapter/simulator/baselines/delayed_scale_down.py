"""Delay scale-downs, then apply the largest size recommended during the delay."""

import numpy as np

from adapter.core.rates import Mask
from adapter.core.samples import Array
from adapter.simulator.baselines import SYNC_S


class DelayedScaleDown:
    """The delayed scale-downs of L jobs, as in the Flink autoscaler's class (FLINK-36018, FLINK-36535)."""

    def __init__(self, lanes: int, scale_down_interval_s: float) -> None:
        self._interval_s = scale_down_interval_s
        self._first_s = np.full(lanes, np.nan)
        # for every sync of the interval: 2 * size, + 1 if the load was outside its bounds; -1: no recommendation
        self._recommended = np.full((int(scale_down_interval_s // SYNC_S) + 1, lanes), -1.0)
        self._turn = 0

    def recommend(self, at_s: float, size: Array, outside: Mask) -> tuple[Array, Mask]:
        """Add the recommendations of one sync. size: the smaller size recommended now, NaN without one.

        Returns the size to scale down to now, NaN during the delay, and whether the load was outside its bounds when
        that size was last recommended.
        """
        recommended = ~np.isnan(size)
        self._turn = (self._turn + 1) % len(self._recommended)
        self._recommended[self._turn] = -1.0
        if not recommended.any():
            return np.full_like(size, np.nan), recommended
        self._first_s = np.where(recommended & np.isnan(self._first_s), at_s, self._first_s)
        self._recommended[(self._recommended < 2 * size + 2) & recommended] = -1.0
        self._recommended[self._turn] = np.where(recommended, 2 * size + outside, -1.0)
        largest = self._recommended.max(axis=0)
        due = recommended & (at_s - self._first_s >= self._interval_s)
        return np.where(due, largest // 2, np.nan), largest % 2 == 1

    def clear(self, lanes: Mask) -> None:
        """Discard the recommendations of these jobs: they rescale, or no longer need a scale-down."""
        if lanes.any():
            self._first_s[lanes] = np.nan
            self._recommended[:, lanes] = -1.0
