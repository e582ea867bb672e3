"""The parts themselves: what the other tests rely on."""

import subprocess
import sys
import time
from pathlib import Path

import httpx
from parts.broker import Broker
from parts.controlplane import ControlPlane
from parts.kubelet import Kubelet
from parts.load import Load
from parts.pod import COVER
from parts.pravega import Pravega
from parts.process import free_port, until
from parts.prometheus import Prometheus
from parts.scale_target import workload_resource

from examples.demo import worker

SERVER = "import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=8080)"
THREE_SUCCESSES = """
import http.server as h
class Answers(h.BaseHTTPRequestHandler):
    count = 0
    def do_GET(self):
        Answers.count += 1
        self.send_response(200 if Answers.count < 4 else 503)
        self.end_headers()
h.HTTPServer(("", 8080), Answers).serve_forever()
"""


def deployment(name: str, command: list[str], replicas: int, **container: object) -> dict:
    return workload_resource(name, {"command": command, **container}, replicas=replicas)


def ready_replicas(plane: ControlPlane, name: str) -> int:
    found = plane.api.get(f"/apis/apps/v1/namespaces/default/deployments/{name}")
    return found["status"].get("readyReplicas", 0)


def test_load_reaches_the_broker_at_its_rate(broker: Broker, run: Path) -> None:
    broker.create_topic("smoke-load", 4)
    with Load(run / "load", broker.bootstrap_servers, "smoke-load", 4) as load:
        load.set_rate(400)
        until(lambda: _is_even(broker.end_offsets("smoke-load"), 200), 60, "every partition has 200 records")


def _is_even(ends: dict[int, int], least: int) -> bool:
    """The partitions receive the records of one step one after the other."""
    return min(ends.values()) >= least and max(ends.values()) - min(ends.values()) <= 25


def _at_rest(broker: Broker, topic: str) -> dict[int, int]:
    """The end offsets, empty while they grow: the last records may arrive after the producer ends."""
    ends = broker.end_offsets(topic)
    time.sleep(1)
    return ends if broker.end_offsets(topic) == ends else {}


def test_the_broker_keeps_its_data_over_a_restart(broker: Broker, run: Path) -> None:
    broker.create_topic("smoke-restart", 1)
    with Load(run / "load", broker.bootstrap_servers, "smoke-restart", 1) as load:
        load.set_rate(100)
        until(lambda: broker.end_offsets("smoke-restart")[0] >= 50, 60, "50 records")
    before = until(lambda: _at_rest(broker, "smoke-restart"), 30, "the last record has arrived")
    broker.stop()
    broker.start()
    # The client has stale leader epochs for a moment.
    until(lambda: broker.end_offsets("smoke-restart") == before, 60, "the records from before")


def test_a_real_prometheus_has_the_committed_offsets_of_a_group(
    broker: Broker, prometheus: Prometheus, controlplane: ControlPlane, kubelet: Kubelet, run: Path
) -> None:
    broker.create_topic("smoke-group", 2)
    command = [sys.executable, worker.__file__, broker.bootstrap_servers, "smoke-workers", "smoke-group", "200"]
    controlplane.apply(deployment("smoke-workers", command, replicas=2))
    with Load(run / "load", broker.bootstrap_servers, "smoke-group", 2) as load:
        load.set_rate(100)
        query = 'sum(kafka_consumergroup_current_offset{consumergroup="smoke-workers"})'
        until(lambda: float(prometheus.query(query)[0]["value"][1]) > 300, 120, "300 records are committed")
    until(lambda: broker.backlog_records("smoke-workers", "smoke-group") == 0, 60, "the backlog is gone")
    controlplane.kubectl("delete", "deployment", "smoke-workers")


def test_a_worker_is_capped_at_its_rate(
    broker: Broker, controlplane: ControlPlane, kubelet: Kubelet, run: Path
) -> None:
    broker.create_topic("smoke-cap", 2)
    with Load(run / "load", broker.bootstrap_servers, "smoke-cap", 2) as load:
        load.set_rate(2000)
        until(lambda: broker.end_offsets("smoke-cap")[0] > 4000, 60, "8000 records wait")
    command = [sys.executable, worker.__file__, broker.bootstrap_servers, "smoke-cap", "smoke-cap", "200"]
    controlplane.apply(deployment("smoke-cap", command, replicas=1))

    def committed() -> int:
        return sum(broker.committed_offsets("smoke-cap", "smoke-cap").values())

    first = until(committed, 60, "the first commit")
    until(lambda: committed() > first + 800, 60, "800 more records")
    assert committed() < 8000
    controlplane.kubectl("delete", "deployment", "smoke-cap")


def test_pravega_counts_the_segments_of_a_scaled_stream(pravega: Pravega) -> None:
    pravega.create_stream("smoke", "stream", 1)
    assert pravega.segments("smoke", "stream") == 1
    pravega.scale("smoke", "stream", 4)
    until(lambda: pravega.segments("smoke", "stream") == 4, 120, "four segments")


