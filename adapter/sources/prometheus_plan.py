"""Configuration -> the queries of one Prometheus: a handful for the whole fleet, not one for each workload."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from adapter.config import Config, Fleet, PravegaReading, PrometheusReading, PrometheusSource
from adapter.config.faults import path_text, value_text
from adapter.core.samples import WORKLOAD_SIGNALS
from adapter.errors import ConfigError
from adapter.sources import presets, promql
from adapter.sources.precedence import sources_of

LONGEST_MATCH = 32_000  # characters of label values in one query; proxies refuse large bodies

_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EXPECTED_LABEL = "expected letters, digits and '_', not beginning with a digit"
# Each value is as long as its placeholder, so that the position of a fault is its position in the user's text.
_SAME_LENGTH = ('a="bc"', ("abc",), "100000s")
_VECTORS = {  # another result of a query -> how to get a vector
    "scalar": "write vector(...) around it",
    "string": "write it without quotes",
    "matrix": "write a function around it, such as rate(...)",
}
_NO_PRESET = presets.Preset(name="", description="", workload_label="")  # for an entry without a preset


@dataclass(frozen=True, slots=True)
class ConfiguredWorkloads:
    """Configured workloads, identified by label values. Without keys, the whole result belongs to one workload."""

    keys: tuple[str, ...]  # labels
    workloads: Mapping[tuple[str, ...], tuple[str, ...]]  # values of the keys -> "namespace/name"


@dataclass(frozen=True, slots=True)
class DiscoveredWorkloads:
    """The workloads of a fleet, named by labels of the result."""

    fleet: int  # index in the configuration
    workload_label: str
    namespace_label: str | None
    namespace: str  # of workloads without a namespace_label


@dataclass(frozen=True, slots=True)
class Query:
    """A PromQL query that each tick sends. Its result is one signal of some workloads."""

    path: str  # in the configuration
    signal: str
    text: str
    owners: ConfiguredWorkloads | DiscoveredWorkloads
    stage_label: str | None = None
    is_own: bool = False  # of the configuration, so that a result is expected; a preset also has queries for other jobs
    entries: Mapping[str, str] = field(default_factory=dict)  # workload -> source and path of its entry

    def entry(self, workload: str) -> str:
        """The entry of the configuration to which the values of a workload belong: the same for all its queries."""
        return self.entries.get(workload, self.path)


@dataclass(frozen=True, slots=True)
class _QueryRead:
    """An entry of `workloads[].read` with its preset."""

    path: str
    workload: str
    match: Mapping[str, str]
    preset: presets.Preset
    signals: Mapping[str, str]
    own_signals: Collection[str] = ()  # those of the configuration

    @property
    def group(self) -> tuple[object, ...]:
        """Entries of one group can share their queries."""
        return self.preset.name, tuple(self.signals.items()), tuple(sorted(self.match))


def queries(config: Config, name: str) -> tuple[Query, ...]:
    """The queries of the Prometheus source of that name. Raises ConfigError for an unknown preset."""
    window = f"{config.timing.source_window_s}s"
    groups: dict[tuple[object, ...], list[_QueryRead]] = {}
    for read in _reads(config, name):
        groups.setdefault(read.group, []).append(read)
    configured = [query for group in groups.values() for query in _of_reads(group, window, name)]
    discovered = [
        query
        for index, fleet in enumerate(config.fleets)
        if fleet.source == name
        for query in _of_fleet(index, fleet, window)
    ]
    return (*configured, *discovered)


def check(config: Config) -> list[str]:
    """Faults in presets, signals and PromQL of all Prometheus sources; each sentence begins with its path."""
    faults = []
    for name, source in config.sources.items():
        if isinstance(source, PrometheusSource):
            for path, reads in configured_reads(config, name):
                faults += [f"{path}.{fault}" for fault in _faults(reads, source.query_language == "promql")]
    return faults or _duplicates(config)  # a faulty preset hides which signals an entry reads


def configured_reads(config: Config, name: str) -> Iterator[tuple[str, PrometheusReading | Fleet]]:
    """The entries and fleets that read a source, each with its path."""
    for i, workload in enumerate(config.workloads):
        for j, reading in enumerate(workload.read):
            if isinstance(reading, PrometheusReading) and reading.source == name:
                yield f"workloads[{i}].read[{j}]", reading
    for i, fleet in enumerate(config.fleets):
        if fleet.source == name:
            yield f"fleets[{i}]", fleet


def _reads(config: Config, name: str) -> Iterator[_QueryRead]:
    for i, workload in enumerate(config.workloads):
        for j, reading in enumerate(workload.read):
            path = f"workloads[{i}].read[{j}]"
            if isinstance(reading, PrometheusReading) and reading.source == name:
                preset = preset_of(reading)
                signals = {**preset.signals, **reading.signals}
                yield _QueryRead(path, workload.id, reading.match, preset, signals, reading.signals)
            elif isinstance(reading, PravegaReading) and name in sources_of(config, reading):
                match = {"scope": reading.scope, "stream": reading.stream}
                yield _QueryRead(path, workload.id, match, _NO_PRESET, presets.stream_rates())


def _of_reads(group: list[_QueryRead], window: str, source: str) -> Iterator[Query]:
    first = group[0]
    joinable = {
        s for s, text in first.signals.items() if all(presets.count_placeholder(text, p) for p in ("match", "by"))
    }
    for signal, template in first.signals.items():
        places = presets.count_placeholder(template, "match")
        for batch in _batches(group, places) if signal in joinable else [[one] for one in group]:
            keys = tuple(sorted(first.match)) if signal in joinable else ()
            stage_label = _stage_label(first.preset, signal)
            labels = (*keys, first.preset.workload_label, stage_label)
            text = presets.fill(template, _match(batch), _distinct(labels), window)
            owners = ConfiguredWorkloads(keys, _by_values(keys, batch))
            entries = {read.workload: f"{source} ({read.path})" for read in batch}
            yield Query(_paths(batch), signal, text, owners, stage_label, signal in first.own_signals, entries)


def namespace_of(fleet: Fleet) -> str | None:
    """The namespace of all workloads of a fleet; None if a label names that of each."""
    return None if _namespace_label(fleet) else fleet.namespace


def _namespace_label(fleet: Fleet) -> str | None:
    return fleet.namespace_label or preset_of(fleet).namespace_label


def preset_of(reads: PrometheusReading | Fleet) -> presets.Preset:
    """The preset of an entry or a fleet, one without signals where it names none.

    Raises ConfigError for an unknown preset.
    """
    return presets.load(reads.preset) if reads.preset else _NO_PRESET


def _of_fleet(index: int, fleet: Fleet, window: str) -> Iterator[Query]:
    preset, namespace_label = preset_of(fleet), _namespace_label(fleet)
    workload_label = fleet.workload_label or preset.workload_label
    owners = DiscoveredWorkloads(index, workload_label, namespace_label, fleet.namespace)
    match = ",".join(promql.equal(label, value) for label, value in fleet.match.items())
    for signal, template in {**preset.signals, **fleet.signals}.items():
        stage_label = None if signal in WORKLOAD_SIGNALS else fleet.stage_label or _stage_label(preset, signal)
        by = _distinct((namespace_label, workload_label, stage_label))
        yield Query(f"fleets[{index}]", signal, presets.fill(template, match, by, window), owners, stage_label)


def _batches(group: list[_QueryRead], places: int) -> Iterator[list[_QueryRead]]:
    batch: list[_QueryRead] = []
    length = 0
    for read in group:
        own = places * sum(len(value) + 1 for value in read.match.values())
        if batch and length + own > LONGEST_MATCH:
            yield batch
            batch, length = [], 0
        batch.append(read)
        length += own
    yield batch


def _match(batch: list[_QueryRead]) -> str:
    """Matchers that select at least the series of a batch. The keys of the result identify each workload."""
    labels = [label for label in sorted(batch[0].match) if label not in batch[0].preset.derived_labels]
    return ",".join(promql.one_of(label, [read.match[label] for read in batch]) for label in labels)


def _by_values(keys: tuple[str, ...], batch: list[_QueryRead]) -> dict[tuple[str, ...], tuple[str, ...]]:
    workloads: dict[tuple[str, ...], tuple[str, ...]] = {}
    for read in batch:
        values = tuple(read.match[key] for key in keys)
        workloads[values] = (*workloads.get(values, ()), read.workload)
    return workloads


def _paths(batch: list[_QueryRead]) -> str:
    return batch[0].path if len(batch) == 1 else f"{batch[0].path} and {len(batch) - 1} more"


def _stage_label(preset: presets.Preset, signal: str) -> str | None:
    return None if signal in WORKLOAD_SIGNALS else preset.stage_label


def _distinct(labels: tuple[str | None, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(label for label in labels if label))


def _faults(reads: PrometheusReading | Fleet, is_promql: bool) -> Iterator[str]:
    preset = _NO_PRESET
    try:
        preset = preset_of(reads)
    except ConfigError as error:
        yield from (f"preset: {fault}" for fault in error.faults)
    yield from _match_faults(reads, preset)
    fleet_label = (reads.workload_label or preset.workload_label) if isinstance(reads, Fleet) else ""
    for signal, template in reads.signals.items():
        own = presets.template_faults({signal: template})
        yield from own
        if is_promql and not own and (fault := _query_fault(template, fleet_label)):
            yield f"signals.{signal}: {fault}"


def _query_fault(template: str, fleet_label: str) -> str | None:
    """Why a query of a workload, or of a fleet with a label that names its workloads, cannot be used."""
    query = presets.fill(template, *_SAME_LENGTH)
    if fault := promql.fault(query, template.strip()):
        fix = "; add a range, such as METRIC{$match}[$window]" if "expected type matrix" in fault else ""
        return f"is not valid PromQL, {fault}{fix}"
    if (kind := promql.result_kind(query)) in _VECTORS:
        return f"expected a query whose result is a vector, got one whose result is a {kind}; {_VECTORS[kind]}"
    if _LABEL.fullmatch(fleet_label) and promql.drops(presets.fill(template, "", (fleet_label,), "60s"), fleet_label):
        return f"its result lacks the workload label {fleet_label!r}; aggregate by ($by)"
    return None


def _match_faults(reads: PrometheusReading | Fleet, preset: presets.Preset) -> Iterator[str]:
    if isinstance(reads, PrometheusReading) and not any(reads.match.values()):
        templates = {**preset.signals, **reads.signals}.values()
        if any(presets.count_placeholder(template, "match") for template in templates):
            label = preset.match_label or preset.workload_label or "app"
            yield f"match: expected labels that only this workload has, such as {label}: NAME, got none with a value"
    for name in ("workload_label", "namespace_label", "stage_label") if isinstance(reads, Fleet) else ():
        if (label := getattr(reads, name)) and not _LABEL.fullmatch(label):
            yield f"{name}: {_EXPECTED_LABEL}, got {value_text(label)}"
    for label in reads.match:
        path = path_text(("match", label))
        if not _LABEL.fullmatch(label):
            yield f"{path}: {_EXPECTED_LABEL}"
        elif isinstance(reads, Fleet) and label in preset.derived_labels:
            yield f"{path}: the preset creates this label, and no series has it; match a label of the series"


def _duplicates(config: Config) -> list[str]:
    """Signals that two entries of one workload read."""
    faults = []
    for name in config.sources:
        first: dict[tuple[str, str], str] = {}
        for read in _reads(config, name):
            for signal in read.signals:
                path = first.setdefault((read.workload, signal), read.path)
                if path != read.path:
                    other = "to read both, add a second source with the same url; the first in `read` counts"
                    faults.append(f"{read.path}: {path} already reads {signal} of {read.workload}; {other}")
    return faults
