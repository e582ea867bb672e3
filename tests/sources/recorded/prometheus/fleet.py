"""The series that were recorded, and the configuration whose queries were asked."""

from adapter.config import Config, Fleet, Pipeline, PrometheusReading, PrometheusSource, Workload

KAFKA = [  # group, topic, partition, records a second consumed, records waiting at the start, growth a second
    ("orders", "events", 0, 100, 500, 10),
    ("orders", "events", 1, 100, 500, 0),
    ("billing.eu", "events", 0, 50, 40, 0),
    ("joining", "events", 0, 100, 500, 0),
    ("joining", "events", 1, 0, None, 0),  # never committed: the exporter says -1
    ("endless", "events", 0, 100, 500, 0),
    ("endless", "events", 1, 100, 500, None),  # its end could not be read: the exporter shows no lag
    ("ahead", "events", 0, 100, 20, 0),
    ("ahead", "events", 1, 100, -7, 0),  # committed since the end was read
    ("idle", "quiet", 0, 0, None, 0),
]
TASK = (
    'job_id="j",job_name="{job}",task_id="t",task_name="{task}",task_attempt_id="{attempt}",'
    'subtask_index="{subtask}",tm_id="{tm}",'
)
SOURCE, SLOW = "Source:_events", "Slow_Map____Sink:_out"


def exposition(age_s: int) -> str:
    """What the exporters show that many seconds after their start."""
    return "\n".join([*_kafka(age_s), *_flink(age_s), *_spark()]) + "\n"


def _kafka(age_s: int) -> list[str]:
    lines = []
    for group, topic, partition, rate, waiting, growth in KAFKA:
        labels = f'{{consumergroup="{group}",topic="{topic}",partition="{partition}"}}'
        offset = -1 if waiting is None else 1000 + rate * age_s
        lines.append(f"kafka_consumergroup_current_offset{labels} {offset}")
        if growth is not None:
            lag = -1 if waiting is None else waiting + growth * age_s
            lines.append(f"kafka_consumergroup_lag{labels} {lag}")
    return lines


def _flink(age_s: int) -> list[str]:
    """Job `clicks` runs on two TaskManagers; job `restarting` showed its tasks in the first minute only."""
    lines = [
        'flink_jobmanager_numRegisteredTaskManagers{host="jm"} 2',
        'flink_jobmanager_job_numRestarts{job_id="j",job_name="clicks",host="jm"} 0',
        'flink_jobmanager_job_numRestarts{job_id="k",job_name="restarting",host="jm"} 1',
    ]
    for subtask in (0, 1):
        lines += _subtask("clicks", SOURCE, subtask, age_s, busy=131)
        lines += _subtask("clicks", SLOW, subtask, age_s, busy=(932, 981)[subtask])
    if age_s < 60:
        lines += _subtask("restarting", SOURCE, 0, age_s, busy=1000)
    return lines


def _subtask(job: str, task: str, subtask: int, age_s: int, busy: int) -> list[str]:
    labels = TASK.format(job=job, task=task, attempt=f"{job}-{task}-{subtask}", subtask=subtask, tm=f"tm{subtask}")
    count = 200 * age_s
    task_scope, operator_scope = "flink_taskmanager_job_task", "flink_taskmanager_job_task_operator"
    lines = [f"{task_scope}_busyTimeMsPerSecond{{{labels}}} {busy}"]
    if not task.startswith("Source"):
        return [*lines, f"{task_scope}_numRecordsIn{{{labels}}} {count}"]
    operator = f'{labels}operator_id="o",operator_name="{task}",'
    lag = ("19667", "NaN")[subtask]  # the second subtask's client has not fetched yet
    return [
        *lines,
        f"{task_scope}_numRecordsIn{{{labels}}} 0",
        f"{operator_scope}_numRecordsIn{{{operator}}} {count}",
        f"{operator_scope}_numRecordsOut{{{operator}}} {count}",
        f"{operator_scope}_pendingRecords{{{operator}}} 100",
        f"{operator_scope}_KafkaSourceReader_KafkaConsumer_records_lag_max{{{operator}}} {lag}",
        f"{operator_scope}_KafkaSourceReader_KafkaConsumer_assigned_partitions{{{operator}}} 4",
    ]


def _spark() -> list[str]:
    prefix = "metrics_my_ns_driver_spark_streaming"
    values = {"q1_inputRate_total": 747.0, "q1_processingRate_total": 4742.857142857143, "q1_latency": 315}
    values |= {"q2_inputRate_total": 0.0, "q2_processingRate_total": 0.0, "q2_latency": 0}
    return [
        f'{prefix}_{name}_{kind}{{type="gauges"}} {v}' for name, v in values.items() for kind in ("Value", "Number")
    ]


def _explicit(name: str, preset: str, **match: str) -> Workload:
    return Workload(name=name, read=(PrometheusReading(source="main", preset=preset, match=match),))


CONFIG = Config(
    sources={"main": PrometheusSource(kind="prometheus", url="http://prometheus.test/base/")},
    pipeline=Pipeline(checkpoint="unused"),
    workloads=(
        _explicit("orders", "kafka-exporter", consumergroup="orders"),
        _explicit("billing", "kafka-exporter", consumergroup="billing.eu"),
        _explicit("gone", "kafka-exporter", consumergroup="gone"),
        _explicit("one-topic", "kafka-exporter", consumergroup="orders", topic="events"),
        _explicit("app", "spark", spark_application="my_ns"),
    ),
    fleets=(
        Fleet(name="groups", source="main", preset="kafka-exporter", namespace="shop"),
        Fleet(name="jobs", source="main", preset="flink", namespace="flink"),
        Fleet(name="apps", source="main", preset="spark", namespace="spark"),
    ),
)
FAILING = (
    "sum(rate(up[1m))",  # does not parse
    'kafka_consumergroup_lag * on (topic) kafka_consumergroup_current_offset{consumergroup="orders"}',  # many to many
    "0 / (kafka_consumergroup_lag * 0)",  # NaN
    "1 / (kafka_consumergroup_lag * 0)",  # infinite
    "sum(kafka_consumergroup_lag)",  # no labels
    "scalar(up)",  # no vector
    "kafka_consumergroup_lag",  # too many series, some -1
    "rate(kafka_consumergroup_lag[1m])",  # an annotation: perhaps no counter
)
