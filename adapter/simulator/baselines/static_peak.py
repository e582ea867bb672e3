"""A constant number of workers, enough for the highest load."""

import numpy as np

from adapter.core.samples import Array
from adapter.simulator.baselines import BaselineInput, OperatorSettings
from adapter.simulator.hpa import Hpa


class StaticPeak:
    """No autoscaler: the size that an operator sets for the peak."""

    hpa: Hpa | None = None

    def __init__(self, job: OperatorSettings) -> None:
        self._workers = np.maximum(1.0, job.static_peak_workers)

    def wanted(self, seen: BaselineInput) -> Array:
        """The same size at every sync, shape (L,)."""
        return self._workers.copy()
