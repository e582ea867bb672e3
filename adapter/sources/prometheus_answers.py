"""What Prometheus answered -> rows, or the sentence that says why there are none."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import isfinite, nan

import msgspec

from adapter.sources import EVERY, FAULT, Row
from adapter.sources.names import slug
from adapter.sources.prometheus_plan import Found, Query


class UnansweredError(Exception):
    """A query gave no result; the message is the cause."""


class Series(msgspec.Struct, gc=False):
    """One series of a result, with the value of an instant query or those of a range query: (Unix seconds, text)."""

    metric: dict[str, str]
    value: tuple[float, str] | None = None
    values: tuple[tuple[float, str], ...] = ()

    @property
    def points(self) -> tuple[tuple[float, str], ...]:
        """All its values."""
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


_ANSWER = msgspec.json.Decoder(_Answer)
_SERIES = msgspec.json.Decoder(list[Series])
_HINTS = {
    401: "; it wants credentials: bearer_token_file, basic or tls",
    403: "; these credentials may not query",
    404: "; is the base path of the url right?",
    405: "; it takes no POST",
}


def decode(status: int, content_type: str, body: bytes) -> list[Series]:
    """The series of one answer. Raises UnansweredError with what the server said instead."""
    try:
        answer = _ANSWER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnansweredError(_strange(status, content_type, str(error))) from error
    if answer.status != "success" or answer.data is None or status >= 400:
        raise UnansweredError(f"{status} {answer.error_type or answer.status}: {answer.error or 'no data'}")
    # A warning means that a part is missing (a store, a remote): a sum over the rest would be a wrong number.
    serious = [warning for warning in answer.warnings or () if not warning.startswith("PromQL info:")]
    if serious:
        raise UnansweredError(f"the answer is not whole: {'; '.join(serious)}")
    if answer.data.kind not in ("vector", "matrix"):
        raise UnansweredError(
            f"a vector is wanted, the query gives a {answer.data.kind}; vector(...) makes one of a scalar"
        )
    try:
        return _SERIES.decode(answer.data.result)
    except msgspec.DecodeError as error:
        raise UnansweredError(f"the answer is not of Prometheus' form: {error}") from error


def _strange(status: int, content_type: str, cause: str) -> str:
    """Why an answer is none of Prometheus' API."""
    kind = content_type.partition(";")[0] or "no content type"
    if status >= 400:
        return f"HTTP {status}{_HINTS.get(status, '')}"
    if kind == "text/html":
        return "a web page came instead of an answer: a login page, or a wrong url"
    return f"the answer ({kind}) is not of Prometheus' form: {cause}"


