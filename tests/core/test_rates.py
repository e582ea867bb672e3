"""Rates against plain loops, at every prefix, with gaps."""

from itertools import pairwise
from math import isnan, nan
from statistics import linear_regression, median
from types import SimpleNamespace

import numpy as np
import pytest
from builders import column, rule_columns
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.rates import confirmed_rate, counter_rate, ends_gap, last_rate, rate_rise, robust_slope, since_reset
from adapter.core.window_rates import input_rise

gaps_and_counts = st.lists(st.one_of(st.just(nan), st.integers(0, 50).map(float)), min_size=1, max_size=9)
spans = st.lists(st.integers(1, 40), min_size=9, max_size=9)


def plain_since_reset(values):
    usable, before = [True] * len(values), nan
    for point, value in enumerate(values):
        if value < before:
            usable[:point] = [False] * point
        before = before if isnan(value) else value
    return usable


def plain_counter_rate(at_s, values, least_s):
    seen = [(t, v) for t, v in zip(at_s, values, strict=True) if not isnan(v)]
    steps = [seen[n] for n in range(1, len(seen)) if seen[n][1] > seen[n - 1][1]]
    span_s = seen[-1][0] - seen[0][0] if seen else 0
    if seen and not steps:
        return 0 if len(seen) > 1 and span_s >= 2 * least_s else nan
    if steps and len(steps) == len(seen) - 1 and span_s >= least_s:
        return (seen[-1][1] - seen[0][1]) / span_s
    if len(steps) < 2 or steps[-1][0] - steps[0][0] < least_s:
        return nan
    longest_s = max(u - t for (t, _), (u, _) in pairwise(steps))
    if seen[-1][0] - steps[-1][0] > 2 * longest_s:
        return 0
    return linear_regression(*zip(*seen, strict=True)).slope


def plain_slope(at_s, values, least_s):
    seen = [(t, v) for t, v in zip(at_s, values, strict=True) if not isnan(v)]
    slopes = [(w - v) / (u - t) for number, (t, v) in enumerate(seen) for u, w in seen[number + 1 :]]
    return median(slopes) if slopes and seen[-1][0] - seen[0][0] >= least_s else nan


def times(gaps_s, count):
    return np.cumsum(column(*gaps_s))[:count]


@given(gaps_and_counts)
def test_x_04_points_before_a_counter_reset_are_not_used(values):
    for count in range(1, len(values) + 1):
        found = since_reset(column(*values[:count])[:, None])[:, 0]
        assert found.tolist() == plain_since_reset(values[:count])


def rising(at_s, values, usable, least_s):
    """The rate of a counter whose near points are all there are."""
    return counter_rate(at_s, values, usable, usable, least_s)


@given(gaps_and_counts, spans, st.integers(1, 60))
def test_counter_rate_equals_a_plain_loop(values, gaps_s, least_s):
    values = [nan if isnan(v) else max(w for w in values[: n + 1] if not isnan(w)) for n, v in enumerate(values)]
    for count in range(1, len(values) + 1):
        at_s, seen = times(gaps_s, count), column(*values[:count])[:, None]
        found = rising(at_s, seen, np.ones(seen.shape, bool), column(least_s))[0]
        assert found == pytest.approx(plain_counter_rate(at_s, values[:count], least_s), nan_ok=True)


@pytest.mark.parametrize("every_s", [15, 20, 25, 30, 45, 60])
@pytest.mark.parametrize("begin_s", [0, 5, 10])
def test_a_counter_committed_in_steps_has_one_rate_at_every_tick(every_s, begin_s):
    at_s = np.arange(begin_s, begin_s + 600.0, 15)
    values = (np.floor(at_s / every_s) * every_s * 1000)[:, None]
    for tick in range(12, len(at_s)):
        window = slice(tick - 8, tick + 1)
        far = np.ones((9, 1), bool)
        near = far & (at_s[window, None] >= at_s[tick] - 60)
        found = counter_rate(at_s[window], values[window], near, far, column(30))[0]
        assert found == pytest.approx(1000, rel=0.15)  # a step is seen at the next tick, so up to a tick late


def test_a_counter_that_stops_stands_still_after_twice_its_longest_step():
    at_s, values = np.arange(0, 121, 15.0), np.minimum(np.arange(0, 121, 15.0), 60)[:, None] * 100
    found = [rising(at_s[:n], values[:n], np.ones((n, 1), bool), column(30))[0] for n in range(4, 10)]
    assert found[:2] == [100, 100]
    assert 50 < found[2] < 100  # on its way
    assert found[-2:] == [0, 0]


