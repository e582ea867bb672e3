"""Answers of Prometheus -> samples, and the faults of queries, labels and values."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import NamedTuple

import msgspec
import pyarrow as pa

from adapter.core.samples import EVERY
from adapter.sources.names import stage_slug
from adapter.sources.prometheus_fleets import FleetNames, Labels
from adapter.sources.prometheus_plan import DiscoveredWorkloads, Query
from adapter.sources.sample_table import SampleTable


class QueryError(Exception):
    """A query has no result. The message is the cause."""


class Series(msgspec.Struct, gc=False):
    """One series of a result. Its points are (Unix seconds, value as text)."""

    metric: dict[str, str]
    value: tuple[float, str] | None = None  # of an instant query
    values: tuple[tuple[float, str], ...] = ()  # of a range query

    @property
    def points(self) -> tuple[tuple[float, str], ...]:
        """The points of either query."""
        return self.values if self.value is None else (self.value,)


class _Result(msgspec.Struct):
    kind: str = msgspec.field(name="resultType")
    result: msgspec.Raw


class _Answer(msgspec.Struct):
    status: str
    data: _Result | None = None
    error_type: str = msgspec.field(name="errorType", default="")
    error: str = ""
    warnings: tuple[str, ...] | None = None
    is_partial: bool = msgspec.field(name="isPartial", default=False)  # of VictoriaMetrics, which has no warnings

    def gaps(self) -> list[str]:
        """Why a part of the result is missing (a store, a remote). A sum over the rest would be wrong."""
        serious = [warning for warning in self.warnings or () if not warning.startswith("PromQL info:")]
        return [*serious, "a storage node did not answer (isPartial)"] if self.is_partial else serious


_ANSWER = msgspec.json.Decoder(_Answer)
_SERIES = msgspec.json.Decoder(list[Series])
_NOT_DECODED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
# A number as JSON and Prometheus write it. float() also reads 1_000, other scripts' digits and spaces around them.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?Inf|NaN")
_LONGEST_NUMBER = 400  # Prometheus writes 1e308 with all of its digits
_LATEST_S = 2**40
_HINTS = {
    401: "; it requires credentials: bearer_token_file, basic or tls",
    403: "; these credentials do not allow queries",
    404: "; is the base path of the url right?",
    405: "; it does not allow POST",
}


def decode(status: int, content_type: str, body: bytes, most_values: int) -> list[Series]:
    """The series of one answer. Raises QueryError with the server's message."""
    try:
        answer = _ANSWER.decode(body)
    except _NOT_DECODED as error:
        raise QueryError(_unknown_answer(status, content_type, str(error))) from error
    if answer.status != "success" or answer.data is None or status >= 400:
        raise QueryError(f"{status} {answer.error_type or answer.status}: {answer.error or 'no data'}")
    if gaps := answer.gaps():
        raise QueryError(f"the answer is incomplete: {'; '.join(gaps)}")
    if answer.data.kind not in ("vector", "matrix"):
        raise QueryError(f"expected a vector, the query returns a {answer.data.kind}; vector(...) converts a scalar")
    # Each value begins with this bracket. Counting them takes no memory, and decoding 64 MiB of them gigabytes.
    count = body.count(b"[") - 1
    if count > most_values:
        raise QueryError(f"the answer has {count} values, more than {most_values}; aggregate by ($by), or match less")
    try:
        return _SERIES.decode(answer.data.result)
    except _NOT_DECODED as error:
        raise QueryError(f"the answer is not in Prometheus' format: {error}") from error


def _unknown_answer(status: int, content_type: str, cause: str) -> str:
    """The message for an answer that is not from Prometheus' API."""
    kind = content_type.partition(";")[0] or "no content type"
    if status >= 400:
        return f"HTTP {status}{_HINTS.get(status, '')}"
    if kind == "text/html":
        return "the answer is a web page: a login page, or a wrong url"
    return f"the answer ({kind}) is not in Prometheus' format: {cause}"


class SampleKey(NamedTuple):
    """Where a value belongs."""

    at_s: int  # the tick
    workload: str
    stage: str
    signal: str


