"""The series of four exporters for Kafka and Kubernetes, and the configuration of the recorded queries."""

from adapter.config import Config, Fleet, Pipeline, PrometheusReading, PrometheusSource, Workload

ANSWERS = "exporters.json"
FAILING = ()
GROUPS = [  # group, topic, partition, records a second consumed, records waiting at the start, growth a second
    ("orders", "events", 0, 100, 500, 10),
    ("orders", "events", 1, 100, 500, 0),
    ("joining", "events", 0, 100, 500, 0),
    ("joining", "events", 1, 0, None, 0),  # never committed
    ("uneven", "events", 0, 300, 500, 0),
    ("uneven", "events", 1, 100, 0, 0),
    ("uneven", "events", 2, 0, 700, 200),  # behind, and does not move
    ("sprouting", "events", 0, 50, 10, 0),
    ("sprouting", "events", 1, 50, 10, 0),  # committed since the second minute
    ("hidden", "events", 0, 50, 10, 0),
    ("hidden", "events", 1, 50, 990, 0),  # kminion cannot read its offset any more
]
FIRST_COMMIT_S = {("sprouting", 1): 60}
HIDDEN_S = {("hidden", 1): 80}
_LAG_EXPORTER = 'cluster_name="main",member_host="/10.0.0.7",consumer_id="c-{group}",client_id="c",'


def exposition(began_s: int, age_s: int) -> str:
    """What the exporters show that many seconds after their start."""
    return "\n".join([*_groups(age_s), *_kube_state_metrics()]) + "\n"


def _groups(age_s: int) -> list[str]:
    lines = []
    topics: dict[tuple[str, str], tuple[int, int]] = {}
    for group, topic, partition, rate, waiting, growth in GROUPS:
        member = _LAG_EXPORTER.format(group=group)
        labels = f'{member}group="{group}",topic="{topic}",partition="{partition}"'
        if waiting is None or age_s < FIRST_COMMIT_S.get((group, partition), 0):
            lines += [f"kafka_consumergroup_group_{name}{{{labels}}} NaN" for name in ("offset", "lag")]
            continue
        offset, lag = 1000 + rate * age_s, waiting + growth * age_s
        lines += [f"kafka_consumergroup_group_offset{{{labels}}} {offset}.0"]
        lines += [f"kafka_consumergroup_group_lag{{{labels}}} {lag}.0"]
        labels = f'consumer_group="{group}",topic="{topic}",partition="{partition}"'
        lines += [f"klag_consumer_committed_offset{{{labels}}} {offset}.0", f"klag_consumer_lag{{{labels}}} {lag}.0"]
        if age_s >= HIDDEN_S.get((group, partition), age_s + 1):
            continue
        labels = f'group_id="{group}",topic_name="{topic}",partition_id="{partition}"'
        lines += [f"kminion_kafka_consumer_group_topic_partition_lag{{{labels}}} {lag}"]
        done, behind = topics.get((group, topic), (0, 0))
        topics[group, topic] = done + offset, behind + lag
    for (group, topic), (offset, lag) in topics.items():
        labels = f'group_id="{group}",topic_name="{topic}"'
        lines += [f"kminion_kafka_consumer_group_topic_offset_sum{{{labels}}} {offset}"]
        lines += [f"kminion_kafka_consumer_group_topic_lag{{{labels}}} {lag}"]
    return lines


def _kube_state_metrics() -> list[str]:
    """Deployment `orders` is scaled from 3 to 5 workers; StatefulSet `clicks` has no HPA."""
    hpa = 'namespace="shop",horizontalpodautoscaler="orders-hpa"'
    target = 'scaletargetref_api_version="apps/v1",scaletargetref_kind="Deployment",scaletargetref_name="orders"'
    values = {
        'kube_deployment_spec_replicas{namespace="shop",deployment="orders"}': 5,
        'kube_deployment_status_replicas{namespace="shop",deployment="orders"}': 4,
        'kube_deployment_status_replicas_ready{namespace="shop",deployment="orders"}': 3,
        'kube_deployment_spec_replicas{namespace="other",deployment="orders"}': 9,
        'kube_statefulset_replicas{namespace="shop",statefulset="clicks"}': 2,
        'kube_statefulset_status_replicas{namespace="shop",statefulset="clicks"}': 2,
        'kube_statefulset_status_replicas_ready{namespace="shop",statefulset="clicks"}': 1,
        f"kube_horizontalpodautoscaler_info{{{hpa},{target}}}": 1,
        f"kube_horizontalpodautoscaler_spec_min_replicas{{{hpa}}}": 2,
        f"kube_horizontalpodautoscaler_spec_max_replicas{{{hpa}}}": 12,
    }
    return [f"{series} {value}" for series, value in values.items()]


def _replicas(name: str) -> Workload:
    match = {"namespace": "shop", "workload": name}
    reading = PrometheusReading(source="main", preset="kube-state-metrics", match=match)
    return Workload(namespace="shop", name=name, read=(reading,))


CONFIG = Config(
    sources={"main": PrometheusSource(kind="prometheus", url="http://prometheus.test/")},
    pipeline=Pipeline(checkpoint="unused"),
    workloads=(_replicas("orders"), _replicas("clicks")),
    fleets=tuple(
        Fleet(name=preset, source="main", preset=preset, namespace=preset)
        for preset in ("kafka-lag-exporter", "klag", "kminion")
    ),
)
