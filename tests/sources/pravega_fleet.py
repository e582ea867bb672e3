"""The series of Pravega and of a Flink job that reads it, and the configuration of the recorded queries."""

from adapter.config import (
    Config,
    Fleet,
    Pipeline,
    PravegaReading,
    PravegaSource,
    PrometheusReading,
    PrometheusSource,
    Workload,
)

ANSWERS = "pravega.json"
FAILING = ()
SPLIT_S = 60  # after this time segment 0 of shop/clicks is replaced by 1 and 2
STORE = "pravega_segmentstore_segment"
UNREAD = "flink_taskmanager_job_task_operator_PravegaReader_readerGroup_unreadBytes"
BUSY = "flink_taskmanager_job_task_busyTimeMsPerSecond"


def exposition(began_s: int, age_s: int) -> str:
    """What the exporters show that many seconds after their start."""
    return "\n".join([*_clicks(age_s), *_segment("other", "clicks", 0, 0, 70 * age_s), *_job(age_s)]) + "\n"


def _clicks(age_s: int) -> list[str]:
    """1 000 bytes/s are written and 900 are read, before the split and after it."""
    if age_s < SPLIT_S:
        return [*_segment("shop", "clicks", 0, 0, age_s), *_segments_count("shop", "clicks", 1)]
    since_s = age_s - SPLIT_S
    halves = [line for segment in (1, 2) for line in _segment("shop", "clicks", segment, 1, since_s / 2)]
    return [*halves, *_segments_count("shop", "clicks", 2)]


def _segment(scope: str, stream: str, segment: int, epoch: int, age_s: float) -> list[str]:
    labels = f'epoch="{epoch}",host="store",scope="{scope}",segment="{segment}",stream="{stream}",'
    return [
        f"{STORE}_write_bytes_total{{{labels}}} {1000 * age_s}",
        f"{STORE}_read_bytes_total{{{labels}}} {900 * age_s}",
    ]


def _segments_count(scope: str, stream: str, count: int) -> list[str]:
    """Two controllers report the stream."""
    labels = f'scope="{scope}",stream="{stream}"'
    return [f'pravega_controller_segments_count{{host="controller-{host}",{labels}}} {count}.0' for host in (0, 1)]


def _job(age_s: int) -> list[str]:
    """Two subtasks of job `reader` with two sources each: reader groups with 5 000 + 100/s and with 40 unread bytes."""
    lines = [
        'flink_jobmanager_numRegisteredTaskManagers{host="jm"} 2',
        'flink_jobmanager_job_numRestarts{job_id="j",job_name="reader",host="jm"} 0',
        f'flink_jobmanager_job_uptime{{job_id="j",job_name="reader",host="jm"}} {1000 * age_s}',
    ]
    for subtask in (0, 1):
        for operator, unread in (("a", 5000 + 100 * age_s), ("b", 40)):
            labels = f'job_id="j",job_name="reader",task_name="Source:_{operator}",subtask_index="{subtask}"'
            lines.append(f'{UNREAD}{{{labels},operator_id="{operator}"}} {unread}.0')
            lines.append(f"{BUSY}{{{labels}}} 700.0")
    return lines


CONFIG = Config(
    sources={
        "main": PrometheusSource(kind="prometheus", url="http://prometheus.test/"),
        "controller": PravegaSource(kind="pravega", url="http://controller.test/", prometheus="main"),
    },
    pipeline=Pipeline(checkpoint="unused"),
    workloads=(
        Workload(
            namespace="shop",
            name="reader",
            read=(
                PravegaReading(source="controller", scope="shop", stream="clicks"),
                PrometheusReading(source="main", preset="pravega-flink", match={"job_name": "reader"}),
            ),
        ),
    ),
    fleets=(
        Fleet(
            name="streams",
            source="main",
            preset="pravega",
            namespace="streams",
            match={"scope": "shop"},
            rules={"policy": "segments"},
        ),
    ),
)
