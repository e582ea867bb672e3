"""The bench itself: each part does what the scenarios rely on."""

import sys
from pathlib import Path

import httpx
from parts import worker
from parts.broker import Broker
from parts.controlplane import ControlPlane
from parts.kubelet import Kubelet
from parts.load import Load
from parts.pravega import Pravega
from parts.process import until
from parts.prometheus import Prometheus

SERVER = "import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=8080)"


def deployment(name: str, command: list[str], replicas: int, **container: object) -> dict:
    labels = {"app": name}
    pod = {"containers": [{"name": "it", "image": "bench:1", "command": command, **container}]}
    template = {"metadata": {"labels": labels}, "spec": {**pod, "terminationGracePeriodSeconds": 10}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def ready_replicas(plane: ControlPlane, name: str) -> int:
    found = plane.api.get(f"/apis/apps/v1/namespaces/default/deployments/{name}")
    return found["status"].get("readyReplicas", 0)


def test_load_reaches_the_broker_at_the_rate_asked_for(broker: Broker, run: Path) -> None:
    broker.create_topic("smoke-load", 4)
    with Load(run / "load", broker.bootstrap_servers, "smoke-load", 4) as load:
        load.set_rate(400)
        ends = until(lambda: _all(broker.end_offsets("smoke-load"), 200), 20, "every partition got 200 records")
        assert max(ends.values()) - min(ends.values()) <= 25


def _all(ends: dict[int, int], least: int) -> dict[int, int]:
    return ends if min(ends.values()) >= least else {}


def test_the_broker_keeps_its_data_over_a_restart(broker: Broker, run: Path) -> None:
    broker.create_topic("smoke-restart", 1)
    with Load(run / "load", broker.bootstrap_servers, "smoke-restart", 1) as load:
        load.set_rate(100)
        until(lambda: broker.end_offsets("smoke-restart")[0] >= 50, 20, "50 records")
    before = broker.end_offsets("smoke-restart")
    broker.stop()
    broker.start()
    # A client holds the leader epochs from before for a moment.
    until(lambda: broker.end_offsets("smoke-restart") == before, 30, "the records from before")


def test_a_real_prometheus_knows_what_a_group_has_committed(
    broker: Broker, prometheus: Prometheus, controlplane: ControlPlane, kubelet: Kubelet, run: Path
) -> None:
    broker.create_topic("smoke-group", 2)
    command = [sys.executable, worker.__file__, broker.bootstrap_servers, "smoke-workers", "smoke-group", "200"]
    controlplane.apply(deployment("smoke-workers", command, replicas=2))
    with Load(run / "load", broker.bootstrap_servers, "smoke-group", 2) as load:
        load.set_rate(100)
        query = 'sum(kafka_consumergroup_current_offset{consumergroup="smoke-workers"})'
        until(lambda: float(prometheus.query(query)[0]["value"][1]) > 300, 60, "300 records are committed")
    until(lambda: broker.backlog_records("smoke-workers", "smoke-group") == 0, 30, "the backlog is gone")
    controlplane.kubectl("delete", "deployment", "smoke-workers")


def test_a_worker_is_capped_at_its_rate(
    broker: Broker, controlplane: ControlPlane, kubelet: Kubelet, run: Path
) -> None:
    broker.create_topic("smoke-cap", 2)
    with Load(run / "load", broker.bootstrap_servers, "smoke-cap", 2) as load:
        load.set_rate(2000)
        until(lambda: broker.end_offsets("smoke-cap")[0] > 4000, 30, "8000 records wait")
    command = [sys.executable, worker.__file__, broker.bootstrap_servers, "smoke-cap", "smoke-cap", "200"]
    controlplane.apply(deployment("smoke-cap", command, replicas=1))

    def committed() -> int:
        return sum(broker.committed_offsets("smoke-cap", "smoke-cap").values())

    first = until(committed, 30, "the first commit")
    until(lambda: committed() > first + 800, 12, "800 more records")
    assert committed() < 8000
    controlplane.kubectl("delete", "deployment", "smoke-cap")


def test_pravega_counts_the_segments_of_a_scaled_stream(pravega: Pravega) -> None:
    pravega.create_stream("smoke", "stream", 1)
    assert pravega.segments("smoke", "stream") == 1
    pravega.scale("smoke", "stream", 4)
    until(lambda: pravega.segments("smoke", "stream") == 4, 30, "four segments")


def test_each_pod_has_an_address_and_answers_through_its_service(controlplane: ControlPlane, kubelet: Kubelet) -> None:
    probe = {"httpGet": {"path": "/", "port": 8080, "scheme": "HTTP"}}
    controlplane.apply(deployment("smoke-web", [sys.executable, "-c", SERVER], replicas=2, readinessProbe=probe))
    until(lambda: ready_replicas(controlplane, "smoke-web") == 2, 30, "both pods are ready")
    addresses = {pod.ip for pod in kubelet.pods("default", "smoke-web")}
    assert len(addresses) == 2
    assert all(httpx.get(f"http://{address}:8080/").is_success for address in addresses)
    controlplane.kubectl("delete", "deployment", "smoke-web")
    until(lambda: not kubelet.pods("default", "smoke-web"), 30, "both pods are gone")


def test_a_pod_runs_as_the_user_it_asks_for_and_finds_its_name(controlplane: ControlPlane, kubelet: Kubelet) -> None:
    probe = {"httpGet": {"path": "/", "port": 8080, "scheme": "HTTP"}}
    command = ["sh", "-c", f'test "$(id -un) $(id -g)" = "adapter 10001" && exec {sys.executable} -c "{SERVER}"']
    manifest = deployment("smoke-user", command, replicas=1, readinessProbe=probe)
    manifest["spec"]["template"]["spec"]["securityContext"] = {"runAsUser": 10001}
    controlplane.apply(manifest)
    until(lambda: ready_replicas(controlplane, "smoke-user") == 1, 30, "the pod is ready")
    controlplane.kubectl("delete", "deployment", "smoke-user")


def test_a_killed_container_is_started_again_in_the_same_pod(controlplane: ControlPlane, kubelet: Kubelet) -> None:
    controlplane.apply(deployment("smoke-kill", ["sleep", "1000"], replicas=1))
    until(lambda: ready_replicas(controlplane, "smoke-kill") == 1, 30, "the pod is ready")
    (pod,) = kubelet.pods("default", "smoke-kill")
    with (Path("/proc") / str(pod.process.child.pid) / "ns" / "net").open():  # it stays, as by last sockets
        kubelet.kill(pod)
        until(lambda: pod.restarts == 1 and ready_replicas(controlplane, "smoke-kill") == 1, 30, "ready again")
        assert pod.process.running()
    assert kubelet.pods("default", "smoke-kill") == [pod]
    controlplane.kubectl("delete", "deployment", "smoke-kill")
