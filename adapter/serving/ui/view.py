"""Decisions for the user interface: the most urgent first, with numbers as text."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import log2

from adapter.core import formatting
from adapter.core.decisions import Decision
from adapter.core.messages import sentence
from adapter.serving.snapshots.snapshot import Entry, Snapshot


class Urgency(StrEnum):
    """How urgently a workload needs attention, most urgent first."""

    NO_NUMBER = "no number"
    ATTENTION = "attention"
    BEHIND = "behind"
    MOVING = "moving"
    CALM = "calm"


_RANK = {urgency: rank for rank, urgency in enumerate(Urgency)}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRow:
    """One workload in words; an unknown number is "unknown", never 0."""

    workload: str
    stage: str
    urgency: Urgency
    reason: str
    sentence: str
    input_rate: str
    throughput: str
    backlog: str
    backlog_time: str
    target: str
    over: bool  # the backlog time exceeds the target
    required: str
    bound: str
    current: str


class Changes:
    """Compares each snapshot with the previous one."""

    def __init__(self) -> None:
        self._previous: dict[str, tuple[object, ...]] = {}

    def since_last(self, snapshot: Snapshot) -> list[Decision]:
        """The decisions with another reason or number than before, or with a fault where there was none."""
        entries = snapshot.entries
        columns = entries.text("reason"), map(str, entries.number("required_workers")), map(bool, entries.text("fault"))
        now: dict[str, tuple[object, ...]] = dict(zip(entries.workloads, zip(*columns, strict=True), strict=True))
        changed = [entries.decision(row) for row, name in enumerate(now) if self._previous.get(name) != now[name]]
        self._previous = now
        return changed


def urgency(decision: Decision) -> Urgency:
    """The urgency of a workload; the first rule that applies decides."""
    if decision.required_workers is None:
        return Urgency.NO_NUMBER
    if decision.reason.record.needs_attention:
        return Urgency.ATTENTION
    if _excess(decision) > 1:
        return Urgency.BEHIND
    return Urgency.MOVING if decision.reason.record.is_moving else Urgency.CALM


def urgent_first(entries: Iterable[Entry]) -> list[Entry]:
    """Most urgent first, then by name. Among those behind only a doubling changes places, so that lines stay put."""
    return sorted(entries, key=lambda entry: _order(entry.decision))


def matching(entries: Iterable[Entry], wanted: str) -> list[Entry]:
    """Entries in which every word of `wanted` occurs: name, reason, urgency or a label written key=value."""
    words = wanted.lower().split()
    return [entry for entry in entries if all(word in _searchable(entry) for word in words)] if words else list(entries)


def workload_row(decision: Decision) -> WorkloadRow:
    """One workload in words."""
    return WorkloadRow(
        workload=decision.workload,
        stage=decision.stage,
        urgency=urgency(decision),
        reason=str(decision.reason),
        sentence=sentence(decision),
        input_rate=count(decision.input_rate_records_per_s),
        throughput=count(decision.throughput_records_per_s),
        backlog=count(decision.backlog_records),
        backlog_time=duration(decision.backlog_time_s),
        target=duration(decision.backlog_time_target_s),
        over=_excess(decision) > 1,
        required=count(decision.required_workers),
        bound=f"at {decision.bound}" if decision.bound.record.is_cap or decision.bound.record.in_range else "",
        current=_current(decision),
    )


def freshness(snapshot: Snapshot | None, now_s: float) -> tuple[str, str]:
    """How far the snapshot can be trusted: waiting, fresh, late or stale, and the sentence to show with it."""
    if snapshot is None:
        return "waiting", "waiting for the first decision: the pipeline has published nothing yet"
    age_s = now_s - snapshot.at_s
    effect = "the API answers 503 and HPAs hold their size until"
    if snapshot.is_ahead(now_s):
        return "stale", f"the last tick is {duration(-age_s)} in the future: compare clocks; {effect} then"
    if age_s > snapshot.error_after_s:
        what = f"the last tick is {duration(age_s)} old, more than {duration(snapshot.error_after_s)}"
        return "stale", f"{what}: {effect} the pipeline decides again"
    if age_s > 3 * snapshot.tick_s:
        return "late", f"the last tick is {duration(age_s)} old: the pipeline is late; its last decision is served"
    return "fresh", f"decided {duration(max(age_s, 0.0))} ago"


def count(value: float | None) -> str:
    """A number of records, records a second or workers."""
    has_decimal = value is not None and abs(value) < 10 and value != round(value)
    return f"{value:.1f}" if has_decimal else formatting.count(value)


def duration(seconds: float | None) -> str:
    """A duration in its natural unit."""
    return f"{count(seconds)} s" if seconds is not None and seconds < 120 else formatting.soon(seconds)


def _excess(decision: Decision) -> float:
    """Backlog time as a multiple of its target; 0 when either is unknown."""
    if decision.backlog_time_s is None or not decision.backlog_time_target_s:
        return 0.0
    return decision.backlog_time_s / decision.backlog_time_target_s


def _order(decision: Decision) -> tuple[int, int, str]:
    excess = _excess(decision)
    return _RANK[urgency(decision)], -int(log2(excess)) if excess > 1 else 0, decision.workload


def _searchable(entry: Entry) -> str:
    decision = entry.decision
    labels = (f"{key}={value}" for key, value in entry.labels.items())
    return " ".join((decision.workload, decision.reason, urgency(decision), *labels)).lower()


def _current(decision: Decision) -> str:
    spec, ready = decision.spec_workers, decision.ready_workers
    if ready is None:
        return count(spec)
    return count(ready) if spec is None or spec == ready else f"{count(ready)} of {count(spec)}"
