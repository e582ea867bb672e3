"""The oracle: examples by hand, every plan of a small task, and a bound for every policy."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.core.samples import Array
from adapter.simulator.profiles import PROFILES
from bench.oracle import (
    SizingTask,
    WorkerPlan,
    capacity_records,
    lower,
    upper,
    work_lower_bound,
)

ONE = 600.0  # records that a worker processes in a slot
PRICES_S = (0.0, 60.0, 300.0, 1800.0)


def a_task(workers_worth: Array | list[float], sizes: int = 12, exponent: float = 1.0) -> SizingTask:
    """Arrivals of each slot, in units of one worker's capacity."""
    capacity = ONE * np.arange(1.0, sizes + 1) ** exponent
    return SizingTask(arrival_records=ONE * np.asarray(workers_worth, dtype=float), capacity_records=capacity)


def a_day(seed: int, slots: int = 240) -> Array:
    """A hill, noise, and one burst."""
    rng = np.random.default_rng(seed)
    worth = 4 + 3 * np.sin(np.arange(slots) / slots * 2 * np.pi) + 0.3 * rng.standard_normal(slots)
    worth[slots // 3 : slots // 3 + 6] += 3
    return np.clip(worth, 0, None)


def test_a_constant_rate_has_the_smallest_sufficient_size() -> None:
    for price_s in (7200.0, 14_400.0):  # cheaper changes let some wait at the end
        plan = upper(a_task([6.5] * 300), 30.0, price_s)

        assert set(plan.workers) == {7.0}
        assert plan.infeasible_slots == 0


def test_a_step_is_followed_if_it_pays() -> None:
    task = a_task([2.0] * 120 + [6.0] * 120)

    assert upper(task, 0.0, 600.0).rescales == 1
    assert upper(task, 0.0, 60_000.0).rescales == 0
    assert set(upper(task, 0.0, 60_000.0).workers) == {6.0}


def test_a_step_is_drained_as_late_as_allowed() -> None:
    """From 2 to 6 workers' worth. Five slots may wait: 4 short for seven slots are 28 of the 30 that are in time."""
    plan = upper(a_task([2.0] * 60 + [6.0] * 60, sizes=6), 0.0, 600.0)

    begins = int(np.flatnonzero(plan.workers == 6)[0])
    assert 66 <= begins <= 67
    assert plan.worker_hours == pytest.approx((begins * 2 + (120 - begins) * 6) / 60, abs=0.4)


def test_a_pause_may_take_several_slots() -> None:
    task = a_task([2.0] * 120 + [6.0] * 120)
    costs = [upper(task, pause_s, 600.0).objective for pause_s in (0.0, 30.0, 60.0, 90.0, 180.0)]

    assert costs == sorted(costs)
    assert all(upper(task, pause_s, 600.0).infeasible_slots == 0 for pause_s in (0.0, 90.0, 180.0))


def test_an_infeasible_load_is_counted_and_runs_on_all_workers() -> None:
    task = a_task([2.0] * 30 + [9.0] * 30 + [2.0] * 60, sizes=4)

    for plan in (upper(task, 30.0, 900.0), lower(task, 900.0)):
        assert plan.infeasible_slots > 10
        assert set(plan.workers[45:60]) == {4.0}


def test_without_input_one_worker_remains() -> None:
    plan = upper(a_task([0.0] * 60), 30.0, 600.0)

    assert (set(plan.workers), plan.worker_hours, plan.rescales, plan.infeasible_slots) == ({1.0}, 1.0, 0, 0)


def test_the_work_alone_is_a_lower_bound() -> None:
    assert work_lower_bound(a_task([6.0] * 60)) == pytest.approx((60 - 5) * 6 / 60)


@pytest.mark.parametrize(
    ("profile", "workers", "share"),
    [
        pytest.param("consumer-group", 30, 30 / 1.1, id="six partitions each, but their weights differ"),
        pytest.param("consumer-group", 31, 30 / 1.1, id="one more worker and none has fewer"),
        pytest.param("pause-30-60", 16, 16**0.95, id="work that any worker can take"),
    ],
)
def test_capacity_is_that_of_the_busiest_worker(profile: str, workers: int, share: float) -> None:
    assert capacity_records(PROFILES[profile])[workers - 1] == pytest.approx(60_000 * share)


def test_capacity_of_shared_work_is_even_and_workers_beyond_the_partitions_idle() -> None:
    small = replace(PROFILES["consumer-group"], partitions=4, max_workers=8, skew=0.0)

    assert capacity_records(small, even=True)[6] == 7 * 60_000
    assert (capacity_records(small) / 60_000).tolist() == [1, 2, 2, 4, 4, 4, 4, 4]


TINY = st.lists(st.sampled_from([0.0, 0.4, 1.0, 1.7, 2.6, 3.0]), min_size=1, max_size=7)


@pytest.mark.simulation
@given(TINY, st.sampled_from(PRICES_S), st.sampled_from([0.0, 20.0, 60.0]))
@settings(deadline=None, max_examples=60)
def test_the_cheapest_plan_of_a_small_task_lies_between_the_bounds(
    worth: list[float], price_s: float, pause_s: float
) -> None:
    task = replace(a_task(worth, sizes=3), slo_s=120.0)
    best = cheapest(task, price_s, pause_s)
    plan = upper(task, pause_s, price_s)

    assert lower(task, price_s).objective <= best + 1e-9
    if plan.infeasible_slots == 0:
        assert best <= plan.objective + 1e-9
    if pause_s == 0:  # whole slots of whole units: the cheapest plan except for the units reserved at the limit
        assert plan.infeasible_slots or plan.objective <= cheapest(task, price_s, pause_s, kept_ratio=0.01) + 1e-9


def cheapest(task: SizingTask, price_s: float, pause_s: float, kept_ratio: float = 0.0) -> float:
    """The least cost of all plans by trying each; infinite if all are late.

    kept_ratio: share of the largest limit that every plan leaves unused.
    """
    arrived = np.concatenate(([0.0], np.cumsum(task.arrival_records)))
    allowed = arrived - np.concatenate(([0.0, 0.0], arrived))[: len(arrived)]  # two slots may wait
    allowed = np.maximum(allowed - kept_ratio * allowed.max(), 0.0)
    slots, best = len(task.arrival_records), np.inf
    for plan in product(range(1, 4), repeat=slots):
        waiting, late, changed_to = 0.0, False, 0
        for slot, size in enumerate(plan):
            changed = slot > 0 and size != plan[slot - 1]
            changed_to += size * changed
            share = 1 - pause_s / 60 if changed else 1.0
            waiting = max(0.0, waiting + task.arrival_records[slot] - size * ONE * share)
            late |= waiting > allowed[slot + 1] + 1e-6
        if not late:
            best = min(best, sum(plan) / 60 + price_s / 3600 * changed_to)
    return best


@pytest.mark.simulation
@given(st.integers(0, 1000), st.sampled_from([0.0, 30.0, 90.0]), st.sampled_from([0.9, 1.0]))
@settings(deadline=None, max_examples=8)
def test_the_lower_bound_is_below_the_upper_and_the_pareto_front_is_monotone(
    seed: int, pause_s: float, exponent: float
) -> None:
    task = a_task(a_day(seed), exponent=exponent)
    plans = [upper(task, pause_s, price_s) for price_s in PRICES_S]
    bounds = [lower(task, price_s) for price_s in PRICES_S]

    for plan, bound in zip(plans, bounds, strict=True):
        assert plan.infeasible_slots == bound.infeasible_slots == 0
        assert work_lower_bound(task) <= bound.objective <= plan.objective + 1e-9
    assert falls([changed_to(plan) for plan in plans])
    assert falls([-plan.worker_hours for plan in plans])
    assert falls([-bound.objective for bound in bounds])


def changed_to(plan: WorkerPlan) -> float:
    """The sum of the sizes after each change."""
    return float(plan.workers[1:][np.diff(plan.workers) != 0].sum())


def falls(numbers: list[float]) -> bool:
    return all(later <= earlier + 1e-9 for earlier, later in pairwise(numbers))


@given(st.integers(0, 1000), st.floats(0.0, 0.6), st.sampled_from(PRICES_S))
@settings(deadline=None, max_examples=12)
def test_no_policy_that_changes_within_slots_beats_the_bound(seed: int, spare: float, price_s: float) -> None:
    """It follows the rate every 15 s, with noise in its workers' speed whose best the bound knows."""
    rng = np.random.default_rng(seed)
    worth, steps = np.repeat(a_day(seed), 12), 12
    speed = 1 + 0.05 * np.sin(np.arange(len(worth)) / 7)
    wanted = np.repeat(np.ceil((worth + spare)[::3] + rng.integers(0, 2, len(worth) // 3)), 3).clip(1, 12)
    late, waiting = 0, 0.0
    arrived = np.concatenate((np.zeros(61), np.cumsum(worth)))
    for step, size in enumerate(wanted):
        waiting = max(0.0, waiting + worth[step] - size * speed[step])
        late += waiting > arrived[step + 61] - arrived[step + 1] + 1e-9
    best = speed.reshape(-1, steps).max(axis=1)
    task = a_task(a_day(seed))
    bound = lower(replace(task, capacity_records=best[:, None] * task.capacity_records), price_s)

    objective = wanted.sum() / 720 + price_s / 3600 * wanted[1:][np.diff(wanted) != 0].sum()
    assert late > 0 or bound.objective <= objective


def test_with_free_changes_the_front_is_close_to_a_greedy_drain() -> None:
    """A greedy policy takes the smallest size that is just in time."""
    task = a_task(a_day(3))
    arrived = np.concatenate((np.zeros(5), np.cumsum(task.arrival_records)))
    waiting, hours = 0.0, 0.0
    for slot, records in enumerate(task.arrival_records):
        in_time = arrived[slot + 5] - arrived[slot]
        size = max(1.0, np.ceil((waiting + records - in_time) / ONE - 1e-9))
        waiting = max(0.0, waiting + records - size * ONE)
        hours += size / 60

    assert upper(task, 0.0, 0.0).worker_hours == pytest.approx(hours, rel=0.01)


def test_a_plan_costs_its_hours_and_its_changes() -> None:
    plan: WorkerPlan = upper(a_task(a_day(1)), 30.0, 360.0)

    assert plan.worker_hours == pytest.approx(plan.workers.sum() / 60)
    assert plan.rescales == np.count_nonzero(np.diff(plan.workers))
    assert plan.objective == pytest.approx(plan.worker_hours + changed_to(plan) / 10)
