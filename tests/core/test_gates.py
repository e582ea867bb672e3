"""The ordered table of gates: each opens and closes by itself, and the first that is closed wins."""

from dataclasses import replace
from itertools import combinations
from math import nan

import numpy as np
import pytest
from builders import column, rule_columns

from adapter.core import gates
from adapter.core.decisions import Reason

YES, NO = np.array([True]), np.array([False])
OPEN = gates.GateInputs(
    paused=NO,
    excluded=NO,
    sample_age_s=column(0),
    workers_age_s=column(0),
    changed_age_s=column(nan),
    spec_changed_age_s=column(nan),
    in_flight=NO,
    too_few=NO,
    stopped=NO,
    failures=column(0),
    rates_known=YES,
    excess_input=NO,
    discontinuous=NO,
    nothing_moves=NO,
    rules=rule_columns(),
)
# in the order of the table: the changes that close each gate alone
CLOSED = {
    "paused": (Reason.PAUSED, {"paused": YES}),
    "an excluded period": (Reason.EXCLUDED, {"excluded": YES}),
    "no sample ever": (Reason.NO_DATA, {"sample_age_s": column(nan)}),
    "sample too old to serve": (Reason.EXPIRED, {"sample_age_s": column(181)}),
    "sample of an earlier tick": (Reason.STALE, {"sample_age_s": column(15)}),
    "workers unknown": (Reason.NO_WORKERS, {"workers_age_s": column(nan)}),
    "S4-09 the job does not run": (Reason.NOT_RUNNING, {"stopped": YES}),
    "S4-09 recent failures": (Reason.FAILURES, {"failures": column(2)}),
    "workers that never come": (Reason.UNSCHEDULABLE, {"spec_changed_age_s": column(600), "too_few": YES}),
    "X-05 workers on their way": (Reason.IN_FLIGHT, {"spec_changed_age_s": column(15), "in_flight": YES}),
    "nothing moves": (Reason.STUCK, {"nothing_moves": YES}),
    "X-05 S1-17 workers just changed": (Reason.SETTLING, {"changed_age_s": column(15)}),
    "no rate": (Reason.NO_DATA, {"rates_known": NO}),
    "backlog deleted": (Reason.DISCONTINUITY, {"discontinuous": YES}),
}
# closed by ages of the same thing: both at once cannot be
APART = [{"workers that never come", "X-05 workers on their way"}]


def reason(**changes):
    closed = gates.first_closed(replace(OPEN, **changes))[0]
    return None if closed == gates.OPEN else gates.REASONS[closed]


def test_without_a_closed_gate_the_policy_decides():
    assert reason() is None


@pytest.mark.parametrize(("expected", "changes"), CLOSED.values(), ids=CLOSED)
def test_each_gate_closes_by_itself(expected, changes):
    assert reason(**changes) == expected


def test_every_gate_has_an_example_in_its_order():
    assert [reason for reason, _ in gates.table(OPEN)] == [reason for reason, _ in CLOSED.values()]


@pytest.mark.parametrize(("first", "second"), [pair for pair in combinations(CLOSED, 2) if set(pair) not in APART])
def test_the_first_closed_gate_wins(first, second):
    (expected, changes), (_, more) = CLOSED[first], CLOSED[second]
    assert reason(**more | changes) == expected


EDGES = {
    "a sample of this tick is fresh": ({"sample_age_s": column(0)}, None),
    "error_after_s itself is not too old": ({"sample_age_s": column(180)}, Reason.STALE),
    "stale_after_s itself is not too old for workers": ({"workers_age_s": column(45)}, None),
    "worker counts older than stale_after_s": ({"workers_age_s": column(46)}, Reason.NO_WORKERS),
    "one failure is no pattern": ({"failures": column(1)}, None),
    "unknown failures": ({"failures": column(nan)}, None),
    "workers that are late, but not yet given up": (
        {"spec_changed_age_s": column(599), "in_flight": YES, "too_few": YES},
        Reason.IN_FLIGHT,
    ),
    "given up after the timeout": (
        {"spec_changed_age_s": column(600), "in_flight": YES, "too_few": YES},
        Reason.UNSCHEDULABLE,
    ),
    "too many are not waited for beyond the timeout": ({"spec_changed_age_s": column(600), "in_flight": YES}, None),
    "too few, without a change of spec.replicas": ({"in_flight": YES, "too_few": YES}, None),
    "settled at settle_s": ({"changed_age_s": column(45)}, None),
    "settled, but no clean rate yet": ({"changed_age_s": column(60), "rates_known": NO}, Reason.SETTLING),
    "settled and a window later still no rate": ({"changed_age_s": column(105), "rates_known": NO}, Reason.NO_DATA),
    "excess input does not wait until the job settles": ({"changed_age_s": column(15), "excess_input": YES}, None),
    "excess input needs no rate of the window": ({"rates_known": NO, "excess_input": YES}, None),
    "excess input waits for workers on their way": (
        {"spec_changed_age_s": column(15), "in_flight": YES, "excess_input": YES},
        Reason.IN_FLIGHT,
    ),
}


@pytest.mark.parametrize(("changes", "expected"), EDGES.values(), ids=EDGES)
def test_the_edges_of_the_gates(changes, expected):
    assert reason(**changes) == expected


def test_without_settling_time_and_timeout_no_gate_waits():
    rules = rule_columns(settle_s=0, rescale_pause_s=0, in_flight_timeout_s=0)
    assert reason(rules=rules, changed_age_s=column(0), spec_changed_age_s=column(0), in_flight=YES) is None


SETTLED = {
    "settle_s covers the pause": ({"settle_s": 45, "rescale_pause_s": 30}, 45),
    "X-05 a longer pause is waited out": ({"settle_s": 45, "rescale_pause_s": 120}, 120),
    "S4-04 samples that are two minutes late": ({"settle_s": 45, "rescale_pause_s": 60, "metric_delay_s": 120}, 180),
}


@pytest.mark.parametrize(("changes", "expected_s"), SETTLED.values(), ids=SETTLED)
def test_settling_lasts_until_the_samples_no_longer_show_the_change(changes, expected_s):
    rules = rule_columns(**changes)
    assert gates.settle_s(rules).tolist() == [expected_s]
    assert reason(rules=rules, changed_age_s=column(expected_s - 1)) == Reason.SETTLING
    assert reason(rules=rules, changed_age_s=column(expected_s)) is None


def test_each_workload_has_its_own_gate():
    see = replace(
        OPEN,
        **{name: np.repeat(getattr(OPEN, name), 3) for name in OPEN.__dataclass_fields__ if name != "rules"},
        rules=rule_columns(3),
    )
    closed = gates.first_closed(replace(see, stopped=np.array([False, True, False]), failures=column(3, 3, 0)))
    assert closed.tolist() == [
        gates.REASONS.index(Reason.FAILURES),
        gates.REASONS.index(Reason.NOT_RUNNING),
        gates.OPEN,
    ]
