"""The series of containers, of Beam on Flink and of Flink's sinks, and the configuration of the recorded queries."""

from adapter.config import Config, Fleet, Pipeline, PrometheusReading, PrometheusSource, Workload

ANSWERS = "resources.json"
FAILING = ()
REMOVED_S = 60  # a pod of orders ended then
PODS = [  # pod, container, cores used, cores allowed, bytes used, bytes allowed
    ("orders-7d9f8b6c5-x2x4z", "consumer", 0.9, 1.0, 600, 1000),
    ("orders-7d9f8b6c5-bbbbb", "consumer", 0.5, 1.0, 400, 1000),
    ("orders-7d9f8b6c5-x2x4z", "proxy", 0.01, 0.1, 10, 1000),
    ("orders-7d9f8b6c5-bbbbb", "proxy", 0.01, 0.1, 10, 1000),
    ("orders-7d9f8b6c5-zzzzz", "consumer", 1.0, 1.0, 1000, 1000),
    ("orders-eu-5b8c7d9f64-v5v5v", "consumer", 0.2, 2.0, 100, 1000),
    ("clicks-0", "consumer", 0.3, 0.5, 100, 0),
    ("clicks-10", "consumer", 0.3, 0.5, 100, 0),
    ("free-6c5d4b7f8-k2k2k", "consumer", 0.3, None, 100, 0),
    ("batch-0", "consumer", 0.4, 0.5, 300, 1000),
]
DROPPED = ("batch-0",)  # pods whose container_spec_* Prometheus drops
TASK = "flink_taskmanager_job_task_operator"


def exposition(began_s: int, age_s: int) -> str:
    """What the exporters show that many seconds after their start."""
    return "\n".join([*_containers(age_s), *_beam(age_s), *_sinks(age_s)]) + "\n"


def _containers(age_s: int) -> list[str]:
    lines = []
    for pod, container, cores, allowed, used, limit in PODS:
        if pod.endswith("zzzzz") and age_s > REMOVED_S:
            continue
        labels = f'namespace="shop",pod="{pod}",container="{container}",image="i",name="n",id="/{pod}/{container}"'
        lines += [f'container_cpu_usage_seconds_total{{{labels},cpu="total"}} {cores * age_s}']
        lines += [f"container_memory_working_set_bytes{{{labels}}} {used}"]
        declared = f'namespace="shop",pod="{pod}",container="{container}"'
        for resource, most in (("cpu", allowed), ("memory", limit)):
            if most:
                lines += [f'kube_pod_container_resource_limits{{{declared},resource="{resource}"}} {most}']
        if pod in DROPPED:
            continue
        lines += [f"container_spec_memory_limit_bytes{{{labels}}} {limit}"]
        if allowed is not None:
            lines += [f"container_spec_cpu_quota{{{labels}}} {allowed * 100_000}"]
            lines += [f"container_spec_cpu_period{{{labels}}} 100000"]
    whole = 'namespace="shop",pod="orders-7d9f8b6c5-x2x4z",container="",image="",name="",id="/pod",cpu="total"'
    return [*lines, f"container_cpu_usage_seconds_total{{{whole}}} {9 * age_s}"]


def _beam(age_s: int) -> list[str]:
    """Job `known` has 5 000 elements in two subtasks; one subtask of `unknown` does not know its backlog."""
    backlogs = {("known", 0): 2000, ("known", 1): 3000, ("unknown", 0): 2000, ("unknown", 1): -1}
    lines = []
    for (job, subtask), backlog in backlogs.items():
        labels = f'job_id="{job}",job_name="{job}",task_name="Source:_Read",subtask_index="{subtask}"'
        lines += [f"{TASK}_source_backlog_elements{{{labels}}} {backlog}"]
        lines += [f"flink_taskmanager_job_task_numRecordsIn{{{labels}}} 0"]
        lines += [f'{TASK}_numRecordsOut{{{labels},operator_name="Source:_Read"}} {100 * age_s}']
    return lines


def _sinks(age_s: int) -> list[str]:
    """The second subtask of `failing` loses a record a second."""
    errors = {("fine", 0): 7, ("fine", 1): 0, ("failing", 0): 0, ("failing", 1): age_s}
    return [
        f'{TASK}_numRecordsSendErrors{{job_id="{job}",job_name="{job}",subtask_index="{subtask}"}} {count}'
        for (job, subtask), count in errors.items()
    ]


def _pods(name: str) -> Workload:
    match = {"namespace": "shop", "workload": name}
    readings = (
        PrometheusReading(source="main", preset=preset, match=match) for preset in ("cadvisor", "cadvisor-memory")
    )
    return Workload(namespace="shop", name=name, read=tuple(readings))


CONFIG = Config(
    sources={"main": PrometheusSource(kind="prometheus", url="http://prometheus.test/")},
    pipeline=Pipeline(checkpoint="unused"),
    workloads=tuple(_pods(name) for name in ("orders", "orders-eu", "clicks", "free", "batch")),
    fleets=tuple(
        Fleet(name=preset, source="main", preset=preset, namespace=preset) for preset in ("beam", "flink-sink")
    ),
)
