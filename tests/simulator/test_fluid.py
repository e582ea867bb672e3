"""The fluid model: no record is lost, and every disturbance has its cost."""

import csv
from dataclasses import fields, replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.samples import Array
from adapter.simulator.fluid import Conditions, JobModel, JobState, fail, flow_capacity, initial_state, rescale, step
from adapter.simulator.sharing import worker_share

PARTITIONS, SLOTS = 12, 24
MEASURED = Path(__file__).parents[1] / "data" / "traces" / "measured" / "khaos_recovery.csv"


def a_job(
    start_delay_s: float = 0.0, pause_s: float = 0.0, warm_up_s: float = 0.0, replay_s: float = 0.0, **more: Array
) -> JobModel:
    one = np.ones(1)
    model = JobModel(
        worker_capacity_records_per_s=one * 100,
        scaling_exponent=one,
        pooled=one < 1,
        start_delay_s=one[:, None] * start_delay_s,
        pause_up_s=one[:, None] * pause_s,
        pause_down_s=one[:, None] * pause_s,
        replay_s=one[:, None] * replay_s,
        warm_up_s=one * warm_up_s,
        warm_up_ratio=one * 0.5,
    )
    return replace(model, **more)


def a_load(rate: float, hot_share: float = 1 / PARTITIONS, sink_ratio: float = 1.0, stuck: int = 0) -> Conditions:
    """stuck: the number of workers that process nothing."""
    shares = np.full(PARTITIONS, (1 - hot_share) / (PARTITIONS - 1))
    shares[0] = hot_share
    return Conditions(
        rate_records_per_s=np.array([rate]),
        share=shares[None, :],
        speed_ratio=np.where(np.arange(SLOTS) < stuck, 0.0, 1.0)[None, :],
        sink_ratio=np.array([sink_ratio]),
    )


def reached(model: JobModel, state: JobState, load: Conditions) -> Conditions:
    """The same load with its flow capacity."""
    workers = state.ready_workers
    held = worker_share(load.share, model.pooled, workers, load.speed_ratio.shape[1])
    return replace(load, flow_capacity=flow_capacity(model, load, workers, held))


def workers(*counts: int) -> Array:
    return np.array(counts, dtype=float)


def run(model: JobModel, state: JobState, load: Conditions, seconds: int) -> list[JobState]:
    states = []
    for _ in range(seconds):
        state = step(model, state, load, 1.0)
        states.append(state)
    return states


def last(model: JobModel, size: int, load: Conditions, seconds: int = 10) -> JobState:
    return run(model, initial_state(workers(size), PARTITIONS), load, seconds)[-1]


def processed_each_second(states: list[JobState], before: float = 0.0) -> list[float]:
    return np.diff([before, *(state.processed_records[0] for state in states)]).round(6).tolist()


def paid_each_second(states: list[JobState]) -> list[float]:
    return [state.paid_workers[0] for state in states]


def ready_each_second(states: list[JobState]) -> list[float]:
    return [state.ready_workers[0] for state in states]


def test_a_job_with_headroom_has_no_backlog() -> None:
    end = last(a_job(), 4, a_load(370), 60)

    assert end.backlog_records.sum() == end.waiting_records[0] == 0
    assert end.utilization_ratio[0] == pytest.approx(0.925)


def test_a_job_without_headroom_falls_behind() -> None:
    end = last(a_job(), 3, a_load(370))

    assert end.backlog_records.sum() == pytest.approx(700)
    assert end.utilization_ratio[0] == pytest.approx(1)


def test_old_workers_continue_until_new_ones_are_ready() -> None:
    model = a_job(start_delay_s=3, pause_s=2, warm_up_s=4)
    state = rescale(model, initial_state(workers(2), PARTITIONS), workers(4))

    states = run(model, state, a_load(1000), 10)

    assert ready_each_second(states) == [2, 2, 2, 4, 4, 4, 4, 4, 4, 4]
    assert processed_each_second(states) == [200, 200, 200, 0, 0, 225, 275, 325, 375, 400]
    assert [state.idle_s[0] for state in states] == [0, 0, 0, 1, 1, 0, 0, 0, 0, 0]


