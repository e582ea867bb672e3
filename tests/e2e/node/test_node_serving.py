"""A drained node and a new version replace the servers, and no request of an HPA fails."""

from collections.abc import Iterator

import pytest
from parts.adapter import NAME, NAMESPACE, Adapter
from parts.container_workload import ContainerWorkload
from parts.controlplane import ControlPlane
from parts.process import until
from parts.traffic import Traffic, lossless_traffic


@pytest.fixture
def traffic(adapter: Adapter, job: ContainerWorkload) -> Iterator[Traffic]:
    """Reads the number of an HPA through the cluster; fails the test if a request fails or the HPA pauses."""
    until(lambda: adapter.number("required_workers", job.name), 60, "a number is served")
    until(lambda: active(job)[0] == "True", 60, "the HPA is active")
    before = active(job)
    with lossless_traffic(lambda: adapter.read("required_workers", job.name), 200) as traffic:
        yield traffic
    assert active(job) == before


def active(job: ContainerWorkload) -> tuple[str, str]:
    """The HPA's condition ScalingActive, and since when: a pause in between would show."""
    condition = job.condition("ScalingActive")
    return condition.get("status", ""), condition.get("lastTransitionTime", "")


def rolled_out(plane: ControlPlane) -> None:
    plane.kubectl("-n", NAMESPACE, "rollout", "status", f"deployment/{NAME}", "--timeout=300s")


def test_an_eviction_of_a_server_loses_no_request(
    traffic: Traffic, adapter: Adapter, controlplane: ControlPlane
) -> None:
    rolled_out(controlplane)
    evicted = adapter.servers()[0].name
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{evicted}"
    review = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": evicted, "namespace": NAMESPACE}}
    controlplane.api.request("POST", f"{path}/eviction", review)
    until(lambda: controlplane.api.raw(path).status_code == 404, 120, "the evicted pod has ended")
    rolled_out(controlplane)
    assert evicted not in {pod.name for pod in adapter.servers()}


def test_a_rolling_restart_of_the_servers_loses_no_request(
    traffic: Traffic, adapter: Adapter, controlplane: ControlPlane
) -> None:
    before = {pod.name for pod in adapter.servers()}
    controlplane.kubectl("-n", NAMESPACE, "rollout", "restart", f"deployment/{NAME}")
    rolled_out(controlplane)
    until(lambda: before.isdisjoint(pod.name for pod in adapter.servers()), 120, "both servers are new")
    gone = [f"pod/{name}" for name in before]
    controlplane.kubectl("-n", NAMESPACE, "wait", *gone, "--for=delete", "--timeout=120s")
    assert len(adapter.servers()) == 2
