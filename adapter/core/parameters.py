"""A rule book and its overrides -> one array a parameter, so that rules apply to all workloads at once."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import get_type_hints

import numpy as np

from adapter.core.periods import EVENT_LEAD_S
from adapter.core.policies import POLICIES
from adapter.core.rates import Mask
from adapter.core.rule_book import RuleBook
from adapter.core.rule_columns import RuleColumns
from adapter.core.rules import ORDERED, UNTIL_MEASURED, Rules, contradiction
from adapter.core.samples import Array, IntArray, first_known
from adapter.core.scale_down_cost import wait_share

_SETTINGS = {setting.name: setting.metadata for setting in fields(Rules)}
_NAMES = tuple(name for name in _SETTINGS if name not in ("excluded", "expected"))
CHOICES = {name: known["one_of"] for name, known in _SETTINGS.items() if "one_of" in known}  # parameter -> its words
_WHOLE = frozenset(name for name, kind in get_type_hints(Rules).items() if kind in (int, int | None))
_SWITCHES = frozenset(name for name, kind in get_type_hints(Rules).items() if kind is bool)
_BY_POLICY = {
    name: np.array([policy.defaults.get(name, np.nan) for policy in POLICIES])
    for name in sorted({name for policy in POLICIES for name in policy.defaults})
} | {name: np.full(len(POLICIES), value) for name, value in UNTIL_MEASURED.items()}
_WAITS = ("down_window_s", "cooldown_down_s")  # that a cheap rescale shortens
_PUBLISHED = np.array([policy.published for policy in POLICIES])
_MEASURING = np.array([policy.waits_until_warm for policy in POLICIES])
_COMPARED = {"gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal}
_BOUNDS = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}
_IGNORED = "all rules in its HPA's annotations are ignored"


def columns(
    workloads: tuple[str, ...], fleet: Array, book: RuleBook, at_s: float, overrides: Mapping[str, Array]
) -> tuple[RuleColumns, Mapping[str, str]]:
    """The parameters of every workload, and a complaint for each workload whose overrides are ignored.

    If one override of a workload is out of bounds or contradicts another parameter (ORDERED), all its overrides are
    ignored. A complaint is a sentence.
    fleet: (workloads,) the index of the fleet that discovered each, NaN for a configured one.
    overrides: parameter -> (workloads,) the value that replaces the book's, otherwise NaN.
    """
    distinct, which = _distinct_rules(workloads, fleet.tobytes(), _ById(book))
    table = np.array([_values(rules) for rules in distinct], dtype=np.float64)
    spread = table.reshape(len(distinct), len(_NAMES)).T[:, which]
    merged, wrong = _apply_overrides(dict(zip(_NAMES, spread, strict=True)), overrides)
    complaints = {workloads[row]: f"{_IGNORED}: {'; '.join(faults)}" for row, faults in wrong.items()}
    excluded = np.array([any(period.holds(at_s) for period in rules.excluded) for rules in distinct], dtype=np.float64)
    none = np.zeros(len(which))
    calendar = {"excluded": excluded[which], "expected_times": np.ones(len(which)), "expecting": none}
    return RuleColumns(**{**merged, **_by_policy(merged), **calendar, "between_commits_s": none}), complaints


def with_events(
    rules: RuleColumns, workloads: tuple[str, ...], fleet: Array, book: RuleBook, at_s: float
) -> RuleColumns:
    """The rules with the events of `expected` that begin soon or last.

    rules: with overrides and measured costs, because the workers for an event have to be warm when it begins.
    """
    distinct, which = _distinct_rules(workloads, fleet.tobytes(), _ById(book))
    lead_s = np.maximum(EVENT_LEAD_S, rules.worker_start_s + rules.rescale_pause_s + rules.warm_up_s)
    rates_end_s = rules.rate_window_s + rules.metric_delay_s  # the rates contain an event for this time after it
    coming, lasting, expecting = rules.expected_times, np.ones(len(which)), rules.expecting
    for number, event in ((number, event) for number, each in enumerate(distinct) for event in each.expected):
        near = (which == number) & (event.begin_s - lead_s <= at_s) & (at_s < event.end_s + rates_end_s)
        multiple = np.where(near, event.times, 1.0)
        if at_s < event.begin_s:
            coming = np.maximum(coming, multiple)
        else:
            lasting = np.maximum(lasting, multiple)
        expecting = np.where(near & (at_s < event.end_s), 1.0, expecting)
    # The present input contains the multiple of an event that lasts.
    return replace(rules, expected_times=np.maximum(coming / lasting, 1.0), expecting=expecting)


def allowed(parameter: str, values: Array) -> Mask:
    """Where a parameter may have these values: within its bounds, whole if it counts, the index of a choice."""
    known = _SETTINGS[parameter]
    if parameter in _SWITCHES:
        return np.isin(values, (0, 1))
    if parameter in CHOICES:
        return np.isin(values, np.arange(len(CHOICES[parameter])))
    fits: Mask = np.isfinite(values)
    for name, compare in _COMPARED.items():
        if name in known:
            fits &= compare(values, known[name])
    return fits & (values == np.floor(values)) if is_whole(parameter) else fits


def allowed_values(parameter: str) -> str:
    """The values a parameter may have, in words."""
    known = _SETTINGS[parameter]
    if parameter in _SWITCHES:
        return "0 or 1"
    if parameter in CHOICES:
        return f"one of {', '.join(CHOICES[parameter])}"
    bounds = [f"{words} {known[name]:g}" for name, words in _BOUNDS.items() if name in known]
    return " ".join(["a whole number" if is_whole(parameter) else "a number", " and ".join(bounds)]).strip()


def is_whole(parameter: str) -> bool:
    """Whether a parameter counts something."""
    return parameter in _WHOLE


def number_of(parameter: str, value: str | float | None) -> float:
    """A parameter's value as a number. Raises ValueError for an unknown choice."""
    if value is None:
        return np.nan
    return float(CHOICES[parameter].index(value)) if parameter in CHOICES else float(value)


