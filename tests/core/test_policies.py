"""`dataflow` and `beam-flink`: the worked vectors of their sources, and the laws that follow from their formulas."""

from dataclasses import replace
from math import nan

import numpy as np
import pytest
from builders import column
from hypothesis import assume, given
from hypothesis import strategies as st
from policy_inputs import bounded, stage_input, terms, wanted

from adapter.core.decisions import Bound
from adapter.core.policies.sizing import size
from adapter.core.rules import POLICIES

rates = st.floats(0.01, 1e6)
growths = st.floats(-1e6, 1e6)
backlogs = st.one_of(st.just(0.0), st.floats(0.01, 1e9))
sizes = st.integers(1, 200)
times = st.floats(1, 3600)
stages = st.tuples(sizes, rates, growths, backlogs)


# S0: W, T, G, backlog, CPU -> require, extra, wanted size
BEAM_FLINK = {
    "S0-06 S0-07 S0-08 a: behind and hot": ((10, 1000, 200, 180_000), 0.95, 12, 30, 42),
    "S0-07 c: no growth, only catch up": ((10, 1000, 0, 180_000), 0.80, 10, 30, 40),
    "S0-10 d: B <= 120 s and CPU <= 90 % is no action": ((10, 1000, 200, 60_000), 0.80, 12, 10, 10),
    "S0-10 e: hot without backlog, the formula has no size for it": ((10, 1000, 0, 0), 0.95, 10, 0, 10),
    "S0-11 S0-12 f: calm and cool": ((10, 1000, 0, 5_000), 0.35, 10, 5 / 6, 5),
    "X-01 g: nothing is processed, the cap": ((10, 0, 0, 50_000), 0.02, 100, 14_400, 14_500),
    "X-03 h: growth is floored at 0": ((10, 1000, -200, 180_000), 0.95, 10, 30, 40),
    "S0-06: keep up alone, hot": ((10, 1000, 500, 0), 0.95, 15, 0, 15),
    "S0-10: B is 120 s, not above": ((10, 1000, 500, 120_000), 0.90, 15, 20, 10),
    "S0-10: B is 120.5 s": ((10, 1000, 500, 120_500), 0.90, 15, 20 + 1 / 12, 36),
    "S0-10: CPU unknown, B decides": ((10, 1000, 0, 180_000), nan, 10, 30, 40),
    "S0-15: dead zone of B": ((10, 1000, 0, 60_000), 0.35, 10, 10, 10),
    "S0-15: dead zone of CPU": ((10, 1000, 0, 0), 0.80, 10, 0, 10),
    "S0-11: B is 10 s, not below": ((10, 1000, 0, 10_000), 0.35, 10, 10 / 6, 10),
    "S0-11: CPU is 70 %, not below": ((10, 1000, 0, 0), 0.70, 10, 0, 10),
    "S0-11: growth": ((10, 1000, 200, 0), 0.35, 12, 0, 10),
    "S0-11: CPU unknown never scales down": ((10, 1000, 0, 0), nan, 10, 0, 10),
    "S0-13 X-10: 10 * 0.42 / 0.7 is 6, not 7": ((10, 1000, 0, 0), 0.42, 10, 0, 6),
    "S0-12: never below one worker": ((10, 1000, 0, 0), 0.0, 10, 0, 1),
    "X-02: idle": ((10, 0, 0, 0), nan, 10, 0, 10),
    "scaled to zero, work arrives": ((0, 0, 0, 50_000), nan, 1, 0, 1),
    "scaled to zero, nothing arrives": ((0, 0, 0, 0), nan, 0, 0, 0),
}


@pytest.mark.parametrize(("numbers", "cpu", "require", "extra", "size"), BEAM_FLINK.values(), ids=BEAM_FLINK)
def test_beam_flink_adds_its_terms(numbers, cpu, require, extra, size):
    assert terms("beam-flink", *numbers, cpu=cpu) == pytest.approx((size, require, extra))


@pytest.mark.parametrize(
    ("size", "most", "expected"),
    [(42, 100, (42, Bound.NONE)), (42, 40, (40, Bound.MAX)), (14_500, 100, (100, Bound.MAX))],
    ids=["S0-08 a", "S0-08 S0-16 b", "X-01 g"],
)
def test_the_maximum_of_beam_flink_is_a_bound(size, most, expected):
    assert bounded(size, 10, max_workers=most) == expected


@pytest.mark.parametrize(
    ("cpu", "backlog", "policy_result"),
    [(0.95, 180_000, 1), (0.8, 60_000, 0), (0.35, 5_000, -1)],
    ids=["scale up", "no action", "scale down"],
)
def test_s0_14_beam_flink_scales_up_or_down_or_stays(cpu, backlog, policy_result):
    assert np.sign(wanted("beam-flink", 10, 1000, 0, backlog, cpu=cpu) - 10) == policy_result


def test_s0_09_s3_09_the_time_to_reduce_the_backlog_is_60_s_unless_set():
    assert terms("beam-flink", 10, 1000, 0, 180_000)[2] == 30
    assert terms("beam-flink", 10, 1000, 0, 180_000, time_to_reduce_backlog_s=180)[2] == 10


# S3: M, T, G, B -> M', Extra, total (R = 60)
DATAFLOW = {
    "S3-06: steady": ((10, 100, 0, 0), 10, 0, 10),
    "S3-06: keep up": ((10, 100, 50, 0), 15, 0, 15),
    "S3-06 S3-07: both": ((10, 100, 50, 30), 15, 5, 20),
    "S3-07: catch up": ((10, 100, 0, 60), 10, 10, 20),
    "X-10: workers are whole, upwards": ((10, 100, 0, 15), 10, 2.5, 13),
    "S3-06 S3-07: larger numbers": ((4, 1000, 250, 90), 5, 6, 11),
    "S3-08: first of two stages": ((10, 100, 50, 30), 15, 5, 20),
    "S3-08: second of two stages": ((10, 500, 0, 90), 10, 15, 25),
    "X-03: draining within R needs no more workers": ((10, 100, -100, 60), 10, 10, 10),
    "S3-04: draining too slowly does": ((10, 100, -50, 60), 10, 10, 20),
    "S3-05: a short backlog time is no reason": ((10, 100, 0, 10), 10, 10 / 6, 10),
}


