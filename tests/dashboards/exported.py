"""The series that the program exports: every family, of a process that has every part."""

import io
from dataclasses import fields

from prometheus_client.parser import text_string_to_metric_families

from adapter.apiserver.server import Server
from adapter.core.decisions import Decision, Reason
from adapter.serving.api_services import ApiServices
from adapter.serving.log_queue import queued_logging
from adapter.serving.snapshots.columns import entries_of
from adapter.serving.snapshots.snapshot import Entry, Snapshot
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.telemetry import QueryStatus, Telemetry, build_info, certificate, query_gauges, server_gauges

AT_S = 1_767_323_045.0
_TEXT = {"workload", "at_s", "policy", "reason", "bound", "confidence", "fault", "stage"}


def families() -> dict[str, set[str]]:
    """Name of each series -> its labels."""
    telemetry = Telemetry(_store(), workloads=True)
    status = QueryStatus(lateness_s=1.0, phases_s={"addBatch": 1.0}, restarts=0, shards_at_fault=0)
    services = ApiServices(_owned, ["v1beta1.external.metrics.k8s.io"], "streaming/backlog-adapter")
    services.refresh()
    telemetry.answered("backlog", 200, 0.001, "external")
    server = Server(lambda environ, start: [], "127.0.0.1", 0)
    with queued_logging(io.StringIO()) as log:
        for gauges in (
            build_info("serve"),
            query_gauges(lambda: status),
            server_gauges(server),
            certificate(lambda: AT_S),
            services.gauges,
            log.gauges,
        ):
            telemetry.add(gauges)
        text = telemetry.exposition().decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {sample.name: set(sample.labels) for sample in samples if not sample.name.endswith("_created")}


def _store() -> SnapshotStore:
    """One workload of which every number is known."""
    numbers = {field.name: 1.0 for field in fields(Decision) if field.name not in _TEXT}
    decision = Decision(workload="shop/orders", at_s=AT_S, policy="drain", reason=Reason.HOLD, **numbers)
    entry = Entry(decision=decision, error_after_s=180.0, labels={}, stages=())
    store = SnapshotStore(clock=lambda: AT_S)
    store.put(Snapshot(at_s=AT_S, tick_s=15.0, window_s=60.0, error_after_s=180.0, entries=entries_of(AT_S, [entry])))
    return store


def _owned(path: str) -> tuple[int, object]:
    return 200, {"spec": {"service": {"namespace": "streaming", "name": "backlog-adapter"}}}
