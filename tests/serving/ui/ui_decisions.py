"""Builders of decisions and snapshots for the tests of the user interface."""

from typing import Any

from adapter.core.decisions import Decision, Reason
from adapter.serving.snapshots.columns import entries_of
from adapter.serving.snapshots.snapshot import Entry, Snapshot

AT_S = 1_000_000.0


def decision(workload: str = "demo/steady", **changes: Any) -> Decision:
    values: dict[str, Any] = {
        "at_s": AT_S,
        "policy": "dataflow",
        "reason": Reason.HOLD,
        "required_workers": 4.0,
        "spec_workers": 4.0,
        "workers": 4.0,
        "ready_workers": 4.0,
        "throughput_records_per_s": 370.0,
        "input_rate_records_per_s": 370.0,
        "backlog_records": 0.0,
        "backlog_time_s": 0.0,
        "backlog_time_target_s": 60.0,
    }
    return Decision(workload=workload, **{**values, **changes})


def snapshot(*decisions: Decision, at_s: float = AT_S, labels: dict[str, str] | None = None) -> Snapshot:
    entries = tuple(Entry(decision=one, error_after_s=180.0, window_s=60.0, labels=labels or {}) for one in decisions)
    return Snapshot(at_s=at_s, tick_s=15, error_after_s=180, entries=entries_of(at_s, entries))
