"""Baselines against numbers worked by hand from their own formulas."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.core.samples import Array
from adapter.simulator.baselines import SYNC_S, Baseline, BaselineInput, OperatorSettings
from adapter.simulator.baselines.alignment import Alignment
from adapter.simulator.baselines.dataflow_docs import DataflowDocs
from adapter.simulator.baselines.delayed_scale_down import DelayedScaleDown
from adapter.simulator.baselines.ds2 import Ds2
from adapter.simulator.baselines.flink import DEFAULT, FAST, Flink, FlinkParameters, Metrics, capacity, outside_bounds
from adapter.simulator.baselines.hpa_cpu import HpaCpu
from adapter.simulator.baselines.keda_kafka import KedaKafka
from adapter.simulator.baselines.registry import BASELINES
from adapter.simulator.baselines.window import SampleWindow

QUICK = FlinkParameters(metrics_window_s=15.0, stabilization_interval_s=0.0, scale_down_interval_s=0.0)
UNALIGNED = replace(QUICK, scaling_parallelism_alignment_mode="OFF")
Lanes = TypeVar("Lanes", OperatorSettings, BaselineInput)
SELF_ACTING = (
    *("flink-default", "flink-fast", "flink-tuned", "flink-tuned-85", "flink-demeter"),
    *("dataflow-docs", "ds2", "ds2-1.2"),
)
BEHIND_HPA = ("hpa-cpu-80", "hpa-cpu-70", "hpa-cpu-35", "keda-10", "keda-30s", "keda-120s", "keda-rate-80")


def job(lanes: int = 1, **values: float) -> OperatorSettings:
    known = {
        "worker_capacity_records_per_s": 1000.0,
        "partitions": 180.0,
        "max_workers": 60.0,
        "static_peak_workers": 48.0,
    } | values
    return OperatorSettings(**{name: np.full(lanes, value) for name, value in known.items()})


def look(at_s: float, lanes: int = 1, **values: float) -> BaselineInput:
    """Samples without delay of four workers that process 1000 records/s at half their capacity."""
    known = {
        "sampled_at_s": at_s,
        "appended_records": 1000.0 * at_s,
        "processed_records": 1000.0 * at_s,
        "backlog_records": 0.0,
        "cpu_ratio": 0.5,
        "busy_ratio": 0.5,
        "busiest_ratio": 0.5,
        "spec_workers": 4.0,
        "ready_workers": 4.0,
        "restarting": 0.0,
    } | values
    return BaselineInput(at_s=at_s, **{name: np.full(lanes, value) for name, value in known.items()})


def falling_behind(at_s: float, **values: float) -> BaselineInput:
    """1000 records/s come and 800 are processed by four workers that are busy all the time."""
    busy = {"cpu_ratio": 1.0, "busy_ratio": 1.0, "busiest_ratio": 1.0}
    return look(at_s, **({"processed_records": 800.0 * at_s, "backlog_records": 200.0 * at_s} | busy | values))


def syncs(until_s: float) -> Iterator[float]:
    return iter(np.arange(0.0, until_s + 1, SYNC_S).tolist())


def first_size(peer: Baseline, until_s: float, scene: Callable[[float], BaselineInput]) -> tuple[float, float] | None:
    """The time and value of its first size."""
    for at_s in syncs(until_s):
        size = float(peer.wanted(scene(at_s))[0])
        if not np.isnan(size):
            return at_s, size
    return None


# KEDA


@pytest.mark.parametrize(
    ("lag", "threshold", "partitions", "workers", "expected"),
    [
        pytest.param(29, 5, 5, 5, 6, id="29 of 5 on 5 partitions slips through the cap: 29 div 5 is not over 5"),
        pytest.param(35, 10, 3, 1, 4, id="35 of 10 on 3 partitions gives 4"),
        pytest.param(40, 10, 3, 1, 3, id="40 of 10 is over 3 partitions and capped"),
        pytest.param(450_000, 3000, 64, 63, 63, id="the cap stops at 63 of 64: 192000 / (63 * 3000) = 1.016"),
        pytest.param(10_000, 10, 24, 22, 22, id="24 partitions are stuck at 22: 24 / 22 = 1.09"),
        pytest.param(10_000, 10, 24, 21, 24, id="from 21 it goes to 24: 24 / 21 = 1.14"),
        pytest.param(100, 10, 0, 4, 10, id="work that any worker can take has no cap"),
        pytest.param(0, 10, 24, 4, 0, id="no lag gives 0, which the HPA raises to its minimum"),
        pytest.param(np.nan, 10, 24, 4, np.nan, id="an unseen lag is no number"),
    ],
)
def test_keda_divides_the_lag_by_its_threshold(
    lag: float, threshold: float, partitions: float, workers: float, expected: float
) -> None:
    peer = KedaKafka(job(partitions=partitions), threshold)
    wanted = peer.wanted(look(0.0, backlog_records=lag, spec_workers=workers))
    np.testing.assert_array_equal(wanted, [expected])


@pytest.mark.parametrize(
    ("name", "lag", "expected"),
    [
        pytest.param("keda-10", 90.0, 9.0, id="by default 10 records are a worker's share"),
        pytest.param("keda-30s", 90_000.0, 3.0, id="30 s of a worker's 1000 records/s"),
        pytest.param("keda-120s", 600_000.0, 5.0, id="120 s of them"),
    ],
)
def test_keda_is_tuned_by_the_worker_capacity(name: str, lag: float, expected: float) -> None:
    assert BASELINES[name](job()).wanted(look(0.0, backlog_records=lag, spec_workers=1.0)) == [expected]


# HPA on CPU


@pytest.mark.parametrize(
    ("target", "cpu", "spec", "ready", "expected"),
    [
        pytest.param(70, 0.9, 4, 4, 6, id="90 of 70 per cent takes 4 to 5.14, so 6"),
        pytest.param(80, 0.84, 4, 4, 4, id="84 of 80 is inside the tolerance"),
        pytest.param(35, 0.14, 10, 10, 4, id="14 of 35 takes 10 to 4"),
        pytest.param(70, 0.9, 6, 4, 6, id="two that start are taken to be idle: 60 of 70 turns an up around"),
        pytest.param(70, 1.0, 5, 4, 6, id="one that starts: 80 of 70 of five is 5.71"),
        pytest.param(70, 0.35, 6, 4, 2, id="a down counts the ready ones only: half of four"),
        pytest.param(70, np.nan, 4, 4, np.nan, id="no CPU sample is no number"),
    ],
)
def test_an_hpa_on_cpu_proposes_the_usage_over_the_target(
    target: int, cpu: float, spec: float, ready: float, expected: float
) -> None:
    peer = HpaCpu(job(), target)
    waits = spec > ready
    seen = look(0.0, cpu_ratio=cpu, spec_workers=spec, ready_workers=ready, restarting=float(waits))
    np.testing.assert_array_equal(peer.wanted(seen), [expected])


def restarted_cpu(at_s: float, delay_s: float = 0.0) -> BaselineInput:
    """Paused from 30 to 90 s."""
    return look(at_s, cpu_ratio=0.9, restarting=float(30 <= at_s < 90), sampled_at_s=at_s - delay_s)


def test_restarted_workers_have_no_cpu_before_a_newer_sample() -> None:
    peer = BASELINES["hpa-cpu-70"](job())
    result = {at_s for at_s in syncs(150.0) if not np.isnan(peer.wanted(restarted_cpu(at_s))[0])}
    assert result == {0.0, 15.0, 105.0, 120.0, 135.0, 150.0}


def test_late_samples_of_a_pause_do_not_count_either() -> None:
    peer = BASELINES["hpa-cpu-70"](job())
    result = {at_s for at_s in syncs(240.0) if not np.isnan(peer.wanted(restarted_cpu(at_s, 120.0))[0])}
    assert result == {0.0, 15.0, 225.0, 240.0}


# HPA on the input rate


@pytest.mark.parametrize(
    ("rate", "spec", "expected"),
    [
        pytest.param(2500.0, 2.0, 4.0, id="2500 records/s at 800 each are 3.1, so 4"),
        pytest.param(1700.0, 2.0, 2.0, id="2.1 of 2 is inside the tolerance"),
        pytest.param(100.0, 8.0, 1.0, id="one worker remains"),
    ],
)
def test_an_hpa_on_the_input_rate_divides_it_by_a_share_of_the_capacity(
    rate: float, spec: float, expected: float
) -> None:
    peer = BASELINES["keda-rate-80"](job())
    sizes = [peer.wanted(look(at_s, appended_records=rate * at_s, spec_workers=spec)) for at_s in syncs(60.0)]
    np.testing.assert_array_equal(np.concatenate(sizes), [np.nan, *[expected] * 4])


def test_the_input_rate_is_known_during_a_restart_and_ignores_the_backlog() -> None:
    peer = BASELINES["keda-rate-80"](job())
    sizes = [peer.wanted(falling_behind(at_s, restarting=1.0, processed_records=-at_s)) for at_s in syncs(600.0)]
    assert {float(size[0]) for size in sizes[1:]} == {2.0}


# Flink autoscaler


def rates(target: float, able: float, lag: float = 0.0) -> Metrics:
    return Metrics(
        target=np.array([float(target)]),
        processed=np.array([float(target)]),
        true_processing=np.array([float(able)]),
        lag_records=np.array([float(lag)]),
    )


@pytest.mark.parametrize(
    ("parameters", "input_and_lag", "utilization", "with_restart", "expected"),
    [
        # 1000 / 0.7 = 1428.57; 1000 * 300 / 1800 = 166.67
        pytest.param(DEFAULT, (1000, 0), 0.7, True, 1595, id="input at 0.7 and a restart"),
        pytest.param(DEFAULT, (1000, 0), 1.0, False, 1000, id="input at full use, no restart"),
        # + 180000 / 1800 = 100
        pytest.param(DEFAULT, (1000, 180_000), 0.7, True, 1695, id="and a backlog in half an hour"),
        # 1428.57 + 1000 * 60 / 300 + 3000 / 300
        pytest.param(FAST, (1000, 3000), 0.7, True, 1639, id="in five minutes, restarts of one"),
        pytest.param(DEFAULT, (1000, 0), 0.0, True, np.inf, id="use 0 is without end"),
        pytest.param(DEFAULT, (1000, 0), 1.3, False, 1000, id="no more than full use"),
        pytest.param(DEFAULT, (0.4, 0), 1.0, False, 0, id="less than half a record a second counts as none"),
        pytest.param(DEFAULT, (np.nan, 0), 0.7, True, np.nan, id="an unknown input is unknown"),
    ],
)
def test_flinks_size_follows_from_its_capacity(
    parameters: FlinkParameters,
    input_and_lag: tuple[float, float],
    utilization: float,
    with_restart: bool,
    expected: float,
) -> None:
    target, lag = input_and_lag
    needed = capacity(parameters, rates(target, 1.0, lag), utilization, with_restart=with_restart)
    np.testing.assert_array_equal(needed, [expected])


@pytest.mark.parametrize(
    ("able", "lag", "expected"),
    [
        # down from 166.67 + 1000 / 0.4 = 2667, up from 1000 / 1.0
        pytest.param(2667, 0, False, id="2667 is not too much"),
        pytest.param(2668, 0, True, id="2668 is too much"),
        pytest.param(1000, 0, False, id="1000 is enough"),
        pytest.param(999, 0, True, id="999 is too little"),
        pytest.param(1100, 180_000, False, id="a backlog of 100 records/s needs 1100"),
        pytest.param(1099, 180_000, True, id="1099 are too few for it"),
        pytest.param(9000, 300_001, False, id="behind by more than five minutes nothing is too much"),
        pytest.param(np.inf, 0, True, id="idleness is too much"),
    ],
)
def test_flink_acts_outside_its_utilization_boundary(able: float, lag: float, expected: bool) -> None:
    assert outside_bounds(DEFAULT, rates(1000.0, able, lag)) == [expected]


def test_flink_acts_only_after_the_stabilization_and_a_full_window() -> None:
    def scene(at_s: float) -> BaselineInput:
        return falling_behind(at_s, restarting=float(at_s < 60))

    # after 60 + 300 + 900 s: backlog 252000, 140 + 166.67 + 1428.57 = 1735 of 800 is 2.17 times four, 8.7
    assert first_size(BASELINES["flink-default"](job()), 3000.0, scene) == (1260.0, 9.0)


def test_a_restart_makes_flink_wait_again() -> None:
    def scene(at_s: float) -> BaselineInput:
        return falling_behind(at_s, restarting=float(600 <= at_s < 660))

    acted = first_size(BASELINES["flink-default"](job()), 3000.0, scene)
    assert acted is not None
    assert acted[0] == 660 + 300 + 900


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        # able 800 although half busy, since the backlog is 125 s: 55.6 + 133.3 + 1142.9 = 1332 of 800 is 6.66
        pytest.param("OFF", 7, id="not aligned 7"),
        pytest.param("BALANCED", 8, id="8 leaves 22 of 180 partitions, 7 left 25"),
        pytest.param("EVENLY_SPREAD", 9, id="9 is the next divisor"),
    ],
)
def test_flink_prefers_the_throughput_of_a_catch_up_to_busy_time(mode: str, expected: float) -> None:
    def scene(at_s: float) -> BaselineInput:
        done = 800.0 * at_s
        return look(at_s, appended_records=done, processed_records=done, backlog_records=100_000.0)

    peer = Flink(job(), replace(DEFAULT, scaling_parallelism_alignment_mode=mode))
    assert first_size(peer, 1000.0, scene) == (900.0, expected)


@pytest.mark.parametrize(
    ("busiest", "expected"),
    [
        # able 1000 / busiest, needed 1595
        pytest.param(0.25, 2, id="1595 of 4000 is less than the 0.4 a step may take: 1.6 of four"),
        pytest.param(0.35, 3, id="1595 of 2857 of four is 2.2"),
        pytest.param(0.4, np.nan, id="2500 lies inside the bounds"),
        pytest.param(0.9, np.nan, id="so does 1111"),
        pytest.param(0.0, 2, id="nothing to do is endless capacity, but 0.4 a step"),
    ],
)
def test_flink_scales_down_by_the_busiest_worker(busiest: float, expected: float) -> None:
    peer = Flink(job(), UNALIGNED)
    sizes = [peer.wanted(look(at_s, busiest_ratio=busiest)) for at_s in syncs(15.0)]
    np.testing.assert_array_equal(np.concatenate(sizes), [np.nan, expected])


def test_flink_may_read_the_mean_of_busy_time() -> None:
    mean = replace(UNALIGNED, metrics_busy_time_aggregator="AVG")
    peers = [Flink(job(), parameters) for parameters in (UNALIGNED, mean)]
    # able 1000 / busy: 1111 by the busiest lies inside the bounds, 4000 by the mean does not
    found = [first_size(peer, 15.0, lambda at_s: look(at_s, busiest_ratio=0.9, busy_ratio=0.25)) for peer in peers]
    assert found == [None, (15.0, 2.0)]


@pytest.mark.parametrize(
    ("limits", "parameters", "expected"),
    [
        pytest.param({}, UNALIGNED, 8, id="8 would do: 1602 of 800"),
        pytest.param({"partitions": 6.0}, UNALIGNED, 6, id="never more than the partitions"),
        pytest.param({"max_workers": 7.0}, UNALIGNED, 7, id="never more than the cluster has"),
        pytest.param({}, replace(UNALIGNED, vertex_max_parallelism=5), 5, id="never more than the maximum"),
        pytest.param({}, replace(UNALIGNED, scale_up_max_factor=0.5), 6, id="half more a step"),
        pytest.param({"partitions": 0.0}, QUICK, 8, id="work that any worker can take is not aligned"),
    ],
)
def test_flinks_limits_apply(limits: dict[str, float], parameters: FlinkParameters, expected: float) -> None:
    peer = Flink(job(**limits), parameters)
    acted = first_size(peer, 30.0, falling_behind)  # at 15 s a backlog of 3000: 1.7 + 166.7 + 1428.6 = 1597
    assert acted == (15.0, expected)


def busiest_of(shares: dict[float, float]) -> Callable[[float], BaselineInput]:
    """The load from the given seconds on."""

    def scene(at_s: float) -> BaselineInput:
        return look(at_s, busiest_ratio=shares[max(start for start in shares if start <= at_s)])

    return scene


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        pytest.param({0.0: 0.25}, (615.0, 2.0), id="after the interval, which began with the first full window"),
        pytest.param({0.0: 0.25, 300.0: 0.35, 360.0: 0.25}, (615.0, 3.0), id="to the largest size of the interval"),
        pytest.param({0.0: 0.35, 60.0: 0.25}, (615.0, 3.0), id="also its first"),
        pytest.param({0.0: 0.25, 300.0: 0.5, 360.0: 0.25}, (975.0, 2.0), id="again once the present size was right"),
        pytest.param(
            {0.0: 0.25, 300.0: np.nan, 315.0: 0.4, 360.0: np.nan, 375.0: 0.25},
            (960.0, 2.0),
            id="not while the largest size is one from inside the bounds",
        ),
    ],
)
def test_flinks_scale_downs_are_delayed(shares: dict[float, float], expected: tuple[float, float]) -> None:
    peer = Flink(job(), replace(UNALIGNED, scale_down_interval_s=600.0))
    assert first_size(peer, 2000.0, busiest_of(shares)) == expected


def test_flinks_scale_ups_are_immediate_and_end_the_wait_of_scale_downs() -> None:
    def scene(at_s: float) -> BaselineInput:
        return falling_behind(at_s) if 300 <= at_s < 330 else look(at_s, busiest_ratio=0.25)

    peer = Flink(job(), replace(UNALIGNED, scale_down_interval_s=600.0))
    sizes = {at_s: peer.wanted(scene(at_s))[0] for at_s in syncs(900.0)}
    assert sizes[315.0] > 4
    assert np.isnan(sizes[615.0])


@pytest.mark.parametrize(
    ("partitions", "size", "balanced", "even"),
    [
        pytest.param(180, 40, 45, 45, id="45 divides 180"),
        pytest.param(180, 46, 60, 60, id="46 to 59 of 180 leave 3 and a rest"),
        pytest.param(180, 61, 90, 90, id="61 to 89 of 180 leave 2 and a rest"),
        pytest.param(100, 35, 50, 50, id="35 to 49 of 100 leave 2 and a rest"),
        pytest.param(100, 21, 25, 25, id="25 divides 100, before 26 leaves less"),
        pytest.param(13, 5, 7, 13, id="a prime: 7 leaves 1, 5 leaves 2"),
        pytest.param(13, 20, 20, 20, id="beyond the partitions it stays"),
        pytest.param(0, 7, 7, 7, id="no partitions, no alignment"),
    ],
)
def test_alignment_rounds_to_the_partitions(partitions: float, size: float, balanced: float, even: float) -> None:
    found = [Alignment(np.array([float(partitions)]), mode) for mode in ("BALANCED", "EVENLY_SPREAD", "OFF")]
    assert [float(mode.next_size(np.array([float(size)]))[0]) for mode in found] == [balanced, even, size]


@given(st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=40))
def test_a_delayed_scale_down_is_the_largest_size_of_its_interval(requested: list[tuple[int, bool]]) -> None:
    delayed = DelayedScaleDown(1, 5 * SYNC_S)
    for turn, (size, outside) in enumerate(requested):
        found, was_outside = delayed.recommend(turn * SYNC_S, np.array([float(size)]), np.array([outside]))
        recent = requested[max(0, turn - 5) : turn + 1]
        largest = max(size for size, _ in recent)
        expected = largest if turn >= 5 else np.nan
        np.testing.assert_array_equal(found, [expected])
        assert was_outside == [[result for size, result in recent if size == largest][-1]]


# DS2 and Dataflow


@pytest.mark.parametrize(
    ("overprovisioning", "expected"),
    [
        # 1000 records/s by 4 workers of which half is used: 500 each, so 2
        pytest.param(1.0, 2, id="1000 of 500 is 2"),
        pytest.param(1.2, 3, id="and a fifth more is 2.4, so 3"),
        pytest.param(2.0, np.nan, id="twice as many is what there is"),
    ],
)
def test_ds2_divides_the_input_by_the_true_rate(overprovisioning: float, expected: float) -> None:
    peer = Ds2(job(), overprovisioning)
    sizes = [peer.wanted(look(at_s)) for at_s in syncs(60.0)]
    np.testing.assert_array_equal(np.concatenate(sizes), [np.nan] * 4 + [expected])


def test_ds2_waits_after_a_change() -> None:
    peer = BASELINES["ds2"](job())
    acts = [at_s for at_s in syncs(400.0) if not np.isnan(peer.wanted(look(at_s))[0])]
    assert acts == [60.0, 180.0, 300.0]


def test_ds2_does_not_see_a_backlog() -> None:
    peer = BASELINES["ds2"](job())
    assert first_size(peer, 300.0, lambda at_s: look(at_s, busy_ratio=1.0, backlog_records=1e9)) is None


def test_dataflow_scales_up_after_two_minutes_of_backlog() -> None:
    def scene(at_s: float) -> BaselineInput:
        return falling_behind(at_s, backlog_records=30_000.0 + 200 * at_s)

    # at 120 s 54000 wait, 360 records/s for 150 s; 1360 of 800 of four is 6.8
    assert first_size(BASELINES["dataflow-docs"](job()), 600.0, scene) == (120.0, 7.0)


@pytest.mark.parametrize(
    ("backlog", "cpu", "expected"),
    [
        pytest.param(0.0, 0.3, (120.0, 4.0), id="10 workers at 30 per cent are 4 at 75"),
        pytest.param(9_999.0, 0.3, (120.0, 4.0), id="less than 10 s of backlog counts as none"),
        pytest.param(0.0, 0.75, None, id="not from 75 per cent on"),
        pytest.param(15_000.0, 0.19, None, id="a backlog at less than 20 per cent CPU is not for want of workers"),
        # 1000 + 15000 / 150 is 1100 of 1000 of ten
        pytest.param(15_000.0, 0.21, (120.0, 11.0), id="at more it is"),
    ],
)
def test_dataflow_sizes_by_backlog_and_cpu(backlog: float, cpu: float, expected: tuple[float, float] | None) -> None:
    peer = DataflowDocs(job())

    def scene(at_s: float) -> BaselineInput:
        return look(at_s, backlog_records=backlog, cpu_ratio=cpu, spec_workers=10.0, ready_workers=10.0)

    assert first_size(peer, 600.0, scene) == expected


def test_dataflow_waits_for_a_lasting_backlog() -> None:
    def scene(at_s: float) -> BaselineInput:
        gone = at_s % 90 == 0
        return look(at_s, backlog_records=0.0 if gone else 50_000.0, cpu_ratio=0.9)

    assert first_size(BASELINES["dataflow-docs"](job()), 1200.0, scene) is None


# the window


def test_rates_and_means_cover_the_newest_window() -> None:
    window = SampleWindow(1, 60.0)
    for at_s in syncs(600.0):
        seen = look(at_s, processed_records=at_s**2, sampled_at_s=at_s - 120.0)
        window.take(seen, np.array([at_s]))
    # the last sample and those of the minute before: (600^2 - 540^2) / 60, mean of 540 to 600
    assert window.processed_records_per_s() == [1140.0]
    assert window.mean() == [570.0]
    assert window.samples == [5.0]


def test_a_gap_and_a_repeated_sample_do_not_count() -> None:
    window = SampleWindow(1, 60.0)
    for at_s in (0.0, 15.0, 30.0):
        window.take(look(at_s), np.array([0.5]))
    window.take(look(45.0, sampled_at_s=30.0), np.array([0.9]))
    repeated = window.fresh.copy()
    window.take(look(60.0, processed_records=np.nan), np.array([0.9]))
    assert (bool(repeated[0]), bool(window.fresh[0])) == (False, False)
    assert (float(window.samples[0]), float(window.mean()[0])) == (3.0, 0.5)


def test_a_counter_reset_empties_the_window() -> None:
    window = SampleWindow(1, 30.0)
    for at_s in syncs(60.0):
        window.take(look(at_s), np.array([0.5]))
    window.take(look(75.0, processed_records=10.0), np.array([0.5]))
    assert np.isnan(window.processed_records_per_s()[0])
    assert (bool(window.full[0]), float(window.samples[0])) == (False, 1.0)


# all of them


def test_every_baseline_has_its_name() -> None:
    assert sorted(BASELINES) == sorted([*SELF_ACTING, *BEHIND_HPA, "static-peak"])


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_uses_an_hpa_or_sets_the_size_itself(name: str) -> None:
    assert (BASELINES[name](job()).hpa is not None) == name.startswith(("hpa", "keda"))


@pytest.mark.parametrize("workers", [48.0, 0.5])
def test_the_static_baseline_never_changes(workers: float) -> None:
    peer = BASELINES["static-peak"](job(static_peak_workers=workers))
    assert {float(peer.wanted(falling_behind(at_s))[0]) for at_s in syncs(60.0)} == {max(1.0, workers)}


@pytest.mark.parametrize("name", [name for name in BASELINES if name != "static-peak"])
def test_unknown_samples_give_no_size(name: str) -> None:
    unseen = dict.fromkeys(
        ("appended_records", "processed_records", "backlog_records", "cpu_ratio", "busy_ratio", "busiest_ratio"), np.nan
    )
    assert first_size(BASELINES[name](job()), 7200.0, lambda at_s: look(at_s, **unseen)) is None


@pytest.mark.simulation
@pytest.mark.parametrize("name", SELF_ACTING)
def test_a_repeated_single_sample_gives_no_size(name: str) -> None:
    peer = BASELINES[name](job())
    assert first_size(peer, 7200.0, lambda at_s: replace(falling_behind(60.0), at_s=60.0 + at_s)) is None


@pytest.mark.parametrize("name", [name for name in BASELINES if name not in ("static-peak", "keda-rate-80")])
def test_metrics_two_minutes_late_freeze_no_baseline(name: str) -> None:
    def late(at_s: float) -> BaselineInput:
        seen = falling_behind(max(0.0, at_s - 120.0), restarting=float(300 <= at_s < 360))
        return replace(seen, at_s=at_s)

    peer = BASELINES[name](job(partitions=0.0))
    sizes = [float(peer.wanted(late(at_s))[0]) for at_s in syncs(3600.0)]
    assert np.nanmax(sizes) > 4


@pytest.mark.simulation
@pytest.mark.parametrize("name", BASELINES)
@settings(max_examples=3, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_jobs_do_not_influence_each_other(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lanes = 3
    jobs = replace(job(lanes), partitions=rng.choice([0.0, 13.0, 60.0, 180.0], lanes))
    together = BASELINES[name](jobs)
    alone = [BASELINES[name](one(jobs, lane)) for lane in range(lanes)]
    for seen in noisy(rng, lanes, 100):
        sizes = together.wanted(seen)
        apart = [float(alone[lane].wanted(one(seen, lane))[0]) for lane in range(lanes)]
        np.testing.assert_array_equal(sizes, apart)
        assert (np.isnan(sizes) | ((sizes >= 0) & (sizes == np.round(sizes)))).all()


def one(of: Lanes, lane: int) -> Lanes:
    arrays = {f.name: getattr(of, f.name)[lane : lane + 1] for f in fields(of) if f.name != "at_s"}
    return replace(of, **arrays)


def noisy(rng: np.random.Generator, lanes: int, ticks: int) -> Iterator[BaselineInput]:
    """Jobs of three loads that restart and lose samples now and then."""
    appended, processed, spec = np.zeros(lanes), np.zeros(lanes), np.ones(lanes)
    for tick in range(ticks):
        appended = appended + rng.uniform(0.0, 60_000.0, lanes)
        processed = np.minimum(appended, processed + rng.uniform(0.0, 50_000.0, lanes))
        lost = np.where(rng.random(lanes) < 0.05, np.nan, 0.0)
        shares: list[Array] = [rng.random(lanes) + lost for _ in range(3)]
        if tick % 50 == 0:
            spec = rng.integers(1, 30, lanes).astype(float)
        yield BaselineInput(
            at_s=tick * SYNC_S,
            sampled_at_s=tick * SYNC_S - rng.choice([0.0, 15.0], lanes),
            appended_records=appended + lost,
            processed_records=processed + lost,
            backlog_records=appended - processed + lost,
            cpu_ratio=shares[0],
            busy_ratio=shares[1],
            busiest_ratio=shares[2],
            spec_workers=spec,
            ready_workers=spec,
            restarting=(rng.random(lanes) < 0.01).astype(float),
        )
