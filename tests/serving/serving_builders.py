"""What the tests of serving are built from: snapshots, certificates, recorded answers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from flask import Flask
from werkzeug.test import TestResponse

from adapter.apiserver.app import create_app
from adapter.core.decisions import Decision, Reason, StageSignals
from adapter.serving.routes import Readiness, metric_routes, monitoring_routes
from adapter.serving.snapshots.columns import entries_of
from adapter.serving.snapshots.snapshot import Entry, Snapshot
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.telemetry import Telemetry

AT_S = 1_767_323_045.0  # 2026-01-02T03:04:05Z
RECORDED = Path(__file__).parents[1] / "data" / "wire" / "recorded.jsonl"


def decision(workload: str = "shop/orders", **fields: Any) -> Decision:
    given = {"at_s": AT_S, "policy": "dataflow", "reason": Reason.HOLD, "required_workers": 3.0} | fields
    return Decision(workload=workload, **given)


def entry(
    workload: str = "shop/orders",
    labels: dict[str, str] | None = None,
    stages: tuple[str, ...] = (),
    error_after_s: float = 180.0,
    **fields: Any,
) -> Entry:
    shown = tuple(
        StageSignals(workload=workload, stage=stage, backlog_records=10.0 * (place + 1))
        for place, stage in enumerate(stages)
    )
    return Entry(
        decision=decision(workload, **fields),
        error_after_s=error_after_s,
        window_s=60.0,
        labels=labels or {},
        stages=shown,
    )


def snapshot(*entries: Entry, at_s: float = AT_S) -> Snapshot:
    """The decisions are dated to the tick, and come back as they are read from the columns."""
    error_after_s = max((each.error_after_s for each in entries), default=180.0)
    return Snapshot(at_s=at_s, tick_s=15.0, error_after_s=error_after_s, entries=entries_of(at_s, entries))


def edited(body: bytes, edit: Callable[[dict[str, Any]], None]) -> bytes:
    """The bytes of a snapshot after a change of its message."""
    message = msgspec.msgpack.decode(body)
    edit(message)
    return msgspec.msgpack.encode(message)


def local_app(store: SnapshotStore, readiness: Readiness | None = None, **more: Any) -> Flask:
    """The metrics API over a store without authentication. more: of create_app."""
    monitoring = monitoring_routes(Telemetry(store, workloads=False), readiness or Readiness(lambda: True))
    return create_app({**metric_routes(store), **monitoring}, **more)


def get(app: Flask, uri: str, method: str = "GET", **headers: str) -> TestResponse:
    """The response to one request, as behind an ASGI server. headers: names with underscores for dashes."""
    sent = {"Host": "localhost", **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {"headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in sent.items()]}
    return app.test_client().open(uri, method=method, headers=sent, environ_overrides={"asgi.scope": scope})


def recorded(*families: str) -> list[dict[str, Any]]:
    """The recorded answers of a real Go server."""
    lines = [json.loads(line) for line in RECORDED.read_text("utf-8").splitlines()]
    return [line for line in lines if line["id"].split("-")[0] in families]
