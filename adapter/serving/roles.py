"""The `serve` role: pull snapshots from a pipeline, and answer the metrics API of a cluster."""

import ctypes
import gc
import os
import random
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial

import structlog

from adapter.apiserver.access import LOOPBACK, ClusterAccess, LoopbackAccess
from adapter.apiserver.app import create_app
from adapter.apiserver.authentication_settings import AuthenticationSettings, read_settings
from adapter.apiserver.cluster_api import ClusterApi
from adapter.apiserver.event_loop import OnRejected
from adapter.apiserver.probes import Checks
from adapter.apiserver.reviews import Reviews
from adapter.apiserver.server import Server
from adapter.apiserver.tls import LiveTls
from adapter.apiserver.tokens import Tokens
from adapter.config import Serving
from adapter.config.issuer import API_SERVICES
from adapter.errors import ConfigError
from adapter.issuer.start import host_of, start_issuer
from adapter.log_queue import queued_logging
from adapter.serving.accounting import Accounting
from adapter.serving.api_services import ApiServices
from adapter.serving.routes import Readiness, metric_routes, monitoring_routes
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.snapshots.transport import Follower
from adapter.serving.telemetry import Telemetry, build_info, certificate_gauges, server_gauges
from adapter.stop_signals import stop_event, wait_for_stop

# From unready until the end: the time that a cluster needs to send requests to another replica.
SHUTDOWN_DELAY_S = 5.0
_M_MMAP_THRESHOLD = -3  # of glibc's malloc.h

_log = structlog.get_logger(__name__)


def serve(settings: Serving, *, insecure_local: bool = False) -> None:
    """Answer until SIGTERM, SIGINT or SIGHUP, then drain; call it from the main thread.

    insecure_local: no authentication, and therefore on loopback only, over plain HTTP unless a certificate is set.
    Raises ConfigError when a needed setting is missing, SetupError when a port cannot be had.
    """
    _pin_to_one_cpu()
    _shorten_thread_switches()
    _return_freed_buffers()
    with stop_event() as stop, queued_logging(sys.stderr) as log, ExitStack() as started:
        replica = start(settings, started, insecure_local=insecure_local)
        replica.telemetry.add(log.gauges)
        wait_for_stop(stop)
        drain(replica, 0.0 if insecure_local else SHUTDOWN_DELAY_S)


def _pin_to_one_cpu() -> None:
    """Let all threads share the caches of one CPU.

    CPython runs one thread at a time, and a request that the event loop and a worker pass from one CPU to another takes
    more processor time (docs/benchmarks.md, "One CPU"). Other processes can move to another CPU. The CPU is drawn at
    random, so that the replicas on a node have different ones.
    """
    with suppress(AttributeError, OSError):  # not Linux, or not permitted
        os.sched_setaffinity(0, {random.choice(sorted(os.sched_getaffinity(0)))})  # noqa: S311 - not a secret


def _shorten_thread_switches() -> None:
    """Keep the thread that reads a large snapshot from delaying the threads that answer.

    With the default switch interval of 5 ms, an answer would wait 25 ms. A full garbage collection stops all threads
    for 0.1 s, so it runs once in hours: a snapshot has no cycles. asyncio leaves a cycle of each closed connection; the
    collection of the young generation frees it.
    """
    sys.setswitchinterval(0.0005)
    gc.set_threshold(10_000, 250, 1_000)


def _return_freed_buffers() -> None:
    """Let glibc return each freed TLS buffer (256 KiB) to the system.

    By default it raises its threshold to the size of the first one that is freed, and keeps all later ones in its heap.
    """
    with suppress(AttributeError):  # another libc
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 128 * 1024)


@dataclass(frozen=True, slots=True)
class Replica:
    """A running replica. port: that it listens on. issuer: closing it ends the issuer, if there is one."""

    port: int
    issuer: ExitStack
    readiness: Readiness
    store: SnapshotStore
    telemetry: Telemetry


def drain(replica: Replica, delay_s: float) -> None:
    """Be unready for `delay_s`, and still answer. A slow API server makes it longer."""
    ends_at_s = time.monotonic() + delay_s
    replica.readiness.stop()
    _log.info("stopping: not ready; still answering", for_s=delay_s)
    replica.issuer.close()  # so another replica can lead at once, and the last replica issues nothing while it drains
    time.sleep(max(ends_at_s - time.monotonic(), 0.0))


