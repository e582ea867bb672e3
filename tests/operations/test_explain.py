"""The explanation as a person reads it."""

from dataclasses import replace
from pathlib import Path

import pytest
from builders import book, steady
from records_made import growing, record_of

from adapter.core.decisions import Bound, Reason
from adapter.core.rules import POLICIES
from adapter.operations.explain import explain, lines
from adapter.operations.reading import read
from adapter.operations.rows import COLUMNS
from adapter.operations.tables import bound_table

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "growing.txt"


def section(told, title):
    """The lines of one section."""
    text = "\n".join(lines(explain(told)))
    return next(part for part in text.split("\n\n") if part.startswith(title))


def test_the_running_example_word_for_word():
    """After a change that is meant, the new text goes into the golden file and is read there as a diff."""
    assert "\n".join(lines(explain(growing(max_workers=20)))) + "\n" == GOLDEN.read_text("utf-8")


def test_the_sentence_comes_first():
    told = growing()
    assert told.sentence.startswith(lines(explain(told))[0])


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("signals", [{}, {"running": 0.0}, {"backlog": 10.0**15}])
def test_no_line_is_wider_than_the_page(policy, signals):
    stream = {"throughput": 1000, "growth": 200, "backlog": 5000, "partitions": 48} | signals
    told = record_of(steady(120, **stream), book(policy=policy, min_spare_workers=2))
    assert max(map(len, lines(explain(told)))) <= COLUMNS


def test_the_gate_that_decided_is_marked_and_what_opens_it_is_said():
    told = growing({"running": 0.0, "pause_up": 1.0, "pause_down": 1.0})
    gates = section(told, "Gates").splitlines()
    assert [line.split()[1] for line in gates if line.startswith(">")] == [Reason.PAUSED]
    assert "NotRunning            closed too" in "\n".join(gates)
    changing = section(told, "What would change it")
    assert "> decided by      Paused" in changing
    assert "it opens " in changing
    assert "when the pause ends or is removed" in changing
    assert "NotRunning would hold it" in changing


def test_gates_and_bounds_are_told_in_their_order_and_lead_to_the_number():
    explained = explain(growing(max_workers=12, max_step_up_workers=4))
    assert [gate.name for gate in explained.gates][:3] == [Reason.PAUSED, Reason.EXCLUDED, Reason.NO_DATA]
    assert not any(gate.closed for gate in explained.gates)
    cut = [(step.name, step.before, step.after) for step in explained.bounds if step.before != step.after]
    assert cut == [(Bound.STEP, growing().decision.required_workers, 14), (Bound.MAX, 14, 12)]
    assert [step.name for step in explained.bounds] == [bound for bound in Bound if bound is not Bound.NONE]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("workers", [3, 60])
@pytest.mark.parametrize("rules", [{}, {"max_workers": 12}, {"max_step_down_workers": 2, "cooldown_up_s": 900.0}])
def test_the_bounds_lead_from_the_policys_size_to_what_is_asked_for(policy, workers, rules):
    ticks = steady(120, throughput=1000, growth=20, backlog=50, workers=workers, spec_workers=workers,
                   ready_workers=workers, partitions=48)  # fmt: skip
    told = record_of(ticks, book(policy=policy, **rules))
    assert bound_table(read(told))[-1].after == told.decision.required_workers


def test_rules_that_differ_from_the_policys_defaults_are_told_and_no_others():
    told = section(growing(max_workers=12, down_window_s=60.0, quanta="divisors"), "Rules")
    assert [line.split()[0] for line in told.splitlines()[1:] if line.startswith("  ") and line[2] != " "] == [
        "quanta",
        "down_window_s",
        "max_workers",
    ]
    assert max(map(len, told.splitlines())) <= COLUMNS
    assert "divisors, default relative" in told
    assert "60, default 3 600" in told


def test_the_first_screen_says_what_number_why_what_would_change_it_and_what_the_hpa_will_do():
    for policy in POLICIES:
        text = lines(explain(growing(policy=policy)))
        first = "\n".join(text[:25])
        assert "  required workers " in first
        assert "\nWhat would change it" in first
        assert '\n  tolerance "0"' in first


