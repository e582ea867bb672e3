"""The worked vectors of every text with `safety: off`, from samples to decisions, and what each safety rule changes."""

from functools import cache
from itertools import product

import pytest
from builders import TICK_S, book, counts, flow, history_each, job, last, steady, tick

from adapter.core.decisions import Reason

NO_TABLE = {"quanta": "none"}


def decided(policy, workers, numbers, cpu=None, *, signals=None, **rules):
    """The last decision of a minute that ends with this throughput, growth and backlog time (seconds)."""
    throughput, growth, backlog_s = numbers
    begin = backlog_s * (throughput or 1) - growth * 60
    samples = {"throughput": throughput, "growth": growth, "backlog": begin, "utilization_ratio": cpu}
    ticks = steady(**samples, **counts(workers) | (signals or {}))
    return last(ticks, book(policy=policy, **{"safety": False} | rules))


def required(*args, **more):
    return decided(*args, **more).required_workers


# W, (T, G, B s), CPU, max -> size
BEAM_FLINK = {
    "S0-06 S0-07 S0-08 a": (10, (1000, 200, 180), 0.95, 100, 42),
    "S0-08 S0-16 b: the maximum": (10, (1000, 200, 180), 0.95, 40, 40),
    "S0-07 c": (10, (1000, 0, 180), 0.80, 100, 40),
    "S0-10 S0-15 d": (10, (1000, 200, 60), 0.80, 100, 10),
    "S0-10 e: no size for CPU alone": (10, (1000, 0, 0), 0.95, 100, 10),
    "S0-11 S0-12 f": (10, (1000, 0, 5), 0.35, 100, 5),
    "X-01 g": (10, (0, 0, 50_000), 0.02, 100, 100),
    "X-03 h": (10, (1000, -200, 180), 0.95, 100, 40),
    "S0-28 at 120 s": (10, (1000, 500, 0), 0.95, 100, 15),
    "S0-28 at 180 s": (10, (1000, 500, 30), 0.95, 100, 20),
    "S0-28 at 360 s": (10, (1000, 500, 120), 0.90, 100, 10),
    "S0-28 at 361 s": (10, (1000, 500, 120.5), 0.90, 100, 36),
    "S0-06 growth below 5 % or 10 s": (100, (10_000, 700, 9.9), 0.95, 200, 124),
    "S0-07 while the backlog drains": (10, (1000, -900, 48), 0.95, 100, 18),
}


@pytest.mark.parametrize(("workers", "numbers", "cpu", "most", "size"), BEAM_FLINK.values(), ids=BEAM_FLINK)
def test_beam_flink(workers, numbers, cpu, most, size):
    assert required("beam-flink", workers, numbers, cpu, max_workers=most) == size


# M, (T, G, B s) -> size
DATAFLOW = {
    "S3-06 steady": (10, (100, 0, 0), 10),
    "S3-06": (10, (100, 50, 0), 15),
    "S3-06 S3-07": (10, (100, 50, 30), 20),
    "S3-07": (10, (100, 0, 60), 20),
    "X-10": (10, (100, 0, 15), 13),
    "S3-06 S3-07 larger": (4, (1000, 250, 90), 11),
    "S3-06 growth below 5 % or 10 s": (100, (10_000, 700, 9.9), 124),
    "S3-07 while the backlog drains": (10, (1000, -900, 48), 18),
    "X-01 nothing is processed: the maximum": (10, (0, 0, 50_000), 200),
}


@pytest.mark.parametrize(("workers", "numbers", "size"), DATAFLOW.values(), ids=DATAFLOW)
def test_dataflow(workers, numbers, size):
    assert required("dataflow", workers, numbers, max_workers=200, **NO_TABLE) == size


# N = 60, limit 0.9
DOWN = {
    "S3-12 60 to 30": (60, 0.40, 30),
    "S3-22 .90 is not below": (60, 0.45, 60),
    "S3-12 30 to 20": (30, 0.50, 20),
    "X-11 30 at .60": (30, 0.60, 30),
    "S3-12 20 to 15": (20, 0.60, 15),
    "S3-22 12 at .96": (12, 0.80, 12),
    "S3-12 10 to 9": (10, 0.80, 9),
    "S3-14 3 is not available": (4, 0.10, 4),
}


@pytest.mark.parametrize(("workers", "cpu", "size"), DOWN.values(), ids=DOWN)
def test_dataflow_downwards(workers, cpu, size):
    assert required("dataflow", workers, (1000, 0, 0), cpu, max_workers=60) == size


