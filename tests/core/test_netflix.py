"""`netflix`: the vectors of S4, by a capacity table and a forecast."""

from math import ceil, nan

import pytest
from builders import Fluid, book, closed, counts, history, job, tick
from hypothesis import assume, given
from hypothesis import strategies as st
from policy_inputs import stage_input, terms, wanted

from adapter.core.decisions import Bound, Reason
from adapter.core.policies import netflix

TABLE = ((4, 10_000), (10, 20_000), (18, 35_000))  # S4-23
NO_PAUSE = {"rescale_pause_s": 0, "sized_utilization_ratio": 1}
UNLIMITED = book(policy="netflix", max_workers=1000)


# input that stays, workers, a utilization that makes it go up or lets it go down -> size
SIZES = {
    "S4-26 5,000: below the lowest record": (5_000, 18, 0.1, 2),
    "S4-23 10,000": (10_000, 18, 0.1, 4),
    "S4-24 12,500: 5.5": (12_500, 18, 0.1, 6),
    "S4-24 15,000": (15_000, 18, 0.1, 7),
    "S4-23 20,000": (20_000, 18, 0.1, 10),
    "S4-24 27,500": (27_500, 18, 0.1, 14),
    "S4-23 35,000": (35_000, 10, 0.81, 18),
    "S4-25 40,000: 20.57": (40_000, 18, 0.81, 21),
    "S4-25 70,000": (70_000, 18, 0.81, 36),
    "S4-10 15,000, up": (15_000, 4, 0.81, 7),
    "S4-26 a low rate: at least 1": (10, 18, 0.01, 1),
    "S4-26 nothing at all: at least 1": (0, 18, 0.0, 1),
    "the table has fewer workers: no scale-up": (15_000, 10, 0.81, 10),
    "the table has more workers: no scale-down": (15_000, 6, 0.1, 6),
}


@pytest.mark.parametrize(("rate", "workers", "cpu", "expected"), SIZES.values(), ids=SIZES)
def test_sizes_of_the_table(rate, workers, cpu, expected):
    assert wanted("netflix", workers, rate, cpu=cpu, records=TABLE, **NO_PAUSE) == expected


RISING = (0.0, 10.0, 10_000.0)  # r(t) = 10 t + 10,000
# buffered, pause, catch-up -> rate -> size. Arrivals in 480 s are 5,952,000
TARGETS = {
    "S4-20 workload: r(480) = 14,800, 6.88": (0, 0, 480, 7),
    "S4-20 recovery: 7,962,000 in 300 s = 26,540, 13.488": (2_010_000, 180, 300, 14),
    "S4-21 what arrives in the pause counts: 19,840, 9.904": (0, 180, 300, 10),
    "S4-19 buffered: 3,162,000 more, 30,380, 15.536": (3_162_000, 180, 300, 16),
}


@pytest.mark.parametrize(("buffered", "pause_s", "catch_up_s", "expected"), TARGETS.values(), ids=TARGETS)
def test_s4_19_s4_20_the_target_is_the_larger_of_recovery_and_workload(buffered, pause_s, catch_up_s, expected):
    size = wanted(
        "netflix", 4, 10_000, 0, buffered, cpu=0.81, records=TABLE, fit=RISING,
        rescale_pause_s=pause_s, catch_up_s=catch_up_s, sized_utilization_ratio=1,
    )  # fmt: skip
    assert size == expected


def test_s4_21_now_is_later_than_the_newest_point_of_the_fit():
    early, late = (
        terms("netflix", 4, 10_000, cpu=0.81, records=TABLE, fit=RISING, fit_age_s=age_s, forecast_cap_ratio=2.0)[1]
        for age_s in (0, 60)
    )
    # r(t3) rises by 600 a minute, in a table with 10,000 for 6 workers there
    assert late - early == pytest.approx(600 / 10_000 * 6)


