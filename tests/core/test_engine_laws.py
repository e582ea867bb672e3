"""What must hold for any history: random ticks of three jobs with gaps, resets, restarts and changes."""

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from builders import fold
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.decisions import Bound, Reason
from adapter.core.engine import advance, replay
from adapter.core.report import rows
from adapter.core.rules import POLICIES, RuleBook, Rules
from adapter.core.samples import STAGE_SIGNALS, assemble
from adapter.core.state import EMPTY, VERSION, decode, encode_fast, encode_slow

A, B, C = "shop/a", "shop/b", "shop/c"  # configured; of a fleet; with two stages
RULES = RuleBook(
    by_workload={A: Rules(settle_s=15.0), C: Rules(policy="beam-flink", rate_window_s=90.0, settle_s=0.0)},
    by_fleet=(Rules(quanta="none", max_workers=30, in_flight_timeout_s=30.0),),
)
STAGES = {A: [""], B: [""], C: ["read", "write"]}
COUNTED = ("processed_records", "appended_records", "backlog_records")

# what happens to a stage in one tick: mostly steady and whole, so that most ticks are decided
CHOICES = {
    "passed": [0, 15_000, 15_000, 16_384, 30_000],
    "arrived": [0, 15_000, 15_000, 22_500, 40_000],
    "reset": [False] * 19 + [True],
    "busy": [None, 0.25, 0.5, 0.8, 0.95],
    "asked": [None] + [10] * 8 + [12],
    "not_ready": [0] * 9 + [1],
    "missing": [()] * 9 + [("backlog_records",), ("processed_records",), COUNTED],
}
GAPS_S = [15, 15, 15, 15, 5, 30]


def histories(workloads=(A, B, C)):
    """Ticks as (at_s, rows). Drawn by a seed: ten times as fast as draw by draw, and as easy to repeat."""
    return st.tuples(st.integers(0, 10**9), st.integers(0, 12)).map(lambda drawn: drawn_history(*drawn, workloads))


def drawn_history(seed, length, workloads):
    chance = Random(seed)  # noqa: S311 - a test's dice
    totals = {(workload, stage): [0, 30_000] for workload in workloads for stage in STAGES[workload]}
    at_s, ticks = 0, []
    for _ in range(length):
        at_s += chance.choice(GAPS_S)
        steps = {place: {name: chance.choice(of) for name, of in CHOICES.items()} for place in totals}
        ticks.append((at_s, [row for place, step in steps.items() for row in told(place, step, totals[place])]))
    return ticks


def told(place, step, total):
    """The rows of one stage at one tick; total: processed, appended, counted on."""
    workload, stage = place
    total[1] += step["arrived"]
    total[0] = 0 if step["reset"] else min(total[0] + step["passed"], total[1])
    signals = dict(zip(COUNTED, (*total, total[1] - total[0]), strict=True)) | {"utilization_ratio": step["busy"]}
    signals |= dict.fromkeys(("spec_workers", "workers"), step["asked"])
    signals |= {"ready_workers": step["asked"] and step["asked"] - step["not_ready"]}
    signals |= {"fleet": 0 if workload == B else None, "partitions": 24}
    return [
        (workload, stage if signal in STAGE_SIGNALS else "", signal, value)
        for signal, value in signals.items()
        if value is not None and signal not in step["missing"]
    ]


def ticks_of(history, only=(A, B, C)):
    return [assemble(at_s, [row for row in rows_of if row[0] in only]) for at_s, rows_of in history]


def decided(history, only=(A, B, C)):
    return fold(ticks_of(history, only), RULES)


def of(workload, decisions):
    return [decision for tick in decisions for decision in tick if decision.workload == workload]


@given(histories())
def test_a_fold_by_hand_equals_replay(history):
    state, by_hand = EMPTY, []
    for one in ticks_of(history):
        state, decisions = advance(state, one, RULES)
        by_hand.append(rows(decisions))
    assert by_hand == decided(history)


@given(histories())
def test_no_decision_depends_on_later_ticks(history):
    whole = decided(history)
    assert all(decided(history[:count]) == whole[:count] for count in range(len(history)))


@given(histories())
def test_p_11_the_state_survives_encoding_at_every_tick(history):
    state, found = EMPTY, []
    for one in ticks_of(history):
        state = decode(VERSION, encode_fast(state), encode_slow(state))
        state, decisions = advance(state, one, RULES)
        found.append(rows(decisions))
    straight = [state for state, _ in replay(ticks_of(history), RULES)][-1:]
    assert found == decided(history)
    assert [encode_fast(each) for each in straight] == ([encode_fast(state)] if history else [])


