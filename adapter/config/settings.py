"""The rules in the file: a model of core's parameters, their relations, and the rule book."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Annotated, Any

import pydantic
from pydantic import PlainValidator, ValidationError

from adapter.config.faults import value_text
from adapter.config.model import Model, setting
from adapter.config.patterns import WorkloadMatch
from adapter.config.rule_layers import Layer, Layers, MatchEntry, RuleEntry, RuleSources
from adapter.config.values import DAYS
from adapter.core.periods import Event, Period
from adapter.core.policies import policy_of
from adapter.core.rule_book import MatchedRules, RuleBook
from adapter.core.rules import MEANINGS, ORDERED, Rules, contradiction

if TYPE_CHECKING:
    from adapter.config.models import Config, ExcludedPeriod, ExpectedEvent, Fleet, Pause, RuleMatch, Workload

# Setting, least and largest number of ticks. The growth is measured between all pairs of points of a rate window.
TICKS = (("rate_window_s", 2, 120), ("stale_after_s", 1, math.inf), ("error_after_s", 2, math.inf))

_SETTINGS: dict[str, Any] = {
    parameter.name: setting(parameter, MEANINGS[parameter.name])
    for parameter in fields(Rules)
    if parameter.name in MEANINGS
}
RuleSettings = pydantic.create_model("RuleSettings", __base__=Model, __doc__="How workloads are sized.", **_SETTINGS)


def _overrides(given: Any) -> dict[str, Any]:
    """Only the settings in the file, without the defaults of core, so that they can be merged later."""
    return RuleSettings.model_validate(given).model_dump(exclude_unset=True)


RuleOverrides = Annotated[dict[str, Any], PlainValidator(_overrides, json_schema_input_type=RuleSettings)]


def valid_settings(given: object) -> dict[str, Any]:
    """The settings of a `rules` mapping that are valid on their own."""
    if not isinstance(given, Mapping):
        return {}
    try:
        return _overrides(given)
    except ValidationError as error:
        faulty = {detail["loc"][:1] for detail in error.errors()}
        return _overrides({key: value for key, value in given.items() if (key,) not in faulty and isinstance(key, str)})


def relations(merged: Mapping[str, Any], tick_s: int | None) -> Iterator[tuple[tuple[str, ...], str]]:
    """Contradictions in merged settings: the names of the settings and the message.

    merged: the settings without core's defaults. Settings that are None, and a tick_s that is None, are not compared.
    The defaults of a policy count where the settings name it: a later layer may choose another one.
    """
    defaults = policy_of(merged["policy"]).defaults if merged.get("policy") else {}
    rules: dict[str, Any] = {**asdict(Rules()), **defaults, **merged}
    for order in ORDERED:
        lower, upper, _ = order
        if None not in (rules[lower], rules[upper]) and rules[lower] > rules[upper]:
            text = contradiction(order, _shown_setting(lower, merged, rules), _shown_setting(upper, merged, rules))
            yield (lower, upper), text
    for name, least, most in TICKS:
        if tick_s is not None and rules[name] is not None and not least * tick_s <= rules[name] <= most * tick_s:
            limit = f">= {_ticks(least)}" if rules[name] < least * tick_s else f"<= {_ticks(most)}"
            shown = _shown_setting(name, merged, rules)
            yield (name,), f"expected {name} {limit}, got {shown} and timing.tick_s = {tick_s}"


def _ticks(count: float) -> str:
    return "timing.tick_s" if count == 1 else f"{count} * timing.tick_s"


def _shown_setting(name: str, merged: Mapping[str, Any], rules: Mapping[str, Any]) -> str:
    return f"{name} = {value_text(rules[name])}{'' if name in merged else ' (default)'}"


def rule_sources(config: "Config") -> RuleSources:
    """All `rules` of a file."""
    return RuleSources(
        workloads=[
            RuleEntry(Layer(("workloads", at, "rules"), one.rules), one.labels, one.id)
            for at, one in enumerate(config.workloads)
        ],
        fleets=[
            RuleEntry(Layer(("fleets", at, "rules"), one.rules), one.labels) for at, one in enumerate(config.fleets)
        ],
        matches=[match_entry(at, one) for at, one in enumerate(config.rules_by_match)],
        shared=Layer(("rules",), config.rules),
    )


def match_entry(at: int, one: "RuleMatch") -> MatchEntry:
    """An entry of `rules_by_match`. at: its index."""
    match = WorkloadMatch(one.namespace, one.name)
    return MatchEntry(Layer(("rules_by_match", at, "rules"), one.rules), one.labels, match)


def rule_book(config: "Config") -> RuleBook:
    """The rules of each workload and fleet, and of the matches of each fleet."""
    same: dict[Rules, Rules] = {}  # equal rules are one object, which core expands once
    sources = rule_sources(config)

    def of(one: "Workload | Fleet", layers: Layers) -> Rules:
        rules = Rules(**layers.merged(), **times_of(config, one))
        return same.setdefault(rules, rules)

    workloads = zip(config.workloads, sources.workloads, strict=True)
    fleets = [
        [(layers.match, of(fleet, layers)) for layers in sources.layers(entry)]
        for fleet, entry in zip(config.fleets, sources.fleets, strict=True)
    ]
    return RuleBook(
        by_workload={one.id: of(one, sources.layers(entry)[0]) for one, entry in workloads},
        by_fleet=tuple(fleet[-1][1] for fleet in fleets),
        by_match=tuple(tuple(MatchedRules(match, rules) for match, rules in fleet if match) for fleet in fleets),
    )


def times_of(config: "Config", one: "Workload | Fleet") -> dict[str, Any]:
    """The parameters of a workload or a fleet that have times: its pause, failover, excluded periods and events."""
    periods = config.excluded_periods if one.excluded_periods is None else one.excluded_periods
    events = config.expected if one.expected is None else one.expected
    return {
        **_pauses(one.pause or config.pause),
        "failover": config.failover if one.failover is None else one.failover,
        "excluded": tuple(_period(period) for period in periods),
        "expected": tuple(_event(event) for event in events),
    }


def _pauses(pause: "Pause | None") -> dict[str, float]:
    if pause is None:
        return {}
    until_s = math.inf if pause.until is None else pause.until.timestamp()
    directions = ("up", "down") if pause.direction == "both" else (pause.direction,)
    return {f"pause_{direction}_until_s": until_s for direction in directions}


def _period(period: "ExcludedPeriod") -> Period:
    days = tuple(sorted({DAYS.index(day) for day in period.days}))
    return Period(days=days, begin_min=period.begin, end_min=period.to, zone=period.zone)


def _event(event: "ExpectedEvent") -> Event:
    return Event(begin_s=event.begin.timestamp(), end_s=event.to.timestamp(), times=event.times)
