"""What simulated jobs run in: their input, their demand, and the chance they share."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.samples import Array
from adapter.simulator import disturbances
from adapter.simulator.profiles import PROFILES, STEP_S, Profile
from adapter.simulator.world import Arrivals, SimulatedJob, World

PROFILE = PROFILES["consumer-group-small"]
EVEN = replace(PROFILE, skew=0.0, worker_spread=0.0, speed_noise=0.0)
POOL = replace(EVEN, partitions=0, scaling_exponent=0.9)


def arrivals(rate: Array) -> Arrivals:
    total = np.concatenate(([0.0], np.cumsum(rate * STEP_S)))
    return Arrivals(rate[None, :], total[None, :], np.zeros(1, dtype=np.int64))


def a_world(*profiles: Profile, rate: float = 3000.0, seed: int = 1) -> World:
    input_rate = np.full(60, rate)
    return World([SimulatedJob(input_rate, 0, "static-peak", profile, seed) for profile in profiles])


def test_the_capacity_of_workers_is_that_of_the_fullest_one() -> None:
    world, workers = a_world(EVEN, PROFILE), np.full(2, 6.0)
    even, uneven = world.capacity_records_per_s(workers)
    assert even == pytest.approx(6 * EVEN.worker_capacity_records_per_s)
    assert uneven < 0.99 * even
    assert world.demand_workers(np.array([0.99 * even, 0.99 * uneven])).tolist() == [6, 6]


def test_no_workers_have_no_capacity() -> None:
    assert a_world(EVEN).capacity_records_per_s(np.zeros(1)).tolist() == [0]


@given(rate=st.lists(st.floats(1, 1e5), min_size=1, max_size=50), place=st.floats(0, 1), behind=st.floats(0, 1))
def test_the_age_of_a_record_is_the_inverse_of_the_running_sum(rate: list[float], place: float, behind: float) -> None:
    of = arrivals(np.array(rate))
    step = int(place * (len(rate) - 1))
    total = of.total_records[0, : step + 2]
    behind_records = behind * total[-1]

    age_s = of.age_s(step, np.zeros(1, dtype=np.int64), np.array([behind_records]))[0]

    came_s = np.interp(total[-1] - behind_records, total, np.arange(step + 2) * STEP_S)
    assert age_s == pytest.approx((step + 1) * STEP_S - came_s, rel=1e-6, abs=1e-3)


def test_the_age_of_a_record_leaves_out_a_lull_before_it() -> None:
    of = arrivals(np.array([100.0, 0.0, 0.0, 100.0, 100.0]))
    job = np.zeros(1, dtype=np.int64)

    assert of.age_s(4, job, np.array([0.0])) == 0
    assert of.age_s(4, job, np.array([1000.0])) == pytest.approx(10)  # the two last steps
    assert of.age_s(4, job, np.array([1001.0])) == pytest.approx(20, abs=0.1)  # and one record from before
    assert of.age_s(2, job, np.array([500.0])) == pytest.approx(15)
    assert of.age_s(4, job, np.array([1000.0 + 1e-10])) == pytest.approx(10)  # a rounding error is no lull


def test_newer_counts_the_records_within_an_age_since_the_begin() -> None:
    of = arrivals(np.array([100.0, 200.0, 300.0]))

    assert of.newer(2, 10.0).tolist() == [2500]
    assert of.newer(2, 600.0).tolist() == [3000]


def test_jobs_of_one_array_share_a_row_of_arrivals() -> None:
    one, other = np.full(12, 1.0), np.full(12, 2.0)
    world = World([SimulatedJob(rate, 0, "static-peak", PROFILE, 1) for rate in (one, other, one)])

    assert world.arrivals.rate_records_per_s.shape == (2, 12)
    assert world.arrivals.rate(3).tolist() == [1, 2, 1]


def test_demand_of_even_work_and_equal_workers_follows_the_formula() -> None:
    world = a_world(EVEN, POOL)
    sizes = np.arange(1, EVEN.max_workers + 1)

    shared, pooled = world.demand_table

    assert shared == pytest.approx(1000 * 36 / np.ceil(36 / sizes))
    assert pooled == pytest.approx(1000 * sizes**0.9)


def test_demand_is_the_smallest_size_for_the_input_or_the_maximum() -> None:
    world = a_world(EVEN, EVEN, EVEN, EVEN, EVEN)

    demand = world.demand_workers(np.array([0.0, 999.0, 1001.0, 4001.0, 1e6]))

    assert demand.tolist() == [1, 1, 2, 5, EVEN.max_workers]


def test_a_larger_job_beside_it_does_not_raise_the_maximum_of_a_job() -> None:
    world = a_world(EVEN, replace(EVEN, max_workers=2 * EVEN.max_workers, workers=EVEN.max_workers))

    assert world.demand_workers(np.full(2, 1000 * (EVEN.max_workers + 3.0)))[0] == EVEN.max_workers


def test_a_skewed_input_raises_the_demand() -> None:
    world = a_world(EVEN, replace(EVEN, skew=0.4))
    sharing_evenly = np.array([2, 3, 4, 6, 9, 12]) - 1

    even, uneven = world.demand_table[:, sharing_evenly]

    assert (uneven < even).all()


def test_a_job_begins_with_the_size_for_its_first_minute() -> None:
    assert a_world(EVEN, rate=3000).first_workers().tolist() == [4]
    assert a_world(EVEN, rate=0).first_workers().tolist() == [1]
    assert a_world(EVEN, rate=1e6).first_workers().tolist() == [EVEN.max_workers]


def test_disturbances_depend_on_the_seed_and_not_on_metric_delay() -> None:
    late, other = replace(PROFILE, metric_delay_s=120.0), replace(PROFILE, pause_up_s=99.0)
    world = a_world(PROFILE, late, other)

    assert world.kind.tolist() == [0, 0, 1]
    assert np.array_equal(world.speed(0.0)[0], world.speed(0.0)[2])
    assert not np.array_equal(a_world(PROFILE, seed=2).speed(0.0), a_world(PROFILE, seed=1).speed(0.0))


def test_every_disturbance_of_a_kind_reaches_its_jobs() -> None:
    world = a_world(PROFILE, replace(PROFILE, missing_ratio=1.0))

    assert world.for_each_job(disturbances.sample_arrives, 30.0).tolist() == [1, 0]
    assert world.share.sum(axis=1) == pytest.approx(1)
    assert world.job_model.pause_up_s.shape == (2, disturbances.MOST_CHANGES)
