"""Each bound alone, the order of the bounds, and laws of all bounds."""

from dataclasses import fields, replace
from math import inf, isnan, nan

import numpy as np
import pytest
from builders import column, rule_columns
from hypothesis import given
from hypothesis import strategies as st
from policy_inputs import joined, workload_facts

from adapter.core.bounds import BOUNDS, Bound
from adapter.core.clamps import BoundInputs, apply_bounds, table
from adapter.core.limits import limits, pauses

TARGETS = ("minute_workers", "pending_workers")  # of earlier ticks
LIMITS = ("helpful_workers", "hot_workers", "window_workers", *TARGETS)
MASKS = tuple(f.name for f in fields(BoundInputs) if f.name not in LIMITS)


def bound_inputs(*active, **workers):
    masks = {name: np.array([name in active]) for name in MASKS}
    return BoundInputs(**masks, **{name: column(workers.get(name, nan)) for name in LIMITS})


def after_bounds(wanted, current=10, active=(), facts=None, workers=None, **rules):
    columns = rule_columns(1, **rules)
    active = (active,) if isinstance(active, str) else active
    inputs = bound_inputs(*active, **(workers or {}))
    size, bound = apply_bounds(
        column(wanted),
        column(current),
        columns,
        limits(
            columns,
            workload_facts(**facts or {}),
            column((workers or {}).get("relayed", nan)),
            column(current),
            column(nan),
        ),
        inputs,
    )
    return size[0], BOUNDS[bound[0]]


FED = {"facts": {"partitions": 12}}