def test_a_scale_down_takes_only_the_pause() -> None:
    model = a_job(start_delay_s=3, pause_s=2)
    state = rescale(model, initial_state(workers(4), PARTITIONS), workers(2))

    assert processed_each_second(run(model, state, a_load(1000), 4)) == [0, 0, 200, 200]


def test_scale_ups_and_scale_downs_have_their_own_pauses() -> None:
    model = a_job(pause_up_s=np.array([[1.0]]), pause_down_s=np.array([[3.0]]))
    begin = initial_state(workers(4), PARTITIONS)

    up = run(model, rescale(model, begin, workers(8)), a_load(2000), 4)
    down = run(model, rescale(model, begin, workers(2)), a_load(2000), 4)

    assert processed_each_second(up) == [0, *[1200 * 100 / 150] * 3]  # 8 workers over 12 partitions carry 12/2 * 100
    assert processed_each_second(down) == [0, 0, 0, 200]


def test_each_change_has_its_own_pause() -> None:
    model = a_job(pause_down_s=np.array([[1.0, 3.0]]))
    state, idle_s = initial_state(workers(12), PARTITIONS), []
    for size in (6, 4, 3):
        states = run(model, rescale(model, state, workers(size)), a_load(100), 6)
        state = states[-1]
        idle_s.append(sum(state.idle_s[0] for state in states))

    assert idle_s == [1, 3, 1]
    assert state.changes[0] == 3


def test_starting_and_ending_workers_are_paid() -> None:
    model = a_job(start_delay_s=2, pause_s=2)
    grown = run(model, rescale(model, initial_state(workers(2), PARTITIONS), workers(4)), a_load(100), 6)
    shrunk = run(model, rescale(model, initial_state(workers(4), PARTITIONS), workers(2)), a_load(100), 4)

    assert paid_each_second(grown) == [4, 4, 4, 4, 4, 4]
    assert ready_each_second(grown) == [2, 2, 4, 4, 4, 4]
    assert paid_each_second(shrunk) == [4, 2, 2, 2]  # seen at the end of a second, after its pause
    assert ready_each_second(shrunk) == [2, 2, 2, 2]


def test_the_utilization_of_a_stopped_job_is_unknown() -> None:
    model = a_job(pause_s=2)
    begin = initial_state(workers(4), PARTITIONS)
    down = step(model, rescale(model, begin, workers(2)), a_load(100), 1.0)
    none = step(model, initial_state(workers(0), PARTITIONS), a_load(100), 1.0)

    for state in (begin, down, none):
        assert np.isnan([state.utilization_ratio[0], state.busiest_ratio[0]]).all()


def test_the_last_of_two_rescales_wins() -> None:
    model = a_job(start_delay_s=3)
    state = rescale(model, initial_state(workers(2), PARTITIONS), workers(6))
    state = rescale(model, step(model, state, a_load(100), 1.0), workers(2))

    states = run(model, state, a_load(100), 5)

    assert ready_each_second(states) == [2, 2, 2, 2, 2]
    assert paid_each_second(states) == [2, 2, 2, 2, 2]


def test_workers_added_during_a_start_become_ready_together() -> None:
    model = a_job(start_delay_s=3)
    begin = step(model, rescale(model, initial_state(workers(2), PARTITIONS), workers(4)), a_load(100), 1.0)

    more = run(model, rescale(model, begin, workers(5)), a_load(100), 5)
    less = run(model, rescale(model, begin, workers(3)), a_load(100), 5)

    assert ready_each_second(more) == [2, 2, 5, 5, 5]
    assert ready_each_second(less) == [2, 2, 3, 3, 3]