def test_the_far_points_count_only_if_the_near_ones_have_too_few_steps():
    at_s = np.arange(0, 121, 15.0)
    values = np.column_stack([np.repeat([0, 6000, 12_000], [3, 4, 2]), at_s * np.where(at_s > 60, 100, 1)])
    far = np.ones((9, 2), bool)
    near = far & (at_s[:, None] >= 60)
    found = counter_rate(at_s, values, near, far, column(30, 30))
    assert found[0] == pytest.approx(100, rel=0.15)  # steps at 45 and 105
    assert found[1] == pytest.approx((12_000 - 60) / 60)


@given(gaps_and_counts, spans, st.integers(0, 60))
def test_robust_slope_equals_the_median_of_all_pairs(values, gaps_s, least_s):
    for count in range(1, len(values) + 1):
        at_s, seen = times(gaps_s, count), column(*values[:count])[:, None]
        found = robust_slope(at_s, seen, np.ones(seen.shape, bool), column(least_s))[0]
        assert found == pytest.approx(plain_slope(at_s, values[:count], least_s), nan_ok=True)


@given(st.lists(gaps_and_counts.map(lambda values: (values + [nan] * 9)[:9]), min_size=2, max_size=5), spans)
def test_a_row_does_not_depend_on_its_neighbours(table, gaps_s):
    at_s, values = times(gaps_s, 9), np.array(table).T
    usable, least_s = since_reset(values), np.ones(len(table))
    for rate in (rising, robust_slope):
        together = rate(at_s, values, usable, least_s)
        alone = [rate(at_s, values[:, [n]], usable[:, [n]], least_s[:1])[0] for n in range(len(table))]
        assert np.array_equal(together, alone, equal_nan=True)


def test_a_single_outlier_among_five_points_does_not_move_the_slope():
    at_s, values = column(0, 15, 30, 45, 60), column(0, 150, 300, 450, 90_000)[:, None]
    assert robust_slope(at_s, values, np.ones((5, 1), bool), column(30))[0] == 10


def test_only_the_usable_points_cost_time_and_memory():
    at_s = np.arange(100_000.0)
    values, usable = np.column_stack([at_s, -at_s]), at_s[:, None] > at_s[-1] - column(30, 10)
    assert robust_slope(at_s, values, usable, column(9, 9)).tolist() == [1, -1]


def test_s0_02_growth_is_the_slope_of_the_backlog():
    at_s, values = column(0, 15, 30), column(600, 3600, 6600)[:, None]
    assert robust_slope(at_s, values, np.ones((3, 1), bool), column(30)) == column(200)


@pytest.mark.parametrize("rate", [rising, robust_slope])
@pytest.mark.parametrize(
    "seen", [column(5), column(nan, nan), column(5, nan)], ids=["one point", "gaps", "one and a gap"]
)
def test_fewer_than_two_points_give_no_rate(rate, seen):
    at_s = np.arange(len(seen)) * 15.0
    assert isnan(rate(at_s, seen[:, None], np.ones((len(seen), 1), bool), column(1))[0])


def test_counts_beyond_2_to_the_53_are_still_rates():
    at_s, values = column(0, 15), column(2.0**53, 2.0**53 + 30_000)[:, None]
    assert rising(at_s, values, np.ones((2, 1), bool), column(0)) == column(2000)


LAST_RATES = {
    "a counter that rises at every point": ([0, 150, 300, 900], 40),
    "a counter that rises at every second point": ([0, 150, 150, 300, 300, 450], nan),
    "a counter that rises at three of four points": ([0, 150, 300, 450, 450, 600, 750, 900, 900], nan),
    "a counter that stood still for a tick": ([0, 150, 300, 450, 600, 750, 750, 900, 1050], nan),
    "a counter that stands still": ([0, 150, 300, 300], nan),
    "the first rise after an interruption is of part of a tick": ([0, 150, 300, 300, 300, 600], nan),
    "the second rise after an interruption": ([0, 150, 300, 300, 300, 600, 1500], 60),
    "the second rise of a counter that stood still": ([0, 0, 0, 300, 1200], 60),
    "the end of an older interruption": ([0, 0, 300, 450], 10),
    "an older sample is missing": ([0, nan, 300, 450], 10),
    "the last sample is missing": ([0, 150, 300, nan], nan),
    "a counter that was reset": ([900, 1050, 150, 300], 10),
    "a single sample": ([150], nan),
}