# wanted, changes -> size, bound
RANGES = {
    "nothing cuts": (20, {}, 20, Bound.NONE),
    "S4-29 maximum of the rules": (20, {"max_workers": 15}, 15, Bound.MAX),
    "S4-29 maximum of the HPA": (20, {"facts": {"max_workers": 15}}, 15, Bound.MAX),
    "the smaller maximum": (20, {"max_workers": 12, "facts": {"max_workers": 15}}, 12, Bound.MAX),
    "a larger maximum of the HPA": (500, {"facts": {"max_workers": 600}}, 500, Bound.NONE),
    "no known maximum": (500, {}, 100, Bound.MAX),
    "a minimum above the maximum of an unknown one": (500, {"min_workers": 200}, 200, Bound.MAX),
    "no known maximum of a larger job": (600, {"current": 500}, 500, Bound.MAX),
    "a larger job without a known maximum scales down": (450, {"current": 500}, 450, Bound.NONE),
    "no known maximum and no known size": (500, {"current": nan}, 100, Bound.MAX),
    "a maximum of 0 is not known yet": (20, {"facts": {"max_workers": 0}}, 20, Bound.NONE),
    "S0-16 S4-29 partitions": (20, {"facts": {"partitions": 12}}, 12, Bound.PARTITIONS),
    "S4-36 partitions of workers with slots": (
        20,
        {"facts": {"partitions": 25}, "slots_per_worker": 2},
        13,
        Bound.PARTITIONS,
    ),
    "later stages that need no more than the partitions feed": (
        20,
        FED | {"workers": {"relayed": 12}},
        12,
        Bound.PARTITIONS,
    ),
    "later stages that need more": (20, FED | {"workers": {"relayed": 13}}, 13, Bound.PARTITIONS),
    "later stages that need more than the policy wants": (20, FED | {"workers": {"relayed": 30}}, 20, Bound.NONE),
    "later stages that need more than the maximum": (
        99,
        FED | {"workers": {"relayed": 31}, "max_workers": 30},
        30,
        Bound.MAX,
    ),
    "later stages with fewer partitions than workers": (
        20,
        FED | {"workers": {"relayed": 0}, "current": 16},
        16,
        Bound.PARTITIONS,
    ),
    "a job without later stages with fewer partitions than workers": (20, FED | {"current": 16}, 12, Bound.PARTITIONS),
    "later stages without known partitions": (20, {"workers": {"relayed": 3}}, 20, Bound.NONE),
    "partitions above the maximum": (20, {"max_workers": 15, "facts": {"partitions": 64}}, 15, Bound.MAX),
    "partitions equal to the maximum": (20, {"max_workers": 15, "facts": {"partitions": 15}}, 15, Bound.PARTITIONS),
    "partitions 0 are not known yet": (20, {"facts": {"partitions": 0}}, 20, Bound.NONE),
    "S4-29 minimum of the rules": (1, {"min_workers": 3}, 3, Bound.MIN),
    "S4-29 minimum of the HPA": (1, {"facts": {"min_workers": 4}}, 4, Bound.MIN),
    "the larger minimum": (1, {"min_workers": 5, "facts": {"min_workers": 4}}, 5, Bound.MIN),
    "the maximum wins over the minimum": (1, {"min_workers": 5, "facts": {"max_workers": 2}}, 2, Bound.MIN),
    "min above max from the HPA": (9, {"facts": {"min_workers": 8, "max_workers": 4}}, 4, Bound.MAX),
    "a minimum of 0 allows 0": (0, {"min_workers": 0}, 0, Bound.NONE),
    "S4-35 memory for 60 partitions, 8 a worker": (
        2,
        {"facts": {"partitions": 60}, "max_partitions_per_worker": 8},
        8,
        Bound.MEMORY,
    ),
    "S4-35 memory for partitions that are unknown": (2, {"max_partitions_per_worker": 8}, 2, Bound.NONE),
    "S4-35 the minimum exceeds the memory": (
        2,
        {"facts": {"partitions": 60}, "max_partitions_per_worker": 8, "min_workers": 9},
        9,
        Bound.MIN,
    ),
    "S4-35 the maximum wins over memory": (
        9,
        {"facts": {"partitions": 60}, "max_partitions_per_worker": 8, "max_workers": 5},
        5,
        Bound.MAX,
    ),
    "current above the maximum": (200, {"current": 200, "max_workers": 100}, 100, Bound.MAX),
}
BRAKES = {
    "S1-18 a down to the largest of the window": (5, {"workers": {"window_workers": 8}}, 8, Bound.WINDOW),
    "a window above the current size": (5, {"workers": {"window_workers": 14}}, 10, Bound.WINDOW),
    "sizes of the window are whole": (5, {"workers": {"window_workers": 7.2}}, 8, Bound.WINDOW),
    "a window below what is wanted": (8, {"workers": {"window_workers": 6}}, 8, Bound.NONE),
    "the window allows a scale-up": (12, {"workers": {"window_workers": 20}}, 12, Bound.NONE),
    "a pending up stands": (10, {"workers": {"pending_workers": 14}}, 14, Bound.LATCH),
    "a pending up against a smaller up": (12, {"workers": {"pending_workers": 14}}, 14, Bound.LATCH),
    "a pending scale-up is superseded": (16, {"workers": {"pending_workers": 14}}, 16, Bound.NONE),
    "a pending up is revoked by a down": (8, {"workers": {"pending_workers": 14}}, 8, Bound.NONE),
    "a pending up stands while the window holds the size": (
        8,
        {"workers": {"pending_workers": 14, "window_workers": 10}},
        14,
        Bound.LATCH,
    ),
    "a pending down stands": (10, {"workers": {"pending_workers": 7}}, 7, Bound.LATCH),
    "a pending down goes no further": (5, {"workers": {"pending_workers": 7}}, 7, Bound.LATCH),
    "a pending down is revoked by an up": (12, {"workers": {"pending_workers": 7}}, 12, Bound.NONE),
    "a pending down not below a fresh need": (
        10,
        {"workers": {"pending_workers": 7, "window_workers": 9}},
        9,
        Bound.LATCH,
    ),
    "a pending target that is enacted": (10, {"workers": {"pending_workers": 10}}, 10, Bound.NONE),
    "S4-07 a target stands until the minute ends": (20, {"workers": {"minute_workers": 12}}, 12, Bound.MINUTE),
    "S4-07 a target below the current size too": (20, {"workers": {"minute_workers": 8}}, 8, Bound.MINUTE),
    "pause of scale-ups": (20, {"active": "no_up"}, 10, Bound.PAUSE),
    "pause of scale-ups allows a scale-down": (5, {"active": "no_up"}, 5, Bound.NONE),
    "pause of scale-downs": (5, {"active": "no_down"}, 10, Bound.PAUSE),
    "pause of scale-downs allows a scale-up": (20, {"active": "no_down"}, 20, Bound.NONE),
    "a pause holds against a pending target": (
        10,
        {"active": "no_up", "workers": {"pending_workers": 14}},
        10,
        Bound.PAUSE,
    ),
    "S4-30 no scale-down in a failover": (5, {"active": "failover"}, 10, Bound.FAILOVER),
    "S4-30 a failover allows a scale-up": (20, {"active": "failover"}, 20, Bound.NONE),
    "S1 no scale-down before an expected event ends": (5, {"active": "expecting"}, 10, Bound.EXPECTED),
    "S1 an expected event allows a scale-up": (20, {"active": "expecting"}, 20, Bound.NONE),
    "no scale-down while metrics are missing": (5, {"active": "misses_metrics"}, 10, Bound.MISSING_METRICS),
    "missing metrics allow a scale-up": (20, {"active": "misses_metrics"}, 20, Bound.NONE),
    "S4-10 an unhealthy sink never scales up": (20, {"active": "sink_unhealthy"}, 10, Bound.SINK),
    "an unhealthy sink allows a scale-down": (5, {"active": "sink_unhealthy"}, 5, Bound.NONE),
    "an unhealthy sink, and behind": (5, {"active": ("sink_unhealthy", "behind")}, 10, Bound.SINK),
    "behind alone allows a scale-down": (5, {"active": "behind"}, 5, Bound.NONE),
    "scale-ups without effect are blocked": (20, {"workers": {"helpful_workers": 10}}, 10, Bound.INEFFECTIVE),
    "a block allows the size before it": (20, {"workers": {"helpful_workers": 14}}, 14, Bound.INEFFECTIVE),
    "a block removes no workers": (20, {"workers": {"helpful_workers": 6}}, 10, Bound.INEFFECTIVE),
    "a block allows a scale-down": (5, {"workers": {"helpful_workers": 10}}, 5, Bound.NONE),
    "S4-29 cooldown of scale-ups": (20, {"active": "in_up_cooldown"}, 10, Bound.COOLDOWN),
    "S4-29 cooldown of scale-ups allows a scale-down": (5, {"active": "in_up_cooldown"}, 5, Bound.NONE),
    "S4-29 cooldown of scale-downs": (5, {"active": "in_down_cooldown"}, 10, Bound.COOLDOWN),
    "S4-29 cooldown of scale-downs allows a scale-up": (20, {"active": "in_down_cooldown"}, 20, Bound.NONE),
    "no budget for a pause": (5, {"active": "unaffordable"}, 10, Bound.BUDGET),
    "a scale-up needs no budget": (20, {"active": "unaffordable"}, 20, Bound.NONE),
    "S3-20 behind at low CPU: the smallest step": (20, {"active": "suspect"}, 12, Bound.TRIAL),
    "S3-20 X-07 the smallest step is allowed": (12, {"active": "suspect"}, 12, Bound.NONE),
    "a hot partition caps an up": (20, {"workers": {"hot_workers": 12}}, 12, Bound.HOT),
    "a hot partition causes no scale-down": (20, {"workers": {"hot_workers": 4}}, 10, Bound.HOT),
    "a hot partition allows a scale-down": (8, {"workers": {"hot_workers": 4}}, 8, Bound.NONE),
    "S4-29 step up": (90, {"max_step_up_workers": 50}, 60, Bound.STEP),
    "S4-29 step down": (2, {"max_step_down_workers": 3}, 7, Bound.STEP),
    "a step that is not longer": (15, {"max_step_up_workers": 5}, 15, Bound.NONE),
}
EVERY_BOUND = {
    "active": MASKS,
    "workers": {"helpful_workers": 10, "hot_workers": 4, "window_workers": 30, "pending_workers": 30},
}
TOGETHER = {
    "a step above the maximum": (90, {"max_step_up_workers": 50, "max_workers": 40}, 40, Bound.MAX),
    "the minimum holds against a pause": (20, {"active": "no_up", "min_workers": 12}, 12, Bound.MIN),
    "at the minimum no scale-down waits": (
        1,
        {"current": 3, "active": "in_down_cooldown", "workers": {"window_workers": 3}, "min_workers": 3},
        3,
        Bound.MIN,
    ),
    "at the minimum that the memory sets": (
        1,
        {"current": 8, "active": "no_down", "facts": {"partitions": 60}, "max_partitions_per_worker": 8},
        8,
        Bound.MEMORY,
    ),
    "at a minimum that equals the partitions": (
        1,
        {"current": 12, "active": "no_down", "min_workers": 12, "facts": {"partitions": 12}},
        12,
        Bound.MIN,
    ),
    "at the partitions, below the minimum": (
        1,
        {"current": 12, "active": "no_down", "min_workers": 20, "facts": {"partitions": 12}},
        12,
        Bound.PAUSE,
    ),
    "partitions below the minimum remove workers": (
        1,
        {"current": 16, "active": "no_down", "min_workers": 20, "facts": {"partitions": 12}},
        12,
        Bound.PARTITIONS,
    ),
    "at the maximum, below the minimum": (
        1,
        {"current": 12, "active": "in_down_cooldown", "min_workers": 20, "max_workers": 12},
        12,
        Bound.COOLDOWN,
    ),
    "a maximum that equals the minimum removes workers": (
        1,
        {"active": "in_down_cooldown", "min_workers": 4, "max_workers": 4},
        4,
        Bound.MAX,
    ),
    "above the minimum a scale-down waits": (1, {"active": "in_down_cooldown", "min_workers": 3}, 10, Bound.COOLDOWN),
    "the maximum holds against a pause": (5, {"active": "no_down", "max_workers": 8}, 8, Bound.MAX),
    "partitions hold against a pause": (5, {"active": "no_down", "facts": {"partitions": 8}}, 8, Bound.PARTITIONS),
    "partitions do not lower a target that a gate holds": (
        20,
        {"active": "held", "facts": {"partitions": 12}},
        20,
        Bound.NONE,
    ),
    "the maximum holds against a pending target": (
        10,
        {"workers": {"pending_workers": 14}, "max_workers": 12},
        12,
        Bound.MAX,
    ),
    "of several the last that changed it is named": (
        90,
        {"active": "suspect", "max_step_up_workers": 50},
        12,
        Bound.TRIAL,
    ),
    "every bound at once": (50, EVERY_BOUND, 10, Bound.PAUSE),
    "without a current size no bound applies": (
        50,
        EVERY_BOUND | {"current": nan, "max_step_up_workers": 1, "max_step_down_workers": 1},
        50,
        Bound.NONE,
    ),
    "from an unknown size the range binds": (50, EVERY_BOUND | {"current": nan, "max_workers": 20}, 20, Bound.MAX),
}
CUTS = RANGES | BRAKES | TOGETHER


