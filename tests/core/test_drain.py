"""`drain`: S3's formula without costs, and the workers that each cost adds."""

from dataclasses import replace
from math import ceil, inf, nan

import numpy as np
import pytest
from builders import book, column, counts, history, job, tick
from hypothesis import given
from hypothesis import strategies as st
from policy_inputs import bounded, stage_input

from adapter.core.capacity import CARRIED, ESTIMATED, PRIOR
from adapter.core.decisions import Bound
from adapter.core.policies import drain

# No pause, no replay, linear scaling, no forecast, no headroom, no tolerance: then it is S3's formula.
FREE = {
    "rescale_pause_s": 0.0,
    "worker_start_s": 0.0,
    "replay_s": 0.0,
    "scaling_exponent": 1.0,
    "forecast_horizon_s": 0.0,
    "target_utilization_ratio": 1.0,
    "high_utilization_ratio": 1.0,
    "tolerance_ratio": 0.0,
}
CALM = {"rescale_pause_s": 30.0, "scaling_exponent": 1.0, "forecast_horizon_s": 0.0}  # else the defaults
FORESEEING = {"forecast_horizon_s": 900.0}

rates = st.floats(0.01, 1e6)
growths = st.floats(0, 1e6)
backlogs = st.one_of(st.just(0.0), st.floats(0.01, 1e9))
sizes = st.integers(1, 200)
times = st.floats(5, 3600)


def policy_result(*numbers, confidence=None, **more):
    """The result for one stage whose size has its throughput as observed capacity, or `records`."""
    workers, throughput, _, backlog = (*numbers, 0, 0)[:4]
    known = {"policy": "drain", "records": ((workers, throughput),), "saturated": backlog > 10 * throughput}
    stage = stage_input(*numbers, **known | more)
    if confidence is not None:
        levels = np.where(stage.table.confidence > 0, confidence, np.nan)
        stage = replace(stage, table=replace(stage.table, confidence=levels))
    return drain.size(stage)


def wanted(*numbers, **more):
    return policy_result(*numbers, **more).wanted_workers[0]


def needed(*numbers, **more):
    return policy_result(*numbers, **more).needed_workers[0]


def whole(size):
    return ceil(size - 1e-9)


# --- where nothing costs anything


@given(sizes, rates, growths, backlogs, times)
def test_s3_06_s3_07_p_01_p_02_without_any_cost_the_size_is_keep_up_plus_catch_up(workers, rate, growth, backlog, time):
    total = workers * (rate + growth) / rate + workers * backlog / rate / time
    found = policy_result(workers, rate, growth, backlog, backlog_time_target_s=time, **FREE)
    assert found.catch_up_workers[0] == pytest.approx(total)
    assert found.needed_workers[0] in {whole(total * (1 - 1e-12)), whole(total * (1 + 1e-12))}


# S3 and S0: M, T, G, B s, R -> total; the larger of several stages is the engine's (S3-08)
S3 = {
    "S3: balance": ((10, 100, 0, 0, 60), 10),
    "S3-06: growth": ((10, 100, 50, 0, 60), 15),
    "S3-06 S3-07: growth and backlog": ((10, 100, 50, 30, 60), 20),
    "S3-07: backlog": ((10, 100, 0, 60, 60), 20),
    "S3-07 X-10: 12.5 is 13": ((10, 100, 0, 15, 60), 13),
    "S3: R is 90 s of backlog": ((4, 1000, 250, 90, 60), 11),
    "S3-08: the first of two stages": ((10, 100, 50, 30, 60), 20),
    "S3-08: the second of two stages": ((10, 500, 0, 90, 60), 25),
    "S0-08 a": ((10, 1000, 200, 180, 60), 42),
    "S0-07 c": ((10, 1000, 0, 180, 60), 40),
    "S0-06 d": ((10, 1000, 200, 60, 60), 22),
    "S0 e: hot without backlog, as S0's formula": ((10, 1000, 0, 0, 60), 10),
    "S0-28 180 s": ((10, 1000, 500, 30, 60), 20),
    "S0-28 360 s": ((10, 1000, 500, 120, 60), 35),
    "S0-28 361 s": ((10, 1000, 500, 120.5, 60), 36),
}


