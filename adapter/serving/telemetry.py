"""The metrics that Prometheus scrapes: those of the snapshot, and those of this server."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from adapter import __version__
from adapter.apiserver.limits import REFUSALS
from adapter.apiserver.server import Server
from adapter.core.decisions import Decision
from adapter.core.metrics import METRICS
from adapter.serving.metric_reader import snapshot_fault
from adapter.serving.snapshots.store import SnapshotStore, StoredSnapshot

# Otherwise each counter has a second series, with the time of its first value.
disable_created_metrics()  # type: ignore[no-untyped-call]  # theirs

PREFIX = "backlog_adapter"
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})

# Reads a number of a workload from its decision; None if unknown.
Read = Callable[[Decision], float | None]

# Series of a workload: name -> meaning, number.
_SERIES: dict[str, tuple[str, Read]] = {
    **{name: (f"{metric.meaning} [{metric.unit}]", metric.read) for name, metric in METRICS.items()},
    "spec_workers": ("spec.replicas of the scale target", lambda decision: decision.spec_workers),
    "current_workers": ("workers that exist", lambda decision: decision.workers),
    "ready_workers": ("workers that are ready", lambda decision: decision.ready_workers),
    "wanted_workers": ("workers the policy wants before bounds", lambda decision: decision.wanted_workers),
    "min_workers": ("smallest size that the bounds allow", lambda decision: decision.min_workers),
    "max_workers": ("largest size to which the bounds allow a scale-up", lambda decision: decision.max_workers),
    "capacity": ("records/s that the present workers process", lambda decision: decision.capacity_records_per_s),
    "worker_capacity": ("records/s that one worker processes", lambda decision: decision.worker_capacity_records_per_s),
    "backlog_time_target_seconds": ("target of the backlog time", lambda decision: decision.backlog_time_target_s),
    "stuck_backlog": (
        "records waiting in partitions whose committed offset does not advance",
        lambda decision: decision.stuck_backlog_records,
    ),
    "bad_annotations": ("annotations of the HPA that cannot be read", lambda decision: decision.bad_annotations),
    "source_fault": (
        "1 while an error of a source may explain missing samples",
        lambda decision: decision.source_failed,
    ),
    "source_dispute": (
        "1 while two sources report backlogs that contradict",
        lambda decision: float(decision.dispute != ""),
    ),
}

# Families of metrics, made at the scrape.
Gauges = Callable[[], Iterable[Metric]]


class Telemetry:
    """The registry of a server.

    workloads: add one gauge for each workload and signal, in the pipeline alone.
    """

    def __init__(self, store: SnapshotStore, *, workloads: bool) -> None:
        self._registry = CollectorRegistry()
        self.add(partial(_of_snapshot, store))
        self._workloads = _WorkloadText(store) if workloads else None
        self._requests = Counter(
            f"{PREFIX}_requests", "requests by response", ["metric", "code", "group"], registry=self._registry
        )
        self._seconds = Histogram(
            f"{PREFIX}_request_seconds",
            "time from request to response",
            ["metric", "code_class"],
            registry=self._registry,
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0),
        )
        self._series: dict[tuple[str, int, str], tuple[Counter, Histogram]] = {}

    def add(self, gauges: Gauges) -> None:
        """Add families."""
        self._registry.register(_GaugeCollector(gauges))

    def count_response(self, metric: str, code: int, took_s: float, group: str) -> None:
        """Count one response.

        metric: the name in the request, "" without one; an unknown name is counted as "other". group: `external`,
        `custom`, `discovery` or `other`.
        """
        key = (metric if metric in METRICS or not metric else "other", code, group)
        # Looking for a series by its labels costs more than counting.
        requests, seconds = self._series.get(key) or self._add_counters(key)
        requests.inc()
        seconds.observe(took_s)

    def exposition(self) -> bytes:
        """The text of `/metrics`, in Prometheus' format."""
        text = generate_latest(self._registry)
        return text if self._workloads is None else text + self._workloads.current()

    def _add_counters(self, key: tuple[str, int, str]) -> tuple[Counter, Histogram]:
        metric, code, group = key
        series = self._requests.labels(metric, str(code), group), self._seconds.labels(metric, f"{code // 100}xx")
        self._series[key] = series
        return series


def build_info(role: str) -> Gauges:
    """The version of this process and its role: `pipeline`, `serve` or `run`."""

    def gauges() -> Iterator[Metric]:
        family = GaugeMetricFamily(f"{PREFIX}_build_info", "version and role; always 1", labels=["version", "role"])
        family.add_metric([__version__, role], 1)
        yield family

    return gauges


