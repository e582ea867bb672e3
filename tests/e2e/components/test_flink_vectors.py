"""The worked vectors that need per-stage or CPU signals: a recorded Flink scrape, a real Prometheus, a decision.

The series, their labels and their order are those of the scrape. Each value follows the vector, over ten minutes.
"""

import gzip
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.compute as pc
import pytest
from parts.backfill import HistoryPrometheus, Sample
from parts.prometheus import TOOL
from tool_cache import need

from adapter.config import Config, Pipeline, PrometheusReading, PrometheusSource, Workload
from adapter.core.decisions import Decision
from adapter.core.engine import replay
from adapter.core.report import rows
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.sources.prometheus import PrometheusReader
from adapter.sources.prometheus_plan import queries
from adapter.sources.sample_table import samples_of

SCRAPES = Path(__file__).parents[2] / "data" / "scrapes"
SERIES = re.compile(r"(\w+)\{(.*?),?\} ")
LABEL = re.compile(r'(\w+)="([^"]*)"')
SPAN_S, STEP_S, PARTITIONS = 600, 15, 60
OPERATOR = "2.2.1 by a PodMonitor"  # the same series with the labels of Kubernetes service discovery
# The scrapes of a version: its TaskManagers and its JobManager.
VERSIONS = {
    "1.20.3": ("flink-1.20.3.prom",),
    "2.2.1": ("flink-2.2.1.prom",),
    OPERATOR: ("flink-2.2.1.prom",),
    "2.3.0": ("flink-2.3.0-session-p3-jm.prom.gz", *(f"flink-2.3.0-session-p3-tm-1925{n}.prom.gz" for n in (1, 2, 3))),
}


@dataclass(frozen=True)
class Vector:
    """A job in a steady state, its policy, and the size that the vector gives for it."""

    policy: str
    workers: int
    throughput: float  # records/s
    growth: float  # records/s
    backlog: float  # records at the end
    size: int
    busy: float | None = 0.5  # of the tasks; None for a source of the old API
    cpu: float = 0.1
    later: float | None = None  # busy time of the tasks behind the source, if it differs
    rules: Mapping[str, object] = field(default_factory=dict)


CALM = {"rescale_pause_s": 0.0, "warm_up_s": 0.0, "worker_start_s": 0.0, "scaling_exponent": 1.0}
ONE_DISK = {"quanta": "none"}
VECTORS = {
    "S0-06 S0-07 a: behind and hot": Vector("beam-flink", 10, 1000, 200, 180_000, 42, busy=0.95),
    "S0-06 a: by the CPU of the TaskManagers": Vector("beam-flink", 10, 1000, 200, 180_000, 42, busy=None, cpu=0.95),
    "S0-07 c: only catch up": Vector("beam-flink", 10, 1000, 0, 180_000, 40, busy=0.8),
    "S0-10 d: no action": Vector("beam-flink", 10, 1000, 200, 60_000, 10, busy=0.8),
    "S0-10 e: hot without backlog": Vector("beam-flink", 10, 1000, 0, 0, 10, busy=0.95),
    "S0-12 f: calm and cool": Vector("beam-flink", 10, 1000, 0, 5_000, 5, busy=0.35),
    "S0-12 f: by the CPU of the TaskManagers": Vector("beam-flink", 10, 1000, 0, 5_000, 5, busy=None, cpu=0.35),
    "S1-12: the lag grows": Vector("varga", 4, 1000, 500, 100_000, 6),
    "S1-13: a lag below the threshold": Vector("varga", 4, 1000, 500, 40_000, 4, busy=0.7),
    "S1-16: utilization": Vector("varga", 10, 1000, 200, 100_000, 14, busy=0.98),
    "S3-06 S3-07: both terms": Vector("dataflow", 10, 100, 50, 3_000, 20, rules=ONE_DISK),
    "S3-07: catch up": Vector("dataflow", 10, 100, 0, 6_000, 20, rules=ONE_DISK),
    "S3-12: CPU .60 of 20 workers": Vector("dataflow", 20, 1000, 0, 0, 15, busy=0.6),
    "S3-12: CPU .80 of 12 workers": Vector("dataflow", 12, 1000, 0, 0, 12, busy=0.8),
    "S4-27: utilization of .36, 6 workers run at .60": Vector("netflix", 10, 10_000, 0, 0, 6, busy=0.36),
    "S4-27: utilization of .90 at 10 workers": Vector("netflix", 10, 10_000, 0, 0, 15, busy=0.9),
    "a full later stage, drain": Vector("drain", 10, 700, 0, 0, 13, busy=0.2, later=1.0, rules=CALM),
    "a full later stage, dataflow": Vector("dataflow", 10, 700, 0, 0, 10, busy=0.2, later=1.0),
}
CASES = [(version, case) for version in VERSIONS for case in VECTORS]


@dataclass(frozen=True)
class Series:
    """One series of a scrape."""

    metric: str
    labels: Mapping[str, str]

    def peers(self) -> tuple[str, str | None, str | None]:
        """What it shares with the same series of the other subtasks."""
        return self.metric, self.labels.get("task_name"), self.labels.get("operator_name")


