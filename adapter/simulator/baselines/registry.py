"""The baselines by name. To add one, write its module, register it here, and add a test."""

from collections.abc import Callable, Mapping
from functools import partial

from adapter.simulator.baselines import Baseline, OperatorSettings
from adapter.simulator.baselines.dataflow_docs import DataflowDocs
from adapter.simulator.baselines.ds2 import Ds2
from adapter.simulator.baselines.flink import DEFAULT, DEMETER, FAST, TUNED, TUNED_85, Flink
from adapter.simulator.baselines.hpa_cpu import HpaCpu
from adapter.simulator.baselines.input_rate import InputRate
from adapter.simulator.baselines.keda_kafka import KedaKafka
from adapter.simulator.baselines.static_peak import StaticPeak


def _tuned_keda(job: OperatorSettings, *, seconds: float) -> KedaKafka:
    """KEDA whose threshold is the number of records that a worker processes in `seconds`."""
    return KedaKafka(job, job.worker_capacity_records_per_s * seconds)


BASELINES: Mapping[str, Callable[[OperatorSettings], Baseline]] = {
    "static-peak": StaticPeak,
    "hpa-cpu-80": partial(HpaCpu, average_utilization=80),
    "hpa-cpu-70": partial(HpaCpu, average_utilization=70),
    "hpa-cpu-35": partial(HpaCpu, average_utilization=35),
    "keda-10": KedaKafka,
    "keda-30s": partial(_tuned_keda, seconds=30.0),
    "keda-120s": partial(_tuned_keda, seconds=120.0),
    "keda-rate-80": InputRate,
    "flink-default": partial(Flink, parameters=DEFAULT),
    "flink-fast": partial(Flink, parameters=FAST),
    "flink-tuned": partial(Flink, parameters=TUNED),
    "flink-tuned-85": partial(Flink, parameters=TUNED_85),
    "flink-demeter": partial(Flink, parameters=DEMETER),
    "dataflow-docs": DataflowDocs,
    "ds2": Ds2,
    "ds2-1.2": partial(Ds2, overprovisioning=1.2),
}