def test_a_rescale_during_a_pause_waits_for_its_end() -> None:
    model = a_job(pause_s=3)
    begin = step(model, rescale(model, initial_state(workers(4), PARTITIONS), workers(3)), a_load(1000), 1.0)

    states = run(model, rescale(model, begin, workers(2)), a_load(1000), 7)

    assert ready_each_second(states) == [3, 3, 2, 2, 2, 2, 2]
    assert processed_each_second(states, begin.processed_records[0]) == [0, 0, 0, 0, 0, 200, 200]
    assert states[-1].changes[0] == 2


def test_records_since_the_last_checkpoint_are_replayed() -> None:
    model = a_job(pause_s=2, replay_s=4)
    begin = last(model, 6, a_load(300))

    states = run(model, rescale(model, begin, workers(4)), a_load(300), 2)

    assert states[0].processed_records[0] == 3000 - 4 * 300
    assert states[0].committed_records[0] == 3000
    assert states[0].backlog_records.sum() == pytest.approx(300 + 4 * 300)
    assert states[0].backlog_records.sum() == pytest.approx(states[0].waiting_records[0])


def test_a_replay_is_limited_to_the_processed_records() -> None:
    model = a_job(pause_s=2, replay_s=40)
    young = step(model, initial_state(workers(4), PARTITIONS), a_load(300), 1.0)
    idle = step(model, initial_state(workers(0), PARTITIONS), a_load(300), 1.0)

    again = step(model, rescale(model, young, workers(2)), a_load(300), 1.0)
    begun = step(model, rescale(model, idle, workers(2)), a_load(300), 1.0)

    assert again.processed_records[0] == 0
    assert begun.backlog_records.sum() == pytest.approx(600)


def test_a_failure_stops_the_job_and_repeats_work() -> None:
    model = a_job(replay_s=4, pause_s=30, warm_up_s=4)
    begin = last(model, 4, a_load(100))

    whole = fail(model, begin, a_load(100), np.zeros(1))
    states = run(model, fail(model, begin, a_load(100), np.array([3.0])), a_load(100), 5)

    assert whole.pause_left_s == 0
    assert processed_each_second(states, begin.processed_records[0]) == [-400, 0, 0, 225, 275]
    assert ready_each_second(states) == [4] * 5
    assert states[-1].changes[0] == 1


def test_a_failure_during_a_pause_only_prolongs_it() -> None:
    model = a_job(replay_s=4, pause_s=30)
    paused = step(model, rescale(model, last(model, 4, a_load(100)), workers(3)), a_load(100), 1.0)

    assert fail(model, paused, a_load(100), np.array([3.0])).pause_left_s == paused.pause_left_s == 29
    longer = fail(model, paused, a_load(100), np.array([60.0]))
    assert longer.pause_left_s == 60
    assert longer.processed_records == paused.processed_records
    assert longer.paid_workers == 4


def test_removed_workers_are_not_paid_in_a_later_failure() -> None:
    model = a_job(pause_s=2)
    smaller = run(model, rescale(model, initial_state(workers(8), PARTITIONS), workers(3)), a_load(100), 10)[-1]

    assert fail(model, smaller, a_load(100), np.array([5.0])).paid_workers == 3


def test_only_the_work_since_the_checkpoint_is_repeated() -> None:
    model = a_job(replay_s=4, pause_s=30)
    behind = last(model, 1, a_load(2500))  # 100/s are done of 2 500/s

    again = fail(model, behind, a_load(2500), np.array([3.0]))
    assert behind.processed_records - again.processed_records == pytest.approx(400)


def test_workers_beyond_the_partitions_process_nothing() -> None:
    assert last(a_job(), 20, a_load(5000)).processed_records == last(a_job(), 12, a_load(5000)).processed_records


def test_an_uneven_share_of_partitions_costs_capacity() -> None:
    # 8 workers over 12 partitions: four hold two and receive 116.7/s each, so 4 × 16.7/s stay behind.
    end = last(a_job(), 8, a_load(700))

    assert end.backlog_records.sum() == pytest.approx(10 * 4 * (700 / 6 - 100))
    assert end.busiest_ratio[0] == pytest.approx(1)
    assert end.utilization_ratio[0] == pytest.approx((4 * 100 + 4 * 700 / 12) / 800)


