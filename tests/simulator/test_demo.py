"""The behaviour that each demo workload shows."""

import numpy as np
import pytest

from adapter.simulator import demo


def arrivals(name: str, t_s: int, seed: int = 1) -> float:
    return float(demo.load(seed, t_s).rate_records_per_s[demo.NAMES.index(name)])


def test_equal_seeds_give_equal_runs() -> None:
    one, same, other = demo.load(1, 77), demo.load(1, 77), demo.load(2, 77)

    assert np.array_equal(one.rate_records_per_s, same.rate_records_per_s)
    assert not np.array_equal(one.rate_records_per_s, other.rate_records_per_s)


def test_steady_never_changes_and_idle_has_no_input() -> None:
    assert {round(arrivals("steady", t_s), 6) for t_s in range(-120, 600)} == {370}
    assert {arrivals("idle", t_s) for t_s in range(-120, 600)} == {0}


def test_two_minutes_show_one_sine_and_one_step() -> None:
    sine = [arrivals("sine", t_s) for t_s in range(120)]

    assert max(sine) > 800
    assert min(sine) < 150
    assert arrivals("onboarding-step", 29) == pytest.approx(80)
    assert arrivals("onboarding-step", 30) == pytest.approx(720)


def test_every_block_of_seconds_has_one_spike() -> None:
    for block in range(-3, 20):
        rates = [arrivals("spikes", block * demo.SPIKE_EVERY_S + second) for second in range(demo.SPIKE_EVERY_S)]
        assert sum(rate > 225 for rate in rates) == demo.SPIKE_S


@pytest.mark.parametrize("name", ["stuck", "slow-sink", "hot-partition", "flaky-metrics"])
def test_a_fault_begins_after_the_start_and_ends_within_two_minutes(name: str) -> None:
    fault_s = [t_s for t_s in range(-120, 120) if demo.has_fault(name, t_s)]

    assert fault_s
    assert min(fault_s) > 0
    assert max(fault_s) < 119


def test_a_fault_returns_in_each_cycle() -> None:
    assert demo.has_fault("stuck", 50)
    assert demo.has_fault("stuck", 50 + 3 * demo.CYCLE_S)


def test_a_hot_partition_exceeds_the_capacity_of_one_worker() -> None:
    load, job = demo.load(1, 45), demo.NAMES.index("hot-partition")
    hot = load.rate_records_per_s[job] * load.share[job]

    assert hot[0] > demo.WORKER_CAPACITY_RECORDS_PER_S
    assert hot.sum() == pytest.approx(500)


def test_a_fault_affects_only_its_own_job() -> None:
    for t_s in range(-120, demo.CYCLE_S):
        load = demo.load(1, t_s)

        assert load.share.sum(axis=1) == pytest.approx(1)
        assert (load.speed_ratio == 0).all(axis=1).tolist() == [
            name == "stuck" and demo.has_fault(name, t_s) for name in demo.NAMES
        ]
        assert (load.sink_ratio < 1).tolist() == [
            name == "slow-sink" and demo.has_fault(name, t_s) for name in demo.NAMES
        ]