@dataclass(frozen=True, slots=True, eq=False)
class _ById:
    """A rule book as a cache key by identity, because comparing two books takes longer than a new lookup."""

    book: RuleBook

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and self.book is other.book

    def __hash__(self) -> int:
        return id(self.book)


@lru_cache(maxsize=64)
def _distinct_rules(workloads: tuple[str, ...], fleet: bytes, by_id: _ById) -> tuple[list[Rules], IntArray]:
    """The distinct rules, and for each workload the index of its own among them."""
    fleets = [None if number != number else int(number) for number in np.frombuffer(fleet).tolist()]
    used = [by_id.book.of(name, number) for name, number in zip(workloads, fleets, strict=True)]
    distinct = {id(rules): rules for rules in used}
    place = {key: number for number, key in enumerate(distinct)}
    return list(distinct.values()), np.array([place[id(rules)] for rules in used], dtype=np.int64)


@lru_cache(maxsize=4096)
def _values(rules: Rules) -> tuple[float, ...]:
    return tuple(number_of(name, getattr(rules, name)) for name in _NAMES)


def _by_policy(values: Mapping[str, Array]) -> dict[str, Array]:
    """The parameters that depend on each workload's policy: defaults of unset ones, safety, and what it measures.

    An index that is no policy counts as the nearest one.
    """
    policy = np.clip(values["policy"], 0, len(POLICIES) - 1).astype(np.int64)
    waits = np.where(_MEASURING[policy], wait_share(values["rescale_worth_s"]), 1.0)
    own = {
        name: first_known(values[name], default[policy] * (waits if name in _WAITS else 1.0))
        for name, default in _BY_POLICY.items()
    }
    return {
        **own,
        "safety": np.where(_PUBLISHED[policy], values["safety"], 1.0),
        # A price of late minutes is one of minutes over a fixed target.
        "measures_target": (
            _MEASURING[policy] & np.isnan(values["backlog_time_target_s"]) & np.isnan(values["late_minute_price"])
        ).astype(np.float64),
        "measures_warm_up": (_MEASURING[policy] & np.isnan(values["warm_up_s"])).astype(np.float64),
        "measures_start": (_MEASURING[policy] & np.isnan(values["worker_start_s"])).astype(np.float64),
        "measures_delay": (_MEASURING[policy] & np.isnan(values["metric_delay_s"])).astype(np.float64),
    }


def _apply_overrides(
    values: Mapping[str, Array], overrides: Mapping[str, Array]
) -> tuple[Mapping[str, Array], Mapping[int, list[str]]]:
    """The values with their overrides, and the faults of each row whose overrides are ignored."""
    given = {name: mask for name, column in overrides.items() if (mask := np.isfinite(column)).any()}
    merged = {**values, **{name: np.where(mask, overrides[name], values[name]) for name, mask in given.items()}}
    wrong: dict[int, list[str]] = defaultdict(list)
    for row, fault in (*_out_of_bounds(merged, given), *_contradictions(merged, given)):
        wrong[row].append(fault)
    for name in given if wrong else ():
        merged[name][list(wrong)] = values[name][list(wrong)]
    return merged, wrong


def _out_of_bounds(merged: Mapping[str, Array], given: Mapping[str, Mask]) -> Iterator[tuple[int, str]]:
    for name, mask in given.items():
        for row in np.flatnonzero(mask & ~allowed(name, merged[name])).tolist():
            yield row, f"expected {name} to be {allowed_values(name)}, got {merged[name][row]:.15g}"


def _contradictions(merged: Mapping[str, Array], given: Mapping[str, Mask]) -> Iterator[tuple[int, str]]:
    used = {**merged, **_by_policy(merged)} if given else {}
    for order in ORDERED:
        lower, upper, _ = order
        causes = (lower, upper, *(["policy"] if {lower, upper} & _BY_POLICY.keys() else []))
        masks = [given[name] for name in causes if name in given]
        if masks:
            rows = np.logical_or.reduce(masks) & (used[lower] > used[upper])
            for row in np.flatnonzero(rows).tolist():
                by_name = {name: _origin(merged[name][row], given.get(name), row) for name in (lower, upper)}
                shown = [f"{name} = {used[name][row]:.15g}{by}" for name, by in by_name.items()]
                yield row, contradiction(order, *shown)


def _origin(configured: float, given: Mask | None, row: int) -> str:
    """Where a value comes from; "" for the configuration."""
    if given is not None and given[row]:
        return " (annotation)"
    return " (default)" if np.isnan(configured) else ""
