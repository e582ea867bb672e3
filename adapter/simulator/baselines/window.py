"""Rates and means of L jobs over a window of samples that ends at each job's newest sample."""

import numpy as np

from adapter.core.rates import Mask
from adapter.core.samples import Array, IntArray
from adapter.simulator.baselines import SYNC_S, BaselineInput

_AT, _APPENDED, _PROCESSED, _BACKLOG, _COUNTS = 0, 1, 2, 3, 4


class SampleWindow:
    """The samples of the last window_s of each job.

    Time is the time of the samples, so that delayed samples only delay the window. It fills from the first sample at
    least settle_s after the job began to work. A restart, or a counter that falls, empties it. At the first sync every
    job counts as long running. Rates and means are NaN where unknown; all arrays have the shape (L,).
    """

    def __init__(self, lanes: int, window_s: float, *, settle_s: float = 0.0, gauges: int = 1) -> None:
        """gauges: number of means. Samples are at least one sync apart."""
        self._window_s, self._settle_s = window_s, settle_s
        self._slots = int((window_s + settle_s) // SYNC_S) + 3
        # per gauge, the running sum and count of its known values: a mean needs two look-ups
        self._ring = np.full((lanes * self._slots, _COUNTS + 2 * gauges), np.nan)
        self._start = np.arange(lanes) * self._slots
        self._oldest, self._newest = np.zeros(lanes, dtype=int), np.full(lanes, -1)
        self._sums = np.zeros((2 * gauges, lanes))
        self._first = self._last = self._sample(self._newest)
        self._running_since_s = np.full(lanes, -np.inf)  # when the job began to work, NaN in a pause
        self._full_at_s = np.full(lanes, np.nan)
        self.samples = np.zeros(lanes)
        self.fresh: Mask = np.zeros(lanes, dtype=bool)
        self.full: Mask = np.zeros(lanes, dtype=bool)

    def take(self, seen: BaselineInput, *gauges: Array) -> None:
        """Add the samples of one sync. A sample counts once, and only if its counts and its first gauge are known.

        Sets `fresh` (the job had a new sample), `full` (the window is full) and `samples` (number in the window).
        """
        began = np.where(np.isnan(self._running_since_s), seen.at_s, self._running_since_s)
        self._running_since_s = np.where(seen.restarting > 0, np.nan, began)
        counts = np.stack([seen.sampled_at_s, seen.appended_records, seen.processed_records, seen.backlog_records])
        usable = np.isfinite(counts).all(axis=0) & np.isfinite(gauges[0]) & (seen.sampled_at_s >= self._running_since_s)
        empty = np.isnan(self._running_since_s) | (usable & self._is_reset(counts))
        self._oldest = np.where(empty, self._newest + 1, self._oldest)
        self._full_at_s = np.where(empty, np.nan, self._full_at_s)
        self.fresh = usable & ~((counts[_AT] <= self._last[_AT]) & (self._oldest <= self._newest))
        self._append(counts, np.stack(gauges))
        self._age(counts[_AT])

    def appended_records_per_s(self) -> Array:
        """Input over the window; NaN with fewer than two samples, as for all rates."""
        return self._rate(_APPENDED)

    def processed_records_per_s(self) -> Array:
        """Throughput over the window."""
        return self._rate(_PROCESSED)

    def backlog_records_per_s(self) -> Array:
        """Growth of the backlog over the window; negative where it shrinks."""
        return self._rate(_BACKLOG)

    def backlog_records(self) -> Array:
        """The backlog of the newest sample."""
        return np.where(self.samples > 0, self._last[_BACKLOG], np.nan)

    def mean(self, gauge: int = 0, least: int = 1) -> Array:
        """Mean of a gauge over the samples in which it is known; NaN for fewer than `least`."""
        totals = self._sums[2 * gauge : 2 * gauge + 2] - self._first[_COUNTS + 2 * gauge : _COUNTS + 2 * gauge + 2]
        known = (self.samples > 0) & (totals[1] >= least)
        return np.where(known, totals[0] / np.where(known, totals[1], 1.0), np.nan)

    def _is_reset(self, counts: Array) -> Mask:
        fell: Mask = (counts[_APPENDED] < self._last[_APPENDED]) | (counts[_PROCESSED] < self._last[_PROCESSED])
        return fell

    def _append(self, counts: Array, gauges: Array) -> None:
        self._newest = self._newest + self.fresh
        self._oldest = np.maximum(self._oldest, self._newest - self._slots + 1)
        place = (self._start + self._newest % self._slots)[self.fresh]
        self._ring[place] = np.concatenate([counts, self._sums]).T[self.fresh]
        known = np.isfinite(gauges) & self.fresh
        self._sums[0::2] += np.where(known, gauges, 0.0)
        self._sums[1::2] += known

    def _age(self, at_s: Array) -> None:
        """Update `full`, and drop samples older than the window; time is that of the newest sample."""
        settled = self.fresh & (at_s >= self._running_since_s + self._settle_s)
        self._full_at_s = np.where(settled & np.isnan(self._full_at_s), at_s + self._window_s, self._full_at_s)
        self._last = self._sample(self._newest)
        self.full = (self._last[_AT] >= self._full_at_s) & (self._oldest <= self._newest)
        since_s = np.where(self.full, self._last[_AT] - self._window_s, -np.inf)
        while (old := (self._times(self._oldest) < since_s) & (self._oldest < self._newest)).any():
            self._oldest = self._oldest + old
        self._first = self._sample(self._oldest)
        self.samples = (self._newest - self._oldest + 1).astype(np.float64)

    def _sample(self, number: IntArray) -> Array:
        """The sample with this number, counted from 0, of each lane; shape (columns, L)."""
        found: Array = self._ring.take(self._start + number % self._slots, axis=0)
        return found.T

    def _times(self, number: IntArray) -> Array:
        times: Array = self._ring[self._start + number % self._slots, _AT]
        return times

    def _rate(self, row: int) -> Array:
        known = self.samples >= 2
        span_s = np.where(known, self._last[_AT] - self._first[_AT], 1.0)
        return np.where(known, (self._last[row] - self._first[row]) / span_s, np.nan)
