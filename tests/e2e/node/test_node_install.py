"""helm install on a real node: restricted pods become ready, and the first decision comes soon."""

import pytest
from parts.adapter import NAMESPACE, Adapter
from parts.controlplane import ControlPlane
from parts.images import PIPELINE
from parts.node import Node
from parts.process import CommandError, until

# At random, as OpenShift chooses it; no image has an entry in /etc/passwd for it.
USER = 1234567
SCRATCH = "/tmp"  # noqa: S108  # of the container


def test_every_pod_is_ready_and_never_restarted(adapter: Adapter, controlplane: ControlPlane, node: Node) -> None:
    controlplane.kubectl("-n", NAMESPACE, "wait", "pod", "--all", "--for=condition=Ready", "--timeout=180s")
    assert len(adapter.servers()) == 2
    assert [pod for pod in node.pods(NAMESPACE) if pod.restarts] == []


def test_an_hpa_gets_its_first_number_within_three_minutes_of_helm_install(installed: tuple[Adapter, float]) -> None:
    _, first_number_s = installed
    assert first_number_s < 180


def test_the_namespace_of_the_adapter_refuses_a_pod_that_is_not_restricted(
    adapter: Adapter, controlplane: ControlPlane
) -> None:
    """Otherwise the pods of the chart would prove nothing."""
    with pytest.raises(CommandError, match='violates PodSecurity "restricted:latest"'):
        controlplane.kubectl("-n", NAMESPACE, "run", "idle", "--image=localhost/pause:3.10")


def test_the_pipeline_runs_as_any_user_on_a_read_only_root(adapter: Adapter, controlplane: ControlPlane) -> None:
    """The product on its simulated fleet, with Spark, beside the installed one."""
    controlplane.apply(simulated_fleet("any-user"))
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/any-user"

    def phase() -> str:
        found = controlplane.api.get(path)["status"]["phase"]
        return found if found in ("Succeeded", "Failed") else ""

    try:
        ended = until(phase, 400, "the pod has ended")
        assert ended == "Succeeded", controlplane.kubectl("-n", NAMESPACE, "logs", "any-user")
    finally:
        controlplane.kubectl("-n", NAMESPACE, "delete", "pod", "any-user")


def simulated_fleet(name: str) -> dict[str, object]:
    """A pod under the restricted profile."""
    security = {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True, "runAsUser": USER, "runAsGroup": 0, "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip
    container = {
        "name": "run", "image": PIPELINE, "args": ["run", "--for", "200s"], "securityContext": security,
        "env": [{"name": "HOME", "value": SCRATCH}], "volumeMounts": [{"name": "tmp", "mountPath": SCRATCH}],
    }  # fmt: skip
    spec = {"restartPolicy": "Never", "containers": [container], "volumes": [{"name": "tmp", "emptyDir": {}}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}
