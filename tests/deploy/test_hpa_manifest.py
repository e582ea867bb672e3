"""hpa/*.yaml: each manifest asks for what the adapter serves, in the one way that works."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.sources.autoscalers import autoscalers

FOLDER = Path(__file__).parents[2] / "hpa"
SIZES = ("kafka-consumer.yaml", "object.yaml")
RATIOS = "two-ratios.yaml"
NAMES = sorted(path.name for path in FOLDER.glob("*.yaml"))


def read(name: str) -> dict[str, Any]:
    return yaml.safe_load((FOLDER / name).read_text())


def sources(name: str) -> list[dict[str, Any]]:
    """What each metric says, beside its type."""
    return [item[item["type"].lower()] for item in read(name)["spec"]["metrics"]]


def test_every_manifest_is_looked_at_here() -> None:
    assert sorted([*SIZES, RATIOS]) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_adapter_knows_it_for_the_hpa_of_its_workload(name: str) -> None:
    hpa = read(name)
    hpa["metadata"]["namespace"] = "shop"
    (found,) = autoscalers([hpa])
    assert found.workloads == ("shop/orders",)
    assert found.target.name == hpa["spec"]["scaleTargetRef"]["name"]


@pytest.mark.parametrize("name", SIZES)
def test_it_scales_on_the_workers_that_are_required(name: str) -> None:
    (source,) = sources(name)
    assert source["metric"]["name"] == "required_workers"
    assert source["target"] == {"type": "AverageValue", "averageValue": "1"}


def test_an_external_metric_selects_one_workload() -> None:
    (source,) = sources("kafka-consumer.yaml")
    assert source["metric"]["selector"] == {"matchLabels": {"workload": "orders"}}


def test_the_object_described_is_the_one_that_is_scaled() -> None:
    (source,) = sources("object.yaml")
    assert source["describedObject"] == read("object.yaml")["spec"]["scaleTargetRef"]


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("direction", ["scaleUp", "scaleDown"])
def test_no_step_is_lost_in_a_tolerance_and_none_waits_twice(name: str, direction: str) -> None:
    behavior = read(name)["spec"]["behavior"][direction]
    assert behavior["tolerance"] == "0"
    assert behavior["stabilizationWindowSeconds"] == 0


def test_both_doors_lead_to_the_same_behavior() -> None:
    assert read("object.yaml")["spec"]["behavior"] == read("kafka-consumer.yaml")["spec"]["behavior"]


def test_s1_15_two_ratios_of_pods_with_the_published_targets_and_window() -> None:
    asked = {source["metric"]["name"]: source["target"] for source in sources(RATIOS)}
    assert asked == {
        "utilization": {"type": "AverageValue", "averageValue": "700m"},
        "relative_lag_change": {"type": "AverageValue", "averageValue": "1"},
    }
    spec = read(RATIOS)["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 16)
    assert spec["behavior"] == {"scaleDown": {"stabilizationWindowSeconds": 480}}