def test_a_hot_partition_gets_at_most_one_worker() -> None:
    end = last(a_job(), 12, a_load(400, hot_share=0.5))

    assert end.backlog_records[0, 0] == pytest.approx(1000)
    assert end.backlog_records[0, 1:].sum() == 0


def test_any_worker_of_a_pool_takes_any_record() -> None:
    pool = a_job(pooled=np.array([True]))

    end = last(pool, 8, a_load(900, hot_share=1.0))
    busy = last(pool, 8, a_load(600, hot_share=1.0))

    assert end.backlog_records.sum() == pytest.approx(10 * (900 - 800))
    assert busy.waiting_records[0] == 0
    assert busy.utilization_ratio[0] == busy.busiest_ratio[0] == pytest.approx(0.75)


def test_a_slow_worker_of_a_pool_costs_only_its_own_capacity() -> None:
    slow = replace(a_load(900, hot_share=1.0), speed_ratio=np.array([[0.5] + [1.0] * (SLOTS - 1)]))

    assert last(a_job(pooled=np.array([True])), 8, slow).backlog_records.sum() == pytest.approx(10 * (900 - 750))


@pytest.mark.parametrize("pooled", [pytest.param(False, id="of partitions"), pytest.param(True, id="pooled")])
def test_capacity_grows_with_the_exponent(pooled: bool) -> None:
    model = a_job(scaling_exponent=np.array([0.8]), pooled=np.array([pooled]))
    hot_share = 1.0 if pooled else 1 / PARTITIONS

    end = last(model, 6, a_load(1000, hot_share=hot_share))

    assert end.processed_records[0] == pytest.approx(10 * 100 * 6**0.8)


def test_a_stuck_worker_delays_only_its_own_partitions() -> None:
    end = last(a_job(), 4, a_load(120, stuck=1))

    assert np.flatnonzero(end.backlog_records[0]).tolist() == [0, 4, 8]


def test_a_job_with_only_stuck_workers_shows_no_work() -> None:
    assert last(a_job(), 4, a_load(120, stuck=4)).utilization_ratio[0] == 0


def test_a_slow_sink_makes_a_backlog_while_the_cpu_idles() -> None:
    end = last(a_job(), 4, a_load(300, sink_ratio=0.3))

    assert end.backlog_records.sum() == pytest.approx(1800)
    assert end.utilization_ratio[0] == pytest.approx(0.3)


StepResult = tuple[float, float, float, int, int, bool]


@st.composite
def lives(draw: st.DrawFn) -> list[StepResult]:
    """Rate, hot share, sink, stuck workers, desired size, whether the job fails."""
    numbers = st.tuples(
        st.one_of(st.just(0.0), st.floats(0, 5000)),
        st.floats(0.05, 1),
        st.floats(0, 1),
        st.integers(0, 14),
        st.integers(0, 14),
        st.booleans(),
    )
    return draw(st.lists(numbers, min_size=1, max_size=20))


@st.composite
def plants(draw: st.DrawFn) -> JobModel:
    return a_job(
        start_delay_s=draw(st.floats(0, 3)),
        pause_s=draw(st.floats(0, 5)),
        warm_up_s=draw(st.floats(0, 5)),
        replay_s=draw(st.sampled_from((0.0, 2.5))),
        pooled=np.array([draw(st.booleans())]),
        scaling_exponent=np.array([draw(st.floats(0.8, 1.0))]),
    )


def lived(model: JobModel, state: JobState, moment: StepResult, dt_s: float, by_reach: bool = False) -> JobState:
    rate, hot_share, sink_ratio, stuck, size, fails = moment
    load = a_load(rate, 1.0 if model.pooled[0] else hot_share, sink_ratio, stuck)
    state = fail(model, rescale(model, state, workers(size)), load, np.array([1.5 * fails]))
    return step(model, state, reached(model, state, load) if by_reach else load, dt_s)