@pytest.mark.parametrize(("wanted", "changes", "size", "bound"), CUTS.values(), ids=CUTS)
def test_each_bound_limits_the_size_and_is_named(wanted, changes, size, bound):
    assert after_bounds(wanted, **changes) == (size, bound)


def test_every_bound_has_an_example_and_a_place_in_the_table():
    columns = rule_columns()
    cuts = table(
        column(10),
        column(10),
        columns,
        limits(columns, workload_facts(), column(nan), column(10), column(nan)),
        bound_inputs(),
    )
    assert {bound for *_, bound in CUTS.values()} == set(Bound)
    assert [one.name for one in cuts] == [bound for bound in Bound if bound is not Bound.NONE]


def test_an_unknown_size_stays_unknown():
    size, bound = after_bounds(nan, **EVERY_BOUND, min_workers=3, max_step_up_workers=5)
    assert isnan(size)
    assert bound == Bound.NONE


PAUSES = {
    "none": ({}, {}, (False, False)),
    "of scale-ups by rule": ({"pause_up_until_s": 61}, {}, (True, False)),
    "of scale-downs by rule": ({"pause_down_until_s": 61}, {}, (False, True)),
    "that ended": ({"pause_up_until_s": 60, "pause_down_until_s": 60}, {}, (False, False)),
    "of scale-ups by annotation": ({}, {"pause_up": 1}, (True, False)),
    "of scale-downs by annotation": ({}, {"pause_down": 1}, (False, True)),
    "annotations that ended": ({}, {"pause_up": 0, "pause_down": 0}, (False, False)),
}


