"""The HPA on mean CPU utilization, the most common way to scale."""

import numpy as np

from adapter.core.rates import Mask
from adapter.core.samples import Array
from adapter.simulator.baselines import BaselineInput, OperatorSettings
from adapter.simulator.hpa import Hpa, PodCpu, Tolerance, by_utilization, unready


class HpaCpu:
    """An HPA without `behavior`. It ignores pods that are starting or have no sample since they became ready.

    A rescale restarts all pods. This favours the baseline: in Flink's reactive mode and in consumer groups pods stay,
    and their CPU around the pause counts.
    """

    def __init__(self, job: OperatorSettings, average_utilization: int) -> None:
        """average_utilization: of a Resource metric, in per cent of a worker's request of one CPU."""
        self.hpa: Hpa | None = Hpa(max_workers=job.max_workers, behavior=None)
        self._average_utilization = average_utilization
        self._ready_since_s = np.full(len(job.max_workers), -np.inf)

    def wanted(self, seen: BaselineInput) -> Array:
        """The proposal of the CPU metric, shape (L,); NaN where no pod's sample counts."""
        counted = np.where(self._restarted(seen) | np.isnan(seen.cpu_ratio), 0.0, seen.ready_workers)
        pods = PodCpu(
            ready=counted,
            usage_milli=np.floor(np.where(counted > 0, seen.cpu_ratio, 0.0) * 1000.0 * counted),
            unready=np.maximum(seen.spec_workers - counted, 0.0),
        )
        proposal = by_utilization(pods, self._average_utilization, seen.spec_workers, Tolerance())
        return np.where(counted > 0, proposal, np.nan)

    def _restarted(self, seen: BaselineInput) -> Mask:
        """Jobs whose pods are all starting or have just started."""
        paused = (seen.restarting > 0) & (seen.ready_workers >= seen.spec_workers)  # otherwise the old workers continue
        ready_since_s = np.where(np.isnan(self._ready_since_s), seen.at_s, self._ready_since_s)
        self._ready_since_s = np.where(paused, np.nan, ready_since_s)
        ready_s, sampled_s = seen.at_s - ready_since_s, seen.at_s - seen.sampled_at_s
        young: Mask = unready(ready_s, ~paused, ready_s, sampled_s)
        return paused | young
