"""An HPA on the input rate, as from KEDA's Prometheus scaler: the rate divided by the target rate of a worker."""

from dataclasses import replace

import numpy as np

from adapter.core.samples import Array
from adapter.simulator.baselines import BaselineInput, OperatorSettings
from adapter.simulator.baselines.window import SampleWindow
from adapter.simulator.hpa import Hpa, Tolerance, by_average_value

_UTILIZATION_RATIO = 0.8  # `threshold` is this share of a worker's capacity
_WINDOW_S = 60.0


class InputRate:
    """A ScaledObject with a `prometheus` trigger on `sum(rate(appended[1m]))`. It ignores the backlog.

    A restart does not interrupt the rate, because a broker counts the input.
    """

    def __init__(self, job: OperatorSettings) -> None:
        self.hpa: Hpa | None = Hpa(max_workers=job.max_workers, behavior=None)
        self._threshold = job.worker_capacity_records_per_s * _UTILIZATION_RATIO
        self._window = SampleWindow(len(job.max_workers), _WINDOW_S)

    def wanted(self, seen: BaselineInput) -> Array:
        """ceil(input rate / threshold) outside the tolerance, shape (L,); NaN while the rate is unknown."""
        counted, known = seen.appended_records, np.zeros(len(seen.appended_records))
        broker = replace(seen, processed_records=counted, backlog_records=known, restarting=known)
        self._window.take(broker, known)
        workers = self._window.appended_records_per_s() / self._threshold
        proposal = by_average_value(workers, 1.0, seen.spec_workers, Tolerance())
        return np.where(np.isnan(workers), np.nan, proposal)