@pytest.mark.parametrize(
    ("sigma", "cap_ratio", "expected"),
    [(0.0, 10.0, 16_300), (0.0, 1.5, 15_000), (2_600.0, 10.0, 10_000)],
    ids=["the curve at the end of the catch-up", "at most the cap", "not through a step or a burst"],
)
def test_s4_13_a_regression_is_capped_and_used_only_if_its_errors_are_small(sigma, cap_ratio, expected):
    """r(630) = 16 300 is ten minutes beyond the newest point; errors of 2 600 are a quarter of the input and more."""
    costs = {"rescale_pause_s": 30, "catch_up_s": 600, "forecast_cap_ratio": cap_ratio}
    _, keep, _ = terms("netflix", 10, 10_000, cpu=0.81, records=((1, 1000),), fit=RISING, sigma=sigma, **costs)
    assert keep == expected / 1000


def test_s4_20_both_rates_are_reported_as_sizes():
    _, keep, catch = terms("netflix", 4, 10_000, 0, 2_010_000, records=TABLE, fit=RISING,
                           rescale_pause_s=180, catch_up_s=300)  # fmt: skip
    assert (keep, catch) == pytest.approx((6.88, 13.488))


# backlog, utilization, fit -> size. 10 workers, 10,000/s; the table gives 4
DECISIONS = {
    "S4-12 no lag": (0, 0.1, None, 4),
    "S4-12 10 s is no lag; it adds 167/s": (100_000, 0.1, None, 5),
    "S4-12 10.1 s is": (101_000, 0.1, None, 10),
    "S4-12 an increase is anticipated": (0, 0.1, (0, 1, 10_000), 10),
    "S4-12 a falling input": (0, 0.1, (0, -1, 10_000), 4),
    "S4-12 a trough of which the rise is to come": (0, 0.1, (0.01, -1, 10_000), 10),
    "S4-12 an increase below the noise does not count": (0, 0.1, (0, 0.5, 10_000), 5),
    "S4-27 utilization unknown: no down": (0, nan, None, 10),
    "S4-27 utilization 0.36: 6 run at 0.6": (0, 0.36, None, 6),
    "S4-27 above 0.6 and not above 0.8": (0, 0.7, None, 10),
}


@pytest.mark.parametrize(("backlog", "cpu", "fit", "expected"), DECISIONS.values(), ids=DECISIONS)
def test_s4_10_s4_12_up_down_or_stay(backlog, cpu, fit, expected):
    curve = {"fit": fit} if fit else {}
    assert wanted("netflix", 10, 10_000, 0, backlog, cpu=cpu, records=TABLE, rescale_pause_s=0, **curve) == expected


# growth, backlog -> size of 10 workers, full at 10,000/s
CATCHING_UP = {
    "S0-28 the backlog is cleared within catch_up_s": (-1_100, 650_000, 10),
    "S0-28 it is not": (-1_000, 650_000, 15),
    "the window still shows the end of the drain": (-2_000, 0, 10),
    "full, and the backlog falls by less than noise": (-400, 100_000, 16),
}


@pytest.mark.parametrize(("growth", "backlog", "expected"), CATCHING_UP.values(), ids=CATCHING_UP)
def test_full_workers_that_catch_up_in_time_are_enough(growth, backlog, expected):
    assert (
        wanted("netflix", 10, 10_000, growth, backlog, cpu=1.0, records=((10, 10_000),), rescale_pause_s=0) == expected
    )


EARLY = {
    "S4-32 16,300 exceed what 6 workers carry": ({"records": ((6, 13_000),)}, 10),
    "not what 6 of 20,000 carry": ({"records": ((6, 20_000),)}, 6),
    "less twice the error they do not": ({"records": ((6, 13_000),), "sigma": 1_700.0}, 6),
    "an empty table has no answer": ({}, 6),
    "by the text alone lag or utilization decides": ({"records": ((6, 13_000),), "safety": 0}, 6),
}


@pytest.mark.parametrize(("known", "expected"), EARLY.values(), ids=EARLY)
def test_s4_32_a_forecast_above_the_table_scales_up_before_there_is_lag(known, expected):
    costs = {"rescale_pause_s": 30, "catch_up_s": 600, "forecast_cap_ratio": 10.0}
    assert wanted("netflix", 6, 10_000, cpu=0.6, fit=RISING, **costs, **known) == expected


