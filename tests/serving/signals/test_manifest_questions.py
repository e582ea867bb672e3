"""hpa/*.yaml: what the HPA controller asks because of each manifest is answered."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from serving_builders import entry
from signal_builders import Cluster, pod, readings, with_pods

from adapter.serving.api.custom import EVERY_NAME, ObjectQuestion
from adapter.serving.api.external import ExternalQuestion
from adapter.serving.api.selectors import Selector, parse
from adapter.serving.signals.external_values import ExternalSignals

FOLDER = Path(__file__).parents[3] / "hpa"
ASKED = [
    pytest.param(metric, id=f"{path.name} {number}")
    for path in sorted(FOLDER.glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
    if document["kind"] == "HorizontalPodAutoscaler"
    for number, metric in enumerate(document["spec"]["metrics"])
]
FOUND = readings(entry(required_workers=7.0, utilization_ratio=0.9, relative_lag_change_ratio=1.25))
PODS = [pod(f"flink-taskmanager-{n}", "ReplicaSet/flink-taskmanager-5d8f") for n in "ab"]


def selector(metric: dict[str, Any]) -> Selector:
    labels = metric.get("selector", {}).get("matchLabels", {})
    return parse(",".join(f"{key}={value}" for key, value in sorted(labels.items())))


def resource(described: dict[str, str]) -> str:
    return f"{described['kind'].lower()}s.{described['apiVersion'].partition('/')[0]}"


def values(metric: dict[str, Any]) -> list[str]:
    """What the controller gets for one metric of an HPA."""
    source = metric[metric["type"].lower()]
    name, picks = source["metric"]["name"], selector(source["metric"])
    if metric["type"] == "External":
        return [value.value for value in ExternalSignals(FOUND).read(ExternalQuestion("shop", name, picks))]
    if metric["type"] == "Object":
        described = source["describedObject"]
        asked = ObjectQuestion("shop", resource(described), described["name"], name, metric_selector=picks)
    else:
        asked = ObjectQuestion("shop", "pods", EVERY_NAME, name, parse("app=flink"), picks)
    return [value.value for value in with_pods(FOUND, Cluster(*PODS).read).read(asked)]


@pytest.mark.parametrize("metric", ASKED)
def test_s1_15_what_a_manifest_asks_is_answered(metric: dict[str, Any]) -> None:
    expected = {"External": ["7"], "Object": ["7"], "Pods": ["900m", "900m"]}
    name = metric[metric["type"].lower()]["metric"]["name"]
    assert values(metric) == (["1250m", "1250m"] if name == "relative_lag_change" else expected[metric["type"]])
