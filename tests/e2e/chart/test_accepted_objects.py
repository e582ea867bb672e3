"""A real API server accepts every object of the chart, and a restricted namespace every pod."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from parts.adapter import CHART
from parts.controlplane import ControlPlane
from parts.process import CommandError, until
from parts.release import NAME

FILES = sorted((CHART / "ci").glob("*-values.yaml"))
HOST_NETWORK = "host-network-values.yaml"
RESTRICTED = "restricted"
ENFORCE = {"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest"}
EVERY_FILE = pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)


@pytest.fixture(scope="module")
def restricted(controlplane: ControlPlane) -> str:
    """A namespace that enforces the restricted Pod Security Standard."""
    meta = {"name": RESTRICTED, "labels": ENFORCE}
    controlplane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    account = f"/api/v1/namespaces/{RESTRICTED}/serviceaccounts/default"
    until(lambda: controlplane.api.raw(account).is_success, 60, "its default account exists")
    return RESTRICTED


def rendered(plane: ControlPlane, file: Path) -> list[dict[str, Any]]:
    text = plane.helm("template", NAME, str(CHART), "--namespace", RESTRICTED, "--values", str(file))
    return [item for item in yaml.safe_load_all(text) if item]


def pods(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every pod, with an account that exists."""
    found = []
    for item in objects:
        spec = item["spec"] if item["kind"] == "Pod" else item.get("spec", {}).get("template", {}).get("spec")
        if spec is not None:
            meta = {"name": item["metadata"]["name"], "namespace": RESTRICTED}
            own = spec | {"serviceAccountName": "default", "restartPolicy": "Never"}
            found.append({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": own})
    return found


def accepted(plane: ControlPlane, objects: list[dict[str, Any]], *options: str) -> int:
    """How many of the objects the API server would store."""
    command = ("apply", "--server-side", "--dry-run=server", *options, "-f", "-")
    return plane.kubectl(*command, stdin=yaml.safe_dump_all(objects)).count("serverside-applied") if objects else 0


@EVERY_FILE
def test_the_api_server_accepts_every_object(
    controlplane: ControlPlane, crds: None, restricted: str, file: Path
) -> None:
    objects = [item for item in rendered(controlplane, file) if item["kind"] != "Pod"]
    elsewhere = [item for item in objects if "namespace" in item["metadata"]]
    here = [item for item in objects if "namespace" not in item["metadata"]]
    assert accepted(controlplane, here, f"--namespace={RESTRICTED}") == len(here)
    assert accepted(controlplane, elsewhere) == len(elsewhere)


@EVERY_FILE
def test_a_restricted_namespace_accepts_every_pod(controlplane: ControlPlane, restricted: str, file: Path) -> None:
    found = pods(rendered(controlplane, file))
    if file.name == HOST_NETWORK:
        with pytest.raises(CommandError, match="host namespaces \\(hostNetwork=true\\)"):
            accepted(controlplane, found)
        found = [each for each in found if not each["spec"].get("hostNetwork")]
    assert accepted(controlplane, found) == len(found) >= 2


def test_helm_refuses_a_release_of_kubernetes_without_what_the_chart_needs(controlplane: ControlPlane) -> None:
    message = r"chart requires kubeVersion: >=1\.31\.0-0 which is incompatible with Kubernetes v1\.30\.0"
    with pytest.raises(CommandError, match=message):
        controlplane.helm("template", NAME, str(CHART), "--kube-version", "1.30.0")