@given(life=lives(), model=plants(), dt_s=st.floats(0.1, 10))
def test_every_appended_record_is_processed_or_waits(life: list[StepResult], model: JobModel, dt_s: float) -> None:
    state = initial_state(workers(2), PARTITIONS)
    for moment in life:
        before, state = state, lived(model, state, moment, dt_s)

        waiting = state.backlog_records.sum()
        assert state.waiting_records[0] == pytest.approx(waiting, rel=1e-12, abs=1e-9)
        assert state.appended_records[0] == pytest.approx(state.processed_records[0] + waiting, rel=1e-9, abs=1e-6)
        assert (state.backlog_records >= 0).all()
        assert state.committed_records[0] >= max(before.committed_records[0], state.processed_records[0])
        assert state.committed_records[0] <= state.appended_records[0] * (1 + 1e-9) + 1e-6
        assert not state.busiest_ratio[0] > 1 + 1e-9
        assert not state.utilization_ratio[0] > state.busiest_ratio[0] + 1e-9
        assert state.paid_workers[0] >= max(state.ready_workers[0], state.spec_workers[0])


@given(life=lives(), dt_s=st.floats(0.1, 10))
def test_a_partition_never_processes_more_than_its_backlog(life: list[StepResult], dt_s: float) -> None:
    model, state = a_job(start_delay_s=2, pause_s=1), initial_state(workers(2), PARTITIONS)
    for moment in life:
        before, state = state, lived(model, state, moment, dt_s)

        rate, hot_share = moment[:2]
        came = rate * dt_s * a_load(rate, hot_share).share
        assert (state.backlog_records <= before.backlog_records + came + 1e-9).all()
        assert state.processed_records[0] >= before.processed_records[0]


@given(life=lives(), model=plants(), dt_s=st.floats(0.1, 10))
def test_the_flow_capacity_does_not_change_the_result(life: list[StepResult], model: JobModel, dt_s: float) -> None:
    dense = short = initial_state(workers(2), PARTITIONS)
    for moment in life:
        dense, short = lived(model, dense, moment, dt_s), lived(model, short, moment, dt_s, by_reach=True)

        for of in fields(JobState):
            expected, got = getattr(dense, of.name), getattr(short, of.name)
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-6, err_msg=of.name)


def test_a_scale_down_without_a_pause_has_only_its_own_capacity() -> None:
    model, begin, load = a_job(), initial_state(workers(6), PARTITIONS), a_load(500)

    after = step(model, rescale(model, begin, workers(3)), reached(model, begin, load), 1.0)

    assert after.processed_records[0] == pytest.approx(300)


def test_a_job_without_backlog_is_stepped_without_its_partitions() -> None:
    model, begin = a_job(), initial_state(workers(4), PARTITIONS)

    carried = step(model, begin, reached(model, begin, a_load(370)), 1.0)
    missed = step(model, begin, reached(model, begin, a_load(500)), 1.0)

    assert carried.backlog_records is begin.backlog_records
    assert carried.utilization_ratio[0] == carried.busiest_ratio[0] == pytest.approx(0.925)
    assert missed.waiting_records[0] == pytest.approx(100)


@given(rate=st.floats(0, 3000), size=st.sampled_from((1, 2, 3, 4, 6)))
def test_more_workers_never_hurt_when_both_sizes_share_the_partitions_evenly(rate: float, size: int) -> None:
    few, many = last(a_job(), size, a_load(rate), 5), last(a_job(), 2 * size, a_load(rate), 5)

    assert many.processed_records[0] >= few.processed_records[0] - 1e-6


@given(order=st.permutations(range(PARTITIONS)), size=st.sampled_from((2, 3, 4, 6)), rate=st.floats(0, 2000))
def test_the_order_of_equal_partitions_does_not_matter(order: list[int], size: int, rate: float) -> None:
    first = last(a_job(), size, a_load(rate))
    waiting = replace(first, backlog_records=first.backlog_records[:, order])

    assert step(a_job(), waiting, a_load(rate), 1.0).processed_records[0] == pytest.approx(
        step(a_job(), first, a_load(rate), 1.0).processed_records[0]
    )


