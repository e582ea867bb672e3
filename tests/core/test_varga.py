"""`varga`: the worked vectors of S1, and laws of an HPA with two metrics."""

from math import ceil, nan

import numpy as np
import pytest
from builders import Fluid, book, closed, column
from hypothesis import given
from hypothesis import strategies as st
from policy_inputs import terms, wanted

from adapter.core.decisions import Bound, Reason
from adapter.core.signals import gated_lag_change, relative_lag_change

LAG_THRESHOLD = 50_000

# throughput, growth -> lag change
CHANGES = {
    "S1-12: the lag grows by half of what is processed": (1000, 500, 1.5),
    "S1-12: hold": (1000, 0, 1.0),
    "S1-12: nothing arrives": (1000, -1000, 0.0),
    "S1-12: more vanishes than is processed": (1000, -1500, -0.5),
    "S1-18: throughput 0 is replaced by 1": (0, 500, 501.0),
    "S1-18: idle": (0, 0, 1.0),
    "X-06: a rate too small to divide by": (5e-324, 1e300, 1e300),
    "X-06: unknown throughput": (nan, 500, nan),
    "X-06: unknown growth": (1000, nan, nan),
}


@pytest.mark.parametrize(("throughput", "growth", "expected"), CHANGES.values(), ids=CHANGES)
def test_s1_12_relative_lag_change(throughput, growth, expected):
    assert relative_lag_change(column(throughput), column(growth)) == pytest.approx(expected, nan_ok=True)


# lag, change -> the metric
GATED = {
    "S1-13: above the threshold": (100_000, 1.5, 1.5),
    "S1-13: above, draining": (60_000, 0.0, 0.0),
    "S1-13: above, and more vanishes than is processed": (60_000, -0.5, -0.5),
    "S1-13: below, the other metric wins": (40_000, 1.5, -1.5),
    "below, a negative change is no call for workers": (40_000, -0.5, -0.5),
    "X-06: at the threshold 0 / 0 is not above it": (50_000, 1.5, -1.5),
    "X-06: unknown lag": (nan, 1.5, nan),
    "X-06: unknown change": (100_000, nan, nan),
}


@pytest.mark.parametrize(("lag", "change", "expected"), GATED.values(), ids=GATED)
def test_s1_13_the_lag_counts_above_a_threshold(lag, change, expected):
    found = gated_lag_change(column(change), column(lag), column(LAG_THRESHOLD))
    assert found == pytest.approx(expected, nan_ok=True)


# W, T, G, lag, utilization -> size
VARGA = {
    "S1-12: lag 100,000 and +500/s, 4 -> 6": ((4, 1000, 500, 100_000), 0.7, 6),
    "S1-12: the lag stays": ((4, 1000, 0, 100_000), 0.7, 4),
    "S1-13: lag 40,000 is ignored": ((4, 1000, 500, 40_000), 0.7, 4),
    "S1-13: at 50,000 as well": ((4, 1000, 500, 50_000), 0.7, 4),
    "S1-16: the lag changes by 0, utilization decides": ((4, 1000, -1000, 60_000), 0.35, 2),
    "S1-16: by -0.5 too": ((4, 1000, -1500, 60_000), 0.35, 2),
    "S1-16: the larger of both is the lag": ((10, 1000, 500, 100_000), 0.7, 15),
    "S1-16: the larger of both is utilization": ((10, 1000, 200, 100_000), 0.98, 14),
    "S1-16: upwards": ((10, 1000, 0, 0), 0.36, 6),
    "X-10: 10 * 0.42 / 0.7 is 6": ((10, 1000, 0, 0), 0.42, 6),
    "S1-16: at least one": ((10, 0, 0, 0), 0.0, 1),
    "S1-18: nothing is processed, far beyond any cap": ((10, 0, 500, 100_000), 0.02, 5010),
    "utilization unknown, the lag decides": ((10, 1000, 500, 100_000), nan, 15),
    "utilization unknown, the lag shrinks: never down": ((10, 1000, -500, 100_000), nan, 10),
    "utilization unknown, the lag is ignored: as it is": ((10, 1000, 500, 0), nan, 10),
    "scaled to zero, work arrives": ((0, 0, 0, 50), nan, 1),
    "scaled to zero, nothing arrives": ((0, 0, 0, 0), nan, 0),
}


