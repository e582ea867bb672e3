"""Results of Prometheus' queries -> samples, and the faults of queries, labels and values."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import msgspec
import pyarrow as pa

from adapter.core.formatting import RESOURCES
from adapter.core.samples import EVERY
from adapter.sources.names import stage_slug
from adapter.sources.prometheus_answers import Series
from adapter.sources.prometheus_fleets import FleetNames, Labels
from adapter.sources.prometheus_plan import DiscoveredWorkloads, Query
from adapter.sources.sample_table import SampleTable

_SHARES = frozenset(("utilization_ratio", "busiest_subtask_ratio", "backpressured_ratio", *RESOURCES))
_MOST_SHARE = 5.0  # CPU above a request or a limit is less; a percentage of a running job is more


class _Place(NamedTuple):
    """Where the values of a series belong."""

    workload: str
    stage: str
    signal: str


class _Contribution(msgspec.Struct, gc=False):
    """A series that gives values of a place."""

    query: Query
    series: Series


@dataclass
class ResultCollector:
    """Collects the results of all queries of one call as samples."""

    end_s: int  # the last tick
    _first: dict[_Place, _Contribution] = field(default_factory=dict)
    _more: dict[_Place, list[_Contribution]] = field(default_factory=lambda: defaultdict(list))  # of other ticks
    _owners: dict[_Place, dict[int, _Contribution]] = field(default_factory=dict)  # tick -> its owner; of _more alone
    _newest: dict[tuple[str, str], int] = field(default_factory=dict)  # workload, entry -> its newest tick with a value
    _present: set[tuple[str, str]] = field(default_factory=set)  # workload, signal with a value of the last tick
    _ambiguous: dict[_Place, set[int]] = field(default_factory=lambda: defaultdict(set))  # ticks with several values
    _faults: dict[tuple[int, str], str] = field(default_factory=dict)  # (tick, workload) -> the first fault
    _notes: dict[str, str] = field(default_factory=dict)  # workload -> its first entry or query without a result
    _names: FleetNames = field(default_factory=FleetNames)
    _faulty: set[tuple[str, str]] = field(default_factory=set)  # path and signal of queries with a fault for all
    _discovered_at: dict[tuple[str, int], set[int]] = field(default_factory=lambda: defaultdict(set))  # workload, fleet

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
            stage = stage_slug(one.labels.get(query.stage_label, "")) if query.stage_label else ""
            if query.stage_label and not stage:
                self._add_missing_label(query, query.stage_label, one)
                continue
            if not (one.at_s or one.rejected):
                self._add_faults(query, f"{query.signal} ({query.path}) returns histograms; convert them to numbers")
            for workload in self._workloads(query, one):
                self._add_series(_Place(workload, stage, query.signal), query, one)

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
        for place, series in self._known_series(frozen):
            table.add_series(place.workload, place.stage, place.signal, series.at_s, series.values)
        for (workload, fleet), ticks in self._discovered_at.items():
            for at in ticks:
                table.add(at, workload, {"fleet": float(fleet)})
        for (at, workload), message in self._faults.items():
            table.add_fault(at, workload, message)
        for workload, message in self._notes.items():
            table.add_note(self.end_s, workload, message)
        return table.finish()

    def _known_series(self, frozen: Collection[str]) -> Iterator[tuple[_Place, Series]]:
        """The series of the other workloads, without ambiguous values."""
        for place, first in self._first.items():
            ticks = self._ambiguous.get(place)
            for one in (first, *self._more.get(place, ())) if place.workload not in frozen else ():
                yield place, one.series.without(ticks) if ticks else one.series

    def report_missing(self, queries: Collection[Query]) -> None:
        """Add a fault for each configured workload and fleet without any series in the last tick.

        A workload without a fault that lacks all series of one entry, or of one of its own queries, has a note.
        """
        present = {workload for (workload, _), at_s in self._newest.items() if at_s == self.end_s}
        faulty = {workload for at_s, workload in self._faults if at_s == self.end_s}
        self._note_missing(queries, present - faulty)
        explained = present | faulty
        for query in queries:
            fleet = query.owners.fleet if isinstance(query.owners, DiscoveredWorkloads) else None
            if fleet is not None and explained.isdisjoint(self._names.of_fleet(fleet)):
                self._add_fault(self.end_s, EVERY, f"{query.path}: no series match; is the exporter scraped?")
            for workload, message in self._missing(query, explained):
                self._add_fault(self.end_s, workload, message)

    def _missing(self, query: Query, others: Collection[str]) -> Iterator[tuple[str, str]]:
        """The configured workloads whose entry has no value of the last tick, without the others, and why."""
        if isinstance(query.owners, DiscoveredWorkloads):
            return
        for values, workloads in query.owners.workloads.items():
            for workload in workloads:
                entry = query.entry(workload)
                newest_s = self._newest.get((workload, entry))
                if workload not in others and newest_s != self.end_s:
                    labels = _selector(dict(zip(query.owners.keys, values, strict=True)))
                    yield workload, f"{entry}: {_absence_cause(labels, newest_s, self.end_s)}"

    def _note_missing(self, queries: Collection[Query], workloads: Collection[str]) -> None:
        for query in (query for query in queries if not query.is_own):
            for workload, message in self._missing(query, ()):
                if workload in workloads:
                    self._notes.setdefault(workload, message)
        for query in (query for query in queries if query.is_own):
            message = f"{query.signal} ({query.path}): no series match; is its metric right?"
            for workload in _all_of(query):
                if workload in workloads and (workload, query.signal) not in self._present:
                    self._notes.setdefault(workload, message)

    def _workloads(self, query: Query, series: Series) -> tuple[str, ...]:
        owners = query.owners
        if isinstance(owners, DiscoveredWorkloads):
            return self._discovered_workload(query, owners, series)
        values = tuple(series.labels.get(key, "") for key in owners.keys)
        if values not in owners.workloads and "" in values:
            self._add_missing_label(query, owners.keys[values.index("")], series)
        return owners.workloads.get(values, ())

    def _discovered_workload(self, query: Query, owners: DiscoveredWorkloads, series: Series) -> tuple[str, ...]:
        labels = _labels(owners, series)
        if not all(labels):
            self._add_missing_label(query, str(owners.namespace_label) if labels[1] else owners.workload_label, series)
        return self._names.workloads(owners.fleet, labels)

    def _add_series(self, place: _Place, query: Query, series: Series) -> None:
        """Add the values of a series. A value that is no count is a fault.

        In each tick, two series of one query are ambiguous; of two queries the first wins.
        """
        if isinstance(query.owners, DiscoveredWorkloads):
            ticks = chain(series.at_s, (at for at, _ in series.rejected)) if series.rejected else series.at_s
            self._discovered_at[place.workload, query.owners.fleet].update(ticks)
        for at, text in series.rejected:
            self._add_fault(at, place.workload, f"{query.signal} is {text} and is ignored ({query.path})")
        if query.signal in _SHARES:
            series = self._without_percentages(place, query, series)
        if series.at_s:
            own = _Contribution(query, series)
            first = self._first.setdefault(place, own)
            if first is not own:
                self._add_another(place, first, own)
            self._note_newest(place, query.entry(place.workload), max(series.at_s))

    def _without_percentages(self, place: _Place, query: Query, series: Series) -> Series:
        large = {at: value for at, value in zip(series.at_s, series.values, strict=True) if value > _MOST_SHARE}
        for at, value in large.items():
            fault = f"is {value:g} and is ignored ({query.path}): 1 is full, so divide a percentage by 100"
            self._add_fault(at, place.workload, f"{query.signal} {fault}")
        return series.without(large) if large else series

    def _add_another(self, place: _Place, first: _Contribution, other: _Contribution) -> None:
        """Add the values of the ticks that have none yet."""
        owners = self._owners.setdefault(place, dict.fromkeys(first.series.at_s, first))
        common = {at for at in other.series.at_s if at in owners}
        for at in common:
            if owners[at].query is other.query:
                self._add_ambiguity(place, at, owners[at].series.labels, other.series.labels)
        rest = _Contribution(other.query, other.series.without(common))
        owners.update(dict.fromkeys(rest.series.at_s, rest))
        self._more[place].append(rest)

    def _note_newest(self, place: _Place, entry: str, at_s: int) -> None:
        key = place.workload, entry
        self._newest[key] = max(at_s, self._newest.get(key, at_s))
        if at_s == self.end_s:
            self._present.add((place.workload, place.signal))

    def _add_ambiguity(self, place: _Place, at: int, first: Mapping[str, str], second: Mapping[str, str]) -> None:
        self._ambiguous[place].add(at)
        both = f"{_selector(first)} and {_selector(second)}; aggregate by ($by), or match one of them"
        self._add_fault(at, place.workload, f"{place.signal} has two series, {both}")

    def _add_missing_label(self, query: Query, label: str, series: Series) -> None:
        if (query.path, query.signal) in self._faulty:  # of 100 000 series one is enough
            return
        labels = _selector(series.labels)
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


def _labels(owners: DiscoveredWorkloads, series: Series) -> Labels:
    """The values of the labels of namespace and name, "" for a missing one."""
    label = owners.namespace_label
    return series.labels.get(label, "") if label else owners.namespace, series.labels.get(owners.workload_label, "")


def _all_of(query: Query) -> Iterator[str]:
    if isinstance(query.owners, DiscoveredWorkloads):
        yield EVERY
    else:
        for workloads in query.owners.workloads.values():
            yield from workloads


def _selector(labels: Mapping[str, str]) -> str:
    return "{" + ", ".join(f'{label}="{value}"' for label, value in labels.items()) + "}"


def _absence_cause(labels: str, newest_s: int | None, tick_s: int) -> str:
    """Why an entry has no value of this tick. newest_s: the time of its newest value, None without one."""
    if newest_s is None:
        return f"no series match {labels}; are the labels right, is it running, and scraped?"
    if newest_s > tick_s:
        return f"the values of {labels} are {newest_s - tick_s} s newer than the tick; synchronize the clocks"
    return f"the newest values of {labels} are {tick_s - newest_s} s older than the tick; is it running, and scraped?"