@pytest.mark.parametrize(("numbers", "total"), S3.values(), ids=S3)
def test_the_worked_vectors_of_s3_and_s0(numbers, total):
    workers, rate, growth, late_s, time_s = numbers
    assert needed(workers, rate, growth, late_s * rate, backlog_time_target_s=time_s, **FREE) == total


def test_s0_08_b_the_maximum_is_a_bound():
    assert bounded(needed(10, 1000, 200, 180_000, **FREE), 10, max_workers=40) == (40, Bound.MAX)


def test_x_03_h_a_draining_job_is_sized_by_its_input():
    assert needed(10, 1000, -200, 180_000, **FREE) == 8 + 30  # S0 and S3 floor the growth at 0 and have 10 + 30


# --- the costs of a rescale


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        ({}, 10),
        ({"target_utilization_ratio": 0.75}, 14),  # 13.3
        ({"target_utilization_ratio": 0.8, "min_spare_workers": 2}, 15),  # 12.5, and 2
        ({"rescale_pause_s": 270.0}, 12),  # 1 + 270 / 1800: half an hour to catch up without headroom
        ({"rescale_pause_s": 270.0, "replay_s": 180.0}, 12),  # 1 + 360 / 1800
        ({"rescale_pause_s": 270.0, "replay_s": 240.0}, 13),  # 1 + 390 / 1800
        ({"rescale_pause_s": 270.0, "warm_up_s": 480.0}, 13),  # a quarter of it is lost: 1 + 390 / 1800
        ({"warm_up_s": 360.0}, 10),  # without a pause there is no warm-up
        ({"target_utilization_ratio": 0.5, "rescale_pause_s": 900.0}, 20),  # the headroom is enough
        ({"target_utilization_ratio": 0.95, "rescale_pause_s": 60.0, "warm_up_s": 180.0}, 11),  # not 12
    ],
    ids=[
        "none",
        "headroom",
        "headroom and spare",
        "pause",
        "pause and short replay",
        "pause and replay",
        "pause and warm-up",
        "warm-up",
        "long pause and headroom",
        "high utilization",
    ],
)
def test_each_cost_adds_its_workers(costs, expected):
    assert needed(10, 1000, **FREE | {"warm_up_s": 0.0} | costs) == expected


def test_a_size_that_partitions_are_rounded_to_is_expected_to_carry_its_share():
    """Of 12 partitions the fullest of 5 workers owns 3, as the fullest of 4 does. 4 workers were once slow."""
    calm = {"target_utilization_ratio": 0.75, "high_utilization_ratio": 1.0, "partitions": 12}
    result = policy_result(12, 330, records=((4, 120), (12, 3000)), **FREE | calm)
    assert (result.wanted_workers[0], result.outlook.change_behind_s[0]) == (4, 0)


@pytest.mark.parametrize(("workers", "carries", "expected"), [(36, 900, 36), (36, 1100, 30), (33, 900, 33)])
def test_an_even_size_that_does_not_carry_the_input_is_not_rounded_to(workers, carries, expected):
    """Of 180 partitions the fullest of 31 to 35 workers owns 6, as the fullest of 30 does; 33 are no scale-up to 36."""
    costs = FREE | {"target_utilization_ratio": 0.8, "partitions": 180}
    result = policy_result(workers, 1000, records=((30, carries), (workers, workers * 1500 / 36)), **costs)
    assert result.wanted_workers[0] == expected


def test_s4_20_the_larger_of_keeping_up_and_catching_up_counts():
    both = FREE | {"target_utilization_ratio": 0.5}
    assert (needed(10, 1000, 0, 30_000, **both), needed(10, 1000, 0, 120_000, **both)) == (20, 30)


def test_s4_25_capacity_above_the_largest_size_grows_with_a_power():
    linear, less = (needed(10, 1000, 1000, **FREE | {"scaling_exponent": exponent}) for exponent in (1.0, 0.5))
    assert (linear, less) == (20, 40)


def test_s4_24_capacity_between_sizes_is_interpolated():
    table = ((4, 10_000), (10, 20_000), (18, 35_000))
    assert needed(10, 20_000, -5_000, records=table, **FREE) == 7
    assert needed(10, 20_000, 7_500, records=table, **FREE) == 14


# --- up


def test_scale_up_only_if_the_present_size_misses_the_target():
    """100/s pile up, 1000/s are processed: after 900 s it is 90 s behind."""
    assert wanted(10, 1000, 100, **CALM) == 14
    assert wanted(10, 1000, 5, **CALM) == 10  # 4.5 s behind, though 13 would be needed