@pytest.mark.parametrize(("rules", "facts", "expected"), PAUSES.values(), ids=PAUSES)
def test_a_pause_blocks_its_direction_until_it_ends(rules, facts, expected):
    no_up, no_down = pauses(rule_columns(**rules), workload_facts(**facts or {}), at_s=60)
    assert (no_up[0], no_down[0]) == expected


counts = st.one_of(st.just(nan), st.integers(0, 200).map(float))
sizes = st.integers(0, 300)
FACTS = dict.fromkeys(("min_workers", "max_workers", "partitions"), counts)
BRAKED = {
    "active": st.sets(st.sampled_from(MASKS)),
    "workers": st.fixed_dictionaries(dict.fromkeys(LIMITS, counts)),
    "max_step_up_workers": st.one_of(st.none(), st.integers(1, 50)),
    "max_step_down_workers": st.one_of(st.none(), st.integers(1, 50)),
}
BOUNDED = {
    "current": counts,
    "facts": st.fixed_dictionaries(FACTS),
    "min_workers": st.integers(0, 50),
    "max_workers": st.integers(1, 200),
}


@given(st.integers(0, 500), st.fixed_dictionaries(BRAKED | BOUNDED))
def test_p_06_a_bounded_size_stays_within_minimum_maximum_and_partitions(wanted, bounded):
    size, _ = after_bounds(wanted, **bounded)
    known = {name: number for name, number in bounded["facts"].items() if number >= (name != "min_workers")}
    most = min(bounded["max_workers"], known.get("max_workers", inf))
    fed = min(most, known.get("partitions", inf))
    least = max(bounded["min_workers"], known.get("min_workers", 0))
    # The partitions do not lower a target that a gate holds.
    assert min(fed, least) <= size <= (most if "held" in bounded["active"] else fed)