LATE = {
    "S4-10 60 s are not yet a significant lag": (0, 600_000, 0.7, 10),
    "S4-10 61 s are": (0, 610_000, 0.7, 12),
    "S4-10 utilization": (0, 0, 0.81, 14),
    "S4-10 lag, utilization unknown: the table alone": (0, 6_100_000, nan, 11),
    "S4-27 outrun: 15,000/s at 60 %": (5_000, 610_000, 1.0, 25),
    "S4-27 draining at full speed": (-5_000, 610_000, 1.0, 10),
}


@pytest.mark.parametrize(("growth", "backlog", "cpu", "expected"), LATE.values(), ids=LATE)
def test_s4_27_a_new_size_runs_at_60_percent_or_less(growth, backlog, cpu, expected):
    assert wanted("netflix", 10, 10_000, growth, backlog, cpu=cpu, records=TABLE, rescale_pause_s=0) == expected


# T, G, backlog, utilization -> size of 10 workers of whom nothing is recorded
EMPTY = {
    "S4-11 the present size and rate are the first record": ((1000, 500, 100_000), nan, 17),
    "S4-26 nothing is processed: one step up": ((0, 0, 100_000), nan, 11),
    "S4-26 keep size": ((1000, 0, 0), 0.1, 10),
    "S4-26 keep size, though more is processed than arrives": ((1000, -500, 5_000), 0.1, 10),
}


@pytest.mark.parametrize(("cpu", "safety", "expected"), [(0.905, 1, 15), (0.905, 0, 16), (0.92, 1, 16)])
def test_s4_27_a_measured_utilization_is_exact_to_one_percent(cpu, safety, expected):
    assert wanted("netflix", 10, 9_000, cpu=cpu, records=((10, 10_000),), safety=safety, rescale_pause_s=0) == expected


@pytest.mark.parametrize(("numbers", "cpu", "expected"), EMPTY.values(), ids=EMPTY)
def test_s4_26_an_empty_table_sizes_by_the_present_record(numbers, cpu, expected):
    assert wanted("netflix", 10, *numbers, cpu=cpu, rescale_pause_s=0) == expected


def test_s4_26_a_table_of_one_record_is_proportional_both_ways():
    up, down = (
        wanted("netflix", workers, rate, cpu=cpu, records=((10, 1000),), **NO_PAUSE)
        for workers, rate, cpu in [(10, 1500, 0.9), (10, 500, 0.1)]
    )
    assert (up, down) == (15, 5)


# partitions, slots a worker, input, (workers, utilization) -> size
SPREAD = {
    "P=64: 20 leave 4 each, 22 leave 3": (64, 1, 38_500, (18, 0.81), 22),
    "P=8: 3 leave 3 each, 4 leave 2": (8, 1, 5_700, (2, 0.81), 4),
    "P=8, down as well": (8, 1, 5_700, (8, 0.01), 4),
    "S4-36 P=8: 3 of 2 slots leave 2 each, 4 leave 1": (8, 2, 5_700, (2, 0.81), 4),
    "P=8: 4 are even": (8, 1, 10_000, (2, 0.81), 4),
    "unknown": (nan, 1, 38_500, (18, 0.81), 20),
}


@pytest.mark.parametrize(("partitions", "slots", "rate", "now", "expected"), SPREAD.values(), ids=SPREAD)
def test_s4_37_sizes_are_rounded_up_to_an_even_spread(partitions, slots, rate, now, expected):
    workers, cpu = now
    more = NO_PAUSE | {"partitions": partitions, "slots_per_worker": slots}
    assert wanted("netflix", workers, rate, cpu=cpu, records=TABLE, **more) == expected


def test_s4_28_a_rounded_scale_down_never_becomes_a_scale_up():
    assert wanted("netflix", 3, 10_000, cpu=0.1, records=((3, 10_100),), partitions=8, **NO_PAUSE) == 3


