"""The parameters: each says what it means, and its default is one it would accept."""

from dataclasses import fields

import numpy as np
import pytest

from adapter.core.parameters import columns
from adapter.core.rules import RuleBook, Rules

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
    assert len(setting.metadata["meaning"]) > 20
    assert set(setting.metadata) <= {"meaning", "hidden", *BOUNDS}


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_a_default_lies_within_its_bounds(setting):
    for name in BOUNDS.keys() & setting.metadata.keys():
        assert setting.default is None or BOUNDS[name](setting.default, setting.metadata[name])


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_a_number_is_bounded_unless_it_is_hidden(setting):
    assert "hidden" in setting.metadata or BOUNDS.keys() & setting.metadata.keys()


SEEDS = {
    "S0-09 S3-09": ("time_to_reduce_backlog_s", 60),
    "S0-10 backlog time": ("up_backlog_time_s", 120),
    "S0-10 CPU": ("up_cpu_ratio", 0.9),
    "S0-11 CPU": ("down_cpu_ratio", 0.7),
    "S0-11 backlog time": ("short_backlog_time_s", 10),
    "S0-13": ("down_cpu_desired_ratio", 0.7),
    "S3-15": ("quanta", "relative"),
    "S3-22": ("down_cpu_limit_ratio", 0.9),
}


@pytest.mark.parametrize(("setting", "value"), SEEDS.values(), ids=SEEDS)
def test_the_defaults_are_those_of_the_sources(setting, value):
    assert getattr(Rules(), setting) == value


def test_each_workload_has_its_own_column_entry():
    book = RuleBook(by_workload={"n/a": Rules(min_workers=2)}, by_fleet=(Rules(min_workers=3, policy="beam-flink"),))
    found = columns(("n/a", "n/b", "n/c"), np.array([0, 0, np.nan]), book)
    assert found["min_workers"].tolist() == [2, 3, 1]
    assert found["policy"].tolist() == [0, 1, 0]
    assert np.isnan(found["max_step_up_workers"]).all()


def test_no_workload_has_no_columns_to_fill():
    assert {len(column) for column in columns((), np.array([]), RuleBook(by_workload={})).values()} == {0}
