"""DS2: divide the input by the true rate of a worker, which is its rate if it were always busy."""

import numpy as np

from adapter.core.partitions import whole
from adapter.core.samples import Array
from adapter.simulator.baselines import BaselineInput, OperatorSettings
from adapter.simulator.baselines.window import SampleWindow
from adapter.simulator.hpa import Hpa

_METRIC_AGGREGATION_PERIOD_S = 60.0  # window of the rates; our choice: there 10 s, with finer samples
_COOLDOWN_PERIOD_S = 120.0


class Ds2:
    """DS2 (OSDI 2018) as run by delftdata/espa-autoscaling. It scales by rates alone and ignores the backlog.

    A restart begins a new window, because DS2 ignores warm-up epochs.
    """

    hpa: Hpa | None = None

    def __init__(self, job: OperatorSettings, overprovisioning: float = 1.0) -> None:
        self._job, self._overprovisioning = job, overprovisioning
        self._window = SampleWindow(len(job.max_workers), _METRIC_AGGREGATION_PERIOD_S)
        self._changed_at_s = np.full(len(job.max_workers), -np.inf)

    def wanted(self, seen: BaselineInput) -> Array:
        """ceil(ceil(input / true rate of a worker) * overprovisioning), with a full window and after the cooldown."""
        window = self._window
        window.take(seen, seen.busy_ratio)
        needed = needed_workers(
            window.appended_records_per_s(), window.processed_records_per_s(), window.mean() * seen.spec_workers
        )
        size = np.clip(whole(needed * self._overprovisioning), 1.0, self._job.max_workers)
        rested = seen.at_s >= self._changed_at_s + _COOLDOWN_PERIOD_S
        acts = window.fresh & window.full & rested & np.isfinite(size) & (size != seen.spec_workers)
        self._changed_at_s = np.where(acts, seen.at_s, self._changed_at_s)
        return np.where(acts, size, np.nan)


def needed_workers(input_records_per_s: Array, processed_records_per_s: Array, busy_workers: Array) -> Array:
    """ceil(input / (processed / busy workers)), shape (L,); NaN where the true rate is unknown."""
    known = (processed_records_per_s > 0) & (busy_workers > 0)
    true_records_per_s = np.where(known, processed_records_per_s, 1.0) / np.where(known, busy_workers, 1.0)
    return np.where(known, whole(input_records_per_s / true_records_per_s), np.nan)
