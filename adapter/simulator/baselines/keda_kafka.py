"""KEDA's Kafka scaler: the consumer lag, capped by the partitions, which the HPA divides by lagThreshold."""

from dataclasses import dataclass, field

import numpy as np

from adapter.core.samples import Array
from adapter.simulator.baselines import BaselineInput, OperatorSettings
from adapter.simulator.hpa import Hpa, Tolerance, by_average_value


@dataclass(frozen=True, slots=True, kw_only=True)
class KedaParameters:
    """Of a ScaledObject with a `kafka` trigger (kafka_scaler.go): `lagThreshold`; the HPA's `tolerance`.

    Left out, off by default: `allowIdleConsumers`, `ensureEvenDistributionOfPartitions`, and `limitToPartitionsWithLag`
    and `excludePersistentLag`, which need the lag of each partition; `activationLagThreshold`, `pollingInterval` and
    `cooldownPeriod` only concern scaling to and from 0, which no job here does.
    """

    lag_threshold: float = 10.0
    tolerance: Tolerance = field(default_factory=Tolerance)


class KedaKafka:
    """KEDA without `advanced`: its HPA has no `behavior`."""

    def __init__(self, job: OperatorSettings, parameters: KedaParameters, lag_threshold: Array | None = None) -> None:
        """lag_threshold: of each job, shape (L,); replaces the parameter's."""
        self.hpa: Hpa | None = Hpa(max_workers=job.max_workers, behavior=None)
        self._tolerance = parameters.tolerance
        threshold = np.full(len(job.partitions), parameters.lag_threshold) if lag_threshold is None else lag_threshold
        self._threshold = np.maximum(1.0, np.floor(threshold))
        self._partitions = np.where(job.partitions > 0, job.partitions, np.inf)

    def wanted(self, seen: BaselineInput) -> Array:
        """The HPA's ceil(lag / lagThreshold) outside the tolerance, shape (L,); NaN while the lag is unknown.

        The partitions cap the lag. KEDA's integer division lets it exceed the cap by one share.
        """
        shares = np.floor(seen.backlog_records) / self._threshold
        shares = np.where(np.floor(shares) > self._partitions, self._partitions, shares)
        proposal = by_average_value(shares, 1.0, seen.spec_workers, self._tolerance)
        return np.where(np.isnan(shares), np.nan, proposal)