def test_s4_05_s4_28_a_scale_down_carries_the_present_input():
    size = wanted("netflix", 18, 15_000, cpu=0.1, records=TABLE, fit=(0, -100, 15_000), **NO_PAUSE)
    assert size == 7


def test_s4_22_a_rate_that_would_fall_below_zero_is_zero():
    _, _, catch = terms("netflix", 10, 1000, records=TABLE, fit=(0, -5, 1000), rescale_pause_s=0, catch_up_s=1000)
    assert catch == pytest.approx(100 / 10_000 * 4)  # 100,000 records in 200 s, then none


@pytest.mark.parametrize(("arriving", "workers", "pause_s"), [(1500, 10, 30), (300, 30, 180), (5000, 10, 60)])
def test_a_steady_input_takes_one_rescale(arriving, workers, pause_s):
    sizes, waiting = [workers], 0.0
    for _ in range(6):  # five minutes each, 100 records/s a worker
        able = 100 * sizes[-1]
        waiting = max(0.0, waiting + 300 * (arriving - able))
        passed = able if waiting else arriving
        sizes.append(wanted("netflix", sizes[-1], passed, arriving - passed, waiting, cpu=passed / able,
                            records=((10, 1000),), rescale_pause_s=pause_s))  # fmt: skip
        waiting += arriving * pause_s * (sizes[-1] != sizes[-2])
    assert set(sizes[1:]) == {ceil(arriving / 60 * 0.99)}


def test_s4_29_a_scale_up_adds_at_most_50_workers_and_blocks_the_next_one_for_5_minutes():
    """40 000/s need 660 workers. A tick of 30 s shows each change, and decisions are made each minute."""
    decided = closed(Fluid(lambda at_s: 9000.0 if at_s < 300 else 40_000.0, workers=149), 800, UNLIMITED)
    scale_ups = [d for d in decided if d.reason == Reason.UP]
    assert [(d.required_workers, d.bound) for d in scale_ups] == [(199, Bound.STEP), (249, Bound.STEP)]
    assert scale_ups[1].at_s - scale_ups[0].at_s == 30 + 300 + 30


def test_s4_29_any_change_blocks_a_scale_down_for_30_minutes():
    load = {0: 900.0, 300: 2400.0, 660: 300.0}
    running = Fluid(lambda at_s: load[max(since for since in load if since <= at_s)], workers=14)
    up, down = [d for d in closed(running, 2400, UNLIMITED) if d.reason in (Reason.UP, Reason.DOWN)]
    assert (up.reason, down.reason, down.at_s - up.at_s) == (Reason.UP, Reason.DOWN, 30 + 1800 + 30)


@given(st.integers(1, 200), st.floats(1, 1e6), st.floats(0.01, 1), st.floats(0, 1e8))
def test_p_03_s4_27_cpu_work_is_conserved_and_fits_the_new_size(workers, rate, cpu, backlog):
    size = wanted("netflix", workers, rate, 0, backlog, cpu=cpu, records=TABLE)
    assume(size != workers)
    assert workers * cpu / size <= 0.6 / 0.99 + 1e-6


def test_the_needed_size_is_reported_without_a_change():
    policy_result = netflix.size(stage_input(10, 10_000, 0, 300_000, cpu=0.1, records=TABLE, rescale_pause_s=0))
    assert policy_result.wanted_workers == 10
    assert policy_result.needed_workers == 5  # 10,500/s: 4.3


def test_s4_29_a_stop_of_a_job_that_was_never_rescaled_begins_no_cooldown():
    def seen(at_s):
        stopped_s = min(max(at_s - 105, 0), 45)
        processed = 1000 * (at_s - stopped_s)
        flow = {"processed_records": processed, "appended_records": 1000 * at_s, "backlog_records": 1000 * stopped_s}
        return tick(at_s, job(**counts(10), **flow, utilization_ratio=0.3))

    found = history([seen(at_s) for at_s in range(0, 900, 15)], book(policy="netflix", no_backlog_time_s=60.0))
    assert found[-1].required_workers == 5
