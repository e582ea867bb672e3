"""hpa/*.yaml: every manifest is valid for the HPA controller and for the adapter, and says what to edit."""

import re
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.config import Config, parse, rule_book
from adapter.core.metrics import METRICS
from adapter.sources import needs
from adapter.sources.autoscalers import autoscalers
from adapter.sources.prometheus_plan import queries

FOLDER = Path(__file__).parents[2] / "hpa"
KEDA = "keda-scaledobject.yaml"  # no HPA: KEDA creates it (test_keda_manifest.py)
NAMES = sorted(path.name for path in FOLDER.glob("*.yaml") if path.name != KEDA)
README = (FOLDER / "README.md").read_text()
SERVED = (FOLDER.parent / "README.md").read_text().partition("## What it serves")[2].partition("\n## ")[0]
TARGETS = dict(re.findall(r"^\| `(\w+)` \|[^|]*\| (.*) \|$", SERVED, re.MULTILINE))  # metric -> HPA target
EVERY_MANIFEST = pytest.mark.parametrize("name", NAMES)
# Kinds with replicas that an HPA can write, and their API.
SCALABLE = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "FlinkDeployment": "flink.apache.org/v1beta1"}


@cache
def read(name: str) -> dict[str, Any]:
    (manifest,) = yaml.safe_load_all((FOLDER / name).read_text())
    return dict(manifest)


def metrics(name: str) -> list[tuple[str, dict[str, Any]]]:
    """(type, source) of each metric."""
    return [(item["type"], item[item["type"].lower()]) for item in read(name)["spec"]["metrics"]]


def workload_of(name: str) -> str:
    hpa = {"metadata": read(name)["metadata"] | {"namespace": "default"}, "spec": read(name)["spec"]}
    (found,) = autoscalers([hpa])
    (workload,) = found.workloads
    return workload


