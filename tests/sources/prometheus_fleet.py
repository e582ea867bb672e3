"""The recorded series, and the configuration of the recorded queries."""

from adapter.config import Config, Fleet, Pipeline, PrometheusReading, PrometheusSource, Workload

ANSWERS = "answers.json"
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
    ("uneven", "events", 0, 300, 500, 0),
    ("uneven", "events", 1, 100, 0, 0),
    ("uneven", "events", 2, 0, 700, 200),  # behind, and does not move
    ("uneven", "events", 3, 0, 0, 0),  # does not move, and has nothing to read
    ("minutely", "events", 0, 100, 500, 10),
    ("minutely", "events", 1, 0, 700, 20),  # behind, and does not move
    ("sprouting", "events", 0, 0, 700, 20),
    ("sprouting", "events", 1, 0, 700, 20),  # shown from the second minute on
]
# Seen once a minute, which is the window of our queries; the others at every scrape.
SEEN_EVERY_S = {"minutely": 60, "sprouting": 60}
FIRST_SEEN_S = {("sprouting", 1): 60}
TASK = (
    'job_id="j",job_name="{job}",task_id="t",task_name="{task}",task_attempt_id="{attempt}",'
    'subtask_index="{subtask}",tm_id="{tm}",'
)
SOURCE, SLOW = "Source:_events", "Slow_Map____Sink:_out"


def exposition(began_s: int, age_s: int) -> str:
    """What the exporters show that many seconds after their start, which was at began_s."""
    return "\n".join([*_kafka(began_s, age_s), *_flink(age_s), *_spark()]) + "\n"


def _kafka(began_s: int, now_s: int) -> list[str]:
    """A sample that carries its own time is scraped once, however often it is shown: so groups are seen more rarely."""
    lines = []
    for group, topic, partition, rate, waiting, growth in KAFKA:
        every_s = SEEN_EVERY_S.get(group, 1)
        age_s = now_s - now_s % every_s
        if age_s < FIRST_SEEN_S.get((group, partition), 0):
            continue
        seen = f" {1000 * (began_s + age_s)}" if every_s > 1 else ""
        labels = f'{{consumergroup="{group}",topic="{topic}",partition="{partition}"}}'
        offset = -1 if waiting is None else 1000 + rate * age_s
        lines.append(f"kafka_consumergroup_current_offset{labels} {offset}{seen}")
        if growth is not None:
            lag = -1 if waiting is None else waiting + growth * age_s
            lines.append(f"kafka_consumergroup_lag{labels} {lag}{seen}")
    return lines


def _flink(age_s: int) -> list[str]:
    """Job `clicks` runs on two TaskManagers; job `restarting` showed its tasks in the first minute only."""
    lines = [
        'flink_jobmanager_numRegisteredTaskManagers{host="jm"} 2',
        'flink_jobmanager_job_numRestarts{job_id="j",job_name="clicks",host="jm"} 3',
        'flink_jobmanager_job_numRescales{job_id="j",job_name="clicks",host="jm"} 2',  # since 2.0
        'flink_jobmanager_job_numRestarts{job_id="k",job_name="restarting",host="jm"} 1',
        f'flink_jobmanager_job_uptime{{job_id="j",job_name="clicks",host="jm"}} {1000 * age_s}',
        'flink_jobmanager_job_uptime{job_id="k",job_name="restarting",host="jm"} 5000',
        'flink_jobmanager_job_runningState{job_id="k",job_name="restarting",host="jm"} 0',  # if the preset reads it
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
    lines = [
        f"{task_scope}_busyTimeMsPerSecond{{{labels}}} {busy}",
        f"{task_scope}_backPressuredTimeMsPerSecond{{{labels}}} {840 if task == SOURCE else 0}",
        f"{task_scope}_idleTimeMsPerSecond{{{labels}}} {29 if task == SOURCE else 68 - 60 * subtask}",
    ]
    if not task.startswith("Source"):
        return [*lines, f"{task_scope}_numRecordsIn{{{labels}}} {count}"]
    operator = f'{labels}operator_id="o",operator_name="{task}",'
    consumer = f"{operator_scope}_KafkaSourceReader_KafkaConsumer"
    lag = ("19667", "NaN")[subtask]  # the second subtask's client has not fetched yet
    return [
        *lines,
        f"{task_scope}_numRecordsIn{{{labels}}} 0",
        f"{operator_scope}_numRecordsIn{{{operator}}} {count}",
        f"{operator_scope}_numRecordsOut{{{operator}}} {count}",
        f"{operator_scope}_pendingRecords{{{operator}}} 100",
        f"{consumer}_records_lag_max{{{operator}}} {lag}",
        f"{consumer}_assigned_partitions{{{operator}}} {4 - subtask}",
        f"{consumer}_records_consumed_total{{{operator}}} {(200, 30)[subtask] * age_s}",
        f"{consumer}_records_consumed_rate{{{operator}}} {(200, 30)[subtask]}",
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
        Fleet(name="whole-jobs", source="main", preset="flink-varga", namespace="varga"),
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
