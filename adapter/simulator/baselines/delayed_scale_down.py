"""Scale-downs wait, and then go to the largest size recommended meanwhile."""

import numpy as np

from adapter.core.rates import Mask
from adapter.core.samples import Array
from adapter.simulator.baselines import SYNC_S


class DelayedScaleDown:
    """Of L jobs; as the Flink autoscaler's class of this name (FLINK-36018, FLINK-36535)."""

    def __init__(self, lanes: int, scale_down_interval_s: float) -> None:
        self._interval_s = scale_down_interval_s
        self._first_s = np.full(lanes, np.nan)
        # 2 * size + 1 where the load was outside of its bounds then, of every sync of the interval; -1: nothing
        self._recommended = np.full((int(scale_down_interval_s // SYNC_S) + 1, lanes), -1.0)
        self._turn = 0

    def recommend(self, at_s: float, size: Array, outside: Mask) -> tuple[Array, Mask]:
        """Once a sync. size: a smaller one that is recommended now, NaN where none is.

        Returns the size to go down to now, NaN where it waits, and whether the load was outside of its bounds when
        that was recommended; of equal sizes the last counts.
        """
        asked = ~np.isnan(size)
        self._turn = (self._turn + 1) % len(self._recommended)
        self._recommended[self._turn] = -1.0
        if not asked.any():
            return np.full_like(size, np.nan), asked
        self._first_s = np.where(asked & np.isnan(self._first_s), at_s, self._first_s)
        self._recommended[(self._recommended < 2 * size + 2) & asked] = -1.0
        self._recommended[self._turn] = np.where(asked, 2 * size + outside, -1.0)
        largest = self._recommended.max(axis=0)
        due = asked & (at_s - self._first_s >= self._interval_s)
        return np.where(due, largest // 2, np.nan), largest % 2 == 1

    def clear(self, lanes: Mask) -> None:
        """Forget all of these jobs: they rescale, or need no scale-down any more."""
        if lanes.any():
            self._first_s[lanes] = np.nan
            self._recommended[:, lanes] = -1.0
