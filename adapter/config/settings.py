"""The rules in the file: a model of core's parameters, their relations, and the rule book."""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import pydantic
from pydantic import PlainValidator, ValidationError

from adapter.config.faults import Fault, Path, value_text
from adapter.config.model import Model, setting
from adapter.config.patterns import WorkloadMatch, glob_hint
from adapter.config.rule_layers import Layer, Layers, MatchEntry, RuleEntry, RuleSources
from adapter.config.values import DAYS
from adapter.core.periods import EVENT_LEAD_S, Event, Period
from adapter.core.policies import POLICIES, policies_using, policy_of
from adapter.core.rule_book import MatchedRules, RuleBook
from adapter.core.rules import MEANINGS, ORDERED, UNTIL_MEASURED, Rules, contradiction

if TYPE_CHECKING:
    from adapter.config.models import Config, ExcludedPeriod, ExpectedEvent, Fleet, Pause, RuleMatch, Workload

# Setting, least and largest number of ticks. The growth is measured between all pairs of points of a rate window.
TICKS = (("rate_window_s", 2, 120), ("stale_after_s", 1, math.inf), ("error_after_s", 2, math.inf))
_PUBLISHED = tuple(policy.name for policy in POLICIES if policy.published)  # `safety` concerns them alone
_LONG_EVENT = timedelta(days=31)  # of a sale or a match
_TARGET, _LONG_TARGET_S = "backlog_time_target_s", 10_000
# Price -> the warning if the other one is unset.
_PRICES = {
    "worker_hour_price": "changes no size without late_minute_price; set both, or use backtest --price for a report",
    "late_minute_price": "has one effect without worker_hour_price: drain leaves an unset backlog_time_target_s at "
    f"{UNTIL_MEASURED['backlog_time_target_s']:g} s; set both, or use backtest --late-price for a report",
}

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


def unused_parameters(config: "Config") -> list[str]:
    """The parameters that change no size with the policies of the workloads and fleets to which they apply."""
    policies: dict[Path, dict[str, None]] = {}  # path of a parameter -> the policies where it applies
    for path, merged in _applied(config):
        policies.setdefault(path, {})[merged.get("policy", Rules().policy)] = None
    return [fault.sentence() for path, here in policies.items() for fault in _unused(path, here)]


def _unused(path: Path, policies: Collection[str]) -> Iterator[Fault]:
    users = _PUBLISHED if path[-1] == "safety" else policies_using(str(path[-1]))
    if users and set(users).isdisjoint(policies):
        fix = "remove it unless an annotation of its HPA selects the other"
        scope = f"changes sizes only with {' or '.join(users)}"
        yield Fault(path, f"{scope}; the policy here is {' or '.join(policies)}; {fix}")


def lone_prices(config: "Config") -> list[str]:
    """A sentence for each price that would change sizes if the other one were set wherever it applies."""
    paired: dict[Path, bool] = {}
    for path, merged in _applied(config):
        if path[-1] in _PRICES and merged[str(path[-1])] is not None and _weighs_prices(merged):
            paired[path] = paired.get(path, False) or all(merged.get(name) is not None for name in _PRICES)
    return [Fault(path, _PRICES[str(path[-1])]).sentence() for path, found in paired.items() if not found]


def _weighs_prices(merged: Mapping[str, Any]) -> bool:
    """Whether the policy of merged settings uses the prices. Other settings show them in reports alone."""
    return policy_of(merged.get("policy", Rules().policy)).waits_until_warm and merged.get("rescale_worth_s") is None


def _applied(config: "Config") -> Iterator[tuple[Path, dict[str, Any]]]:
    """The path of each parameter, with the merged settings of each workload or fleet to which it applies."""
    sources = rule_sources(config)
    for layers in chain.from_iterable(map(sources.layers, (*sources.workloads, *sources.fleets))):
        merged = layers.merged()
        yield from (((*layer.path, name), merged) for layer in layers.layers for name in layer.settings)


def unused_matches(config: "Config") -> list[str]:
    """A sentence for each entry of `rules_by_match` that never applies. The workloads of a fleet are unknown."""
    sources = rule_sources(config)
    entries = (*sources.workloads, *sources.fleets)
    used = {layer.path for entry in entries for layers in sources.layers(entry) for layer in layers.layers}
    unused = [each for each in sources.matches if entries and each.own.path not in used]
    causes = {
        False: "matches no workload or fleet, so it has no effect; correct its namespace, name or labels, or remove it",
        True: "has no effect, because earlier entries match all its workloads; move it before them, or remove it",
    }
    return [Fault(each.own.path[:-1], causes[any(map(each.may_match, entries))]).sentence() for each in unused]


def globs(config: "Config") -> list[str]:
    """A sentence for each regular expression that looks like a glob."""
    patterns = [(("fleets", at, "groups"), fleet.groups) for at, fleet in enumerate(config.fleets)]
    for at, entry in enumerate(config.rules_by_match):
        patterns += [
            (("rules_by_match", at, "namespace"), entry.namespace),
            (("rules_by_match", at, "name"), entry.name),
        ]
    return [Fault(path, hint).sentence() for path, pattern in patterns if pattern and (hint := glob_hint(pattern))]


