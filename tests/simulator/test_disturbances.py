"""Disturbances follow from the seed, with the size and frequency of the profile."""

from dataclasses import fields, replace

import numpy as np
import pytest

from adapter.core.formatting import DAY_S
from adapter.simulator import disturbances
from adapter.simulator.disturbances import NOISE_MEMORY_S, NOISE_STEP_S, Disturbances, draw
from adapter.simulator.profiles import PROFILES

PROFILE = PROFILES["consumer-group"]
FAULTY = PROFILES["consumer-group-faults"]


def numbers(one: Disturbances) -> dict[str, np.ndarray]:
    return {of.name: getattr(one, of.name) for of in fields(Disturbances)}


def test_equal_seeds_give_equal_disturbances() -> None:
    one, same, other = (numbers(draw(seed, DAY_S, 8, 12)) for seed in (1, 1, 2))

    for name, drawn_numbers in one.items():
        assert np.array_equal(drawn_numbers, same[name]), name
        assert not np.array_equal(drawn_numbers, other[name]), name


def test_one_kind_of_disturbance_does_not_change_the_others() -> None:
    """More workers or partitions do not change the disturbances of the others."""
    few, many = numbers(draw(1, DAY_S, 8, 12)), numbers(draw(1, DAY_S, 20, 60))

    for name in set(few) - {"workers", "partitions", "noise"}:
        assert np.array_equal(few[name], many[name]), name
    assert np.array_equal(few["workers"], many["workers"][:8])
    assert np.array_equal(few["partitions"], many["partitions"][:12])


def test_kinds_of_disturbances_are_independent() -> None:
    one = draw(1, DAY_S, 200, 200)

    for first, second in ((one.workers, one.partitions), (one.starts, one.pauses), (one.workers, one.noise[0])):
        size = min(len(first), len(second))
        assert abs(np.corrcoef(first[:size], second[:size])[0, 1]) < 0.2


def test_more_days_do_not_change_the_first_ones() -> None:
    short, long = numbers(draw(1, DAY_S, 8, 12)), numbers(draw(1, 4 * DAY_S, 8, 12))

    for name, values in short.items():
        assert np.array_equal(values, long[name][: len(values)]), name


def test_worker_speeds_have_the_profiles_spread_and_mean() -> None:
    steady = replace(PROFILE, speed_noise=0.0, worker_spread=0.15)
    one = draw(1, 0.0, 5000, 1)

    speed = disturbances.worker_speed(steady, one, 0.0)

    assert speed.mean() == pytest.approx(1, abs=0.01)
    assert speed.std() == pytest.approx(0.15, rel=0.05)
    assert np.array_equal(speed, disturbances.worker_speed(steady, one, 60.0))


def test_noise_has_the_profiles_size_and_two_minutes_of_memory() -> None:
    wavering = replace(PROFILE, worker_spread=0.0, speed_noise=0.04)
    one = draw(1, 2 * DAY_S, 20, 1)

    speed = np.stack([disturbances.worker_speed(wavering, one, t_s) for t_s in np.arange(0, 2 * DAY_S, NOISE_STEP_S)])
    lagged = [np.corrcoef(speed[:-1, worker], speed[1:, worker])[0, 1] for worker in range(20)]

    assert speed.std(axis=0) == pytest.approx(0.04, rel=0.15)
    assert np.mean(lagged) == pytest.approx(np.exp(-NOISE_STEP_S / NOISE_MEMORY_S), abs=0.03)


def test_noise_alone_never_stops_or_doubles_a_worker() -> None:
    wild = replace(PROFILE, worker_spread=0.0, speed_noise=5.0)

    speed = disturbances.worker_speed(wild, draw(1, DAY_S, 50, 1), 0.0)

    assert speed.min() == 0.3
    assert speed.max() == 1.7


@pytest.mark.parametrize("partitions", [0, 1, 36, 180])
def test_shares_add_up_to_one_and_are_even_without_skew(partitions: int) -> None:
    one = draw(1, DAY_S, 8, 180)
    skewed, even = (
        disturbances.partition_shares(replace(PROFILE, partitions=partitions, skew=skew), one) for skew in (0.1, 0.0)
    )

    assert len(skewed) == max(partitions, 1)
    assert skewed.sum() == pytest.approx(1)
    assert even == pytest.approx(1 / max(partitions, 1))


def test_pauses_have_the_profiles_median_and_spread() -> None:
    lengths_s = disturbances.log_normal(30.0, 0.25, draw(1, DAY_S, 8, 12).pauses)

    assert np.median(lengths_s) == pytest.approx(30, rel=0.05)
    assert np.log(lengths_s).std() == pytest.approx(0.25, rel=0.1)


def test_some_samples_are_lost() -> None:
    gappy = replace(PROFILE, missing_ratio=0.05, blackout_s=0.0)
    one = draw(1, 3 * DAY_S, 1, 1)

    seen = [disturbances.sample_arrives(gappy, one, t_s) for t_s in np.arange(0, 3 * DAY_S, 15.0)]

    assert 1 - np.mean(seen) == pytest.approx(0.05, rel=0.15)


def test_each_day_has_one_blackout() -> None:
    dark = replace(PROFILE, missing_ratio=0.0, blackout_s=600.0)
    one, days = draw(1, 5 * DAY_S, 1, 1), 5

    seen = np.array([disturbances.sample_arrives(dark, one, t_s) for t_s in np.arange(0, days * DAY_S, 15.0)]).reshape(
        days, -1
    )

    assert (~seen).sum(axis=1).tolist() == [40] * days
    assert [np.count_nonzero(np.diff(day.astype(int)) == -1) for day in seen] == [1] * days


@pytest.mark.simulation
def test_each_day_has_one_slow_sink_one_stuck_worker_and_one_failure() -> None:
    days, step_s = 4, 5.0
    one, times = draw(1, days * DAY_S, 8, 12), np.arange(0, days * DAY_S, step_s)

    sink = np.array([disturbances.sink_ratio(FAULTY, one, t_s) for t_s in times]).reshape(days, -1)
    since, which = np.array([disturbances.stuck_worker(FAULTY, one, t_s) for t_s in times]).T
    down_s = np.array([disturbances.failure_s(FAULTY, one, t_s, step_s) for t_s in times]).reshape(days, -1)

    slow_s = (sink < 1).sum(axis=1) * step_s
    assert (slow_s >= disturbances.SINK_S[0] - step_s).all()
    assert (slow_s <= disturbances.SINK_S[1] + step_s).all()
    assert [len(set(day[day < 1])) for day in sink] == [1] * days
    assert ((sink == 1) | ((sink >= disturbances.SINK_RATIO[0]) & (sink <= disturbances.SINK_RATIO[1]))).all()
    assert np.isfinite(since).reshape(days, -1).sum(axis=1).tolist() == [disturbances.STUCK_S / step_s] * days
    assert ((which >= 0) & (which < 1)).all()
    assert np.count_nonzero(down_s, axis=1).tolist() == [1] * days
    assert ((down_s == 0) | ((down_s >= disturbances.FAILURE_S[0]) & (down_s <= disturbances.FAILURE_S[1]))).all()


def test_a_profile_without_faults_has_none() -> None:
    one, times = draw(1, DAY_S, 8, 12), np.arange(0, DAY_S, 5.0)

    assert {disturbances.sink_ratio(PROFILE, one, t_s) for t_s in times} == {1.0}
    assert {disturbances.failure_s(PROFILE, one, t_s, 5.0) for t_s in times} == {0.0}
    assert np.isnan([disturbances.stuck_worker(PROFILE, one, t_s)[0] for t_s in times]).all()