@dataclass
class Gathered:
    """The rows of one call, gathered query by query."""

    end_s: int
    _values: dict[tuple[int, str, str, str], tuple[float, Query, Series]] = field(default_factory=dict)
    _faults: dict[tuple[int, str], str] = field(default_factory=dict)
    _spoiled: set[tuple[int, str, str, str]] = field(default_factory=set)
    _found: dict[str, tuple[int, tuple[str, str]]] = field(default_factory=dict)
    _known: dict[tuple[int, tuple[str, str]], tuple[str, ...]] = field(default_factory=dict)
    _clashed: set[str] = field(default_factory=set)
    _seen: set[tuple[int, str]] = field(default_factory=set)

    def add(self, query: Query, series: Iterable[Series]) -> None:
        """What one query answered."""
        for one in series:
            stage = slug(one.metric.get(query.stage_label, "")) if query.stage_label else ""
            if query.stage_label and not stage:
                self._lacks(query, query.stage_label, one)
                continue
            if not one.points:
                self._tell(query, f"{query.signal} ({query.path}) gives histograms; make numbers of them")
            for workload in self._workloads(query, one):
                for at, text in one.points:
                    self._put((round(at), workload, stage, query.signal), text, query, one)

    def lost(self, query: Query, cause: str) -> None:
        """A query that was not answered: the signal is unknown for its workloads."""
        self._tell(query, f"{query.signal} ({query.path}): {cause}")

    def rows(self) -> list[Row]:
        """All rows. Workloads that two names share, and places that two series claim, have faults and no values."""
        told = [place for place in self._values if place not in self._spoiled and place[1] not in self._clashed]
        rows = [Row(*place, self._values[place][0]) for place in told]
        rows += [Row(at, workload, "", "fleet", float(self._found[workload][0])) for at, workload in self._seen]
        return rows + [Row(at, workload, "", FAULT, 0.0, text) for (at, workload), text in self._faults.items()]

    def missed(self, queries: Iterable[Query]) -> None:
        """Say which configured workloads and fleets no series spoke of at the last tick."""
        heard = {workload for at, workload, _, _ in self._values if at == self.end_s}
        heard |= {workload for _, workload in self._faults}
        fleets = {fleet for (fleet, _), workloads in self._known.items() if heard.intersection(workloads)}
        for query in queries:
            if isinstance(query.owners, Found):
                if query.owners.fleet not in fleets:
                    self._fault(self.end_s, EVERY, f"{query.path}: no series match; is the exporter scraped?")
                continue
            for values, workloads in query.owners.workloads.items():
                labels = _described(dict(zip(query.owners.keys, values, strict=True)))
                for workload in set(workloads) - heard:
                    self._fault(self.end_s, workload, f"no series match {labels}; is it running, and scraped?")

    def _workloads(self, query: Query, series: Series) -> tuple[str, ...]:
        owners = query.owners
        if isinstance(owners, Found):
            return self._found_workload(query, owners, series)
        values = tuple(series.metric.get(key, "") for key in owners.keys)
        if values not in owners.workloads and "" in values:
            self._lacks(query, owners.keys[values.index("")], series)
        return owners.workloads.get(values, ())

    def _found_workload(self, query: Query, owners: Found, series: Series) -> tuple[str, ...]:
        namespace, name = owners.namespace, series.metric.get(owners.workload_label, "")
        if owners.namespace_label:
            namespace = series.metric.get(owners.namespace_label, "")
        if not name or not namespace:
            self._lacks(query, owners.workload_label if not name else str(owners.namespace_label), series)
            return ()
        raw = (namespace, name)
        known = self._known.get((owners.fleet, raw))
        return known if known is not None else self._meet(query, owners.fleet, raw)

    def _meet(self, query: Query, fleet: int, raw: tuple[str, str]) -> tuple[str, ...]:
        """The workload of a name that is seen for the first time in this call."""
        namespace, name = slug(raw[0]), slug(raw[1])
        if not namespace or not name:
            self._tell(query, f"{query.path}: {'/'.join(raw)} has nothing a label value can hold; rename it")
            return ()
        workload = f"{namespace}/{name}"
        first_fleet, first = self._found.setdefault(workload, (fleet, raw))
        if first_fleet == fleet and first != raw:
            self._clashed.add(workload)
            self._fault(self.end_s, workload, f"{'/'.join(first)} and {'/'.join(raw)} share one name; rename one")
        return self._known.setdefault((fleet, raw), (workload,))

    def _put(self, place: tuple[int, str, str, str], text: str, query: Query, series: Series) -> None:
        value = _number(text)
        if place[1] in self._found:
            self._seen.add(place[:2])
        if not isfinite(value) or value < 0:
            self._fault(place[0], place[1], f"{query.signal} is {text} ({query.path}), left out")
            return
        _, other, first = self._values.setdefault(place, (value, query, series))
        if other is query and first is not series:
            self._spoiled.add(place)
            both = f"{_described(first.metric)} and {_described(series.metric)}"
            self._fault(place[0], place[1], f"{query.signal} has two series, {both}; aggregate by ($by), or match one")

    def _lacks(self, query: Query, label: str, series: Series) -> None:
        self._tell(
            query,
            f"{query.path}: a series of {query.signal} lacks the label {label!r}, it has {_described(series.metric)}; "
            f"aggregate by ($by), or name the right label. The query: {' '.join(query.text.split())}",
        )

    def _tell(self, query: Query, sentence: str) -> None:
        for workload in _all_of(query):
            self._fault(self.end_s, workload, sentence)

    def _fault(self, at: int, workload: str, sentence: str) -> None:
        self._faults.setdefault((at, workload), sentence)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan


def _all_of(query: Query) -> Iterator[str]:
    if isinstance(query.owners, Found):
        yield EVERY
    else:
        for workloads in query.owners.workloads.values():
            yield from workloads


def _described(labels: dict[str, str]) -> str:
    return "{" + ", ".join(f'{label}="{value}"' for label, value in labels.items()) + "}"