def behind(seconds, **rules):
    """One partition is this far behind, while 90 % of the capacity arrives and the whole backlog is small."""
    stage = stage_input(100, 9000, 0, 900, policy="drain", records=((100, 10_000),), **CALM | rules)
    return drain.size(replace(stage, partition_behind_s=column(seconds))).wanted_workers[0] > 100


@pytest.mark.parametrize(("seconds", "goes_up"), [(nan, False), (60.0, False), (61.0, True)])
def test_s4_38_scale_up_if_one_partition_misses_the_target(seconds, goes_up):
    assert behind(seconds) == goes_up


@pytest.mark.parametrize(
    ("delay_s", "pause_s", "limit_s"),
    [
        pytest.param(0, 10, 60, id="metrics are on time"),
        pytest.param(20, 10, 40, id="it has fallen behind for 20 s since the sample"),
        pytest.param(120, 10, 30, id="half of the target at least"),
        pytest.param(120, 50, 50, id="a rescale takes longer"),
        pytest.param(120, 90, 60, id="a rescale takes longer than the target"),
    ],
)
def test_late_metrics_bring_forward_the_scale_up_for_a_partition(delay_s, pause_s, limit_s):
    rules = {"metric_delay_s": delay_s, "rescale_pause_s": pause_s, "warm_up_s": 0}
    assert not behind(float(limit_s), **rules)
    assert behind(limit_s + 1.0, **rules)


def test_scale_up_if_the_backlog_would_outlast_the_horizon():
    assert wanted(10, 1000, 0, 30_000, **CALM) == 13
    assert wanted(10, 1000, -30, 30_000, **CALM) == 10


def test_no_scale_up_if_the_backlog_ends_before_a_change_could_help():
    """80 s behind, and 1000/s more are processed than arrive: a minute later it is 50 s, two minutes later 20 s."""
    draining, hurried = (10, 2000, -1000, 160_000), FREE | {"backlog_time_target_s": 45.0}
    assert needed(*draining, **hurried) == 23
    assert wanted(*draining, **hurried | {"worker_start_s": 90.0}) == 10
    assert wanted(*draining, **hurried) == 23


def test_no_scale_up_if_the_load_needs_no_more_workers():
    assert wanted(10, 1000, -600, 70_000, **CALM) == 10  # 70 s behind, but gone in 2 min


@pytest.mark.parametrize(
    ("growth", "delay_s", "more"),
    [
        pytest.param(1000, 0.0, 0, id="metrics are on time"),
        pytest.param(1000, 120.0, 2, id="1 000/s have waited for 120 s since the sample: 200/s for 10 min"),
        pytest.param(-100, 120.0, 0, id="the workers carry the input"),
    ],
)
def test_a_new_size_clears_what_late_metrics_do_not_show_yet(growth, delay_s, more):
    """10 workers of 100/s each."""
    sizes = [policy_result(10, 1000, growth, metric_delay_s=s, **CALM).catch_up_workers[0] for s in (0.0, delay_s)]
    assert sizes[1] - sizes[0] == pytest.approx(more)


@pytest.mark.parametrize(("tolerance", "size"), [(0.0, 109), (0.05, 109), (0.1, 111), (0.5, 151)])
def test_x_07_a_scale_up_exceeds_the_tolerance_of_an_hpa(tolerance, size):
    late = FREE | {"backlog_time_target_s": 10.0, "rescale_pause_s": 200.0, "warm_up_s": 0.0}
    late |= {"tolerance_ratio": tolerance, "target_utilization_ratio": 0.75}
    assert (needed(100, 1000, -300, 90_000, **late), wanted(100, 1000, -300, 90_000, **late)) == (109, size)


# --- down


def test_s0_11_s3_11_scale_down_without_backlog_and_growth():
    assert wanted(10, 300, **CALM, records=((10, 1000),)) == 4
    assert wanted(10, 300, 0, 3_000, **CALM, records=((10, 1000),)) == 10  # 10 s wait
    assert wanted(10, 300, 100, 0, **CALM, records=((10, 1000),)) == 10  # it grows


