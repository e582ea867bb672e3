"""hpa/*.yaml: each manifest asks for what the adapter serves, in the one way that works."""

from pathlib import Path
from typing import Any

import pytest
import yaml

MANIFESTS = sorted((Path(__file__).parents[2] / "hpa").glob("*.yaml"))


@pytest.fixture(params=MANIFESTS, ids=lambda path: path.name)
def hpa(request: pytest.FixtureRequest) -> dict[str, Any]:
    return yaml.safe_load(request.param.read_text())


def test_it_scales_on_the_workers_that_are_required(hpa: dict[str, Any]) -> None:
    (metric,) = [item["external"] for item in hpa["spec"]["metrics"]]
    assert metric["metric"]["name"] == "required_workers"
    assert metric["target"] == {"type": "AverageValue", "averageValue": "1"}


def test_it_selects_one_workload(hpa: dict[str, Any]) -> None:
    (metric,) = [item["external"] for item in hpa["spec"]["metrics"]]
    assert metric["metric"]["selector"] == {"matchLabels": {"workload": hpa["metadata"]["name"]}}


@pytest.mark.parametrize("direction", ["scaleUp", "scaleDown"])
def test_no_step_is_lost_in_a_tolerance_and_none_waits_twice(hpa: dict[str, Any], direction: str) -> None:
    behavior = hpa["spec"]["behavior"][direction]
    assert behavior["tolerance"] == "0"
    assert behavior["stabilizationWindowSeconds"] == 0
