"""The metrics API over a small fleet, for everybody, behind a cluster's access, and with another adapter behind it."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from adapter.config import Limits, OtherAdapter
from adapter.core.decisions import Decision, Reason, StageSignals
from adapter.serving.access.access import Access
from adapter.serving.access.asking import Persistence
from adapter.serving.access.cluster import ClusterApi
from adapter.serving.access.reviews import Reviews
from adapter.serving.access.settings import AuthenticationSettings, read_settings
from adapter.serving.access.tokens import Tokens
from adapter.serving.accounting import Accounting
from adapter.serving.api import external
from adapter.serving.api.metrics_api import MetricsApi
from adapter.serving.api.probes import Probes, Readiness
from adapter.serving.app import create_app
from adapter.serving.elsewhere.passthrough import Elsewhere
from adapter.serving.elsewhere.passthrough import Limits as ForwardingLimits
from adapter.serving.front import Front
from adapter.serving.ours import Surroundings, metrics_api
from adapter.serving.signals.pods import Pods
from adapter.serving.snapshots.snapshot import Entry, Snapshot
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.sockets.bridge import of_wsgi
from adapter.serving.sockets.server import Server
from adapter.serving.sockets.tls import LiveTls
from adapter.serving.telemetry import Telemetry
from conformance.cluster import Cluster

AT_S = 1_767_323_045.0
QUICK = Persistence(deadline_s=5.0, first_pause_s=0.001)
# Nobody is left alone for long, and an answer that takes longer than this hangs.
SHORT = ForwardingLimits(deadline_s=2.0, most_failures=1_000_000)
_POD = {"metadata": {"name": "orders-1", "ownerReferences": [{"controller": True, "kind": "Job", "name": "orders"}]}}


def _entry(workload: str, labels: Mapping[str, str], *stages: str, **fields: Any) -> Entry:
    given: dict[str, Any] = {
        "at_s": AT_S,
        "policy": "drain",
        "reason": Reason.HOLD,
        "required_workers": 4.0,
        "utilization_ratio": 0.25,
    }
    shown = tuple(StageSignals(workload=workload, stage=stage, backlog_records=10.0) for stage in stages)
    decision = Decision(workload=workload, **(given | fields))
    return Entry(decision=decision, error_after_s=180.0, labels=dict(labels), stages=shown)


FLEET = (
    _entry("shop/orders", {"team": "red", "note": "a <b> & c"}),
    _entry("shop/payments", {"team": "red"}, "parse", "join", required_workers=None),
    _entry("web/clicks", {"team": "blue"}, backlog_time_s=float("inf")),
)


class Silence:
    """A log that keeps no line, and fails on none that can be written."""

    def info(self, event: str, **about: object) -> None:
        json.dumps(about)

    warning = info


def api(fleet: Sequence[Entry] = FLEET, **around: Any) -> MetricsApi:
    """Over a fleet whose time stands still. around: of Surroundings; by default everybody may ask."""
    store = SnapshotStore(clock=lambda: AT_S, monotonic=lambda: 0.0)
    store.put(Snapshot(at_s=AT_S, tick_s=15.0, window_s=60.0, error_after_s=180.0, entries=tuple(fleet)))
    probes, telemetry = Probes.of(Readiness(lambda: True)), Telemetry(store, workloads=False)
    account = Accounting(telemetry, Silence(), "all").answered
    return metrics_api(store, probes, telemetry, lambda: 6443, Surroundings(pods=pods(), account=account, **around))


def large_fleet(workloads: int) -> Sequence[Entry]:
    """All in one namespace, each with a label of its own and a stage."""
    return [_entry(f"shop/job-{n:05}", {"team": "red", "number": str(n)}, "parse") for n in range(workloads)]


def pods() -> Pods:
    """One pod for every question."""
    listed = json.dumps({"kind": "PodList", "items": [_POD]}).encode()
    return Pods(lambda path, accept, deadline_s: (200, listed), lambda: AT_S)


@contextmanager
def guarded(cluster: Cluster) -> Iterator[MetricsApi]:
    """Behind the access of a cluster. What it once said counts for ever."""
    client = ClusterApi(cluster.kubeconfig)
    settings = AuthenticationSettings(partial(read_settings, client))
    settings.refresh()
    still = partial(float, 0)
    access = Access(settings, Tokens(client, QUICK, still), Reviews(client, QUICK, still), time.time)
    yield api(access=access)
    access.close()
    client.close()


@contextmanager
def forwarding(url: str, folder: Path) -> Iterator[MetricsApi]:
    """Who asks for external metrics that are not ours is answered by another adapter."""
    (folder / "token").write_text("secret")
    ca_file, token_file = folder / "server-ca.pem", folder / "token"
    other = Elsewhere(
        external.GROUP, OtherAdapter(url=url, ca_file=str(ca_file), token_file=str(token_file)), limits=SHORT
    )
    yield api(elsewhere={external.GROUP: other})
    other.stop()


@contextmanager
def serving(of: MetricsApi, limits: Limits = Limits(), tls: LiveTls | None = None) -> Iterator[Server]:  # noqa: B008 - frozen
    """A server of the API on loopback. Its callers have all gone before it ends, and what they had sent has too."""
    front = Front(of, of_wsgi(create_app(of)))
    server = Server(front, "127.0.0.1", 0, tls, at_once=front.at_once, limits=limits)
    server.start()
    try:
        yield server
        assert eventually(lambda: server.connections.open == 0)
        assert server.connections.held_bytes == 0
    finally:
        server.stop()


def eventually(holds: Callable[[], bool], within_s: float = 5.0) -> bool:
    """Whether it holds before the time is over."""
    until_s = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > until_s:
            return False
        time.sleep(0.01)
    return True