def test_a_smaller_change_than_the_tolerance_is_not_worth_a_rescale():
    assert wanted(10, 660, **CALM, records=((10, 1000),)) == 10  # 9 are needed
    assert wanted(10, 660, **CALM, records=((10, 1000),), tolerance_ratio=0.05) == 9


def test_x_02_an_idle_job_needs_only_the_spare_workers():
    assert wanted(10, 0, 0, 0, records=()) == 0
    assert wanted(10, 0, 0, 0, records=(), min_spare_workers=3) == 3


def test_s4_26_capacity_below_the_smallest_size_is_linear():
    assert needed(10, 100, **FREE | {"scaling_exponent": 0.5}, records=((10, 1000),)) == 1


# --- partitions


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [(nan, 13), (1000, 13), (48, 12), (16, 16), (8, 13)],
    ids=["unknown", "many", "12 have four of 48 each", "two of 16 are too much", "fewer than needed: a bound cuts it"],
)
def test_s4_37_partitions_spread_evenly_over_the_size(partitions, expected):
    assert needed(10, 1000, partitions=partitions, **CALM) == expected


def test_s4_36_partitions_spread_over_subtasks():
    assert needed(10, 1000, partitions=48, slots_per_worker=2, **CALM) == 12
    assert needed(10, 1000, partitions=48, slots_per_worker=3, **CALM) == 16


@pytest.mark.parametrize(
    ("input_rate", "backlog", "most", "expected"),
    [(2700, 270_000, 60, 45), (2700, 200_000, 60, 36), (3360, 0, 60, 36), (2700, 270_000, 44, 36)],
    ids=[
        "42 catch up, 45 is nearer than 36",
        "40 catch up, 36 is nearer",
        "42 without a backlog",
        "45 exceeds the most",
    ],
)
def test_a_scale_up_that_catches_up_takes_the_nearest_size_that_spreads_evenly(input_rate, backlog, most, expected):
    """Of 180 partitions the fullest worker owns five with 36 workers, four with 45."""
    rules = CALM | {"high_utilization_ratio": 1.0, "most": most}
    assert needed(10, 1000, input_rate - 1000, backlog, partitions=180, **rules) == expected


def test_a_size_above_the_partitions_is_left_to_the_bound():
    assert wanted(8, 800, 400, 40_000, partitions=8, **CALM) == 16


# --- unknown inputs


def test_with_only_a_lower_bound_a_share_of_the_workers_is_removed():
    found = policy_result(10, 1000, confidence=CARRIED, saturated=False, **CALM)
    assert (found.wanted_workers[0], found.needed_workers[0]) == (8, 8)
    assert np.isnan([found.outlook.keep_behind_s[0], found.outlook.change_behind_s[0]]).all()
    assert wanted(10, 1000, confidence=CARRIED, saturated=False, probe_ratio=0.0, **CALM) == 10


def test_a_probe_never_exceeds_the_size_of_the_carried_load():
    assert needed(10, 100, records=((10, 1000),), confidence=CARRIED, saturated=False, **CALM) == 2


@pytest.mark.parametrize(
    ("workers", "partitions", "rules", "size"),
    [
        pytest.param(12, 12, {}, 6, id="10 workers own as many partitions as 6"),
        pytest.param(8, 12, {}, 6, id="as many for the fullest as now"),
        pytest.param(12, 24, {"slots_per_worker": 2}, 6, id="two subtasks a worker"),
        pytest.param(4, 12, {}, 4, id="a fifth less is no whole worker"),
        pytest.param(4, 6, {}, 4, id="a fifth less is no whole worker, and the spread is uneven"),
        pytest.param(11, 12, {"probe_ratio": 0.0}, 11, id="switched off"),
    ],
)
def test_a_probe_takes_the_fewest_workers_that_spread_as_evenly(workers, partitions, rules, size):
    known = CALM | {"confidence": CARRIED, "saturated": False} | rules
    assert wanted(workers, 1000, partitions=partitions, **known) == size


@pytest.mark.parametrize("workers", [10, 12])
def test_a_late_partition_needs_an_even_spread_also_if_the_capacity_is_unknown(workers):
    known = CALM | {"confidence": CARRIED, "saturated": False}
    assert wanted(workers, 1000, partitions=12, partition_behind_s=200.0, **known) == 12