def test_jobs_do_not_influence_one_another() -> None:
    one = a_job(pause_s=1, replay_s=2)
    two = JobModel(**{name: np.repeat(getattr(one, name), 2, axis=0) for name in JobModel.__slots__})
    loads = [a_load(900, hot_share=0.4), a_load(150, stuck=1)]
    names = [name for name in Conditions.__slots__ if name != "flow_capacity"]
    both = Conditions(**{name: np.concatenate([getattr(load, name) for load in loads]) for name in names})

    begin = run(two, initial_state(workers(3, 5), PARTITIONS), both, 4)[-1]
    together = run(two, rescale(two, begin, workers(4, 5)), both, 7)[-1]
    begun = [
        run(one, initial_state(workers(n), PARTITIONS), load, 4)[-1] for n, load in zip((3, 5), loads, strict=True)
    ]
    requested = [rescale(one, state, workers(n)) for n, state in zip((4, 5), begun, strict=True)]
    alone = [run(one, state, load, 7)[-1] for state, load in zip(requested, loads, strict=True)]

    assert together.backlog_records.tolist() == [state.backlog_records[0].tolist() for state in alone]


def recovery_s(down_s: Array, checkpoint_s: Array, rate: Array, capacity: Array) -> Array:
    """Simulated seconds from a failure to the end of its backlog; half of a checkpoint interval is repeated."""
    one = np.ones(len(rate))
    model = replace(
        a_job(),
        worker_capacity_records_per_s=capacity,
        scaling_exponent=one,
        pooled=one > 0,
        replay_s=checkpoint_s[:, None] / 2,
        warm_up_s=0 * one,
        warm_up_ratio=one,
    )
    load = Conditions(rate_records_per_s=rate, share=one[:, None], speed_ratio=one[:, None], sink_ratio=one)
    state = run(model, initial_state(one, 1), load, 200)[-1]
    state = fail(model, state, load, down_s)
    took_s = np.zeros(len(rate))
    while state.waiting_records.any():
        state = step(model, state, load, 1.0)
        took_s += state.waiting_records > 1e-6
    return took_s


def test_recovery_without_noise_follows_the_formula() -> None:
    """R = D + (D + k/2)·λ/(C − λ), fitted to measured failures."""
    cases = np.array(list(product((10, 30, 57, 68, 120), (0, 10, 60, 120), (0.3, 0.5, 0.7, 0.8))), dtype=float)
    down_s, checkpoint_s, load_ratio = cases.T

    simulated_s = recovery_s(down_s, checkpoint_s, load_ratio * 1000, np.full(len(cases), 1000.0))

    law_s = down_s + (down_s + checkpoint_s / 2) * load_ratio / (1 - load_ratio)
    assert simulated_s == pytest.approx(law_s, rel=0.05, abs=1.0)


@pytest.mark.parametrize(("job", "room"), [pytest.param("ysb", 1.35, id="YSB"), pytest.param("iot", 1.25, id="IoT")])
def test_simulated_recoveries_are_about_those_measured(job: str, room: float) -> None:
    """119 failures, 67 s until a job works again, and room times the highest load as its capacity."""
    with MEASURED.open(encoding="utf-8") as file:
        result = [row for row in csv.DictReader(file) if row["job"] == job and row["checkpoint_s"]]
    columns = ("checkpoint_s", "avg_throughput", "recovery_s")
    table = np.array([[float(row[name]) for name in columns] for row in result])
    checkpoint_s, rate, measured_s = table[table[:, 2] < 1000].T  # one took 1397 s
    one = np.ones(len(rate))

    simulated_s = recovery_s(one * 67, checkpoint_s, rate, one * rate.max() * room)

    error_s = simulated_s - measured_s
    assert len(error_s) >= 59
    assert np.abs(error_s).mean() < 25
    assert abs(error_s.mean()) < 10
