"""What the tests of serving are built from: snapshots, certificates, recorded answers."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from adapter.core.decisions import Decision, Reason, StageSignals
from adapter.serving.api.metrics_api import Forward, MetricsApi
from adapter.serving.api.probes import Probes, Readiness
from adapter.serving.ours import Surroundings, metrics_api
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
    return Entry(decision=decision(workload, **fields), error_after_s=error_after_s, labels=labels or {}, stages=shown)


def snapshot(*entries: Entry, at_s: float = AT_S) -> Snapshot:
    """The decisions are dated to the tick, and come back as they are read from the columns."""
    error_after_s = max((each.error_after_s for each in entries), default=180.0)
    return Snapshot(
        at_s=at_s, tick_s=15.0, window_s=60.0, error_after_s=error_after_s, entries=entries_of(at_s, entries)
    )


def edited(body: bytes, edit: Callable[[dict[str, Any]], None]) -> bytes:
    """The bytes of a snapshot after a change of its message."""
    message = msgspec.msgpack.decode(body)
    edit(message)
    return msgspec.msgpack.encode(message)


def local_api(
    store: SnapshotStore,
    readiness: Readiness | None = None,
    elsewhere: Mapping[str, Forward] | None = None,
    **more: Any,
) -> MetricsApi:
    """The metrics API over a store, as without a cluster: everybody may ask. more: of Surroundings."""
    probes = Probes.of(readiness or Readiness(lambda: True))
    telemetry = Telemetry(store, workloads=False)
    api = metrics_api(store, probes, telemetry, lambda: 6443, Surroundings(**more))
    return api if elsewhere is None else replace(api, elsewhere=elsewhere)


def recorded(*families: str) -> list[dict[str, Any]]:
    """The recorded answers of a real Go server."""
    lines = [json.loads(line) for line in RECORDED.read_text("utf-8").splitlines()]
    return [line for line in lines if line["id"].split("-")[0] in families]