def test_a_backlog_between_two_commits_ends_no_probe_but_delays_it():
    """Otherwise a load with noise would always need all workers within the scale-down window."""
    known = stage_input(10, 1000, 0, 900, policy="drain", records=((10, 1000),), saturated=False, **CALM)
    lower_bound = replace(known.table, confidence=np.where(known.table.confidence > 0, CARRIED, np.nan))
    found = drain.size(replace(known, table=lower_bound, highest_backlog_records=column(600.0)))
    assert (found.wanted_workers[0], found.needed_workers[0]) == (10, 8)


@pytest.mark.parametrize("partitions", [nan, 72])
@pytest.mark.parametrize(("carries", "size"), [(1100, 9), (1240, 9), (1300, 8)])
def test_no_size_is_tried_that_is_known_not_to_carry_the_input_with_headroom(carries, size, partitions):
    """Of ten workers only a lower bound is known. 1 250/s are necessary for an input of 1 000/s."""
    known = stage_input(
        10, 1000, policy="drain", records=((8, carries), (10, 1400)), saturated=False, partitions=partitions, **CALM
    )
    levels = known.table.confidence.copy()
    levels[known.table.sizes == 10] = CARRIED
    found = drain.size(replace(known, table=replace(known.table, confidence=levels)))
    assert found.needed_workers[0] == size


def test_a_probe_keeps_one_worker():
    assert needed(1, 1000, confidence=CARRIED, saturated=False, **CALM) == 1


def test_without_a_capacity_there_is_no_scale_up():
    assert wanted(10, 1000, 500, 0, records=(), **CALM) == 10


@pytest.mark.parametrize("confidence", [PRIOR, ESTIMATED])
def test_configured_and_estimated_capacities_size_like_observed_ones(confidence):
    assert wanted(10, 1000, 500, confidence=confidence, **CALM) == 19


@pytest.mark.parametrize("signal", ["workers", "throughput", "growth", "backlog"])
def test_x_06_an_unknown_input_gives_no_size(signal):
    known = {"workers": 10, "throughput": 1000, "growth": 500, "backlog": 90_000}
    stage = stage_input(*(known | {signal: nan}).values(), policy="drain", records=((10, 1000),), saturated=True)
    assert np.isnan(drain.size(stage).wanted_workers[0])


def test_x_01_huge_counts_are_sized_without_overflow():
    assert 0 < wanted(2.0**20, 1e-8, 2.0**63, 2.0**63, records=((2.0**20, 1.0),)) < inf


# --- strength: records change size


def test_saturated_workers_show_that_records_became_larger():
    heavy = {"records": ((10, 1000), (20, 2000)), **FREE}
    assert needed(10, 500, 0, 30_000, **heavy) == 20  # half of the capacity: 10 + 10
    assert needed(10, 500, 0, 0, saturated=False, **heavy) == 5  # workers that are not saturated do not show it


def test_a_throughput_above_the_table_shows_that_records_became_smaller():
    assert needed(10, 2000, 0, 0, records=((10, 1000),), saturated=False, **FREE) == 10


# --- forecast


@given(sizes, rates, st.floats(-1, 1), st.floats(0.1, 3), st.booleans())
def test_s4_32_a_forecast_raises_the_size_and_never_lowers_it(workers, rate, slope, level, horizon):
    fit = (0.0, slope * rate / 900, level * rate)
    known = {"forecast_horizon_s": 900.0 * horizon, "rescale_pause_s": 30.0}
    assert needed(workers, rate, fit=fit, **known) >= needed(workers, rate, **known)


def test_s4_12_an_expected_increase_prevents_a_scale_down():
    rises = CALM | {"fit": (0.0, 0.2, 300.0), "records": ((10, 1000),)}  # 480/s, cut to 450
    assert (wanted(10, 300, **rises | FORESEEING), wanted(10, 300, **rises)) == (6, 4)


def test_s4_32_the_forecast_scales_up_before_there_is_a_backlog():
    coming = CALM | {"fit": (0.0, 1.0, 1000.0)}
    assert (wanted(10, 1000, **coming | FORESEEING), wanted(10, 1000, **coming)) == (19, 10)


@pytest.mark.parametrize(("latest", "size"), [(nan, 19), (1200, 19), (1800, 23), (9000, 29)])
def test_a_scale_up_follows_the_newest_input_within_the_cap_of_the_forecast(latest, size):
    """Most of a rate's window is from before a step of the input; unknown changes nothing."""
    assert wanted(10, 1000, 500, latest=latest, **CALM) == size
    assert wanted(10, 1000, 0, latest=latest, **CALM) == 10