def certificate_gauges(ends_s: Callable[[], float], clock: Callable[[], float] = time.time) -> Gauges:
    """The days until the serving certificate expires. ends_s: when it does, in Unix seconds."""

    def gauges() -> Iterator[Metric]:
        text = "days until the serving certificate expires; negative afterwards"
        yield GaugeMetricFamily(f"{PREFIX}_certificate_days_left", text, value=(ends_s() - clock()) / 86_400)

    return gauges


def server_gauges(server: Server) -> Gauges:
    """Connections of a server, and the requests that it answered itself."""

    def gauges() -> Iterator[Metric]:
        yield GaugeMetricFamily(f"{PREFIX}_connections", "open connections", value=server.connections)
        closed = CounterMetricFamily(f"{PREFIX}_connections_closed", "connections the server ended", labels=["cause"])
        closed.add_metric(["limit"], server.counters.closed_for_room)
        closed.add_metric(["deadline"], server.counters.closed_for_time)
        closed.add_metric(["certificate"], server.counters.closed_for_certificate)
        yield closed
        refused = CounterMetricFamily(f"{PREFIX}_refused", "requests that the server answered itself", labels=["code"])
        for code in (refusal.code for refusal in REFUSALS):
            refused.add_metric([str(code)], server.counters.refused[code])
        yield refused

    return gauges


class _GaugeCollector(Collector):
    def __init__(self, gauges: Gauges) -> None:
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        """The families of this moment."""
        return self._gauges()


class _WorkloadText:
    """The series of each workload, as text, until its decision is too old for the API.

    They are rendered once a snapshot, which takes seconds at 40 000 workloads, and again when a workload becomes too
    old. In between, only the ages grow.
    """

    def __init__(self, store: SnapshotStore) -> None:
        self._store = store
        self._one_at_a_time = threading.Lock()
        self._rendered: tuple[StoredSnapshot | None, int, bytes] = (None, 0, b"")

    def current(self) -> bytes:
        """The text of the current snapshot."""
        with self._one_at_a_time:
            held, now_s = self._store.current, self._store.now_s()
            if held is None or snapshot_fault(held.snapshot, now_s) is not None:
                return b""
            age_s = now_s - held.snapshot.at_s
            shown = [entry.decision for entry in held.snapshot.entries if age_s <= entry.error_after_s]
            if held is not self._rendered[0] or len(shown) != self._rendered[1]:
                self._rendered = held, len(shown), _numbers(shown).encode()
            return self._rendered[2] + _ages(shown, age_s).encode()


def _numbers(decisions: Sequence[Decision]) -> str:
    """The families of every workload; unknown numbers have no series."""
    labels = [_labels(decision) for decision in decisions]
    families = [
        _family(name, meaning, zip(labels, map(read, decisions), strict=True))
        for name, (meaning, read) in _SERIES.items()
    ]
    reasons = (
        (_labels(decision, policy=decision.policy, reason=decision.reason, bound=decision.bound), 1.0)
        for decision in decisions
    )
    return "".join([*families, _family("decision_info", "why the target is what it is; always 1", reasons)])


def _ages(decisions: Sequence[Decision], since_tick_s: float) -> str:
    ages = (
        (_labels(decision), decision.sample_age_s + since_tick_s)
        for decision in decisions
        if decision.sample_age_s is not None
    )
    return _family("sample_age_seconds", "age of the newest sample", ages)


def _family(name: str, meaning: str, values: Iterable[tuple[str, float | None]]) -> str:
    """A gauge in Prometheus' text format. A large fleet has a million series, too many for generate_latest."""
    lines = [f"# HELP {PREFIX}_{name} {meaning}\n# TYPE {PREFIX}_{name} gauge\n"]
    lines += [f"{PREFIX}_{name}{{{labels}}} {value}\n" for labels, value in values if value is not None]
    return "".join(lines)


def _labels(decision: Decision, **more: str) -> str:
    namespace, _, workload = decision.workload.partition("/")
    labels = {"namespace": namespace, "workload": workload, **more}
    return ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items())


def _of_snapshot(store: SnapshotStore) -> Iterator[Metric]:
    """The families of the snapshot as a whole."""
    held = store.current
    if held is None:
        return
    snapshot = held.snapshot
    age_s = store.now_s() - snapshot.at_s
    yield GaugeMetricFamily(f"{PREFIX}_snapshot_age_seconds", "age of the snapshot", value=age_s)
    yield GaugeMetricFamily(f"{PREFIX}_snapshot_tick_timestamp_seconds", "its tick, Unix time", value=snapshot.at_s)
    yield GaugeMetricFamily(f"{PREFIX}_tick_seconds", "seconds between ticks", value=snapshot.tick_s)
    yield GaugeMetricFamily(f"{PREFIX}_workloads", "workloads in the snapshot", value=len(snapshot.entries))