@given(histories(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(history, chance):
    shuffled = [(at_s, chance.sample(rows_of, len(rows_of))) for at_s, rows_of in history]
    assert decided(shuffled) == decided(history)


@pytest.mark.parametrize("workload", [A, B, C])
@given(history=histories())
def test_other_workloads_change_no_decision_of_this_one(workload, history):
    assert of(workload, decided(history, only=(workload,))) == of(workload, decided(history))


@given(histories(), st.integers(0, 9), st.integers(0, 9))
def test_late_and_repeated_ticks_change_nothing(history, after, late):
    ticks = ticks_of(history)
    more = [*ticks[: after + 1], *ticks[: min(after + 1, late)], *ticks[after + 1 :]]
    assert [each for each in fold(more, RULES) if each] == [each for each in fold(ticks, RULES) if each]


@given(histories(), st.integers(1, 100_000_000))
def test_decisions_do_not_depend_on_the_date(history, ticks_later):
    offset_s = 15 * ticks_later
    moved = decided([(at_s + offset_s, rows_of) for at_s, rows_of in history])
    assert [[replace(d, at_s=d.at_s - offset_s) for d in each] for each in moved] == decided(history)


@given(histories(), st.integers(-8, 20))
def test_p_08_x_12_counting_in_another_unit_changes_no_target(history, power):
    scaled = [
        (at_s, [(w, s, name, value * 2.0**power if name in COUNTED else value) for w, s, name, value in rows_of])
        for at_s, rows_of in history
    ]

    assert unit_free(decided(scaled)) == unit_free(decided(history))


def unit_free(decisions):
    names = ("workload", "reason", "bound", "required_workers", "backlog_time_s", "utilization_ratio")
    return [[getattr(decision, name) for name in names] for each in decisions for decision in each]


def test_the_histories_reach_every_reason_but_those_of_long_silence():
    drawn = [decided(drawn_history(seed, 12, (A, B, C))) for seed in range(60)]
    seen = {decision.reason for history in drawn for each in history for decision in each}
    assert seen >= set(Reason) - {Reason.PAUSED, Reason.EXPIRED}


@given(histories())
def test_x_06_every_number_is_a_finite_one_or_none(history):
    for decision in (decision for each in decided(history) for decision in each):
        values = [getattr(decision, name) for name in decision.__dataclass_fields__]
        assert all(abs(value) < 1e18 for value in values if isinstance(value, float))


@given(histories())
def test_p_06_a_target_lies_between_minimum_maximum_and_partitions(history):
    for decision in (decision for each in decided(history) for decision in each):
        if decision.required_workers is not None:
            assert decision.min_workers <= decision.required_workers <= decision.max_workers
            assert decision.partitions is None or decision.required_workers <= decision.partitions


@given(histories())
def test_what_was_decided_has_a_target(history):
    for decision in (decision for each in decided(history) for decision in each):
        if decision.reason in (Reason.UP, Reason.DOWN, Reason.HOLD):
            assert decision.required_workers is not None
            assert decision.wanted_workers is not None


@pytest.mark.parametrize("workload", [A, B, C])
@given(history=histories())
def test_x_06_a_tick_that_misses_a_sample_keeps_the_target_or_has_none(workload, history):
    lines = of(workload, decided(history))
    whole = {at_s: complete(workload, rows_of) for at_s, rows_of in history}
    for before, now in pairwise(lines):
        if not whole[now.at_s] and now.bound == Bound.NONE:
            # before the first target a known gate (in flight, settling) may serve the workers there are
            first = now.spec_workers if before.required_workers is None else None
            assert now.required_workers in (before.required_workers, None, first)


def complete(workload, rows_of):
    seen = {(stage, signal) for name, stage, signal, _ in rows_of if name == workload}
    return {
        (stage, signal) for stage in STAGES[workload] for signal in ("processed_records", "backlog_records")
    } <= seen


@given(histories())
def test_unknown_utilization_never_scales_down(history):
    blind = [(at_s, [row for row in rows_of if row[2] != "utilization_ratio"]) for at_s, rows_of in history]
    for decision in (decision for each in decided(blind) for decision in each):
        if decision.reason == Reason.DOWN and decision.bound == Bound.NONE:
            assert decision.utilization_ratio is not None  # idle, or estimated from a capacity that was observed


@pytest.mark.parametrize("policy", POLICIES)
@given(history=histories(workloads=(A,)))
def test_x_01_where_nothing_is_processed_nothing_is_scaled_up(policy, history):
    still = [(at_s, [row for row in rows_of if row[2] != "processed_records"]) for at_s, rows_of in history]
    stuck = [(at_s, [*rows_of, (A, "", "processed_records", 7.0)]) for at_s, rows_of in still]
    found = fold(ticks_of(stuck), RuleBook(by_workload={A: Rules(policy=policy)}))
    assert all(decision.reason != Reason.UP for each in found for decision in each)