def test_a_rule_that_is_not_the_default_takes_one_line():
    told = section(growing(target_utilization_ratio=0.75, low_cpu_ratio=0.1, max_workers=12), "Rules")
    assert len(told.splitlines()) == 4


@pytest.mark.parametrize(
    ("signals", "rules", "range_", "by"),
    [
        ({}, {"max_workers": 12}, "min_workers to max_workers", "max workers"),
        ({"max_workers": 12}, {}, "min_workers to the HPA's maxReplicas", "the HPA's maxReplicas"),
        ({"max_workers": 12}, {"max_workers": 12}, "min_workers to max_workers", "max workers"),
        ({"partitions": 12}, {}, "min_workers to the partitions", "partitions"),
        ({"min_workers": 30}, {"latch_s": 0.0}, "the HPA's minReplicas to the partitions", "the HPA's minReplicas"),
        ({}, {"min_workers": 30, "latch_s": 0.0}, "min_workers to the partitions", "min workers"),
        ({"max_workers": 9}, {"min_workers": 20}, "the maximum to the HPA's maxReplicas", "the HPA's maxReplicas"),
        (
            {"partitions": 120, "max_workers": 70},
            {"max_partitions_per_worker": 2, "latch_s": 0.0},
            "max_partitions_per_worker to the HPA's maxReplicas",
            "memory",
        ),
    ],
)
def test_an_end_of_the_range_is_told_by_what_made_it(signals, rules, range_, by):
    told = growing(signals, **rules)
    assert range_ in section(told, "shop/orders")
    decided = section(told, "What would change it").splitlines()[1]
    assert decided.removeprefix("> decided by").strip().startswith(by)


def test_the_cut_at_the_maximum_names_the_hpa_where_it_made_it():
    assert "at most 12: not above the HPA's maxReplicas" in section(growing({"max_workers": 12}), "Bounds")
    assert "at most 12: not above max_workers" in section(growing(max_workers=12), "Bounds")


def test_s1_13_a_gated_lag_change_is_told_as_such():
    told = section(growing(policy="varga", lag_threshold_records=10.0**9), "Signals")
    assert "below the threshold" in next(line for line in told.splitlines() if "relative lag change" in line)


@pytest.mark.parametrize(
    ("now", "words"),
    [(None, "1 000/s or more"), (120.0, "table says 1 000/s, now 120/s"), (1010.0, "1 010/s  confidence")],
    ids=["a lower bound", "other", "nearly the same"],
)
def test_what_the_workers_carry_now_is_told_beside_what_was_learned_where_it_differs(now, words):
    told = growing()
    decision = replace(told.decision, capacity_records_per_s=now)
    at_work = section(replace(told, decision=decision), "Capacity").splitlines()[-1]
    assert words in at_work


def test_columns_that_this_release_does_not_know_are_no_fault():
    told = growing()
    assert lines(explain(replace(told, record={**told.record, "policy_input.mood": 1.0}))) == lines(explain(told))


def test_what_one_worker_carries_is_told_where_somebody_configured_it():
    ticks = steady(60, throughput=1000, partitions=48)
    told = record_of(ticks, book(policy="drain", worker_capacity_records_per_s=150.0))
    assert "each worker" in section(told, "Capacity")
    assert "as configured" in section(told, "Capacity")
    assert "1 048 576" not in "\n".join(lines(explain(told))), "the size that a prior is written at is nobody's"


@pytest.mark.parametrize(
    ("partitions", "needed"),
    [(12.0, "6     rounded up from 5: spreads 12 partitions evenly"), (None, "5")],
    ids=["an even spread takes one more", "unknown"],
)
def test_a_size_that_the_partitions_round_is_explained(partitions, needed):
    ticks = steady(120, throughput=1000, growth=20, backlog=50, workers=4, spec_workers=4, ready_workers=4,
                   partitions=partitions)  # fmt: skip
    terms = section(record_of(ticks, book(policy="netflix")), "Terms").splitlines()
    assert next(line for line in terms if "needed" in line).split(maxsplit=1) == ["needed", needed]
