"""hpa/*.yaml: `serve` answers every request that the HPA controller makes for a manifest."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from serving_builders import entry
from signal_builders import readings

from adapter.apiserver.selectors import Selector, parse
from adapter.serving.metric_api import MetricQuery, ObjectQuery
from adapter.serving.providers import ExternalMetrics, ObjectMetrics

FOLDER = Path(__file__).parents[2] / "hpa"
METRICS = [
    pytest.param(metric, id=f"{path.name} {number}")
    for path in sorted(FOLDER.glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
    if document["kind"] == "HorizontalPodAutoscaler"
    for number, metric in enumerate(document["spec"]["metrics"])
]
WORKLOADS = ("audit", "clicks", "fraud", "invoices", "orders", "sessions")
NUMBERS = {
    "required_workers": 7.0, "utilization_ratio": 0.9, "relative_lag_change_ratio": 1.25, "backlog_time_s": 90.5,
    "partitions": 12.0, "partitions_age_s": 0.0, "sample_age_s": 0.0,
}  # fmt: skip
FOUND = readings(*(entry(f"shop/{workload}", **NUMBERS) for workload in WORKLOADS))


def selector(metric: dict[str, Any]) -> Selector:
    labels = metric.get("selector", {}).get("matchLabels", {})
    return parse(",".join(f"{key}={value}" for key, value in sorted(labels.items())))


def resource(described: dict[str, str]) -> str:
    return f"{described['kind'].lower()}s.{described['apiVersion'].partition('/')[0]}"


def values(metric: dict[str, Any]) -> list[str]:
    """The values that the controller receives for one metric of an HPA."""
    source = metric[metric["type"].lower()]
    name, picks = source["metric"]["name"], selector(source["metric"])
    if metric["type"] == "External":
        return [value.value for value in ExternalMetrics(FOUND).read(MetricQuery("shop", name, picks))]
    described = source["describedObject"]
    query = ObjectQuery("shop", resource(described), described["name"], name, metric_selector=picks)
    return [value.value for value in ObjectMetrics(FOUND).read(query)]


@pytest.mark.parametrize("metric", METRICS)
def test_s1_15_every_metric_of_a_manifest_is_served(metric: dict[str, Any]) -> None:
    expected = {
        "utilization": "900m", "relative_lag_change": "1250m", "backlog_time_seconds": "90500m", "segments": "12",
    }  # fmt: skip
    name = metric[metric["type"].lower()]["metric"]["name"]
    assert values(metric) == [expected.get(name, "7")]
