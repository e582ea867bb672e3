"""Stages without a backlog of their own, sized by their true rate: input / target of the rate at full busy time."""

from functools import cache
from math import isnan, nan

import pytest
from builders import JOB, TICK_S, Fluid, book, closed_each, counts, flow, fold, history, job, last, tick
from policy_inputs import stage_input

from adapter.core.decisions import Bound, Reason
from adapter.core.engine import advance, replay
from adapter.core.messages import sentence
from adapter.core.policies import drain
from adapter.core.report import rows
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.core.state import EMPTY

PLAIN = {"policy": "drain", "rescale_pause_s": 0.0, "warm_up_s": 0.0, "worker_start_s": 0.0, "scaling_exponent": 1.0}


def stages(at_s, source=None, more=None, workload=JOB, **later):
    """A source that is never behind, and a later stage that reports no backlog."""
    first = counts(10) | flow(at_s, **{"throughput": 1000} | (source or {})) | (more or {})
    second = {"throughput_records_per_s": 700, "utilization_ratio": 1.0} | later
    return [*job(workload, stage="Source", **first), *job(workload, stage="Map", **second)]


def ticks(until_s=240, **given):
    """The ticks of a job with two stages. given: the arguments of `stages`."""
    return [tick(at_s, stages(at_s, **given)) for at_s in range(0, until_s + 1, TICK_S)]


@pytest.mark.parametrize(
    ("later", "size"),
    [
        ({}, 13),  # 10 * 1.0 / 0.8: what reaches the stage is what it processes
        ({"input_rate_records_per_s": 1000}, 18),  # 10 * 1000 / 700 / 0.8
        ({"utilization_ratio": 0.95}, 12),
        ({"utilization_ratio": 0.85}, 10),  # above the target, but not full: a rescale does not pay
        ({"utilization_ratio": None}, 10),
    ],
    ids=["full", "full with a reported input", "nearly full", "not full", "unknown"],
)
def test_a_full_stage_without_a_backlog_raises_the_size(later, size):
    assert last(ticks(**later), book(**PLAIN)).required_workers == size


HELD = {  # backpressure of the source, and the busiest subtask of the later stage
    "a full subtask holds back the source": (0.8, 1.0, Reason.HOLD),
    "no subtask is full": (0.8, 0.9, Reason.DOWN),
    "the source is not held back": (0.4, 1.0, Reason.DOWN),
    "backpressure is unknown": (None, 1.0, Reason.DOWN),
    "the busiest subtask is unknown": (0.8, None, Reason.DOWN),
}


@cache
def held_back():
    """The last decisions on HELD. The mean of the later stage seems to have room."""

    def seen(case, at_s):
        backpressured, busiest, _ = HELD[case]
        later = {"utilization_ratio": 0.5, "busiest_subtask_ratio": busiest}
        return stages(at_s, more={"backpressured_ratio": backpressured}, workload=case, **later)

    rules = RuleBook(by_workload=dict.fromkeys(HELD, Rules(**PLAIN)))
    decided = fold([tick(at_s, *(seen(case, at_s) for case in HELD)) for at_s in range(0, 901, TICK_S)], rules)
    return {found.workload: found for found in decided[-1]}


@pytest.mark.parametrize("case", HELD)
def test_no_scale_down_while_one_full_subtask_holds_back_the_sources(case):
    """The connector counts no waiting records."""
    *_, reason = HELD[case]
    found = held_back()[case]
    assert found.reason is reason
    assert ("no scale-down while one full subtask holds back the sources" in sentence(found)) == (reason is Reason.HOLD)


