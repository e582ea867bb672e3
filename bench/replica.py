"""A real `serve` process with stand-ins for the cluster's API and for the pipeline, which publishes snapshots."""

import ssl
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from tempfile import TemporaryDirectory

from adapter.apiserver.app import create_app
from adapter.apiserver.server import Server
from adapter.core.decisions import Decision, Reason
from adapter.serving.metric_api import EXTERNAL_GROUP_VERSION
from adapter.serving.routes import Readiness, monitoring_routes, publisher_routes
from adapter.serving.snapshots.columns import entries_of
from adapter.serving.snapshots.snapshot import Entry, Snapshot
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.telemetry import Telemetry
from bench.processes import free_port, running, wait_until
from conformance.cluster import HPA, Cluster, authentication_config, run_cluster
from conformance.identities import Identities, issue

WORKLOADS = 1_000
TICK_S = 5.0  # the shortest tick of a large fleet: a new snapshot is pulled and decoded under load
STARTS_WITHIN_S = 60.0
# The headers that an API server forwards for a request of the HPA controller.
HPA_HEADERS = (
    ("User-Agent", "kube-controller-manager/v1.36.0 (linux/amd64) kubernetes/horizontal-pod-autoscaler"),
    ("Accept", "application/vnd.kubernetes.protobuf, */*"),
    ("X-Forwarded-For", "10.0.0.7"),
    ("X-Remote-User", HPA),
    ("X-Remote-Uid", "0c5b1f0e-6f0b-4c7e-9d53-3f2f4b7a1c11"),
    ("X-Remote-Group", "system:serviceaccounts"),
    ("X-Remote-Group", "system:serviceaccounts:kube-system"),
    ("X-Remote-Group", "system:authenticated"),
)

_NAMESPACE = "bench"
_CONFIG = """
sources:
  unused: {{kind: trace, url: "http://127.0.0.1:9"}}
pipeline: {{checkpoint: unused}}
serving:
  {{port: {port}, host: 127.0.0.1, cert_file: {certificate}, key_file: {key}, kubeconfig: {kubeconfig},
   snapshot_url: "{url}"}}
"""


class Fleet:
    """A stand-in for the pipeline that publishes a number of workloads, with new numbers every tick."""

    def __init__(self, workloads: int) -> None:
        self._workloads = workloads
        self._store = SnapshotStore()
        self._store.put(_snapshot(workloads))
        monitoring = monitoring_routes(Telemetry(self._store, workloads=True), Readiness(lambda: True))
        publisher = create_app({**publisher_routes(self._store, lambda workload: None, None), **monitoring})
        self.server = Server(publisher, "127.0.0.1", 0)
        self._stop = threading.Event()
        self._one_at_a_time = threading.Lock()
        self._thread = threading.Thread(target=self._renew)

    def start(self, started: ExitStack) -> None:
        """Publish until the stack is closed."""
        self.server.start()
        started.callback(self.server.stop)
        self._thread.start()
        started.callback(self._thread.join)
        started.callback(self._stop.set)

    def resize(self, workloads: int) -> None:
        """Change the number of workloads and publish at once."""
        self._workloads = workloads
        self._publish()

    def _renew(self) -> None:
        while not self._stop.wait(TICK_S):
            self._publish()

    def _publish(self) -> None:
        with self._one_at_a_time:  # in order, because the store refuses older snapshots
            self._store.put(_snapshot(self._workloads))


@dataclass(frozen=True, slots=True)
class Replica:
    """A running `serve` process with its stand-ins."""

    pid: int
    port: int
    identities: Identities  # of its clients and of itself
    cluster: Cluster
    fleet: Fleet  # the source of its snapshots


@contextmanager
def replica() -> Iterator[Replica]:
    """Run `serve` while the block lasts. Raises RuntimeError with the process's output if it does not start."""
    with TemporaryDirectory() as folder, ExitStack() as started:
        identities, port = issue(Path(folder)), free_port()
        cluster = started.enter_context(run_cluster(authentication_config(identities), identities.folder))
        fleet = Fleet(WORKLOADS)
        fleet.start(started)
        (certificate, key), url = identities.serving, f"http://127.0.0.1:{fleet.server.port}"
        text = _CONFIG.format(port=port, certificate=certificate, key=key, kubeconfig=cluster.kubeconfig, url=url)
        config = identities.folder / "serve.yaml"
        config.write_text(text, "utf-8")
        command = [sys.executable, "-m", "adapter", "serve", "--config", str(config)]
        pid = started.enter_context(running_server(command, port, identities, path(WORKLOADS - 1)))
        yield Replica(pid, port, identities, cluster, fleet)


@contextmanager
def running_server(command: Sequence[str], port: int, identities: Identities, target: str) -> Iterator[int]:
    """Run a server while the block lasts; yields its process ID once it answers a request for this path with 200.

    Raises RuntimeError with its output if it does not start.
    """
    out, trust = identities.folder / f"server-{port}.out", identities.context("proxy")
    with running(command, out) as process:
        wait_until(lambda: answers(port, trust, target), process, out, STARTS_WITHIN_S)
        yield process.pid


def path(workload: object, metric: str = "required_workers") -> str:
    """The path of the metric of one workload. workload: its number, or a placeholder for one."""
    return f"/apis/{EXTERNAL_GROUP_VERSION}/namespaces/{_NAMESPACE}/{metric}?labelSelector=workload%3Djob-{workload}"


def answers(port: int, trust: ssl.SSLContext, target: str) -> bool:
    """Whether a server on loopback answers a request for this path with 200."""
    connection = HTTPSConnection("127.0.0.1", port, context=trust, timeout=5)
    try:
        return status(connection, target) == 200
    except OSError:
        return False
    finally:
        connection.close()


def status(connection: HTTPConnection, target: str) -> int:
    """The status code of the answer to a request of the HPA controller."""
    connection.putrequest("GET", target)
    for name, value in HPA_HEADERS:  # some names repeat
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    answer.read()
    return answer.status


def _snapshot(workloads: int) -> Snapshot:
    at_s = time.time()
    names = sorted(f"job-{number}" for number in range(workloads))
    entries = tuple(
        Entry(decision=_decision(name, at_s), error_after_s=180.0, window_s=60.0, labels={"workload": name})
        for name in names
    )
    return Snapshot(at_s=at_s, tick_s=TICK_S, error_after_s=180.0, entries=entries_of(at_s, entries))


def _decision(name: str, at_s: float) -> Decision:
    number = float(name.removeprefix("job-"))
    return Decision(
        workload=f"{_NAMESPACE}/{name}",
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