COSTS = {"worker_start_s": 30.0, "rescale_pause_s": 10.0, "warm_up_s": 0.0, "metric_delay_s": 0.0}


@pytest.mark.parametrize(
    ("rise", "costs", "size"),
    [
        (nan, {}, 19),
        (0.0, {}, 19),
        (5.0, {}, 22),  # 1500 + 5 * 40
        (5.0, {"metric_delay_s": 60.0}, 25),  # 1500 + 5 * 100
        (5.0, {"warm_up_s": 60.0}, 25),
        (5.0, {"cooldown_up_s": 70.0}, 25),
        (100.0, {}, 38),  # at most twice
    ],
)
def test_a_scale_up_carries_the_rise_of_the_input_until_the_next_one_can_follow(rise, costs, size):
    """10 workers of 100/s each, at an input of 1500/s."""
    known = CALM | COSTS | costs
    assert wanted(10, 1000, 500, latest=1500, rise=rise, **known) == size
    assert wanted(10, 1000, 500, latest=nan, rise=rise, **known) == 19


@pytest.mark.parametrize(
    ("latest", "confirmed", "rise", "size"),
    [
        pytest.param(3000, 1000, 0.0, 10, id="a step that may have begun within the tick"),
        pytest.param(3000, 1000, nan, 10, id="a step after an unknown rise"),
        pytest.param(3000, 1000, 1.0, 10, id="a step after a rise within the noise"),
        pytest.param(3000, 2000, 0.0, 10, id="a step of which the tick before shows a part"),
        pytest.param(3000, 1000, 30.0, 44, id="an input that rose before, too"),
        pytest.param(3000, 3000, 0.0, 38, id="a step that two ticks have shown, whatever the forecast's limit"),
        pytest.param(1900, 1600, 0.0, 24, id="within the headroom"),
        pytest.param(3000, nan, 0.0, 29, id="unknown"),
    ],
)
def test_a_scale_up_waits_until_a_tick_shows_the_whole_step(latest, confirmed, rise, size):
    """10 workers of 100/s each, at an input of 1500/s in the mean of the window."""
    known = CALM | COSTS
    found = policy_result(10, 1000, 500, latest=latest, confirmed=confirmed, rise=rise, **known)

    assert (found.wanted_workers[0], found.outlook.in_step[0]) == (size, size == 10)


def test_a_scale_up_waits_for_the_newest_rate_after_a_missing_sample():
    found = policy_result(10, 1000, 500, resumes=True, **CALM)
    assert (found.wanted_workers[0], found.outlook.in_step[0]) == (10, 1)
    assert wanted(10, 1000, 500, **CALM) == 19


@pytest.mark.parametrize(
    ("missing_s", "at_s", "size"),
    [
        pytest.param((615,), 645, 44, id="the tick after next shows the whole step"),
        pytest.param(range(15, 900, 30), 630, 26, id="no wait where every second sample is missing"),
    ],
)
def test_the_first_scale_up_after_a_missing_sample(missing_s, at_s, size):
    """10 workers of 100/s each; the input steps from 700/s to 3 000/s at 607 s."""

    def seen(at_s):
        came, went = 700 * at_s + 2300 * max(0, at_s - 607), 700 * at_s + 300 * max(0, at_s - 607)
        flows = {"appended_records": came, "processed_records": went, "backlog_records": came - went}
        return tick(at_s, job(**counts(10), **({} if at_s in missing_s else flows)))

    rules = book(policy="drain", worker_capacity_records_per_s=100, rescale_pause_s=30.0, metric_delay_s=0.0)
    found = history([seen(float(tick_s)) for tick_s in range(0, 750, 15)], rules)
    assert next((d.at_s, d.required_workers) for d in found if d.required_workers not in (None, 10)) == (at_s, size)