def start(settings: Serving, stack: ExitStack, *, insecure_local: bool = False) -> Replica:
    """Start the parts of a replica; closing the stack stops them in reverse order."""
    _check(settings, insecure_local)
    host = LOOPBACK if insecure_local else settings.host
    store = SnapshotStore()
    telemetry = Telemetry(store, workloads=False)
    telemetry.add(build_info("serve"))
    # Before the port opens: a connection made without its certificate stays anonymous.
    cluster = None if insecure_local else _Cluster.start(settings, telemetry, stack)
    readiness = Readiness(lambda: store.current is not None, more={} if cluster is None else cluster.checks)
    _follow(settings, store, stack)
    monitoring = monitoring_routes(telemetry, readiness)
    observe = Accounting(telemetry, structlog.get_logger("access"), settings.access_log).record
    access = LoopbackAccess() if cluster is None else cluster.access
    app = create_app({**metric_routes(store), **monitoring}, access=access, observe=observe)
    server = Server(app, host, settings.port, _tls(settings, cluster, telemetry))
    telemetry.add(server_gauges(server))
    _run(server, stack, None if cluster is None else cluster.access.on_rejected)
    if settings.metrics_port is not None:
        monitor = create_app(monitoring, access=LoopbackAccess() if insecure_local else None)
        _run(Server(monitor, host, settings.metrics_port), stack)
    _log.info("serving", host=host, port=server.port, authentication="none" if insecure_local else "the cluster's")
    issuer = ExitStack() if cluster is None else cluster.issuer
    return Replica(server.port, issuer, readiness, store, telemetry)


@dataclass(frozen=True, slots=True)
class _Cluster:
    """Authentication and authorization by the cluster."""

    settings: AuthenticationSettings
    access: ClusterAccess
    checks: Checks  # of readiness
    issuer: ExitStack

    @classmethod
    def start(cls, settings: Serving, telemetry: Telemetry, stack: ExitStack) -> "_Cluster":
        api = ClusterApi(settings.kubeconfig)
        stack.callback(api.close)
        followed = AuthenticationSettings(partial(read_settings, api))
        access = ClusterAccess(followed, Tokens(api), Reviews(api))
        stack.callback(access.close)
        followed.start()
        stack.callback(followed.stop)
        services = ApiServices(api.get, API_SERVICES, settings.service, settings.api_services)
        telemetry.add(services.gauges)
        services.start()
        stack.callback(services.stop)
        issuer = stack.enter_context(ExitStack())
        return cls(followed, access, start_issuer(settings, api, issuer), issuer)


def _follow(settings: Serving, store: SnapshotStore, stack: ExitStack) -> None:
    follower = Follower(
        str(settings.snapshot_url), store, ca_file=settings.snapshot_ca_file, token_file=settings.snapshot_token_file
    )
    follower.start()
    stack.callback(follower.stop)


def _check(settings: Serving, insecure_local: bool) -> None:
    needed = ["snapshot_url"] if insecure_local else ["snapshot_url", "cert_file", "key_file"]
    faults = [f"serving.{name}: is required by serve" for name in needed if getattr(settings, name) is None]
    if insecure_local and settings.issuer is not None:
        faults.append("serving.issuer: expected none with --insecure-local, which knows no cluster")
    if faults:
        raise ConfigError(faults)


def _tls(settings: Serving, cluster: _Cluster | None, telemetry: Telemetry) -> LiveTls | None:
    if settings.cert_file is None or settings.key_file is None:
        return None
    own_names = () if settings.service is None else (host_of(settings.service),)
    client_cas = (lambda: "") if cluster is None else cluster.settings.ca_pem
    tls = LiveTls(settings.cert_file, settings.key_file, client_cas, own_names)
    telemetry.add(certificate_gauges(tls.certificate_ends_at_s))
    return tls


def _run(server: Server, stack: ExitStack, on_rejected: OnRejected | None = None) -> None:
    server.start(on_rejected)
    stack.callback(server.stop)
