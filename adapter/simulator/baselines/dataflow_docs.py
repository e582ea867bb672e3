"""Dataflow's streaming autoscaling as an older documentation describes it: backlog and CPU for a couple of minutes."""

import numpy as np

from adapter.core.partitions import whole
from adapter.core.samples import Array
from adapter.simulator.baselines import BaselineInput, OperatorSettings
from adapter.simulator.baselines.window import SampleWindow
from adapter.simulator.hpa import Hpa

# Numbers of the older documentation "Deploying a pipeline" (S3-20), which does not name them.
_PERIOD_S = 120.0  # "a couple of minutes"
_UP_CPU_RATIO = 0.2  # no scale-up below it
_CLEAR_S = 150.0  # a scale-up clears the backlog within this time
_DOWN_CPU_RATIO = 0.75  # scale down below it, to a size at which the CPU equals it
# Our choice.
_LOW_BACKLOG_S = 10.0  # a backlog from this time on
_THROUGHPUT_S = 60.0  # window of the throughput by which a backlog is divided


class DataflowDocs:
    """Sets the size itself. A restart begins a new period (our choice)."""

    hpa: Hpa | None = None

    def __init__(self, job: OperatorSettings) -> None:
        self._job, lanes = job, len(job.max_workers)
        self._recent = SampleWindow(lanes, _THROUGHPUT_S)
        self._period = SampleWindow(lanes, _PERIOD_S, gauges=2)

    def wanted(self, seen: BaselineInput) -> Array:
        """A new size after a full period of backlog, or of idleness, shape (L,)."""
        period, workers = self._period, seen.spec_workers
        period.take(seen, seen.cpu_ratio, self._has_backlog(seen))
        cpu, backlogged = period.mean(), period.mean(1)
        up = (backlogged == 1) & (cpu > _UP_CPU_RATIO)
        down = (backlogged == 0) & (cpu < _DOWN_CPU_RATIO)
        size = np.where(
            up,
            np.fmax(self._catch_up_workers(workers), workers),
            np.where(down, workers * cpu / _DOWN_CPU_RATIO, np.nan),
        )
        size = np.clip(whole(size), 1.0, self._job.max_workers)
        return np.where(period.fresh & period.full & (size != workers), size, np.nan)

    def _has_backlog(self, seen: BaselineInput) -> Array:
        """1 where the newest backlog is at least _LOW_BACKLOG_S, 0 where it is less, NaN where it is unknown."""
        recent = self._recent
        recent.take(seen, seen.cpu_ratio)
        least = _LOW_BACKLOG_S * recent.processed_records_per_s()
        backlogged = (seen.backlog_records >= least) & (seen.backlog_records > 0)
        return np.where(np.isnan(least), np.nan, backlogged.astype(np.float64))

    def _catch_up_workers(self, workers: Array) -> Array:
        """Workers that process the input and clear the backlog in _CLEAR_S, at the present throughput of a worker."""
        processed = self._period.processed_records_per_s()
        needed = self._period.appended_records_per_s() + self._period.backlog_records() / _CLEAR_S
        return workers * needed / np.where(processed > 0, processed, np.nan)
