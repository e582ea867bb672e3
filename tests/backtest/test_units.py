"""Units of a backtest: their identities and groups."""

import random
from dataclasses import replace

import numpy as np
import pytest

from adapter.backtest.release import reached_files
from adapter.backtest.trace import Trace
from adapter.backtest.units import MAX_LANES, MIN_LANES, Grid, Unit, describe, groups, units
from adapter.simulator.profiles import PROFILES, STEP_S

NAMED = tuple(PROFILES[name] for name in ("consumer-group", "netflix"))
GRID = Grid(policies=("drain", "varga", "static"), profiles=NAMED, delays_s=(0.0, 120.0), seeds=(1, 2))
HOUR = Trace(name="hour", step_s=60.0, rate=np.arange(60.0))
WEEK = Trace(name="week", step_s=300.0, rate=np.arange(2016.0))
MADE = units(HOUR, GRID)


def first() -> Unit:
    return next(unit for unit in MADE if unit.policy == "drain")


def test_every_policy_runs_with_every_profile_delay_and_seed() -> None:
    assert len(MADE) == len(set(MADE)) == 3 * 2 * 2 * 2
    assert {(unit.profile.metric_delay_s, unit.seed) for unit in MADE} == {(0, 1), (0, 2), (120, 1), (120, 2)}


def test_without_a_delay_the_profile_keeps_its_own() -> None:
    own = Grid(policies=("drain",), profiles=(PROFILES["pause-30-60"],))
    assert [unit.profile.metric_delay_s for unit in units(HOUR, own)] == [45.0]


def test_a_unit_has_the_same_identity_in_every_run() -> None:
    assert [unit.id for unit in units(HOUR, GRID)] == [unit.id for unit in MADE]
    assert len({unit.id for unit in MADE}) == len(MADE)


@pytest.mark.parametrize(
    "change",
    [
        {"trace": "other"},
        {"digest": "0"},
        {"window": replace(first().window, lead_steps=1)},
        {"policy": "varga"},
        {"profile": replace(NAMED[0], pause_up_s=11.0)},
        {"seed": 7},
        {"normalised": True},
        {"records_series": True},
    ],
    ids=lambda change: next(iter(change)),
)
def test_different_units_have_different_identities(change: dict[str, object]) -> None:
    assert replace(first(), **change).id != first().id  # type: ignore[arg-type] - each value is of its field's type


def test_the_release_covers_the_code_of_the_numbers_and_not_of_the_report() -> None:
    reached = {path.name for path in reached_files("adapter.backtest.unit_simulation").values()}
    assert {"closed_loop.py", "fluid.py", "score.py", "drain.py", "profiles.py"} <= reached
    assert not {"table.py", "results.py", "job.py", "demo.py"} & reached
    assert {"bench.oracle", "adapter.simulator.profiles"} <= set(reached_files("bench.oracle_comparison"))


def test_policies_share_the_disturbances_of_a_window_and_windows_do_not() -> None:
    found = [unit for unit in units(WEEK, GRID) if unit.seed == 1]
    by_window = {window: {unit.random_seed for unit in found if unit.window.index == window} for window in (0, 1)}
    assert [len(chances) for chances in by_window.values()] == [1, 1]
    assert by_window[0] != by_window[1]


def test_every_unit_is_in_one_group_in_any_order() -> None:
    wanted = [*MADE, *units(WEEK, GRID)]
    made = groups(wanted)
    random.Random(1).shuffle(wanted)  # noqa: S311 - no secret
    assert groups(wanted) == made
    assert sorted(unit.id for group in made for unit in group) == sorted(unit.id for unit in wanted)


def test_lanes_of_a_group_are_equally_long_and_wide() -> None:
    small = replace(GRID, profiles=(PROFILES["consumer-group"], PROFILES["consumer-group-small"]))
    for group in groups([*units(HOUR, small), *units(WEEK, small)]):
        assert len({unit.window.steps for unit in group}) == 1
        assert len({(unit.profile.partitions, unit.profile.max_workers) for unit in group}) == 1


def test_a_report_needs_the_series_of_the_first_seed_alone() -> None:
    made = units(WEEK, replace(GRID, records_first_seed=True))
    assert {unit.seed for unit in made if unit.records_series} == {GRID.seeds[0]}
    for group in groups(made):
        assert len({unit.records_series for unit in group}) == 1
    many = replace(
        GRID, policies=tuple(f"drain:min_workers={number}" for number in range(200)), records_first_seed=True
    )
    assert max(len(group) for group in groups(units(HOUR, many)) if group[0].records_series) <= MIN_LANES


def test_units_of_another_function_have_their_own_groups() -> None:
    other = tuple(replace(unit, policy="oracle", function="bench.oracle_comparison:plan_units") for unit in MADE)
    for group in groups([*MADE, *other]):
        assert len({unit.function for unit in group}) == 1


def test_a_group_is_at_most_some_minutes_of_work() -> None:
    many = replace(GRID, seeds=tuple(range(500)))
    sizes = [len(group) for group in groups(units(HOUR, many))]
    assert max(sizes) <= MAX_LANES
    days = Trace(name="days", step_s=STEP_S, rate=np.ones(4 * 17_280))
    long = [group for group in groups(units(days, many)) if group[0].policy == "drain"]
    assert max(map(len, long)) < 1000


def test_the_description_of_a_group_lists_its_runs() -> None:
    assert describe(MADE[2:5]) == "3 runs (trace hour; policy drain, varga; profile consumer-group)"
    assert describe(MADE[:1]) == "1 run (trace hour; policy drain; profile consumer-group)"
