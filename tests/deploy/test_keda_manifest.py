"""hpa/keda-scaledobject.yaml: KEDA reads required_workers from `serve`, and its HPA belongs to the workload."""

from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from adapter.sources.autoscalers import autoscalers

FOLDER = Path(__file__).parents[2] / "hpa"


@pytest.fixture(scope="module")
def keda() -> dict[str, dict[str, Any]]:
    """The objects for KEDA, by kind."""
    text = (FOLDER / "keda-scaledobject.yaml").read_text()
    return {item["kind"]: item for item in yaml.safe_load_all(text)}


def test_keda_scales_on_required_workers_without_a_cache(keda: dict[str, dict[str, Any]]) -> None:
    (trigger,) = keda["ScaledObject"]["spec"]["triggers"]
    url = httpx.URL(trigger["metadata"]["url"])
    assert (url.scheme, url.host) == ("https", "backlog-adapter.backlog-adapter.svc")
    assert url.path == "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/required_workers"
    assert dict(url.params) == {"labelSelector": "workload=orders"}
    assert (trigger["metricType"], trigger["metadata"]["targetValue"]) == ("AverageValue", "1")
    assert not trigger["useCachedMetrics"]


def test_the_hpa_that_keda_creates_belongs_to_the_workload(keda: dict[str, dict[str, Any]]) -> None:
    """KEDA copies the annotations, and the behavior equals that of our manifest."""
    created, ours = keda["ScaledObject"], yaml.safe_load((FOLDER / "kafka-consumer.yaml").read_text())
    meta = {"name": "keda-hpa-orders", "namespace": "shop", "annotations": created["metadata"]["annotations"]}
    (found,) = autoscalers([{"metadata": meta, "spec": ours["spec"] | {"metrics": []}}])
    assert found.workloads == ("shop/orders",)
    assert created["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"] == ours["spec"]["behavior"]


def test_keda_can_read_only_its_metric(keda: dict[str, dict[str, Any]]) -> None:
    rule = {"apiGroups": ["external.metrics.k8s.io"], "resources": ["required_workers"], "verbs": ["list"]}
    assert keda["Role"]["rules"] == [rule]
    (subject,) = keda["RoleBinding"]["subjects"]
    assert subject["name"] == keda["ServiceAccount"]["metadata"]["name"]
