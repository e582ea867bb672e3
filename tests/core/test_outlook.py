"""The expected backlog with and without a change: worked numbers and laws."""

from dataclasses import replace

import pytest
from builders import column, policy_input
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.policies.outlook import look_ahead
from adapter.core.signals import HORIZON_S

FREE = {"policy": "drain", "rescale_pause_s": 0.0, "worker_start_s": 0.0, "warm_up_s": 0.0, "forecast_horizon_s": 900.0}
rates = st.floats(0.01, 1e6)
backlogs = st.one_of(st.just(0.0), st.floats(0.01, 1e9))


def ahead(rate, backlog, capacities, highest=None, **rules):
    """The outlook of one stage. capacities: of the present size and of the other one."""
    stage = policy_input(10, rate, 0, backlog, **FREE | rules)
    stage = replace(stage, input_rate_records_per_s=column(rate))
    found = look_ahead(stage, column(rate if highest is None else highest), *(column(each) for each in capacities))
    return {name: getattr(found, name)[0] for name in found.__dataclass_fields__}


def test_a_growing_backlog_is_longest_at_the_end():
    found = ahead(1500, 0, (1000, 2000))
    assert (found["late"], found["keep_behind_s"], found["keep_after_s"]) == (True, 450, 900)
    assert (found["change_behind_s"], found["caught_up_s"]) == (0, 0)


def test_a_draining_backlog_is_longest_now():
    found = ahead(500, 30_000, (1000, 2000))
    assert (found["late"], found["keep_behind_s"], found["keep_after_s"]) == (False, 30, 0)
    assert found["caught_up_s"] == 30  # 20 s in steps of 30


def test_a_backlog_that_ends_after_the_horizon_ends_when_the_forecast_leaves_capacity_for_it():
    """100/s are left for 120 000 records: 30 000 of them after the 900 s of the horizon."""
    assert ahead(900, 120_000, (500, 1000))["caught_up_s"] == 1200
    assert ahead(1000, 120_000, (500, 1000))["caught_up_s"] == HORIZON_S


def test_a_change_costs_its_start_and_its_pause():
    """The first half of a minute of 1000/s is processed: 30 000 wait, and drain at 1000/s."""
    found = ahead(1000, 0, (1000, 2000), rescale_pause_s=30.0, worker_start_s=30.0)
    assert (found["keep_behind_s"], found["change_behind_s"], found["caught_up_s"]) == (0, 15, 90)


def test_s0_21_records_since_the_last_checkpoint_are_processed_again():
    found = ahead(1000, 0, (1000, 2000), replay_s=60.0)
    assert (found["change_behind_s"], found["caught_up_s"]) == (15, 30)


def test_a_slow_start_after_the_pause_costs_a_quarter_of_the_warm_up():
    """30 s of the pause and 45 s of the warm-up at 1000/s; without a pause workers join a job that is warm."""
    found = ahead(1000, 0, (1000, 2000), rescale_pause_s=30.0, warm_up_s=180.0)
    assert (found["change_behind_s"], found["caught_up_s"]) == (37.5, 120)
    assert ahead(1000, 0, (1000, 2000), warm_up_s=180.0)["change_behind_s"] == 0


def test_the_input_rises_evenly_to_the_forecast():
    """From 1000/s to 1500/s where 1000/s are carried: 250/s on average, for 900 s."""
    found = ahead(1000, 0, (1000, 2000), highest=1500)
    assert found["keep_behind_s"] == pytest.approx(225)


def test_a_job_that_catches_up_in_time_is_not_late():
    waits = (500, 70_000, (1000, 2000))
    assert not ahead(*waits)["late"]
    assert ahead(*waits, worker_start_s=0.0, backlog_time_target_s=30.0)["late"]
    assert not ahead(*waits, worker_start_s=120.0, backlog_time_target_s=30.0)["late"]


def test_the_end_counts_even_if_workers_start_beyond_the_horizon():
    assert ahead(1500, 0, (1000, 2000), worker_start_s=3600.0)["late"]


def test_a_job_without_capacity_is_behind_for_ever():
    found = ahead(100, 100, (0, 0))
    assert (found["late"], found["keep_behind_s"], found["change_behind_s"], found["caught_up_s"]) == (
        True,
        HORIZON_S,
        HORIZON_S,
        HORIZON_S,
    )


def test_the_horizon_covers_ten_pauses():
    assert ahead(1010, 0, (1000, 2000), rescale_pause_s=600.0)["keep_after_s"] == 6000


@given(rates, rates, st.tuples(backlogs, backlogs))
def test_more_backlog_is_never_less_late_and_never_ends_sooner(rate, capacity, waiting):
    less, more = (ahead(rate, backlog, (capacity, 2 * capacity)) for backlog in sorted(waiting))
    assert less["late"] <= more["late"]
    assert less["keep_behind_s"] <= more["keep_behind_s"]
    assert less["caught_up_s"] <= more["caught_up_s"]


@given(st.tuples(rates, rates), rates, backlogs)
def test_more_input_is_never_less_late(inputs, capacity, backlog):
    less, more = (ahead(rate, backlog, (capacity, 2 * capacity)) for rate in sorted(inputs))
    assert less["late"] <= more["late"]
    assert less["change_behind_s"] <= more["change_behind_s"]


@given(rates, backlogs, st.tuples(rates, rates))
def test_more_capacity_is_never_further_behind(rate, backlog, capacities):
    smaller, larger = sorted(capacities)
    less, more = ahead(rate, backlog, (smaller, smaller)), ahead(rate, backlog, (larger, larger))
    assert less["late"] >= more["late"]
    assert less["keep_behind_s"] >= more["keep_behind_s"]
