"""A whole replica: it starts, pulls snapshots, answers, and stops."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from serving_builders import entry, snapshot
from serving_certificates import CLIENTS, pem, serving_files
from structlog.testing import capture_logs

from adapter.apiserver.app import create_app
from adapter.apiserver.server import Server
from adapter.config import Issuer, Serving
from adapter.errors import ConfigError, SetupError
from adapter.serving.metric_api import EXTERNAL_GROUP_VERSION
from adapter.serving.roles import Replica, drain, start
from adapter.serving.routes import Readiness, publisher_routes
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.telemetry import Telemetry
from bench.processes import free_port
from conformance.cluster import run_cluster

METRIC = f"/apis/{EXTERNAL_GROUP_VERSION}/namespaces/shop/required_workers"
PROGRAM = """
import json
import signal
import sys
from adapter.config import Serving
from adapter.serving.roles import serve
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)  # `nohup make test` ignores SIGHUP
serve(Serving(**json.loads(sys.argv[1])), insecure_local=bool(sys.argv[2]))
"""


@pytest.fixture
def pipeline() -> Iterator[str]:
    store = SnapshotStore()
    store.put(snapshot(entry(at_s=time.time()), at_s=time.time()))
    app = create_app(publisher_routes(store, lambda workload: None, None))
    server = Server(app, "127.0.0.1", 0)
    server.start()
    yield f"http://127.0.0.1:{server.port}"
    server.stop()


def wait_for(url: str) -> httpx.Response:
    """The first answer with status 200."""
    deadline_s = time.monotonic() + 30
    pause = threading.Event()
    while True:
        try:
            response = httpx.get(url, trust_env=False)
            if response.status_code == 200:
                return response
        except httpx.TransportError:
            pass
        assert time.monotonic() < deadline_s, f"{url} did not answer 200"
        pause.wait(0.05)


def test_insecure_local_serves_the_published_snapshot_on_loopback(pipeline: str) -> None:
    with ExitStack() as stack:
        replica = start(Serving(host="0.0.0.0", port=0, snapshot_url=pipeline), stack, insecure_local=True)  # noqa: S104  # is overruled
        root = f"http://127.0.0.1:{replica.port}"
        wait_for(f"{root}/readyz")
        answer = wait_for(f"{root}{METRIC}?labelSelector=workload%3Dorders")
        assert answer.json()["items"][0]["value"] == "3"
        assert httpx.get(f"{root}/livez", headers={"Host": "evil.example"}, trust_env=False).status_code == 403
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{root}/livez", trust_env=False)


def test_metrics_may_have_a_port_of_their_own(pipeline: str) -> None:
    port = free_port()
    with ExitStack() as stack:
        start(Serving(port=0, metrics_port=port, snapshot_url=pipeline), stack, insecure_local=True)
        assert 'backlog_adapter_build_info{role="serve"' in wait_for(f"http://127.0.0.1:{port}/metrics").text


@pytest.mark.parametrize(
    ("insecure", "names"), [(False, ("snapshot_url", "cert_file", "key_file")), (True, ("snapshot_url",))]
)
def test_the_error_names_every_missing_setting(insecure: bool, names: tuple[str, ...]) -> None:
    with ExitStack() as stack, pytest.raises(ConfigError) as raised:
        start(Serving(), stack, insecure_local=insecure)
    assert raised.value.faults == tuple(f"serving.{name}: is required by serve" for name in names)


def test_without_a_cluster_nothing_can_be_issued() -> None:
    settings = Serving(snapshot_url="http://localhost:1", service="a/b", issuer=Issuer(lease="b"))
    with ExitStack() as stack, pytest.raises(ConfigError, match="expected none with --insecure-local"):
        start(settings, stack, insecure_local=True)


def test_a_taken_port_leaves_nothing_running(pipeline: str) -> None:
    port = int(pipeline.rsplit(":", 1)[1])
    with pytest.raises(SetupError), ExitStack() as stack:
        start(Serving(port=port, snapshot_url=pipeline), stack, insecure_local=True)
    assert "snapshot-follower" not in {thread.name for thread in threading.enumerate()}


def test_a_replica_that_stops_issues_nothing_while_it_still_answers(tmp_path: Path) -> None:
    files = serving_files(tmp_path)
    with run_cluster({"client-ca-file": pem(CLIENTS)}, tmp_path) as cluster:
        settings = {
            "port": free_port(),
            "snapshot_url": "https://127.0.0.1:1",
            "cert_file": str(files.cert),
            "key_file": str(files.key),
            "kubeconfig": cluster.kubeconfig,
            "service": "shop/adapter",
            "snapshot_token_file": str(tmp_path / "token"),
            "issuer": {"lease": "adapter", "token_secret": "token", "publish_s": 1},
        }
        command = [sys.executable, "-c", PROGRAM, json.dumps(settings), ""]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as program:
            assert program.stderr is not None
            try:
                assert any("the cluster's" in line for line in program.stderr)
                program.terminate()
                assert any("still answering" in line for line in program.stderr)
                time.sleep(1)  # a round in progress ends; the replica answers for four more seconds
                rounds = len(cluster.applied)
                assert program.wait(30) == 0
            finally:
                program.kill()
        assert len(cluster.applied) == rounds > 0


def test_a_slow_api_server_delays_neither_the_log_of_a_stop_nor_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, issuer, slept = SnapshotStore(), ExitStack(), list[float]()
    readiness, closed = Readiness(lambda: True), list[tuple[bool, list[str]]]()
    monkeypatch.setattr(time, "sleep", slept.append)
    with capture_logs() as logs:
        issuer.callback(lambda: closed.append((readiness.checks()["shutdown"](), [line["event"] for line in logs])))
        issuer.callback(threading.Event().wait, 0.01)  # the API server
        drain(Replica(0, issuer, readiness, store, Telemetry(store, workloads=False)), delay_s=0.001)
    assert closed == [(False, ["stopping: not ready; still answering"])]
    assert slept == [0.0]


def test_a_signal_ends_serve(pipeline: str, tmp_path: Path) -> None:
    """Side by side: each goes on answering for five seconds."""
    programs = {}
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            settings = json.dumps({"port": (port := free_port()), "snapshot_url": pipeline})
            command = [sys.executable, "-c", PROGRAM, settings, "insecure local"]
            programs[number] = port, subprocess.Popen(command, env=os.environ, cwd=tmp_path)
        for number, (port, program) in programs.items():
            wait_for(f"http://127.0.0.1:{port}/readyz")
            program.send_signal(number)
        assert {number: program.wait(30) for number, (_, program) in programs.items()} == dict.fromkeys(programs, 0)
    finally:
        for _, program in programs.values():
            program.kill()
            program.wait()
