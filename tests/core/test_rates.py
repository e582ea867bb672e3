"""Rates against plain loops, at every prefix, with gaps."""

from math import isnan, nan
from statistics import median

import numpy as np
import pytest
from builders import column
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.rates import mean_rate, robust_slope, since_reset

gaps_and_counts = st.lists(st.one_of(st.just(nan), st.integers(0, 50).map(float)), min_size=1, max_size=9)
spans = st.lists(st.integers(1, 40), min_size=9, max_size=9)


def plain_since_reset(values):
    usable, before = [True] * len(values), nan
    for point, value in enumerate(values):
        if value < before:
            usable[:point] = [False] * point
        before = before if isnan(value) else value
    return usable


def plain_mean_rate(at_s, values, least_s):
    seen = [(t, v) for t, v in zip(at_s, values, strict=True) if not isnan(v)]
    if not seen or seen[-1][0] - seen[0][0] < max(least_s, 1e-9):
        return nan
    return (seen[-1][1] - seen[0][1]) / (seen[-1][0] - seen[0][0])


def plain_slope(at_s, values, least_s):
    seen = [(t, v) for t, v in zip(at_s, values, strict=True) if not isnan(v)]
    slopes = [(w - v) / (u - t) for number, (t, v) in enumerate(seen) for u, w in seen[number + 1 :]]
    return median(slopes) if slopes and seen[-1][0] - seen[0][0] >= least_s else nan


def times(gaps_s, count):
    return np.cumsum(column(*gaps_s))[:count]


@given(gaps_and_counts, gaps_and_counts)
def test_x_04_points_before_the_last_fall_are_not_used(first, second):
    first, second = first[: len(second)], second[: len(first)]
    for count in range(1, len(first) + 1):
        found = since_reset(column(*first[:count])[:, None], column(*second[:count])[:, None])[:, 0]
        both = zip(plain_since_reset(first[:count]), plain_since_reset(second[:count]), strict=True)
        assert found.tolist() == [one and other for one, other in both]


@given(gaps_and_counts, spans, st.integers(0, 60))
def test_mean_rate_equals_a_plain_loop(values, gaps_s, least_s):
    for count in range(1, len(values) + 1):
        at_s, seen = times(gaps_s, count), column(*values[:count])[:, None]
        found = mean_rate(at_s, seen, np.ones(seen.shape, bool), column(least_s))[0]
        assert found == pytest.approx(plain_mean_rate(at_s, values[:count], least_s), nan_ok=True)


@given(gaps_and_counts, spans, st.integers(0, 60))
def test_robust_slope_equals_the_median_of_all_pairs(values, gaps_s, least_s):
    for count in range(1, len(values) + 1):
        at_s, seen = times(gaps_s, count), column(*values[:count])[:, None]
        found = robust_slope(at_s, seen, np.ones(seen.shape, bool), column(least_s))[0]
        assert found == pytest.approx(plain_slope(at_s, values[:count], least_s), nan_ok=True)


@given(st.lists(gaps_and_counts.map(lambda values: (values + [nan] * 9)[:9]), min_size=2, max_size=5), spans)
def test_a_row_does_not_depend_on_its_neighbours(table, gaps_s):
    at_s, values = times(gaps_s, 9), np.array(table).T
    usable, least_s = since_reset(values), np.zeros(len(table))
    for rate in (mean_rate, robust_slope):
        together = rate(at_s, values, usable, least_s)
        alone = [rate(at_s, values[:, [n]], usable[:, [n]], least_s[:1])[0] for n in range(len(table))]
        assert np.array_equal(together, alone, equal_nan=True)


def test_a_single_outlier_among_five_points_does_not_move_the_slope():
    at_s, values = column(0, 15, 30, 45, 60), column(0, 150, 300, 450, 90_000)[:, None]
    assert robust_slope(at_s, values, np.ones((5, 1), bool), column(30))[0] == 10


def test_s0_02_growth_is_the_slope_of_the_backlog():
    at_s, values = column(0, 15, 30), column(600, 3600, 6600)[:, None]
    assert robust_slope(at_s, values, np.ones((3, 1), bool), column(30)) == column(200)


@pytest.mark.parametrize("rate", [mean_rate, robust_slope])
@pytest.mark.parametrize(
    "seen", [column(), column(5), column(nan, nan), column(5, nan)], ids=["none", "one point", "gaps", "one and a gap"]
)
def test_fewer_than_two_points_give_no_rate(rate, seen):
    at_s = np.arange(len(seen)) * 15.0
    assert len(seen) == 0 or isnan(rate(at_s, seen[:, None], np.ones((len(seen), 1), bool), column(0))[0])


def test_counts_beyond_2_to_the_53_are_still_rates():
    at_s, values = column(0, 15), column(2.0**53, 2.0**53 + 30_000)[:, None]
    assert mean_rate(at_s, values, np.ones((2, 1), bool), column(0)) == column(2000)