@pytest.mark.parametrize("tick_s", [15, 30])
@pytest.mark.parametrize("times", [1.3, 2.0])
def test_a_rise_in_every_tick_delays_a_scale_up_by_two_ticks_at_most(tick_s, times):
    """10 workers of 100/s each process 700/s, and the input rises from 600 s on."""
    at_s = np.arange(0, 901, tick_s)
    rates = 700 * times ** np.maximum(0, (at_s - 600) / tick_s)
    appended = np.cumsum(rates * tick_s)
    processed = np.cumsum(np.minimum(rates, 1000) * tick_s)
    ticks = [
        tick(
            float(now_s), job(**counts(10), appended_records=came, processed_records=went, backlog_records=came - went)
        )
        for now_s, came, went in zip(at_s, appended, processed, strict=True)
    ]
    rules = book(policy="drain", worker_capacity_records_per_s=100, rescale_pause_s=30.0, warm_up_s=60.0,
                 worker_start_s=60.0, metric_delay_s=0.0, rate_window_s=60)  # fmt: skip
    found = {d.at_s: d.required_workers for d in history(ticks, rules)}
    short = next(now_s for now_s, rate in zip(at_s, rates, strict=True) if rate > 1000)
    assert found[600] == 10
    assert found[short + 2 * tick_s] > 10


@pytest.mark.parametrize("up_backlog_time_s", [20.0, 120.0])
def test_a_parameter_of_another_policy_delays_no_scale_down(up_backlog_time_s):
    level = {"level": True, "cpu": 0.3, "up_backlog_time_s": up_backlog_time_s}
    assert wanted(10, 1000, 0, 30_000, saturated=False, records=((10, 3000),), **CALM, **level) == 5


def test_a_rise_is_not_added_to_an_expected_event():
    sizes = []
    for rise in (0.0, 10.0):
        stage = stage_input(10, 1000, policy="drain", records=((10, 1000),), latest=1000, rise=rise, **CALM | COSTS)
        event = replace(stage.rules, expected_times=column(3.0))
        sizes.append(drain.size(replace(stage, rules=event)).wanted_workers[0])
    assert sizes == [38, 38]


@pytest.mark.parametrize(
    ("times", "size"),
    [
        pytest.param(1.5, 10, id="within the target utilization"),
        pytest.param(1.64, 10, id="above it, which costs no rescale"),
        pytest.param(1.96, 13, id="the workers carry it and would be full"),
        pytest.param(2.5, 16, id="the workers do not carry it"),
    ],
)
def test_an_event_does_not_begin_with_full_workers(times, size):
    stage = stage_input(10, 500, policy="drain", records=((10, 1000),), latest=500, saturated=False, **CALM)
    event = replace(stage, rules=replace(stage.rules, expected_times=column(times)))
    assert drain.size(event).wanted_workers[0] == size


def test_a_rise_alone_is_no_reason_to_scale_up():
    """A rise that ends would cost a rescale. What the load needs now decides, and the rise only the size."""
    assert wanted(10, 900, 0, rise=10.0, **CALM | COSTS) == 10


@pytest.mark.parametrize(
    ("rise", "size"),
    [
        pytest.param(nan, 4, id="unknown"),
        pytest.param(1.8, 4, id="by 24 % until the next rescale: within the headroom"),
        pytest.param(1.9, 10, id="by 25.3 %"),
    ],
)
def test_a_scale_down_waits_while_the_input_outgrows_the_headroom(rise, size):
    """10 workers of 100/s each, at an input of 300/s. The next rescale takes effect in 40 s."""
    assert wanted(10, 300, 0, rise=rise, records=((10, 1000),), **CALM | COSTS) == size


@pytest.mark.parametrize(
    ("rise", "size"),
    [
        pytest.param(0.37, 3, id="by 4.9 % until the next rescale: noise"),
        pytest.param(0.38, 10, id="by 5.1 %"),
    ],
)
def test_without_headroom_a_rise_within_the_noise_blocks_no_scale_down(rise, size):
    """10 workers of 100/s each, at an input of 300/s."""
    known = CALM | COSTS | {"target_utilization_ratio": 1.0, "rescale_pause_s": 0.0, "worker_start_s": 40.0}
    assert wanted(10, 300, 0, rise=rise, records=((10, 1000),), **known) == size


@pytest.mark.parametrize(("backlog", "calm"), [(0, True), (30_000, False)])
def test_a_job_is_calm_once_it_has_caught_up(backlog, calm):
    assert policy_result(10, 1000, 0, backlog, **CALM).outlook.calm[0] == calm