def test_s3_08_the_largest_of_two_stages():
    first, second = {"throughput": 100, "growth": 50}, {"throughput": 500, "growth": 0}
    ticks = [
        tick(
            at_s,
            job(**counts()),
            job(stage="parse", **flow(at_s, backlog=0, **first)),
            job(stage="join", **flow(at_s, backlog=45_000, **second)),
        )
        for at_s in range(0, 61, TICK_S)
    ]
    assert last(ticks, book(safety=False, **NO_TABLE)).required_workers == 25


# W, (T, G, lag / T), utilization -> size
VARGA = {
    "S1-12 S1-16 1.5": (4, (1000, 500, 100), 0.7, 6),
    "S1-12 hold": (4, (1000, 0, 100), 0.7, 4),
    "S1-12 0.0, utilization decides": (4, (1000, -1000, 60), 0.35, 2),
    "S1-12 -0.5, utilization decides": (4, (1000, -1500, 60), 0.35, 2),
    "S1-13 below the threshold": (4, (1000, 500, 40), 0.7, 4),
    "S1-13 at the threshold": (4, (1000, 500, 50), 0.7, 4),
    "S1-14 S1-16 utilization": (10, (1000, 0, 0), 0.98, 14),
    "X-07 the tolerance of the HPA": (10, (1000, 0, 0), 0.75, 10),
    "S1-18 nothing is processed and the lag grows: the maximum": (10, (0, 500, 100_000), 0.02, 100),
}


@pytest.mark.parametrize(("workers", "numbers", "utilization", "size"), VARGA.values(), ids=VARGA)
def test_varga(workers, numbers, utilization, size):
    without = {"appended_records": None}  # a lag may fall faster than records are processed
    assert required("varga", workers, numbers, utilization, signals=without, down_window_s=0) == size


@pytest.mark.parametrize(("segments", "size"), [(7, 7), (32, 32), (40, 32)], ids=["S2-01 7", "S2-02 32", "S2-02 40"])
def test_segments_from_the_first_tick(segments, size):
    first = tick(0.0, job(**counts(9), **flow(0.0), partitions=segments))
    rules = {"policy": "segments", "max_workers": 32}
    assert last([first], book(**rules, safety=False)).required_workers == size
    assert last([first], book(**rules)).required_workers is None


TABLE = ((4, 10_000), (10, 20_000), (18, 35_000))  # S4-23
SATURATED_S = 300
LASTING_S = 2100  # longer than the regression looks back, so that it sees a level input
# input, workers, CPU -> size
NETFLIX = {
    "S4-26 5,000": (5_000, 18, 0.1, 2),
    "S4-23 10,000": (10_000, 18, 0.1, 4),
    "S4-24 12,500": (12_500, 18, 0.1, 6),
    "S4-24 15,000: the 7 of the slide": (15_000, 18, 0.1, 7),
    "S4-23 20,000": (20_000, 18, 0.1, 10),
    "S4-24 27,500": (27_500, 18, 0.1, 14),
    "S4-23 35,000": (35_000, 20, 0.1, 18),
    "S4-25 40,000": (40_000, 18, 0.81, 21),
    "S4-25 70,000, 36 without its backlog": (70_000, 18, 0.81, 37),
}