@cache
def after_a_utilization_ceased():
    """The decisions by minutes since a later stage ceased to report its utilization."""
    reported = [0.75] * (900 // TICK_S) + [None] * (65 * 60 // TICK_S)
    busy = {"more": {"utilization_ratio": 0.3}}
    seen = [tick(n * TICK_S, stages(n * TICK_S, **busy, utilization_ratio=each)) for n, each in enumerate(reported)]
    return {(found.at_s + TICK_S - 900) / 60: found for found in history(seen, book(**PLAIN))}


@pytest.mark.parametrize(("minutes", "size"), [(50, 10), (65, 4)], ids=["within an hour", "after an hour"])
def test_a_later_stage_that_ceases_to_report_its_utilization_is_no_small_load(minutes, size):
    found = after_a_utilization_ceased()[minutes]
    assert (found.required_workers, found.bound is Bound.MISSING_METRICS) == (size, size == 10)


def test_a_scale_up_does_not_say_that_there_is_no_scale_down():
    held, later = (
        {"backpressured_ratio": 0.8, "utilization_ratio": 0.2},
        {"utilization_ratio": 0.5, "busiest_subtask_ratio": 1.0},
    )
    found = last(ticks(source={"growth": 300, "backlog": 60_000}, more=held, **later), book(**PLAIN))
    assert found.reason is Reason.UP
    assert "; one full subtask holds back the sources: spread its keys" in sentence(found)
    assert "no scale-down" not in sentence(found)


def test_an_idle_source_with_markers_is_no_later_stage():
    """Markers of transactions wait on a second topic without input. Eight partitions feed at most eight workers."""

    def seen(at_s):
        busy = job(stage="a", **counts(12), **flow(at_s, throughput=1000), utilization_ratio=0.5, partitions=8.0)
        return tick(at_s, busy, job(stage="b", **flow(at_s, throughput=0, backlog=12), utilization_ratio=0.0))

    found = last([seen(at_s) for at_s in range(0, 901, TICK_S)], book(**PLAIN, min_workers=12))
    assert (found.required_workers, found.max_workers) == (8, 8)
    assert "later stages" not in sentence(found)


def test_a_later_stage_that_is_full_for_single_ticks_adds_no_workers():
    """A stage that writes a snapshot is busy for one tick of ten."""
    ratios = [0.95 if number % 10 == 9 else 0.5 for number in range(121)]
    busy = [tick(n * TICK_S, stages(n * TICK_S, utilization_ratio=ratio)) for n, ratio in enumerate(ratios)]
    assert max(found.required_workers for found in history(busy, book(**PLAIN))[4:]) == 10


def test_backpressure_that_flickers_holds_the_size_as_well():
    """One tick of eight has less."""
    later = {"utilization_ratio": 0.5, "busiest_subtask_ratio": 1.0}
    ratios = [{"backpressured_ratio": 0.45 if number % 8 == 7 else 0.8} for number in range(61)]
    flickering = [tick(n * TICK_S, stages(n * TICK_S, more=more, **later)) for n, more in enumerate(ratios)]
    assert {found.required_workers for found in history(flickering, book(**PLAIN))[4:]} == {10}


def test_the_sentence_names_the_load_of_the_later_stage():
    found = last(ticks(), book(**PLAIN))
    assert (found.reason, found.relayed_load_ratio, found.stage) == (Reason.UP, 1.0, "Source")
    assert "stage Map would have to be busy 100 % of the time; the load needs 13 workers" in sentence(found)


def test_the_sentence_names_a_stage_that_is_full_by_the_own_limit_of_the_job():
    found = last(ticks(utilization_ratio=0.84), book(**PLAIN, high_utilization_ratio=0.82))
    assert "stage Map would have to be busy 84 % of the time" in sentence(found)


@pytest.mark.parametrize("policy", ["dataflow", "beam-flink"])
def test_the_published_policies_have_no_term_for_such_a_stage(policy):
    assert last(ticks(), book(policy=policy)).required_workers == 10


def test_a_stage_that_is_full_with_the_backlog_alone_is_not_full():
    """The source drains 1 500 a second while 1 000 arrive: later, two thirds of the busy time are enough."""
    draining = {"throughput": 1500, "growth": -500, "backlog": 200_000}
    found = last(ticks(source=draining), book(**PLAIN))
    assert found.relayed_load_ratio == pytest.approx(2 / 3, rel=0.01)
    assert "have to be busy" not in sentence(found)


def test_a_source_that_falls_behind_adds_what_arrives():
    behind = {"throughput": 700, "growth": 300, "backlog": 0}
    found = last(ticks(source=behind), book(**PLAIN))
    assert found.relayed_load_ratio == pytest.approx(1000 / 700, rel=0.01)
    assert found.required_workers >= 18


@pytest.mark.parametrize(
    ("later", "partitions", "size", "bound"),
    [
        pytest.param({}, 10, 17, Bound.PARTITIONS, id="full, so that it needs more"),
        pytest.param({"utilization_ratio": 0.2}, 10, 10, Bound.PARTITIONS, id="idle: the source limits the job"),
        pytest.param({"utilization_ratio": 0.2}, 4, 10, Bound.PARTITIONS, id="idle, with more workers than partitions"),
        pytest.param({"utilization_ratio": None}, 4, 10, Bound.PARTITIONS, id="of unknown load"),
        pytest.param({"throughput_records_per_s": None}, 4, 4, Bound.PARTITIONS, id="never seen to process records"),
    ],
)
def test_the_partitions_limit_the_source_and_no_later_stage_that_needs_more(later, partitions, size, bound):
    behind = {"growth": 300, "backlog": 20_000}
    found = last(ticks(source=behind, more={"partitions": partitions}, **later), book(**PLAIN))
    assert (found.required_workers, found.bound) == (size, bound)


@pytest.mark.parametrize(
    ("busy", "partitions", "most", "part"),
    [
        pytest.param(
            1.0, 10, 17, "later stages can use 17 workers; only 10 partitions, so", id="needed by a later stage"
        ),
        pytest.param(0.2, 4, 4, "later stages keep this size; only 4 partitions, so", id="kept for a later stage"),
        pytest.param(0.2, 10, 10, "catch up in 60 s; only 10 partitions, so", id="no more than the partitions feed"),
    ],
)
def test_a_size_above_the_partitions_names_the_later_stages_and_is_no_maximum(busy, partitions, most, part):
    behind = {"growth": 300, "backlog": 20_000}
    found = last(ticks(source=behind, more={"partitions": partitions}, utilization_ratio=busy), book(**PLAIN))
    assert found.max_workers == most
    assert part in sentence(found)
    assert ("so no more workers: the load needs" in sentence(found)) == ("later" not in part)


def test_workers_without_a_partition_help_a_later_stage_to_catch_up():
    """The sources are busy for 40 % of the time, so they could feed 25 full workers of the later stage."""
    late = {"source": {"backlog": 600_000}, "utilization_ratio": 1.0}
    found = last(ticks(more={"partitions": 4, "utilization_ratio": 0.4}, **late), book(**PLAIN))
    assert (found.required_workers, found.bound) == (25, Bound.PARTITIONS)
    assert "later stages can use 25 workers; only 4 partitions, so no more workers" in sentence(found)


NEEDED = {  # capacity of the later stage on one worker, that of the source, and the workers that are needed
    "the later stage limits the job": (100.0, 10_000.0, 50),
    "the source limits the job, and the later stage needs one more": (476.0, 1000.0, 11),
    "the source limits the job": (500.0, 1000.0, 10),
}


class TwoStages(Fluid):
    """A source of ten partitions, and a later stage that reports no backlog."""

    def rows(self, workload):
        read = {"processed_records": self.processed, "appended_records": self.appended}
        read |= {"backlog_records": self.appended - self.processed, "partitions": 10}
        later = job(workload, stage="Map", processed_records=self.processed, utilization_ratio=self.busy)
        return [*job(workload, stage="Source", **counts(self.workers) | read), *later]


@cache
def sizes_of_followers():
    """The target of each job of NEEDED by tick. From 300 s on, 4 000/s arrive."""

    def running(each, source):
        return TwoStages(lambda at_s: 500.0 if at_s < 300 else 4000.0, each=each, sink=lambda at_s: source, pause_s=15)

    jobs = {case: running(each, source) for case, (each, source, _) in NEEDED.items()}
    rules = RuleBook(by_workload=dict.fromkeys(jobs, Rules(policy="drain", max_workers=200)))
    decided = closed_each(jobs, 1785, rules, tick_s=TICK_S)
    return {case: [d.required_workers or 0 for d in found] for case, found in decided.items()}


@pytest.mark.parametrize("case", NEEDED)
def test_a_job_that_follows_its_target_reaches_what_its_later_stage_needs(case):
    *_, needed = NEEDED[case]
    sizes = sizes_of_followers()[case]
    assert (sizes[-1], max(sizes)) == (needed, needed)


def test_the_fullest_of_several_stages_counts():
    later = [
        job(stage=name, throughput_records_per_s=500, utilization_ratio=busy)
        for name, busy in (("A", 0.95), ("B", 0.3))
    ]
    source = [job(stage="Source", **counts(10) | flow(at_s)) for at_s in range(0, 241, TICK_S)]
    found = last([tick(TICK_S * number, one, *later) for number, one in enumerate(source)], book(**PLAIN))
    assert found.relayed_load_ratio == 0.95


JOIN = {  # two sources, of which only one is behind; operators that are not chained; two sinks
    "Clicks": counts(10) | {"input_rate_records_per_s": 900, "throughput_records_per_s": 600, "backlog_records": 9000},
    "Orders": {"input_rate_records_per_s": 100, "throughput_records_per_s": 100, "backlog_records": 0},
    "Join": {"throughput_records_per_s": 700, "utilization_ratio": 0.98},
    "Enrich": {"throughput_records_per_s": 350, "utilization_ratio": 0.5, "input_rate_records_per_s": 350},
    "Sink A": {"throughput_records_per_s": 350, "utilization_ratio": 0.2},
    "Sink B": {"throughput_records_per_s": 0, "utilization_ratio": 0.1},
}


def test_the_true_rate_follows_a_step_of_the_load_at_once():
    """Ten workers process 100/s each. The busy time is the newest one, the window still has the time before."""
    running, rules = Fluid(lambda at_s: 300.0 if at_s < 300 else 900.0), book(**PLAIN, max_workers=10)
    decided = closed_each({JOB: running}, 390, rules, follows=lambda at_s: False, tick_s=TICK_S)[JOB]
    assert [d.true_rate_records_per_s for d in decided if d.at_s >= 60] == pytest.approx([1000] * 23)


def test_every_stage_of_a_complex_job_has_its_load_true_rate_and_parallelism():
    seen = [tick(at_s, *(job(stage=n, **stage) for n, stage in JOIN.items())) for at_s in range(0, 241, TICK_S)]
    *_, (_, decisions) = replay(seen, book(**PLAIN))
    stages = {name: place for place, (_, name) in enumerate(decisions.stages)}
    loads, rates, sizes = (
        {name: column[place] for name, place in stages.items()}
        for column in (
            decisions.stage_numbers[n] for n in ("load_ratio", "true_rate_records_per_s", "required_parallelism")
        )
    )
    assert loads["Join"] == pytest.approx(0.98 * 1000 / 700)  # 1 000 arrive at the sources, which pass 700 on
    assert loads["Enrich"] == pytest.approx(0.5)
    assert rates["Enrich"] == pytest.approx(700)
    assert (sizes["Join"], sizes["Enrich"]) == (18, 7)  # 10 * load / 0.8
    assert isnan(loads["Clicks"])  # a source that reports no busy time
    assert isnan(loads["Sink B"])  # a stage that processes nothing has no true rate
    (found,) = rows(decisions)
    assert (found.bottleneck, found.required_parallelism) == ("Join", 18)


def test_slots_multiply_the_subtasks():
    assert last(ticks(), book(**PLAIN, slots_per_worker=2)).required_parallelism == 25  # 10 * 2 * 1.0 / 0.8


@pytest.mark.parametrize("own", [PLAIN, {"policy": "drain"}], ids=["without a warm-up", "with the defaults"])
def test_scale_ups_that_leave_the_stage_full_are_blocked(own):
    """A sink that the later stage waits for, so that it stays full at any size."""
    rules, state, workers, bounds = book(**own, ineffective_block_s=1800.0, max_workers=100), EMPTY, 10.0, []
    for at_s in range(0, 1801, TICK_S):
        later = job(stage="Map", throughput_records_per_s=1000, utilization_ratio=1.0)
        seen = tick(at_s, job(stage="Source", **counts(workers) | flow(at_s)), later)
        state, decisions = advance(state, seen, rules)
        (found,) = rows(decisions)
        workers = found.required_workers or workers
        bounds.append(found.bound)
    assert Bound.INEFFECTIVE in bounds
    assert workers <= 17


def test_a_lost_worker_does_not_lengthen_a_block():
    """From the block on, one of the workers is missing, and a later stage stays full."""
    rules, state, workers, blocked_s = book(**PLAIN, ineffective_block_s=1800.0, max_workers=100), EMPTY, 10.0, []
    for at_s in range(0, 1801, TICK_S):
        running = workers - 1 if any(blocked_s) else workers
        later = job(stage="Map", throughput_records_per_s=1000, utilization_ratio=1.0)
        present = counts(running, spec_workers=workers)
        state, decisions = advance(state, tick(at_s, job(stage="Source", **present | flow(at_s)), later), rules)
        (found,) = rows(decisions)
        workers = found.required_workers or workers
        blocked_s.append(found.blocked_s)
    assert 0 < max(each for each in blocked_s if each) <= 1800


def test_a_scale_up_is_not_judged_by_the_calm_before_a_step():
    """Ten workers are full at 1 000/s, 13 have half a load for 90 s, and then a full one of 1 300/s."""
    phases = [(240, 10, 1000, 1.0), (60, 13, 1000, 0.8), (90, 13, 500, 0.4), (240, 13, 1300, 1.0)]
    processed, found = 0.0, []
    for lasting_s, workers, rate, busy in phases:
        for _ in range(0, lasting_s, TICK_S):
            source = {"processed_records": processed, "appended_records": processed, "backlog_records": 0}
            later = job(stage="Map", throughput_records_per_s=rate, utilization_ratio=busy)
            found.append(tick(len(found) * TICK_S, job(stage="Source", **counts(workers) | source), later))
            processed += rate * TICK_S
    decided = history(found, book(**PLAIN, ineffective_block_s=1800.0))
    assert Bound.INEFFECTIVE not in {each.bound for each in decided}
    assert decided[-1].required_workers > 13


@pytest.mark.parametrize(("load", "size"), [(0.5, 10), (0.9, 10), (0.91, 12), (1.43, 18), (nan, 10)])
def test_drain_sizes_by_the_relayed_load_once_the_stage_is_full(load, size):
    stage = stage_input(10, 1000, cpu=0.5, relayed=load, records=((10, 1250),), **PLAIN)
    assert drain.size(stage).wanted_workers[0] == size