@given(sizes, sizes, st.fixed_dictionaries(BRAKED | BOUNDED))
def test_a_larger_wanted_size_never_gives_a_smaller_one(wanted, other, bounded):
    assert after_bounds(min(wanted, other), **bounded)[0] <= after_bounds(max(wanted, other), **bounded)[0]


@given(sizes, sizes, st.fixed_dictionaries(BRAKED))
def test_only_a_standing_target_enlarges_or_reverses_a_change(wanted, current, inputs):
    inputs["workers"] |= dict.fromkeys(TARGETS, nan)
    size, _ = after_bounds(wanted, current, **inputs, min_workers=0, max_workers=300)
    assert min(wanted, current) <= size <= max(wanted, current)


@given(sizes, sizes, st.fixed_dictionaries(BRAKED))
def test_no_size_goes_further_than_a_standing_target(wanted, current, inputs):
    size, _ = after_bounds(wanted, current, **inputs, min_workers=0, max_workers=300)
    sides = [side for side in (wanted, current, *map(inputs["workers"].get, TARGETS)) if not isnan(side)]
    assert min(sides) <= size <= max(sides)


def test_each_workload_has_its_own_limits():
    columns = replace(rule_columns(2), max_workers=column(5, 50))
    facts = joined([workload_facts(), workload_facts()])
    free = {name: np.zeros(2, dtype=bool) for name in MASKS} | {name: column(nan, nan) for name in LIMITS}
    range_ = limits(columns, facts, column(nan, nan), column(10, 10), column(nan, nan))
    size, which = apply_bounds(column(20, 20), column(10, 10), columns, range_, BoundInputs(**free))
    assert size.tolist() == [5, 20]
    assert [BOUNDS[number] for number in which] == [Bound.MAX, Bound.NONE]