def missing_namespaces(config: "Config") -> list[str]:
    """A sentence for each workload without a namespace, if at least half of the workloads have one."""
    missing = [at for at, workload in enumerate(config.workloads) if "namespace" not in workload.model_fields_set]
    spaces = {workload.namespace for workload in config.workloads}
    if len(spaces) == 1 or 2 * len(missing) > len(config.workloads):
        return []
    text = "is default, because it is not written; write the namespace of its HPA, even if it is default"
    return [Fault(("workloads", at, "namespace"), text).sentence() for at in missing]


def unlikely_times(config: "Config") -> list[str]:
    """A sentence for each pause that has ended, event that has ended, is far away or long, and endless period."""
    entries: list[tuple[Path, Config | Workload | Fleet]] = [
        ((), config),
        *((("workloads", at), workload) for at, workload in enumerate(config.workloads)),
        *((("fleets", at), fleet) for at, fleet in enumerate(config.fleets)),
    ]
    no_pause = "scaling is not paused; remove the pause, or set a later end"
    no_event = "the event has no effect; remove it, or correct its times"
    pauses = (((*path, "pause", "until"), one.pause.until, no_pause) for path, one in entries if one.pause)
    events = [((*path, "expected", at), event) for path, one in entries for at, event in enumerate(one.expected or ())]
    now, ends = datetime.now(UTC), chain(pauses, (((*path, "to"), event.to, no_event) for path, event in events))
    found = [Fault(path, f"is in the past, so {text}") for path, end, text in ends if end is not None and end <= now]
    far = (path for path, event in events if event.begin > now + timedelta(days=366))
    found += [Fault((*path, "from"), "is more than a year away; check the year") for path in far]
    long = ((path, event.to - event.begin) for path, event in events if event.to - event.begin > _LONG_EVENT)
    no_down = "in which nothing scales down; check the years"
    found += [Fault((*path, "to"), f"the event lasts {span.days} days, {no_down}") for path, span in long]
    always = "holds the target at all times; correct from, to or days, or use pause"
    periods = ((path, at, each) for path, one in entries for at, each in enumerate(one.excluded_periods or ()))
    found += [Fault((*path, "excluded_periods", at), always) for path, at, each in periods if _is_endless(each)]
    return [fault.sentence() for fault in found]


def _is_endless(period: "ExcludedPeriod") -> bool:
    return period.begin == period.to and len(set(period.days)) == len(DAYS)


def excluded_events(config: "Config") -> list[str]:
    """A sentence for each event during which excluded periods hold the target of everything that it concerns."""
    found: dict[Path, bool] = {}
    parts: dict[str, tuple[Workload | Fleet, ...]] = {"workloads": config.workloads, "fleets": config.fleets}
    for part, at, one in ((part, at, one) for part, ones in parts.items() for at, one in enumerate(ones)):
        path, times = (() if one.expected is None else (part, at)), _times(config, one)
        for number, event in enumerate(times["expected"]):
            place = (*path, "expected", number)
            found[place] = found.get(place, True) and _is_excluded(event, times["excluded"])
    text = "has no effect, because excluded periods hold the target until it ends; change its times or the periods"
    return [Fault(path, text).sentence() for path, is_excluded in found.items() if is_excluded]


@lru_cache
def _is_excluded(event: Event, periods: tuple[Period, ...]) -> bool:
    """Whether periods hold the target from the scale-up for an event to its end. A long event has its own warning."""
    if event.end_s - event.begin_s > _LONG_EVENT.total_seconds():
        return False
    minutes = range(int(event.begin_s - EVENT_LEAD_S), int(event.end_s), 60)
    return all(any(period.holds(at_s) for period in periods) for at_s in minutes)


def long_targets(config: "Config") -> list[str]:
    """A sentence for each target that may be in milliseconds: it takes hours, but no whole number of them."""
    sources = rule_sources(config)
    entries = (*sources.workloads, *sources.fleets)
    layers = (sources.shared, *(each.own for each in entries), *(each.own for each in sources.matches))
    targets = {(*layer.path, _TARGET): layer.settings.get(_TARGET) or 0 for layer in layers}
    return [
        Fault(path, f"is {target_s / 3600:.1f} h; if {target_s:g} is in ms, write {target_s / 1000:g}").sentence()
        for path, target_s in targets.items()
        if target_s >= _LONG_TARGET_S and target_s % 3600
    ]


def rule_book(config: "Config") -> RuleBook:
    """The rules of each workload and fleet, and of the matches of each fleet."""
    same: dict[Rules, Rules] = {}  # equal rules are one object, which core expands once
    sources = rule_sources(config)

    def of(one: "Workload | Fleet", layers: Layers) -> Rules:
        rules = Rules(**layers.merged(), **_times(config, one))
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


def _times(config: "Config", one: "Workload | Fleet") -> dict[str, Any]:
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
