"""Sentences about settings that are valid and probably are mistakes; each begins with its path."""

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import chain
from typing import Any

from adapter.config.faults import Fault, Path
from adapter.config.models import Config, ExcludedPeriod, Fleet, Workload
from adapter.config.patterns import glob_hint
from adapter.config.settings import rule_sources, times_of
from adapter.config.values import DAYS
from adapter.core.periods import EVENT_LEAD_S, Event, Period
from adapter.core.policies import POLICIES, policies_using, policy_of
from adapter.core.rules import UNTIL_MEASURED, Rules

_PUBLISHED = tuple(policy.name for policy in POLICIES if policy.published)  # `safety` concerns them alone
_LONG_EVENT = timedelta(days=31)  # of a sale or a match
_TARGET, _LONG_TARGET_S = "backlog_time_target_s", 10_000
# Price -> the warning if the other one is unset.
_PRICES = {
    "worker_hour_price": "changes no size without late_minute_price; set both, or use backtest --price for a report",
    "late_minute_price": "has one effect without worker_hour_price: drain leaves an unset backlog_time_target_s at "
    f"{UNTIL_MEASURED['backlog_time_target_s']:g} s; set both, or use backtest --late-price for a report",
}


def unused_parameters(config: Config) -> list[str]:
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


def lone_prices(config: Config) -> list[str]:
    """A sentence for each price that would change sizes if the other one were set wherever it applies."""
    paired: dict[Path, bool] = {}
    for path, merged in _applied(config):
        if path[-1] in _PRICES and merged[str(path[-1])] is not None and _weighs_prices(merged):
            paired[path] = paired.get(path, False) or all(merged.get(name) is not None for name in _PRICES)
    return [Fault(path, _PRICES[str(path[-1])]).sentence() for path, found in paired.items() if not found]


def _weighs_prices(merged: Mapping[str, Any]) -> bool:
    """Whether the policy of merged settings uses the prices. Other settings show them in reports alone."""
    return policy_of(merged.get("policy", Rules().policy)).waits_until_warm and merged.get("rescale_worth_s") is None


def _applied(config: Config) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The path of each parameter, with the merged settings of each workload or fleet to which it applies."""
    sources = rule_sources(config)
    for layers in chain.from_iterable(map(sources.layers, (*sources.workloads, *sources.fleets))):
        merged = layers.merged()
        yield from (((*layer.path, name), merged) for layer in layers.layers for name in layer.settings)


def unused_matches(config: Config) -> list[str]:
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


def globs(config: Config) -> list[str]:
    """A sentence for each regular expression that looks like a glob."""
    patterns = [(("fleets", at, "groups"), fleet.groups) for at, fleet in enumerate(config.fleets)]
    for at, entry in enumerate(config.rules_by_match):
        patterns += [
            (("rules_by_match", at, "namespace"), entry.namespace),
            (("rules_by_match", at, "name"), entry.name),
        ]
    return [Fault(path, hint).sentence() for path, pattern in patterns if pattern and (hint := glob_hint(pattern))]


def missing_namespaces(config: Config) -> list[str]:
    """A sentence for each workload without a namespace, if at least half of the workloads have one."""
    missing = [at for at, workload in enumerate(config.workloads) if "namespace" not in workload.model_fields_set]
    spaces = {workload.namespace for workload in config.workloads}
    if len(spaces) == 1 or 2 * len(missing) > len(config.workloads):
        return []
    text = "is default, because it is not written; write the namespace of its HPA, even if it is default"
    return [Fault(("workloads", at, "namespace"), text).sentence() for at in missing]


def unlikely_times(config: Config) -> list[str]:
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


def _is_endless(period: ExcludedPeriod) -> bool:
    return period.begin == period.to and len(set(period.days)) == len(DAYS)


def excluded_events(config: Config) -> list[str]:
    """A sentence for each event during which excluded periods hold the target of everything that it concerns."""
    found: dict[Path, bool] = {}
    parts: dict[str, tuple[Workload | Fleet, ...]] = {"workloads": config.workloads, "fleets": config.fleets}
    for part, at, one in ((part, at, one) for part, ones in parts.items() for at, one in enumerate(ones)):
        path, times = (() if one.expected is None else (part, at)), times_of(config, one)
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


def long_targets(config: Config) -> list[str]:
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


ON_HISTORY = (unused_parameters, unused_matches, long_targets, globs, missing_namespaces)
# A pause that has ended still holds in a history, and a report shows a lone price.
OF_FUTURE = (unlikely_times, excluded_events, lone_prices)
