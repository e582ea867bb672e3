"""The samples of simulated jobs: delayed, sometimes lost, and never 0 for unknown."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from adapter.core.samples import Array
from adapter.simulator import fluid
from adapter.simulator.observer import COLUMNS, CPU_WHILE_DOWN_RATIO, Observer
from adapter.simulator.profiles import PROFILES, Profile
from adapter.simulator.world import SimulatedJob, World

CLEAR = replace(PROFILES["consumer-group-small"], missing_ratio=0.0, blackout_s=0.0)


def a_visible(*profiles: Profile) -> Observer:
    rate = np.full(60, 1000.0)
    return Observer(World([SimulatedJob(rate, 0, "static-peak", profile, 1) for profile in profiles]))


def a_state(
    jobs: int, appended: float, utilization: float = 0.5, busiest: float = 0.6, **more: float
) -> fluid.JobState:
    one = np.ones(jobs)
    state = replace(
        fluid.initial_state(4 * one, 1),
        appended_records=appended * one,
        processed_records=(appended - 7) * one,
        committed_records=(appended - 7) * one,
        utilization_ratio=utilization * one,
        busiest_ratio=busiest * one,
    )
    return replace(state, **{name: value * one for name, value in more.items()})


def result(visible: Observer, state: fluid.JobState, ticks: int) -> list[Mapping[str, Array]]:
    """Samples of a number of ticks, with 100 more appended and processed records each."""
    samples = []
    for tick in range(1, ticks + 1):
        now = replace(
            state,
            appended_records=state.appended_records + 100 * tick,
            committed_records=state.committed_records + 100 * tick,
        )
        visible.observe(now)
        samples.append(visible.newest_samples(tick, now))
    return samples


def test_counts_are_whole_and_add_up() -> None:
    visible, state = a_visible(CLEAR), replace(a_state(1, 1000.4), backlog_records=np.array([[2.6, 4.8]]))
    visible.observe(state)
    sample = visible.newest_samples(1, state)

    assert set(sample) == set(COLUMNS)
    assert (sample["appended"], sample["processed"], sample["backlog"]) == (1000, 993, 7)
    assert sample["partition"] == 5


def test_cpu_and_busy_time_are_means_over_a_tick_and_cpu_has_a_floor() -> None:
    visible = a_visible(CLEAR)
    for utilization in (0.2, 0.4, 0.6):
        visible.observe(a_state(1, 1000, utilization, 2 * utilization - 0.2))
    sample = visible.newest_samples(1, a_state(1, 1000))

    assert sample["busy"] == pytest.approx(0.4)
    assert sample["busiest"] == pytest.approx(0.6)
    assert sample["cpu"] == pytest.approx(CLEAR.idle_cpu_ratio + (1 - CLEAR.idle_cpu_ratio) * 0.4)


def test_a_tick_does_not_count_in_the_next_one() -> None:
    visible = a_visible(CLEAR)
    for utilization in (0.9, 0.1):
        visible.observe(a_state(1, 1000, utilization))
        sample = visible.newest_samples(1, a_state(1, 1000))

    assert sample["busy"] == pytest.approx(0.1)


def test_cpu_is_a_mean_over_the_window_of_the_profile() -> None:
    minute = replace(CLEAR, cpu_window_s=60.0, idle_cpu_ratio=0.0)
    visible, seen = a_visible(replace(minute, cpu_window_s=15.0), minute), []
    for tick, utilization in enumerate((0.1, 0.3, 0.5, 0.7, 0.9), 1):
        visible.observe(a_state(2, 1000, utilization))
        seen.append(visible.newest_samples(tick, a_state(2, 1000))["cpu"].tolist())

    assert [one for one, _ in seen] == [0.1, 0.3, 0.5, 0.7, 0.9]
    assert [four for _, four in seen] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.6])


def test_samples_arrive_after_the_metric_delay() -> None:
    visible = a_visible(CLEAR, replace(CLEAR, metric_delay_s=30.0), replace(CLEAR, metric_delay_s=45.0))

    appended = np.array([sample["appended"] for sample in result(visible, a_state(3, 0.0), 8)])

    assert appended[:, 0].tolist() == [100, 200, 300, 400, 500, 600, 700, 800]
    np.testing.assert_equal(appended[:, 1], [np.nan, np.nan, 100, 200, 300, 400, 500, 600])
    np.testing.assert_equal(appended[:, 2], [np.nan, np.nan, np.nan, 100, 200, 300, 400, 500])


@pytest.mark.parametrize(
    "down", [pytest.param({"pause_left_s": 5.0}, id="in a pause"), pytest.param({"ready_workers": 0.0}, id="no worker")]
)
def test_a_stopped_job_hides_its_counts_and_a_broker_shows_them(down: dict[str, float]) -> None:
    visible = a_visible(replace(CLEAR, shows_while_down=False), replace(CLEAR, shows_while_down=True))
    state = a_state(2, 1000, np.nan, np.nan, **down)
    visible.observe(state)
    sample = visible.newest_samples(1, state)

    for name in ("appended", "processed", "backlog", "partition"):
        assert np.isnan(sample[name]).tolist() == [True, False], name
    assert np.isnan([sample["busy"], sample["busiest"]]).all()
    assert sample["cpu"] == pytest.approx(CPU_WHILE_DOWN_RATIO)


def test_a_lost_sample_is_unknown_in_every_column() -> None:
    visible = a_visible(CLEAR, replace(CLEAR, missing_ratio=1.0), replace(CLEAR, blackout_s=86_400.0))

    for sample in result(visible, a_state(3, 1000), 5):
        for name, values in sample.items():
            assert np.isnan(values).tolist() == [False, True, True], name


def test_a_replay_does_not_lower_the_visible_counts() -> None:
    visible, state = a_visible(CLEAR), a_state(1, 1000, processed_records=400.0)
    visible.observe(state)

    assert visible.newest_samples(1, state)["processed"] == 993