@pytest.mark.parametrize(("stage", "require", "extra", "total"), DATAFLOW.values(), ids=DATAFLOW)
def test_dataflow_adds_its_terms(stage, require, extra, total):
    workers, throughput, growth, time_s = stage
    numbers = (workers, throughput, growth, time_s * throughput)
    assert terms("dataflow", *numbers, quanta="none") == pytest.approx((total, require, extra))


# S3-12, S3-22: limit 0.9 strict, quanta of 60
DOWN = {
    "60 at .40: 30 at .80": (60, 0.40, 30),
    "60 at .45: .90 is not below": (60, 0.45, 60),
    "30 at .50: 20 at .75": (30, 0.50, 20),
    "X-11 30 at .60: 20 at .90 but for float noise": (30, 0.60, 30),
    "20 at .60: 15 at .80": (20, 0.60, 15),
    "12 at .80: 10 at .96": (12, 0.80, 12),
    "10 at .80: 9 at .889": (10, 0.80, 9),
    "4 at .10: 3 is not available": (4, 0.10, 4),
    "3 is below every quantum": (3, 0.10, 3),
    "14 is no quantum: 12 is the next": (14, 0.10, 12),
    "S3-11 unknown utilisation": (60, nan, 60),
}


@pytest.mark.parametrize(("workers", "cpu", "expected"), DOWN.values(), ids=DOWN)
def test_s3_12_s3_22_dataflow_scales_down_one_quantum_if_the_cpu_allows_it(workers, cpu, expected):
    assert wanted("dataflow", workers, 1000, cpu=cpu, most=60) == expected


@pytest.mark.parametrize(
    ("growth", "backlog", "expected"),
    [(0, 0, 30), (200, 0, 72), (0, 20_000, 80), (-200, 12_000, 60), (40, 0, 30)],
    ids=["calm", "growth goes up", "backlog goes up", "a draining backlog holds", "growth within the noise"],
)
def test_s3_11_dataflow_scales_down_only_while_calm(growth, backlog, expected):
    assert wanted("dataflow", 60, 1000, growth, backlog, cpu=0.1, most=60) == expected


@pytest.mark.parametrize(("total", "quantum"), [(12, 12), (13, 15), (16, 20), (31, 60), (90, 60)])
def test_s3_17_dataflow_scales_up_to_a_quantum(total, quantum):
    size = wanted("dataflow", 10, 1000, 0, backlog=(total - 10) * 60 / 10 * 1000, most=60)
    assert bounded(size, 10, max_workers=60) == (quantum, Bound.MAX if total > 60 else Bound.NONE)


def test_dataflow_never_scales_a_lagging_stage_down():
    assert wanted("dataflow", 70, 1000, 0, 11_000, most=60) == 83
    assert wanted("dataflow", 7, 1000, 60, 0, most=60, quanta="divisors") == 10


def test_without_partitions_the_quanta_are_those_of_the_maximum():
    assert wanted("dataflow", 60, 1000, cpu=0.1, most=60) == 30
    assert wanted("dataflow", 60, 1000, cpu=0.1, most=100, partitions=60) == 30
    assert wanted("dataflow", 60, 1000, cpu=0.1, most=100) == 50


def test_each_stage_is_sized_by_its_own_policy():
    stages = stage_input([10, 10], [1000, 1000], [500, 500], [0, 0], cpu=0.5, quanta="none")
    policy = column(POLICIES.index("dataflow"), POLICIES.index("beam-flink"))
    policy_result = size(replace(stages, rules=replace(stages.rules, policy=policy)))
    assert policy_result.wanted_workers.tolist() == [15, 10]


def test_no_stages_give_no_sizes():
    assert len(size(stage_input([], [], [], [])).wanted_workers) == 0


def beyond_noise(throughput, growth):
    return growth > 0.05 * throughput


@given(stages)
def test_p_01_the_keep_up_size_absorbs_exactly_the_input(stage):
    workers, throughput, growth, _ = stage
    _, require, _ = terms("dataflow", *stage)
    arriving = throughput + (growth if beyond_noise(throughput, growth) else 0)
    assert require * (throughput / workers) == pytest.approx(arriving)


@given(stages, times)
def test_p_02_the_extra_workers_clear_the_backlog_in_exactly_r(stage, time_s):
    workers, throughput, _, backlog = stage
    assume(backlog / throughput < 86_400)
    _, _, extra = terms("dataflow", *stage, time_to_reduce_backlog_s=time_s)
    assert extra * (throughput / workers) * time_s == pytest.approx(backlog)


@given(sizes, rates, st.floats(0, 0.69))
def test_p_03_beam_flink_takes_the_smallest_size_whose_utilisation_stays_within_the_limit(workers, throughput, cpu):
    size = wanted("beam-flink", workers, throughput, cpu=cpu)
    assert workers * cpu / size <= 0.7 + 1e-6
    assert size == 1 or workers * cpu / (size - 1) > 0.7


@given(sizes, rates, growths)
def test_p_04_the_lag_change_multiplier_is_the_keep_up_formula(workers, throughput, growth):
    assume(beyond_noise(throughput, growth))
    assert terms("beam-flink", workers, throughput, growth)[1] == pytest.approx(workers * (1 + growth / throughput))
