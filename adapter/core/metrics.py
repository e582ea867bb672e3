"""The served metrics: the meaning of each, how to read it from a decision, and the kinds of objects that have them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from adapter.core.decisions import Decision, StageSignals

HpaTarget = Literal["AverageValue", "Value"]
_Signals = Decision | StageSignals
PADDED = "required_workers_padded"

# The objects that run streaming jobs and can be scale targets: resource -> (kind, API version).
OBJECT_KINDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "deployments.apps": ("Deployment", "apps/v1"),
        "statefulsets.apps": ("StatefulSet", "apps/v1"),
        "replicasets.apps": ("ReplicaSet", "apps/v1"),
        "rollouts.argoproj.io": ("Rollout", "argoproj.io/v1alpha1"),
        "flinkdeployments.flink.apache.org": ("FlinkDeployment", "flink.apache.org/v1beta1"),
        "flinkclusters.flinkoperator.k8s.io": ("FlinkCluster", "flinkoperator.k8s.io/v1beta1"),
        "sparkapplications.sparkoperator.k8s.io": ("SparkApplication", "sparkoperator.k8s.io/v1beta2"),
    }
)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    name: str
    meaning: str
    unit: str
    read: Callable[[Decision], float | None]  # the value of a workload
    read_stage: Callable[[StageSignals], float | None] | None = None  # the value of a stage, if stages have the metric
    target: HpaTarget | None = None  # the type of its target in an HPA, None if no HPA can scale by it
    signed: bool = False  # may be negative, so unsuitable for an HPA
    age_s: Callable[[Decision], float | None] = lambda decision: decision.sample_age_s  # of its newest sample
    unknown: str = "a signal behind it is not known yet"  # why a workload with a decision may have no value

    @property
    def is_size(self) -> bool:
        """Whether it is a decided number of workers, not a measured number."""
        return self.unit == "workers"

    @property
    def is_rate(self) -> bool:
        """Whether it is measured over a window."""
        return self.unit == "records/s"


def _not_negative(change: float | None) -> float | None:
    return None if change is None else max(change, 0.0)


def _above_tolerance(workers: float | None) -> float | None:
    """The workers, raised so that an HPA with the default tolerance of 10 % reaches at least that size.

    It exceeds 1.1 * (workers - 1) by a thousandth. At the required size the HPA stays: a size that it exceeded would
    become the adapter's new target, and the two would raise each other.
    """
    return None if workers is None else max(workers, round(1.1 * (workers - 1) + 0.001, 3))


def _both(
    name: str, meaning: str, unit: str, read: Callable[[_Signals], float | None], target: HpaTarget | None = None
) -> Metric:
    return Metric(name, meaning, unit, read, read, target)


_ALL = (
    Metric(
        "required_workers",
        "workers that the policy requires",
        "workers",
        lambda decision: decision.required_workers,
        target="AverageValue",
        age_s=lambda decision: decision.decided_age_s,
    ),
    Metric(
        PADDED,
        "required_workers; above 10, raised just enough that an HPA with a tolerance of 10 % follows it",
        "workers",
        lambda decision: _above_tolerance(decision.required_workers),
        target="AverageValue",
        age_s=lambda decision: decision.decided_age_s,
    ),
    _both(
        "backlog_time_seconds",
        "backlog / throughput, at most a day",
        "seconds",
        lambda signals: signals.backlog_time_s,
        target="Value",
    ),
    _both(
        "drain_time_seconds",
        "backlog / (capacity - input rate), at most a day",
        "seconds",
        lambda signals: signals.drain_time_s,
    ),
    _both(
        "backlog",
        "records (or bytes) waiting",
        "records",
        lambda signals: signals.backlog_records,
        target="AverageValue",
    ),
    _both(
        "backlog_growth",
        "how fast the backlog grows, 0 while it shrinks",
        "records/s",
        lambda signals: _not_negative(signals.growth_records_per_s),
    ),
    Metric(
        "backlog_growth_signed",
        "how fast the backlog changes",
        "records/s",
        lambda decision: decision.growth_records_per_s,
        lambda signals: signals.growth_records_per_s,
        signed=True,
    ),
    _both(
        "throughput",
        "records processed a second",
        "records/s",
        lambda signals: signals.throughput_records_per_s,
        target="AverageValue",
    ),
    _both(
        "input_rate",
        "records arriving a second",
        "records/s",
        lambda signals: signals.input_rate_records_per_s,
        target="AverageValue",
    ),
    Metric(
        "forecast_input_rate",
        "the highest input rate in the forecast, never below the present one",
        "records/s",
        lambda decision: decision.forecast_input_rate_records_per_s,
        target="AverageValue",
    ),
    Metric(
        "relative_lag_change",
        "input rate / throughput while the backlog is large, else 0",
        "ratio",
        lambda decision: _not_negative(decision.relative_lag_change_ratio),
        target="Value",
    ),
    Metric(
        "highest_partition_backlog",
        "records waiting in the fullest partition",
        "records",
        lambda decision: decision.highest_partition_backlog_records,
        unknown="its sources report no backlog of single partitions; add a Kafka source to its `read`",
    ),
    Metric(
        "utilization",
        "busy time, CPU, memory or network of the hottest stage, 0 to 1",
        "ratio",
        lambda decision: decision.utilization_ratio,
        lambda signals: signals.utilization_ratio,
        target="Value",
        unknown="its sources report neither busy time nor CPU, and the capacity of a worker is not learned yet",
    ),
    _both(
        "stage_load",
        "input / true rate of a stage, above 1 where it cannot carry its input; of a workload, that of its bottleneck",
        "ratio",
        lambda signals: signals.load_ratio,
    ),
    _both(
        "true_rate",
        "what a stage processes at full busy time; of a workload, that of its bottleneck",
        "records/s",
        lambda signals: signals.true_rate_records_per_s,
    ),
    _both(
        "required_parallelism",
        "subtasks that carry the input of a stage at the target utilization; of a workload, that of its bottleneck",
        "subtasks",
        lambda signals: signals.required_parallelism,
    ),
    Metric(
        "segments",
        "Kafka partitions or Pravega segments of the input",
        "partitions",
        lambda decision: decision.partitions,
        target="AverageValue",
        age_s=lambda decision: decision.partitions_age_s,
        unknown="its sources count no partitions",
    ),
)

METRICS = {metric.name: metric for metric in _ALL}