def saturated(case, at_s):
    """Five minutes at full load at each size of the table, then this input."""
    rate, workers, cpu, _ = NETFLIX[case]
    able = dict(TABLE).get(workers, rate)
    phases = [(size, full, 20 * full, 0, 1.0) for size, full in TABLE]
    phases.append((workers, min(rate, able), 0, max(rate - able, 0), cpu))
    number = min(at_s // SATURATED_S, len(TABLE))
    size, throughput, waiting, growth, busy = phases[number]
    since_s = at_s - number * SATURATED_S
    processed = sum(each[1] for each in phases[:number]) * SATURATED_S + throughput * since_s
    samples = {"processed_records": processed, "backlog_records": waiting + growth * since_s}
    return counts(size) | samples | {"utilization_ratio": busy}


@cache
def learned_sizes():
    """The last size of each of NETFLIX."""
    alone = {"rescale_pause_s": 0, "sized_utilization_ratio": 1, "catch_up_s": 86_400}
    rules = {"policy": "netflix", "safety": False, "cooldown_up_s": 0, "cooldown_down_s": 0, **alone}
    times_s = range(0, len(TABLE) * SATURATED_S + LASTING_S, TICK_S)
    decided = history_each(NETFLIX, saturated, times_s, lambda _: rules)
    return {case: each[-1].required_workers for case, each in decided.items()}


@pytest.mark.parametrize("case", NETFLIX)
def test_netflix_by_a_table_that_it_learned(case):
    *_, size = NETFLIX[case]
    assert learned_sizes()[case] == size


def both(*args, **more):
    return [required(*args, **more | {"safety": safety}) for safety in (True, False)]


CHANGES = {
    "growth below 5 % or 10 s": (("beam-flink", 100, (10_000, 700, 9.9), 0.95), {"max_workers": 200}, [117, 124]),
    "growth in dataflow": (("dataflow", 100, (10_000, 700, 9.9)), {"max_workers": 200, **NO_TABLE}, [100, 124]),
    "a draining backlog": (("dataflow", 10, (1000, -900, 48)), NO_TABLE, [10, 18]),
    "a job that stands still": (("beam-flink", 10, (0, 0, 50_000), 0.02), {}, [10, 100]),
    "a hot partition": (
        ("segments", 10, (1000, 0, 0)),
        {"signals": {"partitions": 20, "hottest_partition_ratio": 10}, "worker_capacity_records_per_s": 100},
        [13, 20],
    ),
    "no CPU, a known capacity": (("dataflow", 10, (100, 0, 0)), {"worker_capacity_records_per_s": 100}, [9, 10]),
    "a sink that is unhealthy": (
        ("dataflow", 10, (100, 50, 30)),
        {"signals": {"sink_healthy": 0}, **NO_TABLE},
        [10, 20],
    ),
    "S4-27 60.3 % instead of 60": (("netflix", 10, (1000, 0, 0), 0.905), {}, [15, 16]),
    "S4-10 the same for netflix": (("netflix", 10, (100, 50, 90)), {"signals": {"sink_healthy": 0}}, [10, 10]),
}


@pytest.mark.parametrize(("case", "more", "sizes"), CHANGES.values(), ids=CHANGES)
def test_what_safety_changes(case, more, sizes):
    assert both(*case, **more) == sizes


@pytest.mark.parametrize(("safety", "size"), [(True, 5), (False, 10)])
def test_s0_11_a_sawtooth_of_commits_is_short_at_its_lowest_or_at_its_end(safety, size):
    ticks = [
        tick(at_s, job(**counts(10) | flow(at_s) | {"backlog_records": backlog, "utilization_ratio": 0.3}))
        for at_s, backlog in zip(range(0, 61, TICK_S), [41_500, 5_000, 41_500, 5_000, 41_500], strict=True)
    ]
    assert last(ticks, book(policy="beam-flink", safety=safety)).required_workers == size


def ramp(rise_records_per_s2):
    """An input that rises from 150/s, and 10 workers that carry 1000/s."""
    return lambda at_s: counts(
        processed_records=(150 + rise_records_per_s2 * at_s / 2) * at_s,
        backlog_records=0,
        utilization_ratio=(150 + rise_records_per_s2 * at_s) / 1000,
    )


SEEN = {
    "one restart": lambda at_s: counts(utilization_ratio=0.9, restarts=float(at_s > 540)) | flow(at_s),
    "to 930/s": ramp(1.3),
    "to 750/s": ramp(1.0),
}


@cache
def with_safety_and_without():
    """The decision after ten minutes of each of SEEN, with `safety` and without."""
    decided = history_each(
        product(SEEN, (True, False)),
        lambda case, at_s: SEEN[case[0]](at_s),
        range(0, 601, TICK_S),
        lambda case: {"policy": "netflix", "safety": case[1]},
    )
    return {case: each[-1] for case, each in decided.items()}


@pytest.mark.parametrize(("safety", "closed"), [(True, False), (False, True)])
def test_s4_09_one_restart_aborts_by_the_text_and_two_do_with_safety(safety, closed):
    assert (with_safety_and_without()["one restart", safety].reason is Reason.FAILURES) == closed


@pytest.mark.parametrize(("safety", "size"), [(True, 24), (False, 30)])
def test_s4_13_a_ramp_is_extrapolated_by_the_text_and_capped_with_safety(safety, size):
    assert with_safety_and_without()["to 930/s", safety].required_workers == size


@pytest.mark.parametrize(("safety", "size"), [(True, 19), (False, 10)])
def test_s4_32_the_forecast_outgrows_the_table_before_the_workers_are_hot_with_safety(safety, size):
    """1125/s are forecast."""
    assert with_safety_and_without()["to 750/s", safety].required_workers == size
