"""The parameters: each has a meaning, and a default within its bounds."""

import re
from dataclasses import fields

import pytest

from adapter.core.periods import Period
from adapter.core.policies import POLICIES
from adapter.core.rule_book import MatchedRules, RuleBook
from adapter.core.rules import MEANINGS, ORDERED, Rules

SETTINGS = {setting.name: setting for setting in fields(Rules)}
BOUNDS = {
    "gt": lambda value, bound: value > bound,
    "ge": lambda value, bound: value >= bound,
    "lt": lambda value, bound: value < bound,
    "le": lambda value, bound: value <= bound,
    "one_of": lambda value, bound: value in bound,
}


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_a_setting_has_a_meaning_and_only_bounds_that_are_read(setting):
    assert len(MEANINGS.get(setting.name, setting.metadata["meaning"])) > 20
    assert set(setting.metadata) <= {"meaning", "hidden", "fixed", *BOUNDS}


@pytest.mark.parametrize(
    ("setting", "meaning"),
    [
        ("quanta", "dataflow: allowed worker counts; docs/policies.md explains them"),
        ("latch_s", "time for which a target is held until it is enacted or exceeded; unset, drain uses 900 s"),
        ("pause_budget_ratio", "share of a day for which scale-downs may stop the job; unset, drain uses 0.01"),
        (
            "cooldown_up_s",
            "no scale-up until this long after a change of the workers; `netflix` counts from the last scale-up; "
            "unset, drain waits until the new workers are warm and measured, varga uses 120 s, netflix uses 300 s",
        ),
        ("max_step_down_workers", "workers removed in one decision, at most"),
    ],
)
def test_a_meaning_names_the_policies_it_concerns_and_what_they_do_while_it_is_unset(setting, meaning):
    assert MEANINGS[setting] == meaning


def test_every_parameter_that_a_policy_names_is_a_setting():
    named = {name for policy in POLICIES for name in (*policy.parameters, *policy.defaults, *policy.unset)}
    assert named <= set(MEANINGS)


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_a_default_lies_within_its_bounds(setting):
    for name in BOUNDS.keys() & setting.metadata.keys():
        assert setting.default is None or BOUNDS[name](setting.default, setting.metadata[name])


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_a_number_is_bounded_unless_it_is_hidden(setting):
    assert setting.type is bool or "hidden" in setting.metadata or BOUNDS.keys() & setting.metadata.keys()


@pytest.mark.parametrize("name", [name for name in SETTINGS if re.search("(?<!_per)_s$", name)])
def test_a_time_has_an_upper_bound_of_at_most_a_day_unless_it_is_hidden(name):
    known = SETTINGS[name].metadata
    assert "hidden" in known or known["le"] <= 86_400


SEEDS = {
    "S0-09 S3-09": ("time_to_reduce_backlog_s", 60),
    "S0-10 backlog time": ("up_backlog_time_s", 120),
    "S0-10 CPU": ("up_cpu_ratio", 0.9),
    "S0-11 CPU": ("down_cpu_ratio", 0.7),
    "S0-11 backlog time": ("short_backlog_time_s", 10),
    "S0-13": ("down_cpu_desired_ratio", 0.7),
    "S3-15": ("quanta", "relative"),
    "S3-22": ("down_cpu_limit_ratio", 0.9),
    "S1-13": ("lag_threshold_records", 50_000),
    "S1-15": ("varga_utilization_ratio", 0.7),
    "S4-27": ("sized_utilization_ratio", 0.6),
}


@pytest.mark.parametrize(("setting", "value"), SEEDS.values(), ids=SEEDS)
def test_the_defaults_are_those_of_the_sources(setting, value):
    assert getattr(Rules(), setting) == value


@pytest.mark.parametrize(("lower", "upper", "otherwise"), ORDERED, ids=[f"{low} {up}" for low, up, _ in ORDERED])
def test_the_defaults_contradict_each_other_nowhere(lower, upper, otherwise):
    defaults = Rules()
    known = [getattr(defaults, name) for name in (lower, upper)]
    assert None in known or known[0] <= known[1]
    assert otherwise


def test_equal_rules_are_equal_objects():
    night = Period(days=(0,), begin_min=0, end_min=60)
    assert len({Rules(), Rules(), Rules(excluded=(night,)), Rules(excluded=(night,))}) == 2


def test_a_workload_has_its_own_rules_then_its_fleets_then_the_defaults():
    mine, fleets = Rules(min_workers=2), Rules(min_workers=3)
    book = RuleBook(by_workload={"n/a": mine}, by_fleet=(fleets,))
    assert [book.of("n/a", 0), book.of("n/b", 0), book.of("n/c", None)] == [mine, fleets, Rules()]


def test_the_first_match_replaces_the_rules_of_a_fleet():
    first, second = (
        MatchedRules("n/ab".startswith, Rules(min_workers=1)),
        MatchedRules("n/abc".__eq__, Rules(min_workers=2)),
    )
    book = RuleBook(by_workload={}, by_fleet=(Rules(min_workers=3),) * 2, by_match=((first, second), ()))
    assert [book.of(name, 0).min_workers for name in ("n/a", "n/abc", "n/b")] == [1, 2, 3]
    assert book.of("n/a", 1).min_workers == 3
    assert sorted(rules.min_workers for rules in book.every()) == [1, 2, 3, 3]