def test_each_pod_has_an_address_and_answers_through_its_service(controlplane: ControlPlane, kubelet: Kubelet) -> None:
    probe = {"httpGet": {"path": "/", "port": 8080, "scheme": "HTTP"}}
    controlplane.apply(deployment("smoke-web", [sys.executable, "-c", SERVER], replicas=2, readinessProbe=probe))
    until(lambda: ready_replicas(controlplane, "smoke-web") == 2, 120, "both pods are ready")
    addresses = {pod.ip for pod in kubelet.pods("default", "smoke-web")}
    assert len(addresses) == 2
    assert all(httpx.get(f"http://{address}:8080/").is_success for address in addresses)
    controlplane.kubectl("delete", "deployment", "smoke-web")
    until(lambda: not kubelet.pods("default", "smoke-web"), 120, "both pods are gone")


def test_a_pod_runs_as_its_user_and_finds_the_name_of_the_user(controlplane: ControlPlane, kubelet: Kubelet) -> None:
    probe = {"httpGet": {"path": "/", "port": 8080, "scheme": "HTTP"}}
    command = ["sh", "-c", f'test "$(id -un) $(id -g)" = "adapter 10001" && exec {sys.executable} -c "{SERVER}"']
    manifest = deployment("smoke-user", command, replicas=1, readinessProbe=probe)
    manifest["spec"]["template"]["spec"]["securityContext"] = {"runAsUser": 10001}
    controlplane.apply(manifest)
    until(lambda: ready_replicas(controlplane, "smoke-user") == 1, 120, "the pod is ready")
    controlplane.kubectl("delete", "deployment", "smoke-user")


def test_a_killed_container_restarts_in_the_same_pod(controlplane: ControlPlane, kubelet: Kubelet) -> None:
    controlplane.apply(deployment("smoke-kill", ["sleep", "1000"], replicas=1))
    until(lambda: ready_replicas(controlplane, "smoke-kill") == 1, 120, "the pod is ready")
    (pod,) = kubelet.pods("default", "smoke-kill")
    with (
        Path("/proc") / str(pod.process.child.pid) / "ns" / "net"
    ).open():  # holds the network, as its last sockets can
        with kubelet.killed(pod):
            until(lambda: ready_replicas(controlplane, "smoke-kill") == 0, 60, "the pod is not ready")
            assert not pod.process.running()
        until(lambda: ready_replicas(controlplane, "smoke-kill") == 1, 120, "ready again")
        assert (pod.restarts, pod.process.running()) == (1, True)
    assert kubelet.pods("default", "smoke-kill") == [pod]
    controlplane.kubectl("delete", "deployment", "smoke-kill")


def test_a_pod_that_cannot_start_delays_no_other_and_can_be_deleted(
    controlplane: ControlPlane, kubelet: Kubelet
) -> None:
    controlplane.apply(deployment("smoke-a-stuck", [], replicas=1))  # its image has no entrypoint
    until(lambda: "smoke-a-stuck" in kubelet.log.read_text(), 60, "its start fails")
    controlplane.apply(deployment("smoke-b-next", ["sleep", "1000"], replicas=1))
    until(lambda: ready_replicas(controlplane, "smoke-b-next") == 1, 120, "the other one is ready")

    controlplane.kubectl("delete", "deployment", "smoke-a-stuck", "smoke-b-next")
    until(lambda: not pods(controlplane, "smoke-a-stuck"), 120, "the pod is gone")


def pods(plane: ControlPlane, name: str) -> list[dict]:
    return plane.api.get("/api/v1/namespaces/default/pods", labelSelector=f"app={name}")["items"]


def test_a_ready_pod_stays_ready_until_the_failure_threshold(controlplane: ControlPlane, kubelet: Kubelet) -> None:
    probe = {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 2, "failureThreshold": 5}
    command = [sys.executable, "-c", THREE_SUCCESSES]
    controlplane.apply(deployment("smoke-probe", command, replicas=1, readinessProbe=probe))
    until(lambda: ready_replicas(controlplane, "smoke-probe") == 1, 120, "the pod is ready")
    ready_s = time.monotonic()
    until(lambda: ready_replicas(controlplane, "smoke-probe") == 0, 120, "the pod is no longer ready")
    assert time.monotonic() - ready_s > 5
    controlplane.kubectl("delete", "deployment", "smoke-probe")


def test_a_folder_with_a_mount_below_it_can_be_covered(tmp_path: Path) -> None:
    folder, overlay = tmp_path / "covered", tmp_path / "overlay"
    for each in (folder / "below", folder / "here", overlay):
        each.mkdir(parents=True)
    (folder / "file").write_text("content\n")
    (folder / "link").symlink_to("file")
    cover = COVER.format(overlay=overlay)
    script = f"mount -t tmpfs tmpfs {overlay}; {cover}; cover {str(folder)[1:]}; cat {folder}/link; : > {folder}/new"
    (tmp_path / "script").write_text(f"{script}; ls {folder}")
    isolated = "unshare --map-root-user --mount sh"
    mounted = f"mount -t tmpfs tmpfs {folder}/below && exec {isolated} -eu {tmp_path}/script"
    printed = subprocess.run([*isolated.split(), "-c", mounted], capture_output=True, text=True, check=True).stdout

    assert printed.split() == ["content", "below", "file", "here", "link", "new"]
    assert not (folder / "new").exists()


def test_a_free_port_is_unique_and_below_the_ephemeral_ports() -> None:
    given = [free_port() for _ in range(200)]
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert len(set(given)) == 200
    assert max(given) < lowest
