"""The fluid model: nothing is lost, and every kind of trouble costs what it should."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.backtest.plant import Load, Plant, State, initial, rescaled, step

PARTITIONS = 12


def a_plant(start_delay_s: float = 0.0, pause_s: float = 0.0, warm_up_s: float = 0.0) -> Plant:
    one = np.ones(1)
    return Plant(
        worker_capacity_records_per_s=one * 100,
        start_delay_s=one * start_delay_s,
        pause_s=one * pause_s,
        warm_up_s=one * warm_up_s,
        warm_up_ratio=one * 0.5,
    )


def a_load(rate: float, hot_share: float = 1 / PARTITIONS, speed_ratio: float = 1.0, stuck: int = 0) -> Load:
    shares = np.full(PARTITIONS, (1 - hot_share) / (PARTITIONS - 1))
    shares[0] = hot_share
    return Load(
        arrival_records_per_s=rate * shares[None, :],
        speed_ratio=np.array([speed_ratio]),
        stuck_workers=np.array([float(stuck)]),
    )


def workers(*counts: int) -> np.ndarray:
    return np.array(counts, dtype=float)


def run(plant: Plant, state: State, load: Load, seconds: int) -> list[State]:
    states = []
    for _ in range(seconds):
        state = step(plant, state, load, 1.0)
        states.append(state)
    return states


def processed_each_second(states: list[State], before: float = 0.0) -> list[float]:
    return np.diff([before, *(state.processed_records[0] for state in states)]).round(6).tolist()


def test_a_job_with_room_leaves_nothing_behind() -> None:
    last = run(a_plant(), initial(workers(4), PARTITIONS), a_load(370), 60)[-1]

    assert last.backlog_records.sum() == 0
    assert last.utilization_ratio[0] == pytest.approx(0.925)


def test_a_job_without_room_falls_behind_by_what_it_cannot_carry() -> None:
    last = run(a_plant(), initial(workers(3), PARTITIONS), a_load(370), 10)[-1]

    assert last.backlog_records.sum() == pytest.approx(700)
    assert last.utilization_ratio[0] == pytest.approx(1)


def test_the_old_workers_work_on_until_the_new_ones_are_ready_then_all_pause_and_warm_up() -> None:
    plant = a_plant(start_delay_s=3, pause_s=2, warm_up_s=4)
    state = rescaled(plant, initial(workers(2), PARTITIONS), workers(4))

    states = run(plant, state, a_load(1000), 10)

    assert [state.ready_workers[0] for state in states] == [2, 2, 2, 4, 4, 4, 4, 4, 4, 4]
    assert processed_each_second(states) == [200, 200, 200, 0, 0, 225, 275, 325, 375, 400]


def test_a_smaller_set_takes_over_after_the_pause_alone() -> None:
    plant = a_plant(start_delay_s=3, pause_s=2)
    state = rescaled(plant, initial(workers(4), PARTITIONS), workers(2))

    assert processed_each_second(run(plant, state, a_load(1000), 4)) == [0, 0, 200, 200]


def test_while_a_job_is_down_its_utilization_is_unknown_not_zero() -> None:
    plant = a_plant(pause_s=2)
    state = rescaled(plant, initial(workers(4), PARTITIONS), workers(2))

    assert np.isnan(step(plant, state, a_load(100), 1.0).utilization_ratio[0])
    assert np.isnan(step(plant, initial(workers(0), PARTITIONS), a_load(100), 1.0).utilization_ratio[0])


def test_the_last_of_two_orders_wins() -> None:
    plant = a_plant(start_delay_s=3)
    state = rescaled(plant, initial(workers(2), PARTITIONS), workers(6))
    state = rescaled(plant, step(plant, state, a_load(100), 1.0), workers(2))

    assert [state.ready_workers[0] for state in run(plant, state, a_load(100), 5)] == [2, 2, 2, 2, 2]


def test_workers_beyond_the_partitions_carry_nothing() -> None:
    twelve = run(a_plant(), initial(workers(12), PARTITIONS), a_load(5000), 5)[-1]
    twenty = run(a_plant(), initial(workers(20), PARTITIONS), a_load(5000), 5)[-1]

    assert twenty.processed_records == twelve.processed_records


def test_an_uneven_share_of_partitions_costs_capacity() -> None:
    # 8 workers over 12 partitions: four hold two and receive 116.7/s each, so 4 × 16.7/s stay behind.
    last = run(a_plant(), initial(workers(8), PARTITIONS), a_load(700), 10)[-1]

    assert last.backlog_records.sum() == pytest.approx(10 * 4 * (700 / 6 - 100))


def test_a_hot_partition_is_worth_one_worker() -> None:
    state = initial(workers(12), PARTITIONS)

    states = run(a_plant(), state, a_load(400, hot_share=0.5), 10)

    assert states[-1].backlog_records[0, 0] == pytest.approx(1000)
    assert states[-1].backlog_records[0, 1:].sum() == 0


def test_a_stuck_worker_keeps_its_partitions_waiting_and_no_others() -> None:
    last = run(a_plant(), initial(workers(4), PARTITIONS), a_load(120, stuck=1), 10)[-1]

    assert np.flatnonzero(last.backlog_records[0]).tolist() == [0, 4, 8]


def test_a_slow_sink_makes_a_backlog_while_the_cpu_idles() -> None:
    last = run(a_plant(), initial(workers(4), PARTITIONS), a_load(300, speed_ratio=0.3), 10)[-1]

    assert last.backlog_records.sum() == pytest.approx(1800)
    assert last.utilization_ratio[0] == pytest.approx(0.3)


@st.composite
def lives(draw: st.DrawFn) -> list[tuple[float, float, float, int, int]]:
    numbers = st.tuples(st.floats(0, 5000), st.floats(0.05, 1), st.floats(0, 1), st.integers(0, 14), st.integers(0, 14))
    return draw(st.lists(numbers, min_size=1, max_size=20))


@given(life=lives(), pause_s=st.floats(0, 5), dt_s=st.floats(0.1, 10))
def test_what_was_appended_was_processed_or_waits(
    life: list[tuple[float, float, float, int, int]], pause_s: float, dt_s: float
) -> None:
    plant = a_plant(start_delay_s=2, pause_s=pause_s, warm_up_s=3)
    state = initial(workers(2), PARTITIONS)
    for rate, hot_share, speed_ratio, stuck, size in life:
        before = state
        state = step(plant, rescaled(plant, state, workers(size)), a_load(rate, hot_share, speed_ratio, stuck), dt_s)

        waiting = state.backlog_records.sum()
        assert state.appended_records[0] == pytest.approx(state.processed_records[0] + waiting, rel=1e-9, abs=1e-6)
        assert (state.backlog_records >= 0).all()
        assert state.processed_records[0] >= before.processed_records[0]
        assert not state.utilization_ratio[0] > 1 + 1e-9


@given(rate=st.floats(0, 3000), size=st.sampled_from((1, 2, 3, 4, 6)))
def test_doubling_the_workers_never_hurts_when_both_sizes_share_the_partitions_evenly(rate: float, size: int) -> None:
    few = run(a_plant(), initial(workers(size), PARTITIONS), a_load(rate), 5)[-1]
    many = run(a_plant(), initial(workers(2 * size), PARTITIONS), a_load(rate), 5)[-1]

    assert many.processed_records[0] >= few.processed_records[0] - 1e-6


def test_jobs_side_by_side_do_not_touch_one_another() -> None:
    one = a_plant()
    two = Plant(**{name: np.repeat(getattr(one, name), 2) for name in Plant.__slots__})
    loads = [a_load(900, hot_share=0.4), a_load(150, stuck=1)]
    both = Load(**{name: np.concatenate([getattr(load, name) for load in loads]) for name in Load.__slots__})

    together = run(two, initial(workers(3, 5), PARTITIONS), both, 7)[-1]
    alone = [run(one, initial(workers(n), PARTITIONS), load, 7)[-1] for n, load in zip((3, 5), loads, strict=True)]

    assert together.backlog_records.tolist() == [state.backlog_records[0].tolist() for state in alone]
