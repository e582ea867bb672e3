"""hpa/*.yaml: each manifest uses a metric of the adapter with the right target type."""

from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from adapter.sources.autoscalers import autoscalers

FOLDER = Path(__file__).parents[2] / "hpa"
SIZES = ("kafka-consumer.yaml", "object.yaml")
RATIOS = "two-ratios.yaml"
KEDA = "keda-scaledobject.yaml"  # no HPA: KEDA creates it
NAMES = sorted(path.name for path in FOLDER.glob("*.yaml") if path.name != KEDA)


def read(name: str) -> dict[str, Any]:
    return yaml.safe_load((FOLDER / name).read_text())


def sources(name: str) -> list[dict[str, Any]]:
    """The source of each metric of the HPA."""
    return [item[item["type"].lower()] for item in read(name)["spec"]["metrics"]]


def test_every_manifest_has_its_tests_here() -> None:
    assert sorted([*SIZES, RATIOS]) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_adapter_recognizes_the_hpa_of_its_workload(name: str) -> None:
    hpa = read(name)
    hpa["metadata"]["namespace"] = "shop"
    (found,) = autoscalers([hpa])
    assert found.workloads == ("shop/orders",)
    assert found.target.name == hpa["spec"]["scaleTargetRef"]["name"]


@pytest.mark.parametrize("name", SIZES)
def test_the_hpa_scales_on_required_workers(name: str) -> None:
    (source,) = sources(name)
    assert source["metric"]["name"] == "required_workers"
    assert source["target"] == {"type": "AverageValue", "averageValue": "1"}


def test_an_external_metric_selects_one_workload() -> None:
    (source,) = sources("kafka-consumer.yaml")
    assert source["metric"]["selector"] == {"matchLabels": {"workload": "orders"}}


def test_the_described_object_is_the_scale_target() -> None:
    (source,) = sources("object.yaml")
    assert source["describedObject"] == read("object.yaml")["spec"]["scaleTargetRef"]


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("direction", ["scaleUp", "scaleDown"])
def test_the_hpa_adds_no_tolerance_and_no_stabilization(name: str, direction: str) -> None:
    behavior = read(name)["spec"]["behavior"][direction]
    assert behavior["tolerance"] == "0"
    assert behavior["stabilizationWindowSeconds"] == 0


def test_external_and_object_metrics_have_the_same_behavior() -> None:
    assert read("object.yaml")["spec"]["behavior"] == read("kafka-consumer.yaml")["spec"]["behavior"]


def test_s1_15_two_ratios_have_the_published_targets_and_window() -> None:
    requested = {source["metric"]["name"]: source["target"] for source in sources(RATIOS)}
    assert requested == {
        "utilization": {"type": "Value", "value": "700m"},
        "relative_lag_change": {"type": "Value", "value": "1"},
    }
    spec = read(RATIOS)["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 16)
    assert spec["behavior"] == {"scaleDown": {"stabilizationWindowSeconds": 480}}


@pytest.fixture(scope="module")
def keda() -> dict[str, dict[str, Any]]:
    """The objects for KEDA, by kind."""
    return {item["kind"]: item for item in yaml.safe_load_all((FOLDER / KEDA).read_text())}


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
    created, ours = keda["ScaledObject"], read("kafka-consumer.yaml")
    meta = {"name": "keda-hpa-orders", "namespace": "shop", "annotations": created["metadata"]["annotations"]}
    (found,) = autoscalers([{"metadata": meta, "spec": ours["spec"] | {"metrics": []}}])
    assert found.workloads == ("shop/orders",)
    assert created["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"] == ours["spec"]["behavior"]


def test_keda_can_read_only_its_metric(keda: dict[str, dict[str, Any]]) -> None:
    rule = {"apiGroups": ["external.metrics.k8s.io"], "resources": ["required_workers"], "verbs": ["list"]}
    assert keda["Role"]["rules"] == [rule]
    (subject,) = keda["RoleBinding"]["subjects"]
    assert subject["name"] == keda["ServiceAccount"]["metadata"]["name"]