def scraped(version: str) -> list[Series]:
    """The series of a recorded scrape of that version."""
    files = [SCRAPES / name for name in VERSIONS[version]]
    texts = [gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes() for file in files]
    found = [SERIES.match(line) for text in texts for line in text.decode().splitlines()]
    distinct = {(one[1], tuple(LABEL.findall(one[2]))) for one in found if one}
    return [Series(metric, dict(labels)) for metric, labels in sorted(distinct)]


def name_of(version: str, case: str) -> str:
    """The job that follows a vector."""
    return f"job-{list(VERSIONS).index(version)}-{list(VECTORS).index(case)}"


def history(version: str, case: str, end_s: int) -> Iterator[Sample]:
    """The samples of one job: the series of a version with the values of a vector."""
    series, job = scraped(version), name_of(version, case)
    subtasks = Counter(one.peers() for one in series)
    for one in series:
        labels = {**one.labels, **_target(one, version, job)} | ({"job_name": job} if "job_name" in one.labels else {})
        for at_s in range(end_s - SPAN_S, end_s + 1, STEP_S):
            value = _value(one, VECTORS[case], subtasks[one.peers()], at_s - end_s)
            if value is not None:
                yield at_s, one.metric, labels, value


def _target(series: Series, version: str, job: str) -> dict[str, str]:
    """Labels of the target. The operator's pods are targets of their own, and TaskManagers bear their names."""
    if version != OPERATOR:
        return {"instance": job}
    pod = f"{job}-taskmanager-1-1" if "tm_id" in series.labels else f"{job}-jobmanager"
    named = {"tm_id": pod} if "tm_id" in series.labels else {}
    return {"instance": pod, "pod": pod, "namespace": "flink", "container": "flink-main-container", "app": job} | named


def _value(series: Series, vector: Vector, subtasks: int, after_s: float) -> float | None:
    """What a series shows at a time relative to the end; None for a series that no vector needs."""
    source = series.labels.get("task_name", "").startswith("Source:")
    busy = vector.busy if source or vector.later is None else vector.later
    counted = vector.throughput * (SPAN_S + after_s) / subtasks
    values = {
        "KafkaConsumer_records_lag_max": (vector.backlog + vector.growth * after_s) / PARTITIONS,
        "KafkaConsumer_assigned_partitions": PARTITIONS / subtasks,
        "KafkaConsumer_records_consumed_rate": vector.throughput / subtasks,
        "task_numRecordsIn": counted,
        "operator_numRecordsIn": counted,
        "operator_numRecordsOut": counted,
        "task_busyTimeMsPerSecond": None if busy is None else 1000 * busy,
        "task_idleTimeMsPerSecond": None if busy is None else 1000 - 1000 * busy,
        "Status_JVM_CPU_Load": vector.cpu,
        "numRegisteredTaskManagers": vector.workers,
        "job_numRestarts": 0.0,
        "job_uptime": 60_000.0,
    }
    return next((value for ending, value in values.items() if series.metric.endswith(f"_{ending}")), None)


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Decision]]:
    """The last decision of each job."""
    need(TOOL)
    end_s = int(time.time()) // STEP_S * STEP_S
    with HistoryPrometheus(tmp_path_factory.mktemp("flink") / "prometheus") as prometheus:
        prometheus.push(sample for version, case in CASES for sample in history(version, case, end_s))
        yield {one.workload: one for one in _decisions(prometheus.url, end_s)}


def _decisions(url: str, end_s: int) -> list[Decision]:
    """The decisions at the end of the span, as the pipeline reads and decides."""
    names = {name_of(version, case): VECTORS[case] for version, case in CASES}
    source = PrometheusSource(kind="prometheus", url=url)
    workloads = tuple(
        Workload(name=name, read=(PrometheusReading(source="main", preset=_preset(one), match={"job_name": name}),))
        for name, one in names.items()
    )
    config = Config(sources={"main": source}, pipeline=Pipeline(checkpoint="unused"), workloads=workloads)
    with closing(PrometheusReader("main", source, queries(config, "main"))) as reader:
        table = reader.samples(end_s - SPAN_S // 2, end_s, STEP_S)
    ticks = [samples_of(at_s, table.filter(pc.equal(table["at_s"], at_s)))
             for at_s in range(end_s - SPAN_S // 2, end_s + 1, STEP_S)]  # fmt: skip
    book = RuleBook(by_workload={f"default/{n}": Rules(policy=v.policy, **v.rules) for n, v in names.items()})
    *_, (_, decisions) = replay(ticks, book)
    return rows(decisions)


def _preset(vector: Vector) -> str:
    return "flink-varga" if vector.policy == "varga" else "flink"


@pytest.mark.parametrize("case", VECTORS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_recorded_scrape_with_the_values_of_a_vector_gives_its_size(
    decided: Mapping[str, Decision], version: str, case: str
) -> None:
    assert decided[f"default/{name_of(version, case)}"].wanted_workers == VECTORS[case].size
