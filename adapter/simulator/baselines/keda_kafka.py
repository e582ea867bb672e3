"""KEDA's Kafka scaler: the consumer lag, capped by the partitions, which the HPA divides by lagThreshold."""

from dataclasses import dataclass, field

import numpy as np

from adapter.core.samples import Array
from adapter.simulator.baselines import Observation, OperatorSettings
from adapter.simulator.baselines.alignment import Alignment
from adapter.simulator.hpa import Hpa, Tolerance, by_average_value


@dataclass(frozen=True, slots=True, kw_only=True)
class KedaParameters:
    """Of a ScaledObject with a `kafka` trigger (kafka_scaler.go): `lagThreshold`, `allowIdleConsumers`,
    `ensureEvenDistributionOfPartitions`; the HPA's `tolerance`.

    Left out: `limitToPartitionsWithLag` and `excludePersistentLag` (off by default) need the lag of each partition,
    which is not observed here; `activationLagThreshold`, `pollingInterval` and `cooldownPeriod` only concern scaling to
    and from 0, which no job here does.
    """

    lag_threshold: float = 10.0
    allow_idle_consumers: bool = False
    ensure_even_distribution_of_partitions: bool = False
    tolerance: Tolerance = field(default_factory=Tolerance)


class KedaKafka:
    """KEDA without `advanced`: its HPA has no `behavior`."""

    def __init__(self, job: OperatorSettings, parameters: KedaParameters, lag_threshold: Array | None = None) -> None:
        """lag_threshold: of each job, shape (L,); replaces the parameter's."""
        self.hpa: Hpa | None = Hpa(max_workers=job.max_workers, behavior=None)
        self._parameters = parameters
        threshold = np.full(len(job.partitions), parameters.lag_threshold) if lag_threshold is None else lag_threshold
        self._threshold = np.maximum(1.0, np.floor(threshold))
        self._partitions = np.where(job.partitions > 0, job.partitions, np.inf)
        self._divisors = Alignment(job.partitions, "EVENLY_SPREAD")

    def metric(self, backlog_records: Array) -> Array:
        """The served metric in records, shape (L,). Integer division lets it exceed the cap by one share."""
        lag, threshold = np.floor(backlog_records), self._threshold
        if self._parameters.ensure_even_distribution_of_partitions:
            shares = self._divisors.upwards(np.maximum(1.0, np.ceil(lag / threshold)))
            even = np.minimum(shares, self._partitions) * threshold
            lag = np.where(np.isfinite(self._partitions), even, lag)
        if self._parameters.allow_idle_consumers:
            return lag
        over = np.floor(lag / threshold) > self._partitions
        return np.where(over, np.where(over, self._partitions, 0.0) * threshold, lag)

    def wanted(self, seen: Observation) -> Array:
        """The HPA's ceil(metric / lagThreshold) outside the tolerance, shape (L,); NaN while the lag is unknown."""
        shares = self.metric(seen.backlog_records) / self._threshold
        proposal = by_average_value(shares, 1.0, seen.spec_workers, self._parameters.tolerance)
        return np.where(np.isnan(shares), np.nan, proposal)
