"""charts/backlog-adapter/ci: each file of values renders a release that the program accepts."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.config import Config

CHART = Path(__file__).parents[2] / "charts" / "backlog-adapter"
FILES = sorted((CHART / "ci").glob("*-values.yaml"))
Helm = Callable[..., subprocess.CompletedProcess[str]]
EVERY_FILE = pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)


def rendered(helm: Helm, file: Path) -> list[dict[str, Any]]:
    done = helm("template", "orders", str(CHART), "--namespace", "streaming", "--values", str(file))
    assert done.returncode == 0, done.stderr
    return [item for item in yaml.safe_load_all(done.stdout) if item]


def of_kind(objects: list[dict[str, Any]], *kinds: str) -> list[dict[str, Any]]:
    return [item for item in objects if item["kind"] in kinds]


def pods(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The specs of all pods, that of the test too."""
    templates = [item["spec"]["template"] for item in of_kind(objects, "Deployment")]
    return [item["spec"] for item in (*templates, *of_kind(objects, "Pod"))]


@EVERY_FILE
def test_helm_lint_finds_no_fault(helm: Helm, file: Path) -> None:
    done = helm("lint", "--strict", str(CHART), "--values", str(file))
    assert done.returncode == 0, done.stdout + done.stderr


@EVERY_FILE
def test_the_program_accepts_the_configuration(helm: Helm, file: Path) -> None:
    (item,) = [item for item in of_kind(rendered(helm, file), "ConfigMap") if "config.yaml" in item["data"]]
    config = yaml.safe_load(item["data"]["config.yaml"])
    assert Config.model_validate(config).sources.keys() == config["sources"].keys()


@EVERY_FILE
def test_every_object_has_a_name_of_its_own(helm: Helm, file: Path) -> None:
    names = [(item["kind"], item["metadata"]["name"]) for item in rendered(helm, file)]
    assert len(names) == len(set(names))


@EVERY_FILE
def test_every_file_that_the_configuration_names_is_mounted(helm: Helm, file: Path) -> None:
    objects = rendered(helm, file)
    (item,) = [item for item in of_kind(objects, "ConfigMap") if "config.yaml" in item["data"]]
    sources = yaml.safe_load(item["data"]["config.yaml"])["sources"]
    (pipeline,) = [spec for spec in pods(objects) if spec["containers"][0]["name"] == "pipeline"]
    mounted = [mount["mountPath"] for mount in pipeline["containers"][0]["volumeMounts"]]
    named = list(files_of(sources))
    assert [path for path in named if not any(path.startswith(f"{folder}/") for folder in mounted)] == []


def files_of(node: object, name: str = "") -> list[str]:
    """The paths of all settings that end in _file."""
    if isinstance(node, dict):
        return [path for key, value in node.items() for path in files_of(value, key)]
    return [node] if isinstance(node, str) and name.endswith(("_file", "ca.location")) else []


@EVERY_FILE
def test_every_pod_is_hardened(helm: Helm, file: Path) -> None:
    for spec in pods(rendered(helm, file)):
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in spec["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert "limits" in container["resources"]


def test_helm_test_reads_the_groups_of_the_chart_as_the_hpa_controller_does(helm: Helm) -> None:
    objects = rendered(helm, CHART / "ci" / "flink-operator-values.yaml")
    (pod,) = of_kind(objects, "Pod")
    assert pod["spec"]["containers"][0]["args"] == ["check-api", "--api=external", "--api=custom"]
    account = pod["spec"]["serviceAccountName"]
    bound = {
        item["roleRef"]["name"]
        for item in of_kind(objects, "ClusterRoleBinding")
        if account in {subject["name"] for subject in item["subjects"]}
    }
    assert bound == {"streaming:orders-backlog-adapter-metrics-reader"}


def test_helm_test_reads_the_first_workload(helm: Helm) -> None:
    (pod,) = of_kind(rendered(helm, CHART / "ci" / "prometheus-sources-values.yaml"), "Pod")
    assert "--workload=shop/orders" in pod["spec"]["containers"][0]["args"]


def test_no_password_of_a_source_is_in_an_object(helm: Helm) -> None:
    """The ConfigMap names the files, and no Secret of a source is made."""
    for file in ("prometheus-sources", "kafka-sasl"):
        objects = rendered(helm, CHART / "ci" / f"{file}-values.yaml")
        (item,) = of_kind(objects, "ConfigMap")
        lines = [line for line in item["data"]["config.yaml"].splitlines() if "password" in line]
        assert all(line.strip().startswith("password_file: /run/secrets/") for line in lines)
        made = {item["metadata"]["name"] for item in of_kind(objects, "Secret")}
        assert not made & {"thanos", "mimir", "victoria.client", "kafka", "kafka-ca"}
