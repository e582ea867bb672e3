"""A stage that no longer reports its load while its siblings do: its metrics are missing, or it was renamed."""

from functools import cache, partial
from itertools import chain

import pytest
from builders import counts, flow, fold, job, tick

from adapter.core.bounds import Bound
from adapter.core.messages import sentence
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.core.samples import EVERY

LAST_S = 900  # the last tick with the load of the main stage
HOUR_S = 3600
SIDE = {"utilization_ratio": 0.1}
RULES = {"policy": "drain", "worker_capacity_records_per_s": 100.0, "down_window_s": 60.0, "cooldown_down_s": 60.0}


def decisions_each(cases, tick_s=15, faults=lambda at_s: []):
    """The decisions on jobs side by side, until two hours after LAST_S, when their main stages cease to report.

    cases: by name, what else reports at a time, and rules.
    """

    def seen(name, at_s):
        main = [job(stage="main", **flow(at_s, throughput=1000))] if at_s <= LAST_S else []
        side = job(stage="side", **SIDE, **flow(at_s, throughput=50))
        parts = [job(**counts(12)), side, *main, *cases[name][0](at_s)]
        return [(name, *row[1:]) for rows in parts for row in rows]

    times_s = range(0, LAST_S + 2 * HOUR_S + 1, tick_s)
    ticks = [tick(at_s, *(seen(name, at_s) for name in cases), faults=faults(at_s)) for at_s in times_s]
    named = RuleBook(by_workload={name: Rules(**RULES | rules) for name, (_, rules) in cases.items()})
    found = {name: {} for name in cases}
    for decision in chain.from_iterable(fold(ticks, named)):
        found[decision.workload][int(decision.at_s)] = decision
    return found


def nothing(at_s):
    return []


def stage(name, since_s, throughput):
    """A stage that reports from a time on."""
    return lambda at_s: [job(stage=name, **flow(at_s, throughput))] if since_s <= at_s else []


def late(at_s):
    return [job(stage="late", **flow(at_s, 50.0, growth=50.0 if at_s > LAST_S else 0.0))]


def merging(at_s):
    return [job(partitions=12 if at_s < LAST_S + 300 else 6)]


def second(throughput, backlog):
    reported = partial(flow, throughput=throughput, backlog=backlog)
    return lambda at_s: [job(stage="second", **reported(at_s))] if at_s <= 330 else []


REPLACED = {
    "at once": stage("new", LAST_S + 15, 400),
    "after two minutes": stage("new", LAST_S + 120, 400),
    "beside it for a while": stage("new", LAST_S - 285, 400),
}
SECOND = {  # throughput and backlog of a stage that ceases to report, and the size then
    "idle": (0, 0, 5),
    "markers of transactions": (0, 3, 5),
    "stuck": (0, 30_000, 12),
    "busy": (50, 0, 12),
}
CEASED = {
    "alone": (nothing, {}),
    "late": (late, {}),
    **{case: (new, {}) for case, new in REPLACED.items()},
    **{
        case: (second(throughput, backlog), {"worker_capacity_records_per_s": 250.0, "down_window_s": 600.0})
        for case, (throughput, backlog, _) in SECOND.items()
    },
    "reports again": (stage("main", LAST_S + 1200, 400), {}),
    "merging": (merging, {"policy": "segments"}),
    **{f"safety {safety}": (nothing, {"policy": "beam-flink", "safety": safety}) for safety in (0, 1)},
}
CEASED_BY_MINUTE = {
    "alone": (nothing, {}),
    "a fault when it ceased": (nothing, {}),
    "its containers still report": (lambda at_s: [job(stage="main", utilization_ratio=0.1)], {}),
}


@cache
def ceased():
    return decisions_each(CEASED)


@cache
def ceased_by_minute():
    def faults(at_s):
        return [("a fault when it ceased", "down")] if at_s <= LAST_S + 300 else []

    return decisions_each(CEASED_BY_MINUTE, tick_s=60, faults=faults)


@pytest.mark.parametrize("tick_s", [15, 60])
def test_no_scale_down_for_an_hour_after_a_stage_ceased_to_report(tick_s):
    found = {15: ceased, 60: ceased_by_minute}[tick_s]()["alone"]
    held = found[LAST_S + 1800]
    assert (held.required_workers, held.bound) == (12, Bound.MISSING_METRICS)
    assert "; no scale-down yet: metrics of a stage are missing or partitions became fewer" in sentence(held)
    assert found[LAST_S + HOUR_S].required_workers == 12
    assert found[LAST_S + 2 * HOUR_S].required_workers < 3


def test_the_other_stages_scale_up_meanwhile():
    assert ceased()["late"][LAST_S + 1200].required_workers > 12


@pytest.mark.parametrize("case", REPLACED)
def test_a_stage_that_replaces_it_is_sized_at_once(case):
    found = ceased()[case]
    assert found[LAST_S + 1800].required_workers < 8
    assert Bound.MISSING_METRICS not in {decision.bound for decision in found.values()}


@pytest.mark.parametrize("case", SECOND)
def test_only_a_stage_with_load_blocks_when_it_ceases_to_report(case):
    *_, size = SECOND[case]
    assert ceased()[case][LAST_S].required_workers == size


def test_the_block_ends_when_the_stage_reports_again():
    found = ceased()["reports again"]
    assert found[LAST_S + 900].bound is Bound.MISSING_METRICS
    assert found[LAST_S + 3000].required_workers < 8


def test_a_policy_that_follows_the_segments_does_not_need_the_stage():
    found = ceased()["merging"]
    assert [found[at_s].required_workers for at_s in (LAST_S + 285, LAST_S + 330)] == [12, 6]


def fault_of_another_source():
    """The fault concerns every workload of a tick, so this workload has a history of its own."""
    faults = {LAST_S + 1200: [(EVERY, "down")]}
    return decisions_each({"alone": (nothing, {})}, tick_s=60, faults=lambda at_s: faults.get(at_s, []))["alone"]


@pytest.mark.parametrize("case", ["a fault of another source", "a fault when it ceased", "its containers still report"])
def test_no_scale_down_within_the_hour_but_after_it(case):
    found = fault_of_another_source() if case == "a fault of another source" else ceased_by_minute()[case]
    assert {found[at_s].required_workers for at_s in range(LAST_S + 360, LAST_S + HOUR_S, 60)} == {12}
    assert found[LAST_S + 2 * HOUR_S].required_workers < 3


@pytest.mark.parametrize(("safety", "size"), [(1, 12), (0, 2)])
def test_without_safety_a_published_policy_reads_only_the_stages_that_report(safety, size):
    assert ceased()[f"safety {safety}"][LAST_S + 1200].required_workers == size