@pytest.mark.parametrize(("values", "expected"), LAST_RATES.values(), ids=LAST_RATES)
def test_the_newest_rate_is_that_between_the_last_two_points(values, expected):
    counter = np.array(values, dtype=float)[:, None]
    found = last_rate(15.0 * np.arange(len(values)), counter, since_reset(counter))[0]

    assert found == pytest.approx(expected, nan_ok=True)


def test_the_confirmed_rate_is_the_lower_of_the_last_two():
    at_s, counter = 15.0 * np.arange(4), np.array([[0.0, 0, 0], [150, 150, 150], [300, 900, 150], [900, 1050, 300]])

    assert confirmed_rate(at_s, counter, since_reset(counter)) == pytest.approx([10, 10, nan], nan_ok=True)
    assert np.isnan(confirmed_rate(at_s[:2], counter[:2], since_reset(counter[:2]))).all()


@given(st.floats(18, 200), st.floats(0, 200))
def test_a_counter_that_rises_in_steps_has_no_newest_rate(period_s, begin_s):
    at_s = np.arange(0.0, 121.0, 15.0)  # two rate windows
    counter = (period_s * np.floor((at_s + begin_s) / period_s))[:, None]

    assert np.isnan(last_rate(at_s, counter, since_reset(counter))[0])


TICKS_S = [0, 15, 30, 45, 60]
RISES = {
    "a ramp of 10/s in 15 s": (TICKS_S, [0, 1500, 3150, 4950, 6900], 10 / 15),
    "a ramp between uneven ticks": ([0, 60, 90, 105, 110], [5 * t * t for t in (10, 70, 100, 115, 120)], 10),
    "the least of three changes": (TICKS_S, [0, 1500, 3150, 5400, 8400], 10 / 15),
    "a step between two samples": (TICKS_S, [0, 1500, 3000, 4500, 7500], 0),
    "a step within a sample": (TICKS_S, [0, 1500, 3000, 5250, 8250], 0),
    "after a step": (TICKS_S, [0, 1500, 3750, 6750, 9750], 0),
    "a rate that falls": (TICKS_S, [0, 1500, 2700, 3600, 4200], 0),
    "a sample is missing": (TICKS_S, [0, 1500, nan, 4950, 6900], nan),
    "a counter that stands still": (TICKS_S, [0, 1500, 1500, 4950, 9000], nan),
    "a counter that was reset": (TICKS_S, [9000, 1500, 3150, 4950, 6900], nan),
    "four points": (TICKS_S[:4], [0, 1500, 3150, 4950], nan),
}


@pytest.mark.parametrize(("at_s", "values", "expected"), RISES.values(), ids=RISES)
def test_the_rise_of_a_rate_is_the_least_of_its_last_three_changes(at_s, values, expected):
    counter = np.array(values, dtype=float)[:, None]
    found = rate_rise(np.array(at_s, dtype=float), counter, since_reset(counter))[0]

    assert found == pytest.approx(expected, nan_ok=True)


@given(st.floats(1, 1e4), st.floats(1, 1e4), st.floats(0, 60))
def test_a_step_is_no_rise_whenever_it_comes(before, after, step_s):
    at_s = np.arange(0.0, 61.0, 15.0)
    counter = (before * at_s + (after - before) * np.maximum(at_s - step_s, 0.0))[:, None]

    assert rate_rise(at_s, counter, since_reset(counter))[0] == pytest.approx(0, abs=1e-6)


RAMP = np.array([nan] * 26 + [100.0, 160.0, 220.0, 280.0])[:, None]


@pytest.mark.parametrize(
    ("by_sample", "newest", "window_s", "expected"),
    [(nan, 280, 60, 1.0), (0.5, 280, 60, 1.0), (2.0, 280, 60, 2.0), (0.5, 280, 120, 0.5), (nan, nan, 60, nan)],
    ids=["by minute", "the larger is by minute", "the larger is by sample", "minutes overlap", "a counter in steps"],
)
def test_the_input_rises_by_the_larger_of_two_measures(by_sample, newest, window_s, expected):
    rates = SimpleNamespace(input_rise_records_per_s2=column(by_sample), latest_input_rate_records_per_s=column(newest))
    found = input_rise(rates, RAMP, rule_columns(rate_window_s=window_s))

    assert found[0] == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("samples", "ends"),
    [("110", False), ("1101", True), ("11001", True), ("1011", False), ("10101", False), ("101", False)],
)
def test_a_gap_ends_once_after_two_samples_in_a_row(samples, ends):
    assert ends_gap(np.array([[sample == "1"] for sample in samples])) == ends
