"""A value that is no longer reported ends after error_after_s, whatever else is reported."""

import numpy as np
import pytest
from builders import JOB, Fluid, book, closed, counts, flow, job, last, replay, tick

from adapter.core.bounds import Bound
from adapter.core.reasons import Reason
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules

STEP_AT_S, END_S = 600, 1500


def rising(**more):
    """A job of 10 workers whose input doubles at STEP_AT_S. more: signal -> its value at a time, None for no sample."""
    return Fluid(
        lambda at_s: 800.0 if at_s < STEP_AT_S else 2000.0,
        more=lambda at_s: {name: value for name, of in more.items() if (value := of(at_s)) is not None},
        missing=lambda at_s: ("utilization_ratio",),
    )


def until_180_s(value):
    return lambda at_s: value if at_s <= 180 else None


def always(value):
    return lambda at_s: value


SILENT = {
    "the weight of the hottest partition": {"hottest_partition_ratio": until_180_s(50.0), "partitions": always(200)},
    "a low utilization": {"cpu_ratio": until_180_s(0.1)},
    "an unhealthy sink": {"sink_healthy": until_180_s(0.0)},
    "an unhealthy sink of a job that runs": {"sink_healthy": until_180_s(0.0), "running": always(1)},
}


@pytest.mark.parametrize("more", SILENT.values(), ids=SILENT)
def test_an_expired_value_bounds_no_scale_up(more):
    decided = closed(rising(**more), END_S, book(policy="drain"), follows=lambda at_s: at_s > STEP_AT_S)
    assert decided[-1].required_workers >= 25


@pytest.mark.parametrize("more", SILENT.values(), ids=SILENT)
def test_a_reported_value_bounds_a_scale_up(more):
    reported = {signal: always(value_at(0.0)) for signal, value_at in more.items()}
    decided = closed(rising(**reported), END_S, book(policy="drain"), follows=lambda at_s: False)
    size, bound = decided[-1].required_workers, decided[-1].bound
    assert size < 25 or (size, bound) == (25, Bound.HOT)  # 25 carry the input, and do not catch up


def test_an_expired_utilization_is_unknown_to_a_policy_without_safety():
    """`beam-flink` scales down only at a known utilization."""
    ticks = [
        tick(at_s, job(**counts(), **flow(at_s), cpu_ratio=0.3 if at_s <= 180 else None)) for at_s in range(0, 901, 15)
    ]
    decided = last(ticks, book(policy="beam-flink", safety=False))
    assert (decided.required_workers, decided.cpu_ratio) == (10, None)


@pytest.mark.parametrize("policy", ["varga", "netflix"])
def test_a_utilization_that_ended_in_one_stage_does_not_hide_a_full_stage(policy):
    def at(at_s):
        idle = {"cpu_ratio": 0.2} if at_s <= 180 else {}
        stages = job(stage="read", **flow(at_s), cpu_ratio=0.95), job(stage="write", **flow(at_s), **idle)
        return tick(at_s, job(**counts()), *stages)

    early, late = ([at(at_s) for at_s in range(0, until_s, 15)] for until_s in (300, 901))
    rules = book(policy=policy, safety=False)
    assert last(late, rules).required_workers == last(early, rules).required_workers > 10


def two_stages(seen, stands_from_s=None, until_s=900):
    """A source of 1000 records/s with a backlog, and a later stage. seen: what the later stage reports at a time."""

    def at(at_s):
        arrived, done = 1000.0 * at_s, 1000.0 * min(at_s, stands_from_s or at_s)
        counters = {"processed_records": done, "appended_records": arrived, "backlog_records": arrived - done}
        return tick(at_s, job(**counts(), stage="source", **counters), job(stage="map", **seen(at_s)))

    return list(replay(map(at, range(0, until_s + 1, 15)), book(policy="drain")))


def of_map(decisions, name):
    return float(decisions.stage_numbers[name][decisions.stages.index((JOB, "map"))])


def test_the_throughput_of_a_stage_without_a_backlog_ends():
    def seen(at_s):
        return {"utilization_ratio": 0.3} | ({"throughput_records_per_s": 500.0} if at_s <= 300 else {})

    by_time = [of_map(decisions, "throughput_records_per_s") for _, decisions in two_stages(seen, until_s=480)]
    assert by_time[300 // 15] == 500
    assert np.isnan(by_time[480 // 15])


@pytest.mark.parametrize("missing", [{615}, {615, 630, 645}])
def test_a_stage_without_a_backlog_keeps_its_signals_through_missing_samples(missing):
    def seen(at_s):
        rates = {"throughput_records_per_s": 500.0, "input_rate_records_per_s": 600.0}
        return {"utilization_ratio": 0.3} | ({} if at_s in missing else rates)

    by_time = [decisions for _, decisions in two_stages(seen)][300 // 15 :]
    assert {of_map(decisions, "throughput_records_per_s") for decisions in by_time} == {500}
    assert {of_map(decisions, "input_rate_records_per_s") for decisions in by_time} == {600}


def test_the_input_of_a_stage_without_a_backlog_ends_while_its_throughput_goes_on():
    def seen(at_s):
        rates = {"throughput_records_per_s": 500.0, "input_rate_records_per_s": 600.0}
        return rates if at_s <= 300 else {"throughput_records_per_s": 500.0}

    decisions = two_stages(seen)[-1][1]
    assert of_map(decisions, "throughput_records_per_s") == 500
    assert np.isnan(of_map(decisions, "input_rate_records_per_s"))


@pytest.mark.parametrize(("until_s", "reason"), [(300, Reason.STUCK), (1800, Reason.HOLD)])
def test_x_01_an_ended_throughput_of_a_later_stage_is_no_progress(until_s, reason):
    def seen(at_s):
        return {"utilization_ratio": 0.3} | ({"throughput_records_per_s": 500.0} if at_s <= until_s else {})

    found = two_stages(seen, stands_from_s=600, until_s=1800)[-1][1]
    assert found.text["reason"] == (reason,)


def test_a_missing_sample_does_not_change_what_waits_in_stuck_partitions():
    waiting = {"backlog_records": 6000.0, "stuck_backlog_records": 5000.0}
    counted = {name: flow(60)[name] for name in ("processed_records", "appended_records")}
    ticks = [tick(at_s, job(**counts(), **flow(at_s) | waiting)) for at_s in range(0, 46, 15)]
    found = last([*ticks, tick(60, job(**counts(), **counted))])
    assert (found.reason, found.backlog_records) == (Reason.STALE, 6000)


def test_a_discovered_workload_with_only_partitions_is_forgotten_in_an_hour():
    rules = RuleBook(by_workload={}, by_fleet=(Rules(policy="segments"),))
    times = range(0, 4200, 60)
    ticks = [tick(at_s, job(partitions=8, fleet=0) if at_s <= 120 else []) for at_s in times]
    there = [state.slow.workloads for state, _ in replay(ticks, rules)]
    forgotten = times[int(np.flatnonzero([not names for names in there])[0])]
    assert (there[0], forgotten) == ((JOB,), 120 + 3600)