@dataclass
class ResultCollector:
    """Collects the results of all queries of one call as samples."""

    end_s: int  # the last tick
    _values: dict[SampleKey, tuple[float, Query, Series]] = field(default_factory=dict)
    _faults: dict[tuple[int, str], str] = field(default_factory=dict)  # (tick, workload) -> the first fault
    _notes: dict[str, str] = field(default_factory=dict)  # workload -> its first query without a result
    _ambiguous: set[SampleKey] = field(default_factory=set)  # two series give one value
    _names: FleetNames = field(default_factory=FleetNames)
    _faulty: set[tuple[str, str]] = field(default_factory=set)  # path and signal of queries with a fault for all
    _discovered_at: set[tuple[int, str, int]] = field(default_factory=set)  # tick, workload, fleet

    def discover(self, query: Query, series: Iterable[Series]) -> None:
        """Name the workloads of a result, before the first result is added."""
        if isinstance(query.owners, DiscoveredWorkloads):
            for one in series:
                labels = _labels(query.owners, one)
                if all(labels) and (fault := self._names.add(query.owners.fleet, labels)):
                    self._add_faults(query, f"{query.path}: {fault}")

    def add(self, query: Query, series: Iterable[Series]) -> None:
        """Add the result of a query."""
        for one in series:
            stage = stage_slug(one.metric.get(query.stage_label, "")) if query.stage_label else ""
            if query.stage_label and not stage:
                self._add_missing_label(query, query.stage_label, one)
                continue
            if not one.points:
                self._add_faults(query, f"{query.signal} ({query.path}) returns histograms; convert them to numbers")
            for workload in self._workloads(query, one):
                for at, text in one.points:
                    if 0 <= at <= _LATEST_S:
                        self._add_value(SampleKey(round(at), workload, stage, query.signal), text, query, one)

    def fail(self, query: Query, cause: str) -> None:
        """Add a query without a result: the signal is unknown for its workloads."""
        self._add_faults(query, f"{query.signal} ({query.path}): {cause}")

    def table(self) -> pa.Table:
        """All samples. Ambiguous values and workloads with colliding names have a fault and no value.

        Each fleet that finds a workload has a row: two of them are a fault, which the core reports.
        """
        table = SampleTable()
        frozen = set()
        for workload, is_owned, message in self._names.collisions():
            if is_owned:
                self._add_fault(self.end_s, workload, message)
            else:
                frozen.add(workload)
                self._faults[self.end_s, workload] = message  # it explains the others
        for key, (value, _, _) in self._values.items():
            if key not in self._ambiguous and key.workload not in frozen:
                table.add(key.at_s, key.workload, {key.signal: value}, key.stage)
        for at, workload, fleet in self._discovered_at:
            table.add(at, workload, {"fleet": float(fleet)})
        for (at, workload), message in self._faults.items():
            table.add_fault(at, workload, message)
        for workload, message in self._notes.items():
            table.add_note(self.end_s, workload, message)
        return table.finish()

    def report_missing(self, queries: Collection[Query]) -> None:
        """Add a fault for each configured workload and fleet without any series in the last tick.

        A workload without a fault that lacks series of one of its own queries has a note.
        """
        newest: dict[str, int] = {}
        for key in self._values:
            newest[key.workload] = max(key.at_s, newest.get(key.workload, key.at_s))
        present = {workload for workload, at_s in newest.items() if at_s == self.end_s}
        faulty = {workload for _, workload in self._faults}
        self._note_missing(queries, present - faulty)
        for query in queries:
            if isinstance(query.owners, DiscoveredWorkloads):
                if (present | faulty).isdisjoint(self._names.of_fleet(query.owners.fleet)):
                    self._add_fault(self.end_s, EVERY, f"{query.path}: no series match; is the exporter scraped?")
                continue
            for values, workloads in query.owners.workloads.items():
                labels = _selector(dict(zip(query.owners.keys, values, strict=True)))
                for workload in set(workloads) - present - faulty:
                    self._add_fault(self.end_s, workload, _missing(labels, newest.get(workload), self.end_s))

    def _note_missing(self, queries: Iterable[Query], workloads: Collection[str]) -> None:
        found = {(key.workload, key.signal) for key in self._values if key.at_s == self.end_s}
        for query in (query for query in queries if query.is_own):
            message = f"{query.signal} ({query.path}): no series match; is its metric right?"
            for workload in _all_of(query):
                if workload in workloads and (workload, query.signal) not in found:
                    self._notes.setdefault(workload, message)

    def _workloads(self, query: Query, series: Series) -> tuple[str, ...]:
        owners = query.owners
        if isinstance(owners, DiscoveredWorkloads):
            return self._discovered_workload(query, owners, series)
        values = tuple(series.metric.get(key, "") for key in owners.keys)
        if values not in owners.workloads and "" in values:
            self._add_missing_label(query, owners.keys[values.index("")], series)
        return owners.workloads.get(values, ())

    def _discovered_workload(self, query: Query, owners: DiscoveredWorkloads, series: Series) -> tuple[str, ...]:
        labels = _labels(owners, series)
        if not all(labels):
            self._add_missing_label(query, str(owners.namespace_label) if labels[1] else owners.workload_label, series)
        return self._names.workloads(owners.fleet, labels)

    def _add_value(self, key: SampleKey, text: str, query: Query, series: Series) -> None:
        """Store one value. NaN, infinite or negative is a fault.

        Two series of one query for one key are ambiguous; of two queries the first wins.
        """
        value = _number(text)
        if isinstance(query.owners, DiscoveredWorkloads):
            self._discovered_at.add((key.at_s, key.workload, query.owners.fleet))
        if not isfinite(value) or value < 0:
            self._add_fault(key.at_s, key.workload, f"{query.signal} is {text} and is ignored ({query.path})")
            return
        _, other, first = self._values.setdefault(key, (value, query, series))
        if other is query and first is not series:
            self._ambiguous.add(key)
            both = f"{_selector(first.metric)} and {_selector(series.metric)}; aggregate by ($by), or match one of them"
            self._add_fault(key.at_s, key.workload, f"{query.signal} has two series, {both}")

    def _add_missing_label(self, query: Query, label: str, series: Series) -> None:
        if (query.path, query.signal) in self._faulty:  # of 100 000 series one is enough
            return
        labels = _selector(series.metric)
        self._add_faults(
            query,
            f"{query.path}: a series of {query.signal} lacks the label {label!r}, it has {labels}; "
            f"aggregate by ($by), or set the right label. The query: {' '.join(query.text.split())}",
        )

    def _add_faults(self, query: Query, message: str) -> None:
        self._faulty.add((query.path, query.signal))
        for workload in _all_of(query):
            self._add_fault(self.end_s, workload, message)

    def _add_fault(self, at: int, workload: str, message: str) -> None:
        self._faults.setdefault((at, workload), message)


def _number(text: str) -> float:
    return float(text) if len(text) <= _LONGEST_NUMBER and _NUMBER.fullmatch(text) else nan


def _labels(owners: DiscoveredWorkloads, series: Series) -> Labels:
    """The values of the labels of namespace and name, "" for a missing one."""
    label = owners.namespace_label
    return series.metric.get(label, "") if label else owners.namespace, series.metric.get(owners.workload_label, "")


def _all_of(query: Query) -> Iterator[str]:
    if isinstance(query.owners, DiscoveredWorkloads):
        yield EVERY
    else:
        for workloads in query.owners.workloads.values():
            yield from workloads


def _selector(labels: dict[str, str]) -> str:
    return "{" + ", ".join(f'{label}="{value}"' for label, value in labels.items()) + "}"


def _missing(labels: str, newest_s: int | None, tick_s: int) -> str:
    """Why a workload has no value of this tick. newest_s: the time of its newest value, None without one."""
    if newest_s is None:
        return f"no series match {labels}; is it running, and scraped?"
    if newest_s > tick_s:
        return f"the values of {labels} are {newest_s - tick_s} s newer than the tick; synchronize the clocks"
    return f"the newest values of {labels} are {tick_s - newest_s} s older than the tick; is it running, and scraped?"
