"""`explain` names the deciding input, and a change of that input alone changes the decision."""

from dataclasses import replace

import pytest
from builders import book, steady, tick
from records import columns_of, growing, record_of, target, target_with

from adapter.core.decisions import Bound, Reason
from adapter.core.record import INPUTS, decision_input_of
from adapter.core.rules import POLICIES
from adapter.errors import AdapterError
from adapter.operations.changes import decided_by, nearest_changes, without_bound
from adapter.operations.recorded_decision import replay
from adapter.operations.tables import gate_table


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
def test_a_change_of_the_deciding_input_alone_changes_the_target(signals, rules, name):
    record = growing(signals, **rules)
    recorded = replay(record)
    changes = nearest_changes(recorded)
    assert decided_by(recorded, changes) == name
    for change in (change for change in changes if change.name == name):
        assert target_with(record, name, change.value) == change.required_workers
        assert change.required_workers != record.decision.required_workers


def test_the_partitions_decide_for_a_policy_that_follows_them():
    recorded = replay(growing(policy="segments", segments_per_worker=4))
    assert (recorded.served, decided_by(recorded, nearest_changes(recorded))) == (12, "partitions")


FORTY = dict.fromkeys(("workers", "spec_workers", "ready_workers", "partitions"), 40)


@pytest.mark.parametrize(
    ("growth", "wants"), [(0, "no more"), (200, "more")], ids=["no more is wanted", "more is wanted"]
)
def test_an_unhealthy_sink_decides_while_the_job_is_behind(growth, wants):
    ticks = steady(600, throughput=1000, growth=growth, backlog=100_000, sink_healthy=0.0, **FORTY)
    recorded = replay(record_of(ticks, book(policy="beam-flink", max_workers=80)))
    assert recorded.served == 40
    assert decided_by(recorded, nearest_changes(recorded)) == Bound.SINK
    without = without_bound(recorded)
    assert without is not None
    assert without.name is Bound.SINK


def test_a_limit_that_does_not_apply_never_decides():
    rules = book(policy="drain", probe_ratio=0.0)
    recorded = replay(record_of(steady(600, throughput=1000, sink_healthy=0.0, **FORTY), rules))
    changes = nearest_changes(recorded)
    assert {change.name for change in changes} == {"partitions", "max_workers"}
    assert (recorded.served, decided_by(recorded, changes)) == (40, "")


@pytest.mark.parametrize("value", [13.0, 11.0])
def test_a_pipeline_with_another_maximum_has_the_predicted_target(value):
    changes = {
        c.value: c.required_workers for c in nearest_changes(replay(growing(max_workers=12))) if c.name == "max_workers"
    }
    assert growing(max_workers=int(value)).decision.required_workers == changes[value]


@pytest.mark.parametrize("value", [21.0, 19.0])
def test_a_pipeline_with_other_partitions_has_the_predicted_target(value):
    record = growing({"partitions": 20})
    changes = {c.value: c.required_workers for c in nearest_changes(replay(record)) if c.name == "partitions"}
    assert growing({"partitions": value}).decision.required_workers == changes[value]


@pytest.mark.parametrize("signals", [{"running": 0.0}, {"throughput": 0.0}], ids=[Reason.NOT_RUNNING, Reason.STUCK])
def test_without_the_closed_gate_the_next_closed_one_of_the_list_is_named(signals):
    ticks = steady(600, **{"throughput": 1000.0, "growth": 200, "backlog": 5000, "partitions": 48.0} | signals)
    recorded = replay(record_of(ticks, book(policy="drain")))
    closed = [gate.name for gate in gate_table(recorded) if gate.closed]
    without = without_bound(recorded)
    assert without is not None
    assert [without.name, without.then] == closed[:2]


@pytest.mark.parametrize(
    ("signals", "name"),
    [
        ({"pause_up": 1.0, "pause_down": 1.0}, Reason.PAUSED),
        ({"ready_workers": 8.0}, Reason.UNSCHEDULABLE),
    ],
)
def test_the_closed_gate_decides_and_without_it_the_load_decides(signals, name):
    recorded = replay(growing(signals))
    assert decided_by(recorded, nearest_changes(recorded)) == name
    without = without_bound(recorded)
    assert without is not None
    assert (without.name, without.then) == (name, None)
    assert without.required_workers is not None
    assert without.required_workers > recorded.served


def test_the_next_closed_gate_is_named():
    without = without_bound(replay(growing({"running": 0.0, "pause_up": 1.0, "pause_down": 1.0})))
    assert without is not None
    assert without.then == Reason.NOT_RUNNING


def test_a_bound_that_is_no_input_is_named_with_the_target_without_it():
    recorded = replay(growing(max_step_up_workers=3))
    without = without_bound(recorded)
    assert without is not None
    assert decided_by(recorded, nearest_changes(recorded)) == Bound.STEP
    assert (recorded.served, without.required_workers) == (13, growing().decision.required_workers)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_change_has_the_target_of_its_value_and_the_nearest_comes_first(policy):
    record = record_of(steady(240, throughput=1000, growth=200, backlog=5000, partitions=48), book(policy=policy))
    changes = nearest_changes(replay(record))
    assert changes
    assert [change.distance for change in changes] == sorted(change.distance for change in changes)
    for change in changes:
        assert change.name in INPUTS
        assert target_with(record, change.name, change.value) == change.required_workers


@pytest.mark.parametrize("policy", POLICIES)
def test_a_decision_is_reproducible_from_its_record_alone(policy):
    record = record_of(steady(240, throughput=1000, growth=200, backlog=5000, partitions=48), book(policy=policy))
    assert target(decision_input_of(columns_of(record))) == record.decision.required_workers


def test_a_workload_without_samples_has_no_inputs_to_change():
    recorded = replay(record_of([tick(0)], book()))
    assert (recorded.served, nearest_changes(recorded)) == (None, ())
    assert decided_by(recorded, nearest_changes(recorded)) == Reason.NO_DATA


@pytest.mark.parametrize(
    "change",
    [
        lambda record: replace(
            record, record={k: v for k, v in record.record.items() if k != "workload_status.current_workers"}
        ),
        lambda record: replace(record, decision=replace(record.decision, required_workers=23.0)),
    ],
    ids=["a number is missing", "another number follows"],
)
def test_a_record_of_another_release_is_refused_with_the_remedy(change):
    with pytest.raises(AdapterError, match="use the release that runs the pipeline"):
        replay(change(growing()))