def configuration(name: str) -> Config:
    """The entry in the comment of a manifest, with the sources of the README."""
    text = (FOLDER / name).read_text()
    found = re.search(r"^# Adapter configuration:\n((?:#   .*\n)+)", text, re.MULTILINE)
    assert found, "the comment has the entry of the workload"
    entry = yaml.safe_load(textwrap.dedent(re.sub(r"^#", "", found[1], flags=re.MULTILINE)))
    (shared,) = re.findall(r"^```yaml\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    whole = yaml.safe_load(shared)
    sources = whole["sources"] | entry.get("sources", {})
    return parse(yaml.safe_dump({**whole, **entry, "sources": sources}), name)


@EVERY_MANIFEST
def test_a_manifest_is_an_hpa_of_a_scalable_object(name: str) -> None:
    hpa = read(name)
    assert (hpa["apiVersion"], hpa["kind"]) == ("autoscaling/v2", "HorizontalPodAutoscaler")
    spec = hpa["spec"]
    target = spec["scaleTargetRef"]
    assert target["apiVersion"] == SCALABLE[target["kind"]]
    assert 1 <= spec["minReplicas"] < spec["maxReplicas"]


@EVERY_MANIFEST
def test_each_metric_exists_and_has_the_target_that_the_readme_recommends(name: str) -> None:
    for _, source in metrics(name):
        name, target = source["metric"]["name"], source["target"]
        assert TARGETS[name].split()[0].rstrip(":") == target["type"]
        if METRICS[name].is_size:
            assert target["averageValue"] == "1"


@pytest.mark.parametrize("name", METRICS)
def test_check_requires_the_target_that_the_readme_recommends(name: str) -> None:
    assert re.split(r"\W", TARGETS[name])[0] == (METRICS[name].target or "none")


@EVERY_MANIFEST
def test_each_selector_names_the_workload_by_the_label_that_the_adapter_serves(name: str) -> None:
    workload = workload_of(name).partition("/")[2]
    for kind, source in metrics(name):
        selector = source["metric"].get("selector")
        if selector is None:
            assert (kind, source["describedObject"]["name"]) == ("Object", workload)
        else:
            assert selector == {"matchLabels": {"workload": workload}}


@EVERY_MANIFEST
def test_a_described_object_is_the_scale_target(name: str) -> None:
    for kind, source in metrics(name):
        if kind == "Object":
            assert source["describedObject"] == read(name)["spec"]["scaleTargetRef"]


@EVERY_MANIFEST
def test_the_adapter_finds_no_fault_in_a_manifest(name: str) -> None:
    hpa = {"metadata": read(name)["metadata"] | {"namespace": "default"}, "spec": read(name)["spec"]}
    (found,) = autoscalers([hpa])
    assert found.fault == ""


@EVERY_MANIFEST
def test_the_annotations_to_uncomment_have_no_fault(name: str) -> None:
    text = (FOLDER / name).read_text()
    commented = re.findall(r"^  #   (backlog-adapter/\S+: .*)$", text, re.MULTILINE)
    annotations = yaml.safe_load("\n".join(commented)) or {}
    meta = read(name)["metadata"] | {"namespace": "default", "annotations": annotations}
    (found,) = autoscalers([{"metadata": meta, "spec": read(name)["spec"]}])
    assert found.annotations.faults == ()
    assert bool(annotations) == ("  # annotations:\n" in text)


@EVERY_MANIFEST
def test_the_configuration_in_the_comment_has_the_workload_of_the_hpa(name: str) -> None:
    config = configuration(name)
    (entry,) = config.workloads
    assert f"{entry.namespace}/{entry.name}" == workload_of(name)
    assert (needs.check(config), needs.hints(config)) == ([], [])
    assert all(query.text for query in queries(config, "prometheus"))


@EVERY_MANIFEST
def test_the_table_of_the_readme_has_the_metrics_and_the_policy_of_a_manifest(name: str) -> None:
    (row,) = (line for line in README.splitlines() if line.startswith("|") and f"]({name})" in line)
    _, _, _, served, policy, _, _ = row.split("|")
    targets = re.findall(r"`(\w+)`, (\w+) (\w+)", served)
    expected = [(source["metric"]["name"], *source["target"].values()) for _, source in metrics(name)]
    assert targets == expected
    assert policy.strip(" `") == rule_book(configuration(name)).of(workload_of(name), None).policy


@EVERY_MANIFEST
def test_every_number_of_a_manifest_has_a_comment(name: str) -> None:
    """object.yaml refers to kafka-consumer.yaml for its behavior."""
    text = (FOLDER / name).read_text().partition("\nspec:\n")[2]
    head, _, behavior = text.partition("\n  behavior:")
    settings = r"(?:minReplicas|maxReplicas|averageValue|value|tolerance|stabilizationWindowSeconds):"
    lines = re.findall(rf"^ *{settings}.*$", head, re.MULTILINE)
    if "kafka-consumer.yaml, which explains it" not in behavior:
        lines += re.findall(rf"^ *{settings}.*$", behavior, re.MULTILINE)
        lines += re.findall(r"policies:\n( *- .*)", behavior)
    assert len(lines) >= 3
    assert [line for line in lines if " # " not in line] == []


def test_external_and_object_metrics_have_the_same_behavior() -> None:
    assert read("object.yaml")["spec"]["behavior"] == read("kafka-consumer.yaml")["spec"]["behavior"]


@EVERY_MANIFEST
def test_an_exact_size_has_no_tolerance_and_a_padded_one_has_the_default(name: str) -> None:
    names = [source["metric"]["name"] for _, source in metrics(name)]
    up, down = (read(name)["spec"]["behavior"][half].get("tolerance") for half in ("scaleUp", "scaleDown"))
    if names in (["required_workers"], ["segments"]):
        assert (up, down) == ("0", "0")
    elif names == ["required_workers_padded"]:
        assert (up, down) == (None, None)
    else:
        assert up is None


def test_s1_15_two_ratios_have_the_published_targets_and_window() -> None:
    requested = {source["metric"]["name"]: source["target"] for _, source in metrics("flink-two-ratios.yaml")}
    assert requested == {
        "utilization": {"type": "Value", "value": "700m"},
        "relative_lag_change": {"type": "Value", "value": "1"},
    }
    spec = read("flink-two-ratios.yaml")["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 16)
    assert spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 480


def test_s2_02_segments_have_the_published_limits_and_target() -> None:
    spec = read("flink-segments.yaml")["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 32)
    ((kind, source),) = metrics("flink-segments.yaml")
    assert (kind, source["metric"]["name"]) == ("External", "segments")
    assert source["target"] == {"type": "AverageValue", "averageValue": "1"}


def test_s0_17_beam_scales_a_flink_deployment() -> None:
    target = read("beam-flink.yaml")["spec"]["scaleTargetRef"]
    assert (target["apiVersion"], target["kind"]) == ("flink.apache.org/v1beta1", "FlinkDeployment")
