"""The `serve` role: snapshots pulled from a pipeline, answered to a cluster."""

import signal
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import structlog

from adapter.config import Serving
from adapter.errors import ConfigError
from adapter.serving.app import create_app, create_metrics_app
from adapter.serving.authn import ClusterAuthenticator, read_settings
from adapter.serving.probes import Readiness
from adapter.serving.server import Server
from adapter.serving.store import SnapshotStore
from adapter.serving.telemetry import Telemetry
from adapter.serving.tls import LiveTls
from adapter.serving.transport import Follower

LOOPBACK = "127.0.0.1"
# Between being unready and being gone: the time a cluster needs to send requests elsewhere.
FAREWELL_S = 5.0

_log = structlog.get_logger(__name__)


def serve(settings: Serving, *, insecure_local: bool = False) -> None:
    """Answer until SIGTERM or SIGINT; call it from the main thread.

    insecure_local: no authentication, and therefore on loopback only, over plain HTTP unless a certificate is set.
    Raises ConfigError when a needed setting is missing, SetupError when a port cannot be had.
    """
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with ExitStack() as started:
        replica = start(settings, started, insecure_local=insecure_local)
        stop.wait()
        replica.readiness.stop()
        _log.info("stopping: not ready any more, answering to the end")
        threading.Event().wait(0.0 if insecure_local else FAREWELL_S)


@dataclass(frozen=True, slots=True)
class Replica:
    """A server that answers. port: what it listens on."""

    port: int
    readiness: Readiness
    store: SnapshotStore


def start(settings: Serving, stack: ExitStack, *, insecure_local: bool = False) -> Replica:
    """Start everything one replica is made of; closing the stack stops it, the last started first."""
    _check(settings, insecure_local)
    store = SnapshotStore()
    readiness = Readiness(lambda: store.current is not None)
    telemetry = Telemetry(store, workloads=False)
    cluster = None if insecure_local else ClusterAuthenticator(partial(read_settings, settings.kubeconfig))
    follower = Follower(
        str(settings.snapshot_url), store, ca_file=settings.snapshot_ca_file, token_file=settings.snapshot_token_file
    )
    if cluster is not None:
        # Before the port opens: a connection made without its certificate stays anonymous.
        cluster.start()
        stack.callback(cluster.stop)
    follower.start()
    stack.callback(follower.stop)
    authenticate = None if cluster is None else cluster.identify
    app = create_app(store, authenticate=authenticate, readiness=readiness, telemetry=telemetry)
    host = LOOPBACK if insecure_local else settings.host
    server = Server(app, host, settings.port, _tls(settings, cluster))
    _run(server, stack)
    if settings.metrics_port is not None:
        metrics = create_metrics_app(readiness=readiness, telemetry=telemetry)
        _run(Server(metrics, host, settings.metrics_port), stack)
    _log.info("serving", host=host, port=server.port, authentication="none" if insecure_local else "front proxy")
    return Replica(server.port, readiness, store)


def _check(settings: Serving, insecure_local: bool) -> None:
    needed = ["snapshot_url"] if insecure_local else ["snapshot_url", "cert_file", "key_file"]
    faults = [f"serving.{name}: is required by serve" for name in needed if getattr(settings, name) is None]
    if faults:
        raise ConfigError(faults)


def _tls(settings: Serving, cluster: ClusterAuthenticator | None) -> LiveTls | None:
    if settings.cert_file is None or settings.key_file is None:
        return None
    return LiveTls(settings.cert_file, settings.key_file, (lambda: "") if cluster is None else cluster.ca_pem)


def _run(server: Server, stack: ExitStack) -> None:
    server.start()
    stack.callback(server.stop)
