"""A `serve` process under the load of an aggregator: how fast it answers over TLS, and what memory it holds.

Real: the process, its TLS, its check of the front proxy's certificate, the pull of snapshots. Stand-ins, both here:
the API server that tells the front proxy's CA, and the pipeline, whose snapshots hold one decision many times over.
"""

import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPSConnection
from pathlib import Path

import trustme

from adapter.core.decisions import Decision, Reason
from adapter.serving.app import create_publisher_app
from adapter.serving.external import GROUP_VERSION
from adapter.serving.probes import Readiness
from adapter.serving.server import Server
from adapter.serving.snapshot import Entry, Snapshot
from adapter.serving.store import SnapshotStore
from adapter.serving.telemetry import Telemetry
from bench.cluster import told
from bench.figures import Figure
from bench.machine import rss_mib
from bench.processes import free_port, running, wait_until

WORKLOADS = 1_000
REQUESTS_PER_S = 100
FOR_S = 30
CONNECTIONS = 8
TICK_S = 5.0  # the shortest tick of a large fleet: a new snapshot is pulled and decoded under load
STARTS_WITHIN_S = 60.0
HEADERS = {"X-Remote-User": "system:serviceaccount:kube-system:horizontal-pod-autoscaler", "X-Remote-Group": "bench"}
_CONFIG = """
sources:
  unused: {{kind: trace, url: "http://127.0.0.1:9"}}
pipeline: {{checkpoint: unused}}
serving:
  {{port: {port}, host: 127.0.0.1, cert_file: {folder}/tls.crt, key_file: {folder}/tls.key,
   kubeconfig: {folder}/kubeconfig, snapshot_url: "{url}"}}
"""


def figures() -> Iterator[Figure]:
    """Milliseconds from when a request was due to its answer, the client's own time included; memory in MiB."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as started:
        folder, port = Path(name), free_port()
        trust = _certificates(folder, started)
        url = _pipeline(started)
        (folder / "config.yaml").write_text(_CONFIG.format(port=port, folder=folder, url=url))
        program = [sys.executable, "-m", "adapter", "serve", "--config", str(folder / "config.yaml")]
        process = started.enter_context(running(program, folder / "out"))
        wait_until(lambda: _answers(port, trust), process, folder / "out", STARTS_WITHIN_S)
        idle_mib = rss_mib(process.pid)
        took_ms, wrong = _loaded(port, trust)
        busy_mib = rss_mib(process.pid)
    yield Figure(f"answers at {REQUESTS_PER_S} requests/s over TLS", took_ms, "ms", "p99 < 10 ms")
    yield Figure("answers other than 200", (wrong,), "", "0")
    yield Figure(f"memory (RSS) with {WORKLOADS} workloads, idle", (idle_mib,), "MiB", "< 100 MiB")
    yield Figure("memory (RSS) after the load", (busy_mib,), "MiB", "< 100 MiB")


def _certificates(folder: Path, started: ExitStack) -> ssl.SSLContext:
    """Write the server's files and a kubeconfig; the context of a front proxy."""
    servers, proxies = trustme.CA(), trustme.CA()
    server, proxy = servers.issue_cert("127.0.0.1"), proxies.issue_cert("front-proxy-client.test")
    server.cert_chain_pems[0].write_to_path(str(folder / "tls.crt"))
    server.private_key_pem.write_to_path(str(folder / "tls.key"))
    started.enter_context(told(proxies.cert_pem.bytes().decode(), folder / "kubeconfig"))
    trust = ssl.create_default_context()
    servers.configure_trust(trust)
    proxy.configure_cert(trust)
    return trust


def _pipeline(started: ExitStack) -> str:
    """The address of a publisher whose snapshot is renewed every tick."""
    store, stop = SnapshotStore(), threading.Event()
    store.put(_snapshot())
    telemetry, readiness = Telemetry(store, workloads=True), Readiness(lambda: True)
    server = Server(
        create_publisher_app(store, token_file=None, readiness=readiness, telemetry=telemetry), "127.0.0.1", 0
    )
    server.start()
    started.callback(server.stop)

    def renew() -> None:
        while not stop.wait(TICK_S):
            store.put(_snapshot())

    thread = threading.Thread(target=renew)
    thread.start()
    started.callback(thread.join)
    started.callback(stop.set)
    return f"http://127.0.0.1:{server.port}"


def _snapshot() -> Snapshot:
    at_s = time.time()
    entries = tuple(
        Entry(decision=_decision(number, at_s), error_after_s=180.0, labels={"workload": _name(number)})
        for number in range(WORKLOADS)
    )
    return Snapshot(at_s=at_s, tick_s=TICK_S, window_s=60.0, error_after_s=180.0, entries=entries)


def _name(number: int) -> str:
    return f"job-{number:05d}"


def _decision(number: int, at_s: float) -> Decision:
    return Decision(
        workload=f"bench/{_name(number)}",
        at_s=at_s,
        policy="dataflow",
        reason=Reason.HOLD,
        required_workers=4.0,
        wanted_workers=4.0,
        spec_workers=4.0,
        workers=4.0,
        ready_workers=4.0,
        partitions=12.0,
        throughput_records_per_s=400.0 + number,
        input_rate_records_per_s=400.0 + number,
        backlog_records=12.0 * number,
        backlog_time_s=1.5,
        utilization_ratio=0.8,
    )


def _loaded(port: int, trust: ssl.SSLContext) -> tuple[tuple[float, ...], int]:
    """Open loop: each request has its moment, whether or not earlier ones were answered in time."""
    took_ms: list[float] = []
    statuses: list[int] = []
    began_s = time.perf_counter() + 0.5

    def ask(first: int) -> None:
        connection = HTTPSConnection("127.0.0.1", port, context=trust)
        for number in range(first, REQUESTS_PER_S * FOR_S, CONNECTIONS):
            due_s = began_s + number / REQUESTS_PER_S
            time.sleep(max(due_s - time.perf_counter(), 0.0))
            statuses.append(_status(connection, number))
            took_ms.append((time.perf_counter() - due_s) * 1000)
        connection.close()

    threads = [threading.Thread(target=ask, args=(first,)) for first in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tuple(took_ms), sum(status != 200 for status in statuses)


def _status(connection: HTTPSConnection, number: int) -> int:
    path = (
        f"/apis/{GROUP_VERSION}/namespaces/bench/required_workers?labelSelector=workload%3D{_name(number % WORKLOADS)}"
    )
    connection.request("GET", path, headers=HEADERS)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def _answers(port: int, trust: ssl.SSLContext) -> bool:
    connection = HTTPSConnection("127.0.0.1", port, context=trust, timeout=5)
    try:
        return _status(connection, 0) == 200
    except OSError:
        return False
    finally:
        connection.close()
