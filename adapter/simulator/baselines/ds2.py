"""DS2: divide the input by the true rate of a worker, which is its rate if it were always busy."""

from dataclasses import dataclass

import numpy as np

from adapter.core.partitions import whole
from adapter.core.samples import Array
from adapter.simulator.baselines import BaselineInput, OperatorSettings
from adapter.simulator.baselines.window import SampleWindow
from adapter.simulator.hpa import Hpa


@dataclass(frozen=True, slots=True, kw_only=True)
class Ds2Parameters:
    """Parameters of DS2 (OSDI 2018) as run by delftdata/espa-autoscaling.

    A restart begins a new window, because DS2 ignores warm-up epochs.
    """

    overprovisioning: float = 1.0
    metric_aggregation_period_s: float = 60.0  # window of the rates; our choice: there 10 s, with finer samples
    cooldown_period_s: float = 120.0


class Ds2:
    """Scales by rates alone and ignores the backlog."""

    hpa: Hpa | None = None

    def __init__(self, job: OperatorSettings, parameters: Ds2Parameters) -> None:
        self._job, self._parameters = job, parameters
        self._window = SampleWindow(len(job.max_workers), parameters.metric_aggregation_period_s)
        self._changed_at_s = np.full(len(job.max_workers), -np.inf)

    def wanted(self, seen: BaselineInput) -> Array:
        """ceil(ceil(input / true rate of a worker) * overprovisioning), with a full window and after the cooldown."""
        window = self._window
        window.take(seen, seen.busy_ratio)
        needed = needed_workers(
            window.appended_records_per_s(), window.processed_records_per_s(), window.mean() * seen.spec_workers
        )
        size = np.clip(whole(needed * self._parameters.overprovisioning), 1.0, self._job.max_workers)
        rested = seen.at_s >= self._changed_at_s + self._parameters.cooldown_period_s
        acts = window.fresh & window.full & rested & np.isfinite(size) & (size != seen.spec_workers)
        self._changed_at_s = np.where(acts, seen.at_s, self._changed_at_s)
        return np.where(acts, size, np.nan)


def needed_workers(input_records_per_s: Array, processed_records_per_s: Array, busy_workers: Array) -> Array:
    """ceil(input / (processed / busy workers)), shape (L,); NaN where the true rate is unknown."""
    known = (processed_records_per_s > 0) & (busy_workers > 0)
    true_records_per_s = np.where(known, processed_records_per_s, 1.0) / np.where(known, busy_workers, 1.0)
    return np.where(known, whole(input_records_per_s / true_records_per_s), np.nan)
