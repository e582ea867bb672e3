"""The series that the program exports: every family, of a process that has every part, and every reason and bound."""

import io
from dataclasses import fields
from functools import cache

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from adapter.apiserver.server import Server
from adapter.config import Config
from adapter.core.decisions import Bound, Decision, Reason
from adapter.core.rule_book import RuleBook
from adapter.log_queue import queued_logging
from adapter.pipeline.job import StreamingJob
from adapter.serving.api_services import ApiServices
from adapter.serving.snapshots.columns import entries_of
from adapter.serving.snapshots.snapshot import Entry, Snapshot
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.telemetry import Telemetry, build_info, certificate_gauges, server_gauges

AT_S = 1_767_323_045.0
# The owner of each APIService; the first is the process itself.
OWNERS = {
    "v1beta1.external.metrics.k8s.io": "streaming/backlog-adapter",
    "v1beta1.custom.metrics.k8s.io": "monitoring/prometheus-adapter",
}
_CONFIG = {"sources": {"trace": {"kind": "trace", "file": "trace.csv"}}, "pipeline": {"checkpoint": "/nowhere"}}
_TEXT = {"workload", "at_s", "policy", "reason", "bound", "confidence", "fault", "stage"}


def families() -> dict[str, set[str]]:
    """Name of each series -> its labels."""
    return {name: set(labels) for name, labels in exported_series()}


def counters() -> set[str]:
    """The series that only rise."""
    rising = [family for family in exposed() if family.type in ("counter", "histogram")]
    return {sample.name for family in rising for sample in family.samples}


def exported_series() -> list[tuple[str, dict[str, str]]]:
    """Name and labels of each series."""
    return [(sample.name, sample.labels) for family in exposed() for sample in family.samples]


@cache
def exposed() -> list[Metric]:
    """What a scrape of such a process reads."""
    telemetry = Telemetry(_store(), workloads=True)
    job = StreamingJob(Config.model_validate(_CONFIG), RuleBook(by_workload={}), lambda snapshot: None)
    job.publisher.lateness_s, job.phases_s = 1.0, {"addBatch": 1.0}
    services = ApiServices(_owned, list(OWNERS), OWNERS["v1beta1.external.metrics.k8s.io"], [])
    services.refresh()
    for code in (200, 503):
        telemetry.count_response("backlog", code, 0.001, "external")
    server = Server(lambda environ, start: [], "127.0.0.1", 0)
    with queued_logging(io.StringIO()) as log:
        for gauges in (
            *(build_info(role) for role in ("pipeline", "serve")),
            job.gauges,
            server_gauges(server),
            certificate_gauges(lambda: AT_S),
            services.gauges,
            log.gauges,
        ):
            telemetry.add(gauges)
        text = telemetry.exposition().decode()
    return list(text_string_to_metric_families(text))


def _store() -> SnapshotStore:
    """Workloads of which every number is known: one for each reason, and one for each bound."""
    states = [(reason, Bound.NONE) for reason in Reason] + [(Reason.HOLD, bound) for bound in Bound]
    entries = entries_of(AT_S, [_entry(place, reason, bound) for place, (reason, bound) in enumerate(states)])
    store = SnapshotStore(clock=lambda: AT_S)
    store.put(Snapshot(at_s=AT_S, tick_s=15.0, error_after_s=180.0, entries=entries))
    return store


def _entry(place: int, reason: Reason, bound: Bound) -> Entry:
    numbers = {field.name: 1.0 for field in fields(Decision) if field.name not in _TEXT}
    workload = f"shop/orders-{place:02}"
    decision = Decision(workload=workload, at_s=AT_S, policy="drain", reason=reason, bound=bound, **numbers)
    return Entry(decision=decision, error_after_s=180.0, window_s=60.0, labels={}, stages=())


def _owned(path: str) -> tuple[int, object]:
    namespace, name = OWNERS[path.rpartition("/")[2]].split("/")
    return 200, {"spec": {"service": {"namespace": namespace, "name": name}}}
