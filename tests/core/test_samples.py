"""Rows of one tick -> aligned arrays."""

from math import inf, nan

import numpy as np
import pytest
from builders import assemble, column, job, tick
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.samples import EVERY, STAGE_SIGNALS, WORKLOAD_SIGNALS


def test_rows_become_columns_over_sorted_names():
    seen = tick(15, job("n/b", "two", backlog_records=2), job("n/b", "one", backlog_records=1), job("n/a", workers=3))
    assert seen.workloads == ("n/a", "n/b")
    assert seen.stages == (("n/b", "one"), ("n/b", "two"))
    assert seen.stage("backlog_records").tolist() == [1, 2]
    assert np.array_equal(seen.whole("workers"), column(3, nan), equal_nan=True)


def test_a_missing_signal_is_unknown():
    seen = tick(15, job(backlog_records=1))
    assert np.isnan(seen.stage("processed_records")).all()
    assert np.isnan(seen.whole("workers")).all()


@pytest.mark.parametrize("value", [nan, inf, -inf, -1, -0.001, 1e19, 1.7e308], ids=str)
@pytest.mark.parametrize("signal", [*STAGE_SIGNALS, *WORKLOAD_SIGNALS])
def test_x_06_an_invalid_value_is_left_out(signal, value):
    assert tick(15, job(**{signal: value})) == tick(15)


def test_an_unknown_signal_is_left_out():
    assert tick(15, job(stage="", weather=3)) == tick(15)


def test_a_workload_signal_has_no_stage():
    assert assemble(15, [("n/a", "one", "workers", 3)]).stages == ()


def test_of_two_values_for_one_place_the_larger_counts():
    assert tick(15, job(backlog_records=1), job(backlog_records=2)).stage("backlog_records").tolist() == [2]


@pytest.mark.parametrize("workload", ["n/a", EVERY])
def test_all_faults_of_a_workload_are_joined_in_alphabetical_order(workload):
    sentences = ["Broker down", "annotation x: no", "Broker down", "HPA n/a: its scale target is gone"]
    faults = [(workload, sentence) for sentence in sentences]
    joined = "Broker down; HPA n/a: its scale target is gone; annotation x: no"
    for order in (faults, faults[::-1]):
        assert tick(15, faults=[*order, ("n/b", "c")]).faults == {workload: joined, "n/b": "c"}


@given(st.data())
def test_the_order_of_rows_does_not_matter(data):
    names, stages = st.sampled_from(["n/a", "n/b"]), st.sampled_from(["", "one"])
    values = st.one_of(st.floats(), st.integers(0, 9))
    rows = data.draw(st.lists(st.tuples(names, stages, st.sampled_from([*STAGE_SIGNALS, *WORKLOAD_SIGNALS]), values)))
    one, other = assemble(15, rows), assemble(15, data.draw(st.permutations(rows)))
    assert (one.workloads, one.stages) == (other.workloads, other.stages)
    assert {s: v.tobytes() for s, v in one.by_stage.items()} == {s: v.tobytes() for s, v in other.by_stage.items()}
    assert {s: v.tobytes() for s, v in one.by_workload.items()} == {
        s: v.tobytes() for s, v in other.by_workload.items()
    }


def test_a_workload_that_two_fleets_find_has_a_fault_that_names_both_and_no_values():
    rows = [
        ("n/a", "", "fleet", 0),
        ("n/a", "", "fleet", 2),
        ("n/a", "", "backlog_records", 5),
        ("n/a", "", "workers", 3),
    ]
    found = assemble(15, [*rows, ("n/b", "", "fleet", 2), ("n/b", "", "backlog_records", 7)])
    assert found.stages == (("n/b", ""),)
    assert np.isnan(found.whole("workers")).all()
    assert found.faults == {
        "n/a": "fleets[0] and fleets[2] both find this workload: "
        "change their match, groups or namespace so that one of them does"
    }
