"""A real API server accepts every object of the chart, and a restricted namespace every pod."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from parts.adapter import CHART
from parts.controlplane import ControlPlane
from parts.process import CommandError, until
from parts.release import NAME

RESTRICTED = "restricted"
ENFORCE = {"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest"}


@pytest.fixture(scope="module")
def restricted(controlplane: ControlPlane) -> str:
    """A namespace that enforces the restricted Pod Security Standard."""
    meta = {"name": RESTRICTED, "labels": ENFORCE}
    controlplane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    account = f"/api/v1/namespaces/{RESTRICTED}/serviceaccounts/default"
    until(lambda: controlplane.api.raw(account).is_success, 60, "its default account exists")
    return RESTRICTED


@pytest.fixture(scope="module")
def rendered(controlplane: ControlPlane) -> dict[str, list[dict[str, Any]]]:
    """The objects of each file of values."""

    def objects(file: Path) -> list[dict[str, Any]]:
        text = controlplane.helm("template", NAME, str(CHART), "--namespace", RESTRICTED, "--values", str(file))
        return [item for item in yaml.safe_load_all(text) if item]

    return {file.name: objects(file) for file in sorted((CHART / "ci").glob("*-values.yaml"))}


def pods(objects: list[dict[str, Any]], prefix: str) -> list[dict[str, Any]]:
    """Every pod, with an account that exists."""
    found = []
    for item in objects:
        spec = item["spec"] if item["kind"] == "Pod" else item.get("spec", {}).get("template", {}).get("spec")
        if spec is not None:
            meta = {"name": f"{prefix}-{item['metadata']['name']}", "namespace": RESTRICTED}
            own = spec | {"serviceAccountName": "default", "restartPolicy": "Never"}
            found.append({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": own})
    return found


def accepted(plane: ControlPlane, objects: list[dict[str, Any]], *options: str) -> int:
    """How many of the objects the API server would store. CommandError names the others."""
    command = ("apply", "--server-side", "--dry-run=server", *options, "-f", "-")
    return plane.kubectl(*command, stdin=yaml.safe_dump_all(objects)).count("serverside-applied")


def test_the_api_server_accepts_every_object(
    controlplane: ControlPlane, crds: None, restricted: str, rendered: dict[str, list[dict[str, Any]]]
) -> None:
    objects = [item for each in rendered.values() for item in each if item["kind"] != "Pod"]
    elsewhere = [item for item in objects if "namespace" in item["metadata"]]
    here = [item for item in objects if "namespace" not in item["metadata"]]
    assert accepted(controlplane, here, f"--namespace={RESTRICTED}") == len(here)
    assert accepted(controlplane, elsewhere) == len(elsewhere)


def test_a_restricted_namespace_accepts_every_pod_without_host_networking(
    controlplane: ControlPlane, restricted: str, rendered: dict[str, list[dict[str, Any]]]
) -> None:
    found = [pod for name, objects in rendered.items() for pod in pods(objects, name.partition(".")[0])]
    on_the_node = [pod for pod in found if pod["spec"].get("hostNetwork")]
    in_pods = [pod for pod in found if pod not in on_the_node]
    assert accepted(controlplane, in_pods) == len(in_pods) > 2 * len(on_the_node) > 0
    with pytest.raises(CommandError, match=r"host namespaces \(hostNetwork=true\)"):
        accepted(controlplane, on_the_node)


def test_helm_refuses_a_release_of_kubernetes_without_what_the_chart_needs(controlplane: ControlPlane) -> None:
    message = r"chart requires kubeVersion: >=1\.31\.0-0 which is incompatible with Kubernetes v1\.30\.0"
    with pytest.raises(CommandError, match=message):
        controlplane.helm("template", NAME, str(CHART), "--kube-version", "1.30.0")
