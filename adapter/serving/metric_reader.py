"""Reads a metric of a workload from the snapshot: one number, or an error with the reason and the fix."""

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

from adapter.apiserver.selectors import Requirement, Selector
from adapter.apiserver.status import bad_request, not_found, unavailable
from adapter.core.decisions import Decision
from adapter.core.messages import sentence
from adapter.core.metrics import METRICS, Metric
from adapter.serving.lookup import Lookup, nearest_name, shorten
from adapter.serving.metric_api import MetricQuery, MetricValue
from adapter.serving.snapshots.snapshot import Entry, Snapshot
from adapter.serving.snapshots.store import SnapshotStore, StoredSnapshot
from adapter.serving.snapshots.workloads import Candidate, Namespace

FIX = "is the pipeline running, and can this server reach it? see its log and /readyz"
# An HPA reads milli-values as int64: above 9.2e15 they wrap, 1e16 reads as 0 (measured on apimachinery 0.35.5).
LARGEST = 9e15
_SUFFIXES = (("P", 10**15), ("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3))


class MetricReader:
    """Reads metrics from the newest snapshot."""

    def __init__(self, store: SnapshotStore) -> None:
        self._store = store

    def read_single_value(self, query: MetricQuery) -> MetricValue:
        """Exactly one value, because an HPA adds up all values of an answer (X-08).

        Raises StatusError. 404: an unknown metric, or nothing matches; it names the nearest. 400: several match; it
        names them. 503: the number is unknown, with the reason (X-06); an HPA then keeps its replicas.
        """
        metric, now_s = find_metric(query.metric, query.subject), self._store.now_s()
        held = self._current(now_s)
        found = _matches(held, query)
        if len(found) > 1:
            raise bad_request(_ambiguous(found, query))
        return _value_of(metric, found[0], now_s)

    def _current(self, now_s: float) -> StoredSnapshot:
        """The newest snapshot, unless it is too old."""
        held = self._store.current
        if held is None:
            raise unavailable(
                self._store.fault or f"the pipeline has published nothing since this server started; {FIX}"
            )
        fault = snapshot_fault(held.snapshot, now_s)
        if fault is not None:
            raise unavailable(self._store.fault or fault)
        return held


def snapshot_fault(snapshot: Snapshot, now_s: float) -> str | None:
    """Why no number of the snapshot may be served, None if they may. now_s: of the store, so no tick is later."""
    age_s = now_s - snapshot.at_s
    if age_s > snapshot.error_after_s:
        return f"the pipeline published nothing for {age_s:.0f} s, the limit is {snapshot.error_after_s:.0f} s; {FIX}"
    return None


def find_metric(name: str, subject: str) -> Metric:
    """The metric of a name. Raises StatusError (404) with the nearest name. subject: as in MetricQuery."""
    metric = METRICS.get(name)
    if metric is not None:
        return metric
    near = nearest_name(name, METRICS)
    hint = f"nearest is {near}" if near else f"metrics are {', '.join(METRICS)}"
    raise not_found(f"{absent(name, subject)}: {hint}")


def with_workload(selector: Selector, name: str) -> Selector:
    """The selector, for the workload of that name unless it names one itself."""
    if selector.mentions("workload"):
        return selector
    return Selector((Requirement("workload", "in", (name,)), *selector.requirements))


def absent(name: str, subject: str) -> str:
    """The message of the Kubernetes API for an unknown metric."""
    return f"the server could not find the metric {name}" + (f" for {subject}" if subject else "")


def quantity(value: float, *, signed: bool = False) -> str:
    """The value as a Quantity: three decimals, rounded half up; at most 9e15; the largest suffix that divides.

    signed: allow values below 0. An HPA takes a negative sum for an overflow and scales to its maximum, so metrics for
    an HPA are never signed. Raises ValueError for NaN, infinities, and negative values unless `signed`.
    """
    if not (isinstance(value, int) or math.isfinite(value)) or (value < 0 and not signed):
        raise ValueError(f"no quantity for an HPA: expected a finite number >= 0, got {value}")
    bounded = min(max(value, -LARGEST), LARGEST)
    if bounded == (whole := int(bounded)):
        return _with_suffix(whole)
    milli = int((Decimal(repr(float(bounded))) * 1000).to_integral_value(ROUND_HALF_UP))
    return f"{milli}m" if milli % 1000 else _with_suffix(milli // 1000)


def _with_suffix(whole: int) -> str:
    if whole % 1000 == 0 and whole:
        for suffix, factor in _SUFFIXES:
            if whole % factor == 0:
                return f"{whole // factor}{suffix}"
    return str(whole)


def _matches(held: StoredSnapshot, query: MetricQuery) -> Sequence[Candidate]:
    """What the selector picks, at least one."""
    namespace = held.namespaces.get(query.namespace) or Namespace()
    lookup = Lookup(namespace, stages=query.selector.mentions("stage"))
    found = lookup.matching(query.selector)
    if not found:
        raise not_found(_no_match(query, namespace, lookup))
    return found


def _no_match(query: MetricQuery, namespace: Namespace, lookup: Lookup) -> str:
    if not namespace.workloads:
        fix = "request the metric in the namespace that the workload has in the configuration"
        fleet = "a workload of a fleet is known from its first sample on: see the log of the pipeline"
        return f"no workload is known in namespace {query.namespace}: {fix}; {fleet}"
    near_miss = lookup.near_miss(query.selector, f"in namespace {query.namespace}")
    exists = any(name in namespace.workloads for name in query.selector.only_values("workload") or ())
    return f"{near_miss}; {query.hint}" if query.hint and not exists else near_miss


def _value_of(metric: Metric, found: Candidate, now_s: float) -> MetricValue:
    entry = found.entry
    value = _quantity(metric, found)
    if value is None:
        raise unavailable(_no_number(metric, entry.decision))
    age_s = _age_s(metric, entry.decision, now_s)
    if age_s > entry.error_after_s:
        raise unavailable(_too_old(metric, entry, age_s, now_s))
    window_s = round(entry.window_s) if metric.is_rate else None
    return MetricValue(metric.name, found.labels, value, entry.decision.at_s, window_s)


def _quantity(metric: Metric, found: Candidate) -> str | None:
    """None if the number is unknown; NaN, infinite or negative is unknown too."""
    value = _number(metric, found)
    try:
        return None if value is None else quantity(value, signed=metric.signed)
    except ValueError:
        return None


def _number(metric: Metric, found: Candidate) -> float | None:
    if found.stage is None:
        return metric.read(found.entry.decision)
    if metric.read_stage is None:
        whole = f"{metric.name} is a number of the whole workload {found.entry.decision.workload}"
        raise bad_request(f"{whole}: leave stage out of the selector")
    return metric.read_stage(found.stage)


def _no_number(metric: Metric, decision: Decision) -> str:
    """The 503 for an unknown number, with workload, reason, age and fix: `kubectl describe hpa` shows its message."""
    decided = decision.required_workers is not None
    cause = f"{metric.unknown}; the decision was: " if decided else ""
    return f"no {metric.name} for {decision.workload} ({decision.reason}): {cause}{sentence(decision)}"


def _age_s(metric: Metric, decision: Decision, now_s: float) -> float:
    """The age of the newest sample behind a number. A requested hold does not age."""
    is_held = decision.reason.record.holds_without_samples and metric.is_size
    sample_age_s = None if is_held else metric.age_s(decision)
    return now_s - decision.at_s + (sample_age_s or 0.0)


def _too_old(metric: Metric, entry: Entry, age_s: float, now_s: float) -> str:
    what = f"no {metric.name} for {entry.decision.workload}: its newest sample is {age_s:.0f} s old"
    decided_s = now_s - entry.decision.at_s
    # A sample that was old when the pipeline decided is the source's fault.
    fix = f"the decision was: {sentence(entry.decision)}" if decided_s < age_s / 2 else FIX
    return f"{what}, the limit is {entry.error_after_s:.0f} s; {fix}"


def _ambiguous(found: Sequence[Candidate], query: MetricQuery) -> str:
    names = shorten([candidate.labels["workload"] + _stage_suffix(candidate) for candidate in found])
    subject = f'selector "{query.selector}"' if query.selector.requirements else "a request without selector"
    what = "workloads" if all(candidate.place is None for candidate in found) else "stages"
    return (
        f"{subject} matches {len(found)} {what} in namespace {query.namespace}, and an HPA would add their values: "
        f"{names}; select one, for example with {_only(found)}"
    )


def _only(found: Sequence[Candidate]) -> str:
    """A selector of the first one: its name, or its stage where the name is not enough."""
    labels = found[0].labels
    names = {candidate.labels["workload"] for candidate in found}
    stage = f",stage={labels['stage']}" if len(names) == 1 and "stage" in labels else ""
    return f"workload={labels['workload']}{stage}"


def _stage_suffix(candidate: Candidate) -> str:
    return "" if candidate.place is None else f" stage {candidate.labels['stage']}"