@pytest.mark.parametrize(("workers", "rise", "named"), [(10, 1.9, 76), (10, 1.8, nan), (3, 1.9, nan)])
def test_a_rise_is_named_only_where_it_prevents_a_scale_down(workers, rise, named):
    found = policy_result(workers, 300, 0, rise=rise, records=((10, 1000),), **CALM | COSTS)
    assert found.outlook.blocking_rise_records_per_s[0] == pytest.approx(named, nan_ok=True)


def test_a_fit_with_large_errors_is_not_used():
    known = {"policy": "drain", "records": ((10, 1000),), "saturated": True, **CALM, **FORESEEING}
    stage = stage_input(10, 1000, fit=(0.0, 1.0, 1000.0), **known)
    errs = replace(stage, fit=replace(stage.fit, sigma=column(260.0)))
    assert [drain.size(each).wanted_workers[0] for each in (stage, errs)] == [19, 10]


# --- the reported terms


def test_the_terms_explain_the_size():
    found = policy_result(10, 1000, 200, 180_000, **FREE)
    assert (found.keep_up_workers[0], found.catch_up_workers[0], found.outlook.change_workers[0]) == pytest.approx(
        (12, 42, 42)
    )


# --- laws


stages = st.tuples(sizes, rates, rates, backlogs)  # workers, throughput, input, backlog
known_sizes = st.lists(st.tuples(sizes, st.floats(1, 1e6)), min_size=1, max_size=8, unique_by=lambda e: e[0]).map(
    sorted
)
curves = st.one_of(st.just((nan, nan, nan)), st.tuples(st.just(0.0), st.floats(-100, 100), rates))
facts = st.fixed_dictionaries(
    {
        "records": known_sizes,
        "fit": curves,
        "partitions": st.one_of(st.just(nan), st.integers(1, 300)),
        "rescale_pause_s": st.sampled_from([0.0, 30.0, 120.0]),
        "backlog_time_target_s": st.sampled_from([10.0, 60.0, 300.0]),
        "forecast_horizon_s": st.sampled_from([0.0, 900.0]),
    }
)


def result(workers, rate, input_, backlog, **known):
    """The wanted size, saturated and rising if the backlog time is long, with an input besides the throughput."""
    behind = bool(backlog / rate > 10)
    stage = stage_input(workers, rate, input_ - rate, backlog, **{"policy": "drain", "saturated": behind} | known)
    return drain.size(replace(stage, rising=np.array([behind]), highest_backlog_records=column(0.0)))


def asked_for(*numbers, **known):
    return result(*numbers, **known).wanted_workers[0]


@given(sizes, rates, rates, st.tuples(backlogs, backlogs), facts)
def test_p_05_more_backlog_never_needs_fewer_workers(workers, rate, input_, waiting, known):
    less, more = (asked_for(workers, rate, input_, backlog, **known) for backlog in sorted(waiting))
    assert less <= more


@given(sizes, rates, st.tuples(rates, rates), backlogs, facts)
def test_p_05_more_input_never_needs_fewer_workers(workers, rate, inputs, backlog, known):
    less, more = (asked_for(workers, rate, input_, backlog, **known) for input_ in sorted(inputs))
    assert less <= more


@given(stages, facts, st.tuples(times, times))
def test_p_05_a_shorter_target_never_needs_fewer_workers(stage, known, targets):
    hurried, patient = (asked_for(*stage, **known | {"backlog_time_target_s": target}) for target in sorted(targets))
    assert hurried >= patient


@given(sizes, rates, facts)
def test_p_07_a_steady_job_is_never_scaled_up(workers, rate, known):
    steady = known | {"fit": (nan, nan, nan)}
    assert asked_for(workers, rate, rate, 0.0, **steady) <= workers


@given(stages, facts, st.integers(-20, 20))
def test_p_08_x_12_records_or_bytes_make_no_difference(stage, known, power):
    unit, (workers, *numbers) = 2.0**power, stage
    in_bytes = {
        "records": [(size, unit * carried) for size, carried in known["records"]],
        "fit": [unit * part for part in known["fit"]],
    }
    scaled = asked_for(workers, *(unit * number for number in numbers), **known | in_bytes)
    assert scaled == asked_for(*stage, **known)


@given(stages, facts)
def test_p_11_s4_06_the_size_is_whole_and_reproducible(stage, known):
    size = asked_for(*stage, **known)
    assert 0 <= size < inf
    assert size == ceil(size)
    assert size == asked_for(*stage, **known)
