"""A stage that no longer reports its load while its siblings do: its metrics are missing, or it was renamed."""

from functools import cache, partial
from itertools import chain

import pytest
from builders import JOB, counts, flow, fold, job, tick

from adapter.core.bounds import Bound
from adapter.core.messages import sentence
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.core.samples import EVERY

LAST_S = 900  # the last tick with the load of the main stage
HOUR_S = 3600
SIDE = {"utilization_ratio": 0.1}
RULES = {"policy": "drain", "worker_capacity_records_per_s": 100.0, "down_window_s": 60.0, "cooldown_down_s": 60.0}


def decisions(until_s, rest=lambda at_s: [], faults=lambda at_s: [], tick_s=15, **rules):
    """The decisions of a job of two stages, of which the main one ceases to report. rest: what else reports."""
    return decisions_each({JOB: rest}, until_s, faults, tick_s, **rules)[JOB]


def decisions_each(rests, until_s, faults=lambda at_s: [], tick_s=15, **rules):
    """As `decisions`, for jobs side by side. rests: what else reports of each, by name."""

    def seen(name, at_s):
        main = [job(stage="main", **flow(at_s, throughput=1000))] if at_s <= LAST_S else []
        side = job(stage="side", **SIDE, **flow(at_s, throughput=50))
        parts = [job(**counts(12)), side, *main, *rests[name](at_s)]
        return [(name, *row[1:]) for rows in parts for row in rows]

    times_s = range(0, until_s + 1, tick_s)
    ticks = [tick(at_s, *(seen(name, at_s) for name in rests), faults=faults(at_s)) for at_s in times_s]
    named = RuleBook(by_workload=dict.fromkeys(rests, Rules(**RULES | rules)))
    found = {name: {} for name in rests}
    for decision in chain.from_iterable(fold(ticks, named)):
        found[decision.workload][int(decision.at_s)] = decision
    return found


def stage(name, since_s, throughput):
    """A stage that reports from a time on."""
    return lambda at_s: [job(stage=name, **flow(at_s, throughput))] if since_s <= at_s else []


@pytest.mark.parametrize("tick_s", [15, 60])
def test_no_scale_down_for_an_hour_after_a_stage_ceased_to_report(tick_s):
    found = decisions(LAST_S + 2 * HOUR_S, tick_s=tick_s)
    held = found[LAST_S + 1800]
    assert (held.required_workers, held.bound) == (12, Bound.MISSING_METRICS)
    assert "; no scale-down yet: metrics of a stage are missing or partitions became fewer" in sentence(held)
    assert found[LAST_S + HOUR_S].required_workers == 12
    assert found[LAST_S + 2 * HOUR_S].required_workers < 3


def test_the_other_stages_scale_up_meanwhile():
    def late(at_s):
        return [job(stage="late", **flow(at_s, 50.0, growth=50.0 if at_s > LAST_S else 0.0))]

    assert decisions(LAST_S + 1200, rest=late)[LAST_S + 1200].required_workers > 12


REPLACED = {
    "at once": stage("new", LAST_S + 15, 400),
    "after two minutes": stage("new", LAST_S + 120, 400),
    "beside it for a while": stage("new", LAST_S - 285, 400),
}


@cache
def after_replacements():
    return decisions_each(REPLACED, LAST_S + 1800)


@pytest.mark.parametrize("case", REPLACED)
def test_a_stage_that_replaces_it_is_sized_at_once(case):
    found = after_replacements()[case]
    assert found[LAST_S + 1800].required_workers < 8
    assert Bound.MISSING_METRICS not in {decision.bound for decision in found.values()}


SECOND = {  # throughput and backlog of a stage that ceases to report, and the size then
    "idle": (0, 0, 5),
    "markers of transactions": (0, 3, 5),
    "stuck": (0, 30_000, 12),
    "busy": (50, 0, 12),
}


@cache
def after_a_second_stage():
    """The last size of a job with each of SECOND."""

    def second(throughput, backlog):
        reported = partial(flow, throughput=throughput, backlog=backlog)
        return lambda at_s: [job(stage="second", **reported(at_s))] if at_s <= 330 else []

    rests = {name: second(throughput, backlog) for name, (throughput, backlog, _) in SECOND.items()}
    found = decisions_each(rests, LAST_S, worker_capacity_records_per_s=250.0, down_window_s=600.0)
    return {name: each[LAST_S].required_workers for name, each in found.items()}


@pytest.mark.parametrize("case", SECOND)
def test_only_a_stage_with_load_blocks_when_it_ceases_to_report(case):
    *_, size = SECOND[case]
    assert after_a_second_stage()[case] == size


def test_the_block_ends_when_the_stage_reports_again():
    found = decisions(LAST_S + 3000, rest=stage("main", LAST_S + 1200, 400))
    assert found[LAST_S + 900].bound is Bound.MISSING_METRICS
    assert found[LAST_S + 3000].required_workers < 8


def test_a_policy_that_follows_the_segments_does_not_need_the_stage():
    def merging(at_s):
        return [job(partitions=12 if at_s < LAST_S + 300 else 6)]

    found = decisions(LAST_S + 330, rest=merging, policy="segments")
    assert [found[at_s].required_workers for at_s in (LAST_S + 285, LAST_S + 330)] == [12, 6]


STILL = {
    "a fault of another source": {"faults": lambda at_s: [(EVERY, "down")] if at_s == LAST_S + 1200 else []},
    "a fault when it ceased": {"faults": lambda at_s: [(JOB, "down")] if at_s <= LAST_S + 300 else []},
    "its containers still report": {"rest": lambda at_s: [job(stage="main", utilization_ratio=0.1)]},
}


@pytest.mark.parametrize("changes", STILL.values(), ids=STILL)
def test_no_scale_down_within_the_hour_but_after_it(changes):
    found = decisions(LAST_S + 2 * HOUR_S, tick_s=60, **changes)
    assert {found[at_s].required_workers for at_s in range(LAST_S + 360, LAST_S + HOUR_S, 60)} == {12}
    assert found[LAST_S + 2 * HOUR_S].required_workers < 3


@pytest.mark.parametrize(("safety", "size"), [(1, 12), (0, 2)])
def test_without_safety_a_published_policy_reads_only_the_stages_that_report(safety, size):
    found = decisions(LAST_S + 1200, policy="beam-flink", safety=safety)
    assert found[LAST_S + 1200].required_workers == size
