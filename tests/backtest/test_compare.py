"""Runs against runs: worked examples."""

import math

import numpy as np
import pytest

from adapter.backtest.compare import (
    Interval,
    cost_at,
    deviation,
    elastic_speedup,
    hypervolume,
    interval,
    price_performance,
    signed_rank_p,
)


def test_an_interval_lies_around_the_median_and_is_the_same_every_time() -> None:
    values = np.array([3.0, 1, 4, 1, 5, 9, 2, 6, 5, 3])
    found = interval(values)

    assert found == interval(values)
    assert found.median == 3.5
    assert 1 <= found.low < 3.5 < found.high <= 9


def test_equal_runs_leave_no_interval_and_unknown_ones_no_median() -> None:
    assert interval(np.full(10, 2.0)) == Interval(median=2, low=2, high=2)
    assert math.isnan(interval(np.array([1.0, np.nan])).median)
    assert math.isnan(interval(np.array([])).high)


def test_deviation_is_the_distance_from_no_measure_at_all() -> None:
    assert deviation([3.0, 4.0]) == 5
    assert deviation([3.0, 4.0], p=1) == 7


def test_a_rival_half_as_far_off_in_every_measure_is_twice_as_elastic_and_zero_counts_as_the_floor() -> None:
    names = ("theta_u_pct", "theta_o_pct", "tau_u_pct", "tau_o_pct")
    ours, baseline = dict.fromkeys(names, 2.0), dict.fromkeys(names, 4.0)

    assert elastic_speedup(ours, baseline) == pytest.approx(2)
    assert elastic_speedup(dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.01)) == pytest.approx(1)


def test_price_and_performance_mix_by_weight() -> None:
    assert price_performance(50, 100, 0.1, 1 / 2) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("points", "volume"),
    [
        pytest.param([[1, 1, 1]], 1.0, id="one point is a box"),
        pytest.param([[1, 1, 1], [1.5, 1.5, 1.5]], 1.0, id="what is worse in all adds nothing"),
        pytest.param([[0, 1, 1], [1, 0, 1]], 3.0, id="two boxes share a part"),
        pytest.param([[1, 1, 0], [0, 1, 1]], 3.0, id="also along the third"),
        pytest.param([[3, 0, 0]], 0.0, id="worse than the reference"),
    ],
)
def test_hypervolume_is_what_the_points_dominate(points: list[list[float]], volume: float) -> None:
    assert hypervolume(np.array(points, dtype=float), np.full(3, 2.0)) == pytest.approx(volume)


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        pytest.param([0.0, 0, 0], 1.0, id="equal pairs tell nothing"),
        pytest.param([1.0, 2, 3, 4, 5], 2 / 32, id="all one way: the smallest p of five"),
        pytest.param([1.0, -1], 1.0, id="ties share a rank"),
        pytest.param([-1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10], 4 / 1024, id="the smallest against"),
    ],
)
def test_signed_ranks_are_exact_for_few_pairs(differences: list[float], p: float) -> None:
    assert signed_rank_p(np.array(differences), np.zeros(len(differences))) == pytest.approx(p)


def test_signed_ranks_of_many_pairs_come_near_the_exact_ones() -> None:
    differences = np.arange(1.0, 22) * np.where(np.arange(21) % 3 == 0, -1, 1)
    exact = [1.0]
    for rank in range(1, 22):
        exact = np.convolve(exact, np.eye(rank + 1)[0] + np.eye(rank + 1)[rank])
    positive = differences[differences > 0].sum()
    tail = 2 * np.sum(exact[int(positive) :]) / 2**21

    assert signed_rank_p(differences, np.zeros(21)) == pytest.approx(tail, rel=0.03)


@pytest.mark.parametrize(
    ("late_pct", "worker_hours", "cost"),
    [
        pytest.param([0.3, 0.0], [100, 130], 120.0, id="between two settings"),
        pytest.param([0.0, 0.3], [130, 100], 120.0, id="in whatever order"),
        pytest.param([0.0, 0.0], [100, 130], 100.0, id="all punctual: the cheapest"),
        pytest.param([0.3, 0.5, 0.0], [100, 110, 130], 120.0, id="a dearer and later setting is passed over"),
        pytest.param([0.3, 0.2], [100, 130], math.nan, id="none punctual"),
    ],
)
def test_cost_at_a_lateness_is_read_off_the_sweep(
    late_pct: list[float], worker_hours: list[float], cost: float
) -> None:
    found = cost_at(np.array(late_pct), np.array(worker_hours, dtype=float))

    assert found == pytest.approx(cost, nan_ok=True)
