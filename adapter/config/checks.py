"""Faults between parts of the file: references, duplicate names, kinds, deadlines. The parts may be invalid."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any, TypeGuard, get_args

from pydantic import ValidationError

from adapter.config.faults import Fault, Path, nearest, one_of, unknown, value_text
from adapter.config.models import Config, Fleet, RuleMatch, Timing
from adapter.config.rule_layers import Layer, Layers, RuleEntry, RuleSources
from adapter.config.settings import RuleSettings, match_entry, relations, valid_settings
from adapter.config.sources import KINDS, READINGS, AnyReading, KafkaSource

_FLEETS = {  # kind of the source -> the settings that apply to it
    "prometheus": ("preset", "match", "signals", "workload_label", "namespace_label", "stage_label"),
    "kafka": ("groups", "transactional", "isolation_level"),
}
_DEADLINE_S = KafkaSource.model_fields["deadline_s"].default
_LONGEST_SHARE = 0.8  # of a tick, in the advice for a deadline
_READING_SETTINGS = {name for kind in get_args(get_args(AnyReading)[0]) for name in kind.model_fields}
_TIMING = Timing()
_NAMESPACE = Fleet.model_fields["namespace"].default

Given = Mapping[Any, Any]


def whole_faults(given: Given) -> list[Fault]:
    """All faults between parts of the file. The models report parts that are not mappings."""
    return [*_references(given), *_deadlines(given), *_duplicates(given), *_fleets(given), *_rules(given)]


def source_kinds(given: Given) -> dict[str, str | None]:
    """Name of each source -> its kind, None if the kind is invalid. Those below a misspelt `sources` count."""
    misspelt = _mapping(given, _misspelt(given, "sources", Config.model_fields) or "sources")
    found = {**_mapping(given, "sources"), **misspelt}
    return {name: _known_kind(source) for name, source in found.items() if isinstance(name, str)}


def _known_kind(source: object) -> str | None:
    kind = source.get("kind") if isinstance(source, Mapping) else None
    return kind if kind in KINDS else None


def _references(given: Given) -> Iterator[Fault]:
    kinds = source_kinds(given)
    for at, workload in _entries(given, "workloads"):
        for number, reading in _entries(workload, "read"):
            yield from _reference(reading, ("workloads", at, "read", number, "source"), kinds)
    for at, fleet in _entries(given, "fleets"):
        yield from _unknown(fleet.get("source"), ("fleets", at, "source"), kinds)
    for name, source in _mapping(given, "sources").items():
        if _known_kind(source) == "pravega":
            yield from _rates_source(source.get("prometheus"), ("sources", name, "prometheus"), kinds)


def _reference(reading: Given, path: Path, kinds: Mapping[str, str | None]) -> Iterator[Fault]:
    source = reading.get("source")
    if source is None:  # without a source there is no kind, and so no model to report it
        expected = f"expected one of {', '.join(kinds)}" if kinds else "the name of a source"
        missing = Fault(path, f"is required: {expected}")
        misspelt = _misspelt(reading, "source", _READING_SETTINGS)
        yield missing if misspelt is None else Fault((*path[:-1], misspelt), unknown(misspelt, _READING_SETTINGS))
    elif not isinstance(source, str):
        yield Fault(path, f"expected the name of a source, got {value_text(source)}")
    elif kinds.get(source) == "kubernetes":
        yield Fault(path, f"{source} is of kind kubernetes, which is read for every workload; remove this entry")
    elif other := _other_kind(reading, kinds.get(source)):
        text = f"{source} is of kind {kinds[source]}, and this entry has settings of kind {other}"
        yield Fault(path, text, explains_entry=True)
    yield from _unknown(source, path, kinds)


def _other_kind(reading: Given, kind: str | None) -> str | None:
    """The kind whose settings an entry has, if it has none of the kind of its source."""
    given = {name for name in reading if name != "source"}
    if kind not in READINGS or not given or given & READINGS[kind].model_fields.keys():
        return None
    return next((str(name) for name, model in READINGS.items() if given <= model.model_fields.keys()), None)


def _rates_source(source: object, path: Path, kinds: Mapping[str, str | None]) -> Iterator[Fault]:
    kind = kinds.get(source) if isinstance(source, str) else None
    usable = {name: kind for name, kind in kinds.items() if kind in (None, "prometheus")}
    if kind not in (None, "prometheus"):
        yield Fault(path, f"expected a source of kind prometheus, got {source} of kind {kind}")
    elif usable:
        yield from _unknown(source, path, usable)
    elif isinstance(source, str):
        yield Fault(path, "expected the name of a source of kind prometheus; add one to sources")


def _unknown(source: object, path: Path, kinds: Mapping[str, str | None]) -> Iterator[Fault]:
    """Without any source, the fault is that of `sources`, which the models report."""
    if isinstance(source, str) and kinds and source not in kinds:
        yield Fault(path, one_of(source, kinds))


def _deadlines(given: Given) -> Iterator[Fault]:
    tick_s = _tick_s(given)
    for name, source in _mapping(given, "sources").items():
        deadline_s = source.get("deadline_s", _DEADLINE_S) if isinstance(source, Mapping) else None
        if tick_s is not None and _is_number(deadline_s) and deadline_s >= tick_s:
            given_s = value_text(deadline_s) if "deadline_s" in source else f"{value_text(deadline_s)} (default)"
            text = f"expected less than timing.tick_s = {tick_s}, got {given_s}; a late source must not delay the tick"
            yield Fault(
                ("sources", name, "deadline_s"),
                f"{text}, so write at most {tick_s * _LONGEST_SHARE:g}, or raise the tick",
            )


def _duplicates(given: Given) -> Iterator[Fault]:
    first: dict[object, int] = {}
    for at, workload in _entries(given, "workloads"):
        name, namespace = workload.get("name"), workload.get("namespace", _NAMESPACE)
        if isinstance(name, str) and isinstance(namespace, str) and first.setdefault((namespace, name), at) != at:
            text = f"{namespace}/{name} is already the name of workloads[{first[namespace, name]}]; choose another"
            yield Fault(("workloads", at, "name"), text)
    for at, fleet in _entries(given, "fleets"):
        name = fleet.get("name")
        if isinstance(name, str) and first.setdefault(name, at) != at:
            yield Fault(("fleets", at, "name"), f"{name} is already the name of fleets[{first[name]}]; choose another")
        found = (fleet.get("source"), fleet.get("groups"), fleet.get("namespace", _NAMESPACE))
        if all(isinstance(each, str) for each in found) and first.setdefault(found, at) != at:
            text = f"fleets[{first[found]}] finds the same groups; change groups or namespace, or remove a fleet"
            yield Fault(("fleets", at, "groups"), text)


def _fleets(given: Given) -> Iterator[Fault]:
    kinds = source_kinds(given)
    for at, fleet in _entries(given, "fleets"):
        source = fleet.get("source")
        kind = kinds.get(source) if isinstance(source, str) else None
        if kind in _FLEETS:
            yield from _fleet(fleet, ("fleets", at), kind)
        elif kind is not None:
            text = f"expected a source of kind prometheus or kafka, got {source} of kind {kind}"
            yield Fault(("fleets", at, "source"), text)


def _fleet(fleet: Given, path: Path, kind: str) -> Iterator[Fault]:
    for other, names in _FLEETS.items():
        for name in names if other != kind else ():
            if fleet.get(name) is not None:
                text = f"is for sources of kind {other}, and {fleet['source']} is of kind {kind}; remove it"
                yield Fault((*path, name), text)
    if kind == "kafka" and _lacks(fleet, "groups"):
        yield Fault((*path, "groups"), "is required: a regular expression of consumer groups")
    if kind == "prometheus" and _lacks(fleet, "preset"):
        if _lacks(fleet, "signals"):
            yield Fault(path, "expected a preset or signals, got neither")
        elif _lacks(fleet, "workload_label"):
            yield Fault((*path, "workload_label"), "is required without a preset: the label that names the workload")


def _lacks(fleet: Given, name: str) -> bool:
    """Whether a fleet has no such setting. The models report one with a misspelt name."""
    return not fleet.get(name) and _misspelt(fleet, name, Fleet.model_fields) is None


def _misspelt(given: Given, name: str, names: Collection[str]) -> str | None:
    """The unknown name that was meant to be this setting, None without one."""
    return next((str(key) for key in given if key not in names and nearest(key, names) == name), None)


def _rules(given: Given) -> Iterator[Fault]:
    """Relations of the merged rules, each at the strongest rules that it comes from, and once for each of these."""
    tick_s, sources = _tick_s(given), _rule_sources(given)
    entries = (*sources.workloads, *sources.fleets)
    merged = chain([Layers((sources.shared,))], *(sources.layers(entry) for entry in entries))
    found = ((layers, *fault) for layers in merged for fault in relations(layers.merged(), tick_s))
    yield from dict.fromkeys(_relation(*each) for each in found)


def _relation(layers: Layers, names: tuple[str, ...], text: str) -> Fault:
    layer = layers.strongest(names)
    return Fault((*layer.path, next((name for name in names if name in layer.settings), names[0])), text)


def _rule_sources(given: Given) -> RuleSources:
    """All rules, None for those that are not valid on their own."""
    matches = []
    for at, entry in _entries(given, "rules_by_match"):
        with suppress(ValidationError):  # the models report it
            found = match_entry(at, RuleMatch.model_validate({**entry, "rules": {}}))
            matches.append(replace(found, own=Layer(found.own.path, _settings(entry.get("rules")))))
    return RuleSources(
        workloads=[_rule_entry(("workloads", at), entry) for at, entry in _entries(given, "workloads")],
        fleets=[_rule_entry(("fleets", at), entry) for at, entry in _entries(given, "fleets")],
        matches=matches,
        shared=Layer(("rules",), _settings(given.get("rules"))),
    )


def _rule_entry(path: Path, given: Given) -> RuleEntry:
    own = Layer((*path, "rules"), _settings(given.get("rules")))
    workload = f"{given.get('namespace', _NAMESPACE)}/{given.get('name')}" if path[0] == "workloads" else None
    return RuleEntry(own, _mapping(given, "labels"), workload)


def _settings(rules: object) -> dict[str, Any]:
    """The given settings; None for one with a fault, so that no other setting is compared with its default."""
    known = [name for name in rules if name in RuleSettings.model_fields] if isinstance(rules, Mapping) else []
    return {**dict.fromkeys(known), **valid_settings(rules)}


def _tick_s(given: Given) -> int | None:
    tick_s = _mapping(given, "timing").get("tick_s", _TIMING.tick_s)
    return tick_s if isinstance(tick_s, int) and not isinstance(tick_s, bool) and 1 <= tick_s <= 300 else None


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _mapping(given: Given, name: str) -> Given:
    part = given.get(name)
    return part if isinstance(part, Mapping) else {}


def _entries(given: Given, name: str) -> Iterator[tuple[int, Given]]:
    """The entries of a list that are mappings, each with its index."""
    part = given.get(name)
    if isinstance(part, list | tuple):
        yield from ((at, entry) for at, entry in enumerate(part) if isinstance(entry, Mapping))
