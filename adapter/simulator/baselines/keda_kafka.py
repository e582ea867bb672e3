"""KEDA's Kafka scaler: the consumer lag, capped by the partitions, which the HPA divides by lagThreshold."""

import numpy as np

from adapter.core.samples import Array
from adapter.simulator.baselines import BaselineInput, OperatorSettings
from adapter.simulator.hpa import Hpa, Tolerance, by_average_value


class KedaKafka:
    """A ScaledObject with a `kafka` trigger (kafka_scaler.go) and without `advanced`: its HPA has no `behavior`.

    Left out, off by default: `allowIdleConsumers`, `ensureEvenDistributionOfPartitions`, and `limitToPartitionsWithLag`
    and `excludePersistentLag`, which need the lag of each partition; `activationLagThreshold`, `pollingInterval` and
    `cooldownPeriod` only concern scaling to and from 0, which no job here does.
    """

    def __init__(self, job: OperatorSettings, lag_threshold: Array | float = 10.0) -> None:
        """lag_threshold: `lagThreshold`, of all jobs or of each, shape (L,)."""
        self.hpa: Hpa | None = Hpa(max_workers=job.max_workers, behavior=None)
        self._threshold = np.maximum(1.0, np.floor(lag_threshold))
        self._partitions = np.where(job.partitions > 0, job.partitions, np.inf)

    def wanted(self, seen: BaselineInput) -> Array:
        """The HPA's ceil(lag / lagThreshold) outside the tolerance, shape (L,); NaN while the lag is unknown.

        The partitions cap the lag. KEDA's integer division lets it exceed the cap by one share.
        """
        shares = np.floor(seen.backlog_records) / self._threshold
        shares = np.where(np.floor(shares) > self._partitions, self._partitions, shares)
        proposal = by_average_value(shares, 1.0, seen.spec_workers, Tolerance())
        return np.where(np.isnan(shares), np.nan, proposal)