@pytest.mark.parametrize(("numbers", "cpu", "size"), VARGA.values(), ids=VARGA)
def test_varga_takes_the_larger_of_lag_and_utilization(numbers, cpu, size):
    assert wanted("varga", *numbers, cpu=cpu) == size


def test_s1_11_s1_14_only_two_signals_matter():
    seen = {terms("varga", 4, 1000, 500, 100_000, cpu=0.7, most=most, saturated=full)
            for most in (5, 50) for full in (True, False)}  # fmt: skip
    assert len({size for size, _, _ in seen}) == 1


@pytest.mark.parametrize(("bottleneck", "size"), [(True, 15), (False, 10)])
def test_s1_19_s1_18_the_lag_of_a_backpressured_stage_does_not_count(bottleneck, size):
    assert wanted("varga", 10, 1000, 500, 100_000, cpu=0.7, bottleneck=bottleneck) == size


@pytest.mark.parametrize(("target", "size"), [(0.4, 18), (0.5, 14), (0.7, 10)])
def test_s1_15_the_published_targets_give_their_sizes(target, size):
    assert wanted("varga", 10, 1000, cpu=0.7, varga_utilization_ratio=target) == size


def test_s1_17_a_change_blocks_the_next_scale_up_for_2_minutes():
    """The input needs a larger size in each tick. A tick of 30 s shows each change."""
    decided = closed(Fluid(lambda at_s: 700 + 5 * at_s), 900, book(policy="varga"))
    scale_ups_at_s = [d.at_s for d in decided if d.reason == Reason.UP]
    assert np.diff(scale_ups_at_s).tolist() == [30 + 120] * 5


def test_s1_18_a_scale_down_waits_until_the_larger_need_is_300_s_old():
    """1400/s need 20 workers, from 300 s on 350/s need 5. The rate of 1400/s leaves the rate window at 330 s."""
    decided = closed(Fluid(lambda at_s: 1400.0 if at_s < 300 else 350.0, workers=20), 900, book(policy="varga"))
    assert {(d.required_workers, d.bound) for d in decided if 360 <= d.at_s <= 330 + 300} == {(20, Bound.WINDOW)}
    assert {d.required_workers for d in decided if d.at_s > 330 + 300} == {5}


def test_full_utilization_scales_up_on_each_tick():
    workers = 10.0
    for _ in range(3):  # it drains fast enough, and still
        grown = wanted("varga", workers, 100 * workers, -100 * workers + 500, 200_000, cpu=1.0)
        assert grown == ceil(workers / 0.7)
        workers = grown


@pytest.mark.parametrize("arriving", [500, 1000, 1500, 2500])
def test_s1_20_without_a_backlog_it_settles_within_three_steps_and_does_not_overshoot(arriving):
    sizes = [10.0]
    for _ in range(5):
        able = 100 * sizes[-1]
        passed = min(able, arriving)
        lag = 60_000 if arriving > able else 0  # one that stands still above the threshold forbids a down: change 1
        sizes.append(wanted("varga", sizes[-1], passed, arriving - passed, lag, cpu=passed / able))
    best = ceil(arriving / 70 - 1e-9)
    assert set(sizes[3:]) == {best}
    assert max(sizes) <= max(10, best)


@given(st.integers(1, 200), st.floats(0.01, 1e6), st.floats(-1e6, 1e6))
def test_p_04_the_lag_change_times_workers_is_the_keep_up_size(workers, throughput, growth):
    _, keep_up, _ = terms("varga", workers, throughput, growth)
    assert keep_up * throughput / workers == pytest.approx(throughput + growth, rel=1e-9, abs=1e-6)


@given(st.floats(0, 2.0**63), st.floats(-(2.0**63), 2.0**63), st.floats(0, 2.0**63))
def test_x_06_known_rates_give_finite_numbers(throughput, growth, lag):
    change = relative_lag_change(column(throughput), column(growth))
    assert np.isfinite(gated_lag_change(change, column(lag), column(LAG_THRESHOLD))).all()
