"""Stands in for the pipeline where no Spark is needed: one decision, with the certificate and the token of its pod.

Run as `python -P publisher.py pipeline --config FILE`: its folder has a module named adapter.
"""

import sys
import time
from pathlib import Path

from adapter.apiserver.app import create_app
from adapter.apiserver.server import Server
from adapter.apiserver.tls import LiveTls
from adapter.config import load
from adapter.core.decisions import Decision, Reason
from adapter.serving.routes import Readiness, monitoring_routes, publisher_routes
from adapter.serving.snapshots.columns import entries_of
from adapter.serving.snapshots.snapshot import Entry, Snapshot
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.telemetry import Telemetry
from adapter.stop_signals import stop_event

WORKLOAD = "clicks"
ERROR_AFTER_S = 30.0  # a server that cannot read a newer decision serves no number then


def publish(store: SnapshotStore) -> None:
    """A decision of this second."""
    at_s = time.time()
    decision = Decision(
        workload=f"default/{WORKLOAD}", at_s=at_s, policy="dataflow", reason=Reason.HOLD, required_workers=3.0
    )
    entries = entries_of(
        at_s, (Entry(decision=decision, error_after_s=ERROR_AFTER_S, window_s=20.0, labels={}, stages=()),)
    )
    store.put(Snapshot(at_s=at_s, tick_s=5.0, error_after_s=ERROR_AFTER_S, entries=entries))


def main(file: Path) -> None:
    """Publish a new decision every second until a signal."""
    settings = load(file, ()).pipeline
    store = SnapshotStore()
    publish(store)
    monitoring = monitoring_routes(Telemetry(store, workloads=False), Readiness(lambda: True))
    app = create_app({**publisher_routes(store, lambda workload: None, settings.token_file), **monitoring})
    tls = LiveTls(str(settings.cert_file), str(settings.key_file))
    server = Server(app, settings.host, settings.port, tls)
    with stop_event() as stop:
        server.start()
        while not stop.wait(1.0):
            publish(store)
        server.stop()


if __name__ == "__main__":
    main(Path(sys.argv[-1]))
