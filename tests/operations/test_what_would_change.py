"""Must show: explain names the input that decided; changing that input alone changes the decision."""

from dataclasses import replace

import pytest
from builders import book, steady, tick
from records_made import asked, asked_with, columns_of, growing, record_of

from adapter.core.decisions import Bound, Reason
from adapter.core.record import INPUTS, decision_input_of
from adapter.core.rules import POLICIES
from adapter.errors import AdapterError
from adapter.operations.changes import decided_by, nearest, opened
from adapter.operations.reading import read


@pytest.mark.parametrize(
    ("signals", "rules", "name"),
    [
        ({}, {}, "input_rate_records_per_s"),
        ({"partitions": 20}, {}, "partitions"),
        ({}, {"max_workers": 12}, "max_workers"),
        ({}, {"min_workers": 30, "latch_s": 0.0}, "min_workers"),
    ],
    ids=["the load", "partitions", "the maximum", "the minimum"],
)
def test_changing_the_input_that_decided_alone_changes_the_number(signals, rules, name):
    told = growing(signals, **rules)
    reading = read(told)
    changes = nearest(reading)
    assert decided_by(reading, changes) == name
    for change in (change for change in changes if change.name == name):
        assert asked_with(told, name, change.value) == change.required_workers
        assert change.required_workers != told.decision.required_workers


def test_a_policy_that_counts_partitions_is_decided_by_them_below_every_limit():
    reading = read(growing(policy="segments", segments_per_worker=4))
    assert (reading.served, decided_by(reading, nearest(reading))) == (12, "partitions")


FORTY = dict.fromkeys(("workers", "spec_workers", "ready_workers", "partitions"), 40)


@pytest.mark.parametrize(
    ("growth", "wants"), [(0, "no more"), (200, "more")], ids=["no more is wanted", "more is wanted"]
)
def test_a_sink_that_is_not_well_decides_while_the_job_is_behind_whatever_the_policy_wanted(growth, wants):
    ticks = steady(600, throughput=1000, growth=growth, backlog=100_000, sink_healthy=0.0, **FORTY)
    reading = read(record_of(ticks, book(policy="beam-flink", max_workers=80)))
    assert reading.served == 40
    assert decided_by(reading, nearest(reading)) == Bound.SINK
    without = opened(reading)
    assert without is not None
    assert without.name is Bound.SINK


def test_a_limit_that_did_not_cut_never_decides_though_a_narrower_one_would():
    reading = read(record_of(steady(600, throughput=1000, sink_healthy=0.0, **FORTY), book(policy="drain")))
    changes = nearest(reading)
    assert {change.name for change in changes} == {"partitions", "max_workers"}
    assert (reading.served, decided_by(reading, changes)) == (40, "")


@pytest.mark.parametrize("value", [13.0, 11.0])
def test_a_pipeline_with_the_maximum_it_names_asks_for_what_it_says(value):
    changes = {c.value: c.required_workers for c in nearest(read(growing(max_workers=12))) if c.name == "max_workers"}
    assert growing(max_workers=int(value)).decision.required_workers == changes[value]


@pytest.mark.parametrize("value", [21.0, 19.0])
def test_a_pipeline_with_the_partitions_it_names_asks_for_what_it_says(value):
    told = growing({"partitions": 20})
    changes = {c.value: c.required_workers for c in nearest(read(told)) if c.name == "partitions"}
    assert growing({"partitions": value}).decision.required_workers == changes[value]


def test_a_job_that_did_not_run_is_not_sized_the_moment_it_does():
    without = opened(read(growing({"running": 0.0})))
    assert without is not None
    assert (without.name, without.then) == (Reason.NOT_RUNNING, Reason.NO_DATA)


@pytest.mark.parametrize(
    ("signals", "name"),
    [
        ({"pause_up": 1.0, "pause_down": 1.0}, Reason.PAUSED),
        ({"ready_workers": 9.0}, Reason.UNSCHEDULABLE),
    ],
)
def test_where_a_gate_decides_it_is_named_and_without_it_the_load_decides(signals, name):
    reading = read(growing(signals))
    assert decided_by(reading, nearest(reading)) == name
    without = opened(reading)
    assert without is not None
    assert (without.name, without.then) == (name, None)
    assert without.required_workers is not None
    assert without.required_workers > reading.served


def test_behind_the_gate_that_decided_the_next_one_is_told():
    without = opened(read(growing({"running": 0.0, "pause_up": 1.0, "pause_down": 1.0})))
    assert without is not None
    assert without.then == Reason.NOT_RUNNING


def test_a_bound_that_is_no_input_is_named_with_what_would_be_without_it():
    reading = read(growing(max_step_up_workers=3))
    without = opened(reading)
    assert without is not None
    assert decided_by(reading, nearest(reading)) == Bound.STEP
    assert (reading.served, without.required_workers) == (13, growing().decision.required_workers)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_change_is_what_follows_from_that_value_nearest_first(policy):
    told = record_of(steady(240, throughput=1000, growth=200, backlog=5000, partitions=48), book(policy=policy))
    changes = nearest(read(told))
    assert changes
    assert [change.distance for change in changes] == sorted(change.distance for change in changes)
    for change in changes:
        assert change.name in INPUTS
        assert asked_with(told, change.name, change.value) == change.required_workers


@pytest.mark.parametrize("policy", POLICIES)
def test_a_decision_is_reproducible_from_its_record_alone(policy):
    told = record_of(steady(240, throughput=1000, growth=200, backlog=5000, partitions=48), book(policy=policy))
    assert asked(decision_input_of(columns_of(told))) == told.decision.required_workers


def test_a_workload_of_which_nothing_is_known_has_nothing_to_change():
    reading = read(record_of([tick(0)], book()))
    assert (reading.served, nearest(reading)) == (None, ())
    assert decided_by(reading, nearest(reading)) == Reason.NO_DATA


@pytest.mark.parametrize(
    "change",
    [
        lambda told: replace(
            told, record={k: v for k, v in told.record.items() if k != "workload_status.current_workers"}
        ),
        lambda told: replace(told, decision=replace(told.decision, required_workers=23.0)),
    ],
    ids=["a number is missing", "another number follows"],
)
def test_a_record_of_another_release_is_refused_with_the_way_out(change):
    with pytest.raises(AdapterError, match="use the release that runs the pipeline"):
        read(change(growing()))
