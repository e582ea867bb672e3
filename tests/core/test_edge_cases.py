"""Every row of the edge-case table of `drain`, and X-01..X-12, as histories.

Where `drain` differs from a row, the test has the behaviour and DESIGN the reason.
"""

from dataclasses import replace
from functools import cache
from itertools import chain, pairwise, product
from math import inf, nan

import numpy as np
import pytest
from builders import (
    EMPTY,
    JOB,
    TICK_S,
    Fluid,
    advance,
    book,
    closed,
    closed_each,
    counts,
    flow,
    fold,
    history,
    history_each,
    job,
    last,
    steady,
    tick,
)

from adapter.core.decisions import Bound, Reason
from adapter.core.engine import replay
from adapter.core.messages import sentence
from adapter.core.report import rows
from adapter.core.rule_book import RuleBook
from adapter.core.rules import POLICIES, Rules
from adapter.core.state import VERSION, decode, encode_fast, encode_slow
from adapter.simulator import hpa

FREE = {"cooldown_up_s": 0.0, "cooldown_down_s": 0.0, "rescale_worth_s": 0.0}  # each may move at once
DRAIN = {"policy": "drain", "worker_capacity_records_per_s": 100.0, "forecast_horizon_s": 0.0, **FREE}
BEHIND = {"throughput": 1000, "growth": 500}


def drain(**rules):
    return book(**DRAIN | rules)


def at(decided):
    return {decision.at_s: decision for decision in decided}


def always(until_s, from_s=0.0, workers=10, **signals):
    """Ticks of a steady stream; signals as of builders.steady, workers of all counts."""
    return steady(until_s, from_s=from_s, **counts(workers) | signals)


# --- idle, stuck, draining


@cache
def while_nothing_is_processed():
    """The decisions by the input from 450 s on, in records/s. The job processes none of it, and no backlog shows it."""

    def seen(left, at_s):
        busy, done = (0.5, 1000 * at_s) if at_s <= 450 else (0.0, 450_000)
        load = {"appended_records": done + left * max(at_s - 450, 0), "processed_records": done, "backlog_records": 0}
        return {**counts(10), **load, "utilization_ratio": busy}

    return history_each((0.5, 5, 1000), seen, range(0, 3601, 30), lambda _: {"policy": "drain"})


def test_a_group_that_waits_for_the_end_of_a_transaction_keeps_its_workers():
    """The backlog ends at the last stable offset, so it stays 0 while the input goes on."""
    decided = while_nothing_is_processed()[1000][1:]
    assert {found.required_workers for found in decided} == {10}
    assert "7 would be enough; no scale-down while nothing is processed" in sentence(decided[-1])


@pytest.mark.parametrize(("left", "shrinks"), [(0.5, True), (5, False)], ids=["as of markers", "of records"])
def test_a_job_with_hardly_any_input_shrinks_although_nothing_is_processed(left, shrinks):
    assert (while_nothing_is_processed()[left][-1].required_workers < 10) == shrinks


def test_an_idle_job_goes_to_the_minimum_after_the_scale_down_window():
    """T=0, L=0, input 0."""
    stops = Fluid(lambda at_s: 900.0 if at_s < 300 else 0.0, workers=12)
    decided = at(closed(stops, 1800, drain(down_window_s=600.0)))
    assert decided[900].required_workers == 12
    assert decided[1800].required_workers == 1
    assert [d.required_workers for d in decided.values() if d.reason == Reason.IDLE][-1] == 1


@pytest.mark.parametrize(
    ("policy", "signals", "target", "reason"),
    [
        pytest.param("varga", {}, 1, Reason.IDLE, id="the load is gone"),
        pytest.param("netflix", {"max_workers": 5.0}, 5, Reason.DOWN, id="a bound prevents more, and the maximum fell"),
        pytest.param("segments", {"partitions": 4.0}, 4, Reason.DOWN, id="the partitions became fewer"),
    ],
)
def test_a_scale_down_is_idle_only_if_it_follows_from_the_missing_load(policy, signals, target, reason):
    decided = last(always(600, throughput=0, **signals), book(policy=policy))
    assert (decided.required_workers, decided.reason) == (target, reason)


def test_an_idle_job_goes_to_0_only_if_the_minimum_is_0():
    assert closed(Fluid(lambda at_s: 0.0), 720, drain(min_workers=0))[-1].required_workers == 0


def test_a_job_without_workers_starts_when_the_input_returns():
    """Its capacity is unknown: without a reported utilization, and never behind."""
    running = Fluid(lambda at_s: 0.0 if 3600 <= at_s < 10_800 else 500.0, missing=lambda at_s: ["utilization_ratio"])
    sizes = {each.at_s: each.required_workers for each in closed(running, 12_600, drain(min_workers=0))}
    assert sizes[10_770] == 0
    assert sizes[10_890] >= 1
    assert sizes[12_600] >= 6


def test_x_01_a_stuck_job_holds_its_workers():
    """T=0, L>0, the backlog grows, offsets do not move for longer than ever."""
    decided = at(
        closed(Fluid(lambda at_s: 900.0, workers=12, sink=lambda at_s: inf if at_s < 300 else 0.0), 900, drain())
    )
    assert {decided[at_s].reason for at_s in range(540, 901, 30)} == {Reason.STUCK}
    assert {decided[at_s].required_workers for at_s in range(300, 901, 30)} == {12}
    assert decided[900].backlog_time_s == 86_400


def test_a_stuck_job_withdraws_a_pending_scale_up():
    jammed = Fluid(lambda at_s: 1500.0, sink=lambda at_s: inf if at_s < 300 else 0.0)
    decided = at(closed(jammed, 600, drain(), follows=lambda at_s: False))
    assert decided[300].required_workers > 10
    assert (decided[600].reason, decided[600].required_workers) == (Reason.STUCK, 10)


def test_the_backlog_of_stuck_partitions_needs_no_workers():
    """A twelfth of the input goes where nothing is processed."""

    def samples(at_s, stuck):
        waiting = {"stuck_backlog_records": 80.0 * at_s} if stuck else {}
        counted = {"processed_records": 880.0 * at_s, "appended_records": 960.0 * at_s, "backlog_records": 80.0 * at_s}
        return tick(at_s, job(**counts(12), **counted, **waiting))

    apart, together = (last([samples(at_s, stuck) for at_s in range(0, 301, 15)], drain()) for stuck in (True, False))
    assert (apart.backlog_records, apart.input_rate_records_per_s, apart.required_workers) == (24_000, 880, 12)
    assert "24 000 records wait in partitions whose committed offset does not advance" in sentence(apart)
    assert together.required_workers > 12


def test_stuck_partitions_do_not_hold_the_workers_of_an_idle_job():
    """The backlog of a partition that needs a repair waits while the others have no input."""
    running, stuck = Fluid(lambda at_s: 900.0 if at_s < 300 else 0.0, workers=12), {"stuck_backlog_records": 5000.0}
    running.more = lambda at_s: stuck | {"backlog_records": running.appended - running.processed + 5000}
    closed_each({JOB: running}, 1800, drain(down_window_s=600.0), tick_s=TICK_S)
    assert running.workers == 1


AT_NIGHT, UNREPORTED = (1.0, 0.5), ((), ("utilization_ratio",))


@cache
def with_unreadable_records():
    """The decisions of jobs with 100 records that no consumer can read, by their input at night and missing signals."""

    def running(at_night, missing):
        job = Fluid(lambda at_s: 400.0 if at_s < 3600 else at_night, workers=5, missing=lambda at_s: missing)
        job.more = lambda at_s: {"partitions": 100.0, "backlog_records": job.appended - job.processed + 100}
        return job

    jobs = {str(case): running(*case) for case in product(AT_NIGHT, UNREPORTED)}
    rules = RuleBook(by_workload=dict.fromkeys(jobs, Rules(policy="drain")))
    return closed_each(jobs, 9000, rules, tick_s=TICK_S)


@pytest.mark.parametrize("at_night", AT_NIGHT)
@pytest.mark.parametrize("missing", UNREPORTED, ids=str)
def test_records_that_no_consumer_can_read_need_no_workers_however_low_the_input_is(at_night, missing):
    """A hundred partitions with one marker each are a backlog time of 100 s and more."""
    decided = with_unreadable_records()[str((at_night, missing))]
    assert max(d.required_workers or 0 for d in decided) == 5


def test_a_job_that_stops_for_good_after_a_rescale_is_stuck():
    """Before a pause is measured, a stop of up to four times rescale_pause_s counts as the pause of the rescale."""
    running, state, reasons = Fluid(lambda at_s: 800.0), EMPTY, {}
    while running.at_s <= 600:
        state, decisions = advance(state, tick(running.at_s, running.rows()), book(policy="drain"))
        reasons[running.at_s] = rows(decisions)[0].reason
        if running.at_s == 300:
            running.pause_s = 3600.0
            running.scale(12)
        running.run()
    assert {reason for at_s, reason in reasons.items() if 315 <= at_s <= 420} == {Reason.SETTLING}
    # The rate window holds a minute of the standstill.
    assert {reason for at_s, reason in reasons.items() if at_s > 300 + 120 + 60} == {Reason.STUCK}


def test_the_pause_of_a_rescale_is_settling_and_not_stuck():
    """The backlog time meanwhile is by the last rate that was known."""
    decided = at(closed(Fluid(lambda at_s: 1500.0, pause_s=30.0), 400, drain()))
    changed = min(at_s for at_s, d in decided.items() if d.reason == Reason.SETTLING)
    assert decided[changed].backlog_time_s == pytest.approx(decided[changed].backlog_records / 1000)
    assert Reason.STUCK not in {d.reason for d in decided.values()}


PAUSES_S = (60, 75, 90, 120)


@cache
def workers_after_pauses():
    """The last workers of jobs with each of PAUSES_S, of which fourteen carry 1 200 records/s with the headroom."""

    def running(pause_s):
        return Fluid(lambda at_s: min(1000.0 + at_s / 6, 1200.0), pause_s=pause_s, warm_up_s=60)

    jobs = {str(pause_s): running(pause_s) for pause_s in PAUSES_S}
    closed_each(jobs, 4200, RuleBook(by_workload=dict.fromkeys(jobs, Rules(policy="drain"))))
    return {pause_s: jobs[str(pause_s)].workers for pause_s in PAUSES_S}


@pytest.mark.parametrize("pause_s", PAUSES_S)
def test_the_backlog_of_a_longer_pause_than_configured_causes_no_other_scale_up(pause_s):
    assert workers_after_pauses()[pause_s] == 14


def test_a_job_without_backlog_may_scale_down():
    """T>0, L=0."""
    found = last(always(60, throughput=300), drain())
    assert (found.backlog_time_s, found.reason, found.required_workers) == (0, Reason.DOWN, 4)


def test_a_draining_job_is_not_scaled_down():
    """G<0."""
    found = last(always(60, throughput=1000, growth=-400, backlog=84_000), drain())
    assert (found.input_rate_records_per_s, found.reason, found.required_workers) == (600, Reason.HOLD, 10)


def test_x_04_a_backlog_that_disappears_without_processing_is_a_discontinuity():
    """T+G<0: retention deleted it."""
    gone = [
        tick(at_s, job(**counts(), processed_records=100.0 * at_s, backlog_records=max(0.0, 9e5 - 1e4 * (at_s - 60))))
        for at_s in range(0, 121, 15)
    ]
    held = [d for d in history(gone, drain()) if d.reason == Reason.DISCONTINUITY]
    assert {d.input_rate_records_per_s for d in held} == {0}
    assert len({d.required_workers for d in held}) == 1


def test_a_backlog_jump_needs_a_second_tick():
    """A new topic, or a reset to the earliest offset: more than ten times what two minutes process."""
    jump = [
        tick(at_s, job(**counts(), **flow(at_s, 900) | {"backlog_records": 0.0 if at_s < 90 else 2e6}))
        for at_s in range(0, 121, 15)
    ]
    decided = at(history(jump, drain()))
    assert (decided[75].reason, decided[90].reason, decided[105].reason) == (
        Reason.HOLD,
        Reason.DISCONTINUITY,
        Reason.UP,
    )
    assert decided[90].required_workers == 10
    assert decided[105].required_workers == 78  # 2 million within 300 s, and a minute of the 900/s besides
    assert last(jump, drain(max_step_up_workers=20)).required_workers == 30  # step limits apply


def test_a_backlog_jump_after_a_missing_sample_needs_a_second_tick_too():
    def sample(at_s):
        return job(**counts(), **flow(at_s, 900) | {"backlog_records": 2e6 if at_s == 90 else 0.0})

    decided = at(history([tick(at_s, *[sample(at_s)] * (at_s != 75)) for at_s in range(0, 121, 15)], drain()))
    assert (decided[75].reason, decided[90].reason, decided[105].reason) == (
        Reason.STALE,
        Reason.DISCONTINUITY,
        Reason.HOLD,
    )


# --- samples: gone, wrong, late, old


def test_a_counter_reset_gives_no_rate():
    """Pods churn: after the reset there is no rate until it has points of its own."""
    anew = [
        tick(at_s, job(**counts(), **flow(at_s, 900) | {"processed_records": 900.0 * (at_s - 75 * (at_s >= 75))}))
        for at_s in range(0, 151, 15)
    ]
    decided = at(history(anew, drain()))
    assert (decided[75].reason, decided[90].reason) == (Reason.NO_DATA, Reason.NO_DATA)
    assert {d.required_workers for at_s, d in decided.items() if at_s >= 30} == {10}
    assert {d.throughput_records_per_s for at_s, d in decided.items() if at_s >= 30} == {900}


def skip(at_s):
    """The group is out of range and goes on at the end: five million records are skipped."""
    skipped = 5e6 * (at_s >= 600)
    return counts(
        processed_records=800 * at_s + skipped,
        backlog_records=5e6 - skipped,
        appended_records=5e6 + 800 * at_s,
        utilization_ratio=0.8,
    )


def partial(*signals):
    """One of twelve series of a sum is missing in one sample."""

    def seen(at_s):
        whole = {"processed_records": 1e8 + 800 * at_s, "appended_records": 1e8 + 800 * at_s, "backlog_records": 0.0}
        part = {name: whole[name] * 11 / 12 for name in signals if at_s == 600}
        return counts(utilization_ratio=0.8) | whole | part

    return seen


JUMPS = {
    "skipped records": skip,
    "a partial sum": partial("processed_records", "appended_records"),
    "a partial sum of the input": partial("appended_records"),
}


@pytest.mark.parametrize("case", JUMPS)
def test_x_04_a_jump_of_a_counter_gives_no_rate(case):
    decided = at(in_an_hour()[case])
    assert {d.throughput_records_per_s for at_s, d in decided.items() if at_s >= 30} == {800}
    assert {d.required_workers for at_s, d in decided.items() if at_s >= 30} == {10}
    assert {at_s for at_s, d in decided.items() if d.reason == Reason.NO_DATA} <= {0, 15, 600, 615, 630}


def test_a_step_of_the_load_to_a_hundredfold_has_a_rate_three_ticks_later():
    load = Fluid(lambda at_s: 8.0 if at_s < 600 else 800.0)
    decided = at(closed(load, 900, drain(), follows=lambda at_s: False))
    assert decided[690].throughput_records_per_s == 800


def without_samples(missing_ticks):
    """Prometheus restarts: its rates over a minute are too low until it has a minute of samples."""
    returns_s = 600 + 15 * missing_ticks

    def seen(at_s):
        if 600 <= at_s < returns_s:
            return {}
        seen_s = min(at_s - returns_s + 15, 60) if at_s >= returns_s and missing_ticks > 1 else 60
        rates = {"throughput_records_per_s": 800 * seen_s / 60, "input_rate_records_per_s": 880 * seen_s / 60}
        return counts(10) | rates | {"backlog_records": 4000, "utilization_ratio": 0.8}

    return seen


@pytest.mark.parametrize(("missing_ticks", "held_until_s"), [(1, 0), (2, 690), (10, 810)])
def test_a_reported_rate_needs_a_whole_window_after_an_outage(missing_ticks, held_until_s):
    decided = at(in_an_hour()["without samples", missing_ticks])
    assert {d.required_workers for d in decided.values()} == {10}
    assert {d.throughput_records_per_s for at_s, d in decided.items() if at_s > held_until_s} == {800}


def without_rates(at_s):
    """The backlog comes from another source, and continues."""
    seen_s = min(at_s - 750 + 15, 60) if at_s >= 750 else 60
    rates = {"throughput_records_per_s": 800 * seen_s / 60, "input_rate_records_per_s": 880 * seen_s / 60}
    waits = {"backlog_records": 40_000, "utilization_ratio": 0.8}
    return counts(10) | waits | ({} if 600 <= at_s < 750 else rates)


def test_a_rate_that_was_away_beside_the_backlog_of_another_source_needs_a_whole_window():
    decided = at(in_an_hour()["without rates"])
    assert len({decided[at_s].required_workers for at_s in range(735, 811, 15)}) == 1


def test_a_rate_of_every_third_tick_counts():
    def at_time(at_s):
        rates = {"throughput_records_per_s": 800, "input_rate_records_per_s": 3120, "backlog_records": 4000}
        return tick(at_s, job(**counts(10), **(rates if at_s % 15 == 0 else {}), utilization_ratio=0.8))

    decided = at(history([at_time(at_s) for at_s in range(0, 601, 5)], drain()))
    assert decided[600].required_workers > 30


def more_partitions(at_s):
    rates = {"throughput_records_per_s": 800, "input_rate_records_per_s": 780, "backlog_records": 4000}
    return {**counts(10), **rates, "partitions": 12 if at_s < 600 else 24, "utilization_ratio": 0.8}


def test_other_partitions_do_not_end_a_rate_that_was_never_away():
    decided = at(in_an_hour()["more partitions"])
    assert Reason.NO_DATA not in {decided[at_s].reason for at_s in range(600, 901, 15)}


@pytest.mark.parametrize("value", [None, nan, inf, -inf, -1.0], ids=str)
@pytest.mark.parametrize("signal", ["processed_records", "backlog_records"])
def test_x_06_a_missing_or_invalid_series_holds_the_target(signal, value):
    """Not 0: neither a backlog of 0 nor a rate of 0."""
    before = always(60, **BEHIND)
    gone = tick(75, job(**counts(), **flow(75, **BEHIND) | {signal: value}))
    found = last([*before, gone], drain())
    assert (found.reason, found.required_workers) == (Reason.STALE, last(before, drain()).required_workers)


def test_late_samples_change_nothing():
    ticks = always(120, **BEHIND)
    state = list(replay(ticks, drain()))[-1][0]
    after, decisions = advance(state, tick(100, job(**counts(3), **flow(100, 5))), drain())
    assert (after, rows(decisions)) == (state, [])


def test_a_clock_that_runs_backwards_decides_nothing():
    ticks = [*always(120), *always(110, from_s=5.0), *always(180, from_s=135.0)]
    decided = history(ticks, drain())
    assert [d.at_s for d in decided] == [*range(0, 121, 15), *range(135, 181, 15)]


@pytest.mark.parametrize("delay_s", [0.0, 120.0])
def test_s4_04_delayed_metrics_settle_later(delay_s):
    """Samples that come two minutes late still show the pause two minutes after it."""
    changed = [tick(at_s, job(**counts(20 if at_s >= 75 else 10), **flow(at_s))) for at_s in range(0, 301, 15)]
    decided = at(history(changed, drain(metric_delay_s=delay_s)))
    settles = [at_s for at_s, d in decided.items() if d.reason == Reason.SETTLING]
    assert (min(settles), max(settles)) == (75, 75 + 45 + delay_s + 15)  # and half a window of clean points


def test_every_number_carries_its_age():
    found = last([*always(60), tick(75, job(**counts())), tick(90, job(**counts()))], drain())
    assert (found.sample_age_s, found.workers_age_s) == (30, 0)


def test_a_new_job_is_not_sized_before_its_first_clean_window():
    decided = history(always(60, **BEHIND), drain())
    assert [d.required_workers for d in decided[:2]] == [None, None]
    assert [d.reason for d in decided[:2]] == [Reason.NO_DATA] * 2
    assert history(always(60, **BEHIND), drain())[2].reason == Reason.UP


WRONG_INPUT = {
    "its counter stands": lambda at_s: 1000.0 * min(at_s, 1800),
    "it counts some of the topics": lambda at_s: 500.0 * at_s,
}


LEVELS, SIZED_BY = (0.0, 45_000.0), ("drain", "netflix")


def with_a_wrong_input(wrong, backlog):
    def seen(at_s):
        load = flow(at_s) | {"appended_records": WRONG_INPUT[wrong](at_s) + backlog, "backlog_records": backlog}
        return counts(13) | load | {"utilization_ratio": 0.77, "partitions": 60}

    return seen


@pytest.mark.parametrize("backlog", LEVELS)
@pytest.mark.parametrize("wrong", WRONG_INPUT)
@pytest.mark.parametrize("policy", SIZED_BY)
def test_an_input_below_the_throughput_with_a_level_backlog_is_wrong(policy, wrong, backlog):
    """The backlog would have fallen. The input then follows from the throughput and the backlog."""
    found = in_an_hour()[policy, wrong, backlog]
    assert {d.required_workers for d in found if d.required_workers is not None} == {13}
    assert found[-1].input_rate_records_per_s == pytest.approx(1000)


def read_rarely(every_s):
    """The job drains 1 200 000 records at 1 000/s while 800/s arrive."""
    return lambda at_s: counts(
        processed_records=1000.0 * at_s,
        appended_records=800.0 * at_s,
        backlog_records=1_200_000.0 - 200 * (at_s // every_s * every_s),
        utilization_ratio=1.0,
    )


def rising(growth):
    """The job processes 1 000/s. The counted input is 800/s, because one topic is not counted."""
    return lambda at_s: counts(
        processed_records=1000.0 * at_s,
        appended_records=800.0 * at_s,
        backlog_records=10_000.0 + growth * at_s,
        utilization_ratio=1.0,
    )


READ_EVERY_S, GROWTHS = (15, 60, 120), (0, 95)


@pytest.mark.parametrize("read_every_s", READ_EVERY_S)
def test_a_backlog_that_is_read_rarely_does_not_contradict_the_input(read_every_s):
    found = in_an_hour()["read rarely", read_every_s]
    assert [d.input_rate_records_per_s for d in found if d.at_s >= 300] == pytest.approx([800] * 221)


@pytest.mark.parametrize("growth", GROWTHS)
def test_a_backlog_that_rises_contradicts_an_input_below_the_throughput(growth):
    found = at(in_an_hour()["rising", growth])
    assert found[900].input_rate_records_per_s == pytest.approx(1000 + growth)


def with_a_rate_that_lags(at_s):
    def passed(at_s):
        stopped = 1_800_000.0 + 2000 * max(at_s - 1815, 0)
        return min(1000.0 * at_s, stopped) if at_s >= 1800 else 1000.0 * at_s

    rate = (passed(at_s) - passed(max(at_s - 120, 0))) / 120
    load = {"throughput_records_per_s": rate, "appended_records": 1000.0 * at_s}
    return counts() | load | {"backlog_records": 1000.0 * at_s - passed(at_s), "partitions": 60}


def test_a_rate_that_lags_does_not_replace_an_exact_input():
    """The reported rate is a mean of two minutes, so it still shows the catch-up after a stop."""
    found = in_an_hour()["a rate that lags"]
    assert {d.input_rate_records_per_s for d in found if d.at_s >= 300} == {1000}


# --- workers


def test_x_05_the_backlog_of_a_pause_causes_no_second_scale_up():
    """No further scale-up during settling, because the rates of a pause mean nothing."""
    decided = closed(
        Fluid(lambda at_s: 900.0 if at_s < 300 else 1500.0, pause_s=60.0), 600, drain(rescale_pause_s=60.0)
    )
    ups = [d.at_s for d in decided if d.reason == Reason.UP]
    assert len([at_s for at_s in ups if ups[0] < at_s <= ups[0] + 30 + 60]) == 0


RETURNED = {  # the load that returns, records/s, and when a scale-up follows
    "more than the workers process when warm": (900.0, 60, 120),
    "as much as they process": (520.0, 240, inf),
}


@cache
def after_a_scale_down():
    """The load returns with the scale-down, which pauses the job for a minute. It warms up for three."""

    def running(returned):
        job = Fluid(lambda at_s: 900.0 if at_s < 300 else 400.0 if job.workers == 10 else returned)
        job.pause_s, job.warm_up_s = 60.0, 180.0
        return job

    changes = {"rescale_pause_s": 60.0, "warm_up_s": 180.0, "rescale_worth_s": 60.0, "cooldown_up_s": None}
    rules = RuleBook(by_workload=dict.fromkeys(RETURNED, Rules(**DRAIN | changes)))
    return closed_each({case: running(returned) for case, (returned, *_) in RETURNED.items()}, 1800, rules)


@pytest.mark.parametrize("case", RETURNED)
def test_after_a_scale_down_that_left_too_few_workers_a_scale_up_does_not_wait_for_the_warm_up(case):
    _, soonest_s, latest_s = RETURNED[case]
    decided = after_a_scale_down()[case]
    down_s = next(d.at_s for d in decided if d.reason == Reason.DOWN)
    up_s = next((d.at_s for d in decided if d.at_s > down_s and d.reason == Reason.UP), inf)

    assert soonest_s <= up_s - down_s <= latest_s


def test_removed_workers_that_still_exist_do_not_start():
    stopping = [tick(at_s, job(**counts(8) | flow(at_s) | {"workers": 10.0})) for at_s in range(75, 106, 15)]
    assert sentence(last([*always(60), *stopping])) == (
        "Holding 8 workers: 8 of 8 workers are ready, but more or fewer exist; waiting for exactly 8"
    )


def never_all_ready(ready):
    """Of 25 workers only some start. The input rises meanwhile."""
    return lambda at_s: (
        counts(20) | flow(at_s, 1500) if at_s <= 60 else counts(25, ready_workers=ready) | flow(at_s, 1500, growth=800)
    )


@pytest.mark.parametrize(("ready", "reason"), [(24, Reason.UP), (20, Reason.UNSCHEDULABLE)])
def test_a_few_workers_that_never_start_do_not_stop_scale_ups(ready, reason):
    assert at(in_an_hour()["never all ready", ready])[900].reason is reason


def test_unschedulable_workers_are_removed_from_the_target():
    ticks = [
        tick(at_s, job(**counts(10, spec_workers=10 if at_s < 75 else 20), **flow(at_s, **BEHIND)))
        for at_s in range(0, 211, 15)
    ]
    decided = at(history(ticks, drain(in_flight_timeout_s=120.0)))
    assert {decided[at_s].reason for at_s in range(75, 195, 15)} == {Reason.IN_FLIGHT}
    assert len({decided[at_s].required_workers for at_s in range(75, 195, 15)}) == 1
    assert (decided[195].reason, decided[195].required_workers) == (Reason.UNSCHEDULABLE, 10)


def test_crashing_workers_do_not_lower_the_target():
    """Unschedulable are those that never came."""
    crashing = [
        tick(at_s, job(**counts(20, ready_workers=20 if at_s < 60 else 19), **flow(at_s, 1450)))
        for at_s in range(0, 301, 15)
    ]
    decided = history(crashing, drain(in_flight_timeout_s=120.0))
    assert Reason.UNSCHEDULABLE not in {d.reason for d in decided}
    assert decided[-1].required_workers == 20


def test_a_manual_scale_is_adopted_and_keeps_the_learned_capacity():
    changed = [tick(at_s, job(**counts(10 if at_s < 120 else 7), **flow(at_s, 600))) for at_s in range(0, 181, 15)]
    decided = at(history(changed, drain()))
    assert (decided[120].reason, decided[120].required_workers) == (Reason.SETTLING, 7)
    assert decided[180].confidence == "prior"


# --- more workers do not help


def test_an_unhealthy_sink_prevents_changes_while_the_job_is_behind():
    found = last(always(60, **BEHIND, sink_healthy=0), drain())
    assert (found.required_workers, found.bound, found.wanted_workers > 10) == (10, Bound.SINK, True)
    assert (
        last(always(60, throughput=1000, growth=-900, backlog=80_000, sink_healthy=0), drain()).required_workers == 10
    )


def test_an_unhealthy_sink_allows_a_scale_down_without_backlog():
    found = last(always(60, throughput=300, sink_healthy=0), drain())
    assert (found.required_workers, found.bound) == (4, Bound.NONE)


def test_s3_20_behind_at_low_utilization_one_more_worker_is_tried():
    """No sink metric: the workers idle, and a backlog grows."""
    waits = Fluid(lambda at_s: 900.0 if at_s < 300 else 1500.0, workers=100, sink=lambda at_s: 1000.0)
    rules = drain(worker_capacity_records_per_s=None, max_workers=1000, probe_ratio=0.0, cooldown_up_s=None)
    decided = closed(waits, 1500, rules)
    bounds = [d.bound for d in decided if d.reason == Reason.UP or d.bound == Bound.INEFFECTIVE]
    assert Bound.TRIAL in bounds
    assert max(d.required_workers for d in decided if d.required_workers) <= 123
    assert "more workers may not help" in sentence(next(d for d in decided if d.bound == Bound.TRIAL))


def test_the_sentence_names_the_partitions_that_the_load_needs():
    found = last(always(60, **BEHIND, partitions=12), drain())
    assert (found.required_workers, found.bound) == (12, Bound.PARTITIONS)
    needed = int(found.wanted_workers)
    assert sentence(found).endswith(f"only 12 partitions, so no more workers: the load needs {needed} partitions")


def test_a_hot_partition_limits_the_workers():
    """Of 24 one takes four times the mean: 250/s of 1500/s, where a worker carries 100/s. All together need 19 workers.

    More would clear the backlog of the others, and none of the hot one.
    """
    hot = {"partitions": 24, "hottest_partition_ratio": 4.0}
    found = last(always(60, workers=4, throughput=400, growth=1100, **hot), drain())
    assert (found.required_workers, found.bound, found.allowed_workers) == (19, Bound.HOT, 19)
    assert "split its keys" in sentence(found)
    assert last(always(60, workers=4, throughput=400, growth=1100, partitions=24), drain()).required_workers == 24


def read_early(at_s):
    """A quiet topic: one record every five minutes, of which one is read before it is processed."""
    early = float(at_s == 600)
    return counts(processed_records=at_s // 300 - early, backlog_records=early)


def test_one_record_that_was_read_before_its_commit_is_not_stuck():
    assert Reason.STUCK not in {d.reason for d in in_an_hour()["read early"]}


def test_a_hot_partition_stays_hot_through_a_missing_sample():
    hot = {"partitions": 24, "hottest_partition_ratio": 4.0}
    ticks = always(60, workers=4, throughput=400, growth=1100, **hot)
    missed = always(75, from_s=75.0, workers=4, throughput=400, growth=1100, partitions=24)
    assert last([*ticks, *missed], drain()).required_workers == 19


def test_a_hot_partition_limits_nothing_while_the_capacity_of_a_worker_is_unknown():
    hot = {"partitions": 32, "hottest_partition_ratio": 4.0}
    assert last(always(600, **hot), book(policy="segments")).required_workers == 32


@pytest.mark.parametrize("policy", ["drain", "dataflow", "netflix"])
def test_partitions_of_0_are_not_counted_yet(policy):
    more = {"workers": 4, "throughput": 400, "growth": 1100, "hottest_partition_ratio": 4.0}
    rules = drain(policy=policy)
    zero, unknown = (last(always(60, partitions=count, **more), rules) for count in (0, None))
    assert zero.required_workers == unknown.required_workers > 4
    assert zero.partitions is unknown.partitions is None


def test_after_a_stop_a_job_behind_at_low_utilization_gets_no_worker_until_it_is_warm():
    running = Fluid(lambda at_s: 750.0 if at_s < 690 else 1400.0, more=lambda at_s: {"utilization_ratio": 0.15})
    state, decided = EMPTY, {}
    rules = drain(warm_up_s=300.0, worker_capacity_records_per_s=100.0)
    while running.at_s < 1080:
        running.each = 0.0 if 600 <= running.at_s < 690 else 100.0
        state, decisions = advance(state, tick(running.at_s, running.rows()), rules)
        (decided[running.at_s],) = rows(decisions)
        running.run()
    late = [d for d in decided.values() if d.bound in (Bound.COOLDOWN, Bound.TRIAL)]
    cooling = [d for d in late if d.bound == Bound.COOLDOWN]
    assert late[: len(cooling)] == cooling
    assert {d.required_workers for d in cooling} == {10}
    assert (cooling[-1].at_s, late[len(cooling)].required_workers) == (915, 12)
    assert "in cooldown, because nothing was processed until 5 min ago" in sentence(cooling[-1])


def test_the_cooldown_of_a_scale_down_is_named_by_the_last_change_also_after_a_stop():
    running = Fluid(lambda at_s: 300.0, workers=14, sink=lambda at_s: 0.0 if 180 <= at_s < 240 else np.inf)
    held = closed(running, 540, drain(cooldown_down_s=600.0, down_window_s=0.0))[-1]
    assert (held.bound, held.wanted_workers) == (Bound.COOLDOWN, 4)
    assert sentence(held).endswith("; in cooldown, 9 min after the last change")


def test_a_slow_worker_is_named_and_causes_no_scale_up():
    found = last(always(60, throughput=700, slowest_worker_ratio=0.3), drain())
    assert (found.required_workers, found.slowest_worker_ratio) == (10, 0.3)
    assert "replace it" in sentence(found)
    assert "replace it" not in sentence(last(always(60, throughput=700, slowest_worker_ratio=0.6), drain()))


def test_s4_35_the_memory_for_the_partitions_is_a_minimum():
    found = last(always(30, throughput=100, partitions=60), drain(max_partitions_per_worker=8))
    assert (found.required_workers, found.bound) == (8, Bound.MEMORY)


# --- rates and units


def rarely_a_record(at_s):
    """One record of a minute's work each 40 s, 25 s late at most: 7 workers would do, if none were spared."""
    appended, processed = float((at_s + 40) // 40), float((at_s + 15) // 40)
    return counts(processed_records=processed, appended_records=appended, backlog_records=appended - processed)


def test_rates_below_one_record_a_second_are_not_rounded():
    found = at(in_an_hour()["rarely a record"])[900]
    assert found.input_rate_records_per_s == pytest.approx(1 / 40, rel=0.15)
    assert found.required_workers == 10


def test_larger_records_lead_to_more_workers():
    """Each worker falls from 100/s to 50/s. The throughput shows it at once, as bytes would."""
    running = Fluid(lambda at_s: 700.0)
    before = closed(running, 600, drain(worker_capacity_records_per_s=None), follows=lambda at_s: False)
    assert before[-1].required_workers <= 10
    heavier = Fluid(lambda at_s: 700.0)
    heavier.sink = lambda at_s: heavier.workers * (100.0 if at_s < 600 else 50.0)
    after = closed(heavier, 2700, drain(worker_capacity_records_per_s=None, low_cpu_ratio=0.0))
    assert after[-1].required_workers >= 14
    assert heavier.appended - heavier.processed < 700 * 60


@pytest.mark.parametrize("power", [-10, -1, 7, 20])
def test_x_12_records_or_bytes_make_no_difference(power):
    unit = 2.0**power
    in_bytes = [
        tick(at_s, job(**counts(), **{name: unit * value for name, value in flow(at_s, **BEHIND).items()}))
        for at_s in range(0, 61, 15)
    ]
    found = last(in_bytes, drain(worker_capacity_records_per_s=unit * 100))
    assert found.required_workers == last(always(60, **BEHIND), drain()).required_workers
    assert found.backlog_time_s == 30


def test_two_jobs_are_sized_independently():
    """Workers shared by two jobs are not modelled: each is sized as if they were its own."""
    both = [
        tick(at_s, job(**counts(), **flow(at_s, **BEHIND)), job("shop/other", **counts(), **flow(at_s)))
        for at_s in range(0, 61, 15)
    ]
    rules = replace(drain(), by_workload={name: drain().by_workload[JOB] for name in (JOB, "shop/other")})
    assert last(both, rules).required_workers == last(always(60, **BEHIND), drain()).required_workers
    assert last(both, rules, "shop/other").required_workers == 10


# --- limits of others, restarts of ours


def test_the_limits_of_the_hpa_are_named():
    found = last(always(60, **BEHIND, max_workers=12), drain())
    assert (found.required_workers, found.bound, found.max_workers) == (12, Bound.MAX, 12)
    assert "the maximum is 12" in sentence(found)


@cache
def after_two_steps():
    """The decisions of a job of one stage, and of one beside a calm stage.

    The first step needs 18 workers. The second one comes when the latch has ended, and waits for the next tick.
    """
    loads = [(0, 1000), (300, 1500), (1800, 2500)]  # from, records/s
    ticks, appended, processed = [], 0, 0
    for at_s in range(0, 1846, 15):
        rate = [rate for from_s, rate in loads if at_s >= from_s][-1]
        appended += 15 * rate
        processed += min(15 * 1000, appended - processed)
        counted = {"processed_records": processed, "appended_records": appended}
        counted |= {"backlog_records": appended - processed, "utilization_ratio": min(1.0, rate / 1000)}
        one = job("one stage", **counts(10), **counted)
        of_two = job("beside a calm stage", stage="b", **counts(10), **counted)
        calm = job("beside a calm stage", stage="a", **flow(at_s, throughput=600))
        ticks.append(tick(at_s, one, of_two, calm))
    rules = dict.fromkeys(("one stage", "beside a calm stage"), Rules(**DRAIN | {"max_workers": 18}))
    return list(chain.from_iterable(fold(ticks, RuleBook(by_workload=rules))))


@pytest.mark.parametrize("case", ["one stage", "beside a calm stage"])
def test_a_further_step_of_the_input_does_not_withdraw_a_target_that_is_not_enacted(case):
    decided = [d for d in after_two_steps() if d.workload == case and d.at_s >= 1785]
    assert [(d.reason, d.required_workers) for d in decided] == [(Reason.NOT_ENACTED, 18)] * 5
    assert decided[1].in_step


def test_a_target_that_is_not_enacted_names_what_to_check():
    running = Fluid(lambda at_s: 900.0 if at_s < 120 else 1100.0)
    decided = closed(running, 1200, drain(max_workers=12), follows=lambda at_s: False)
    assert decided[-1].reason == Reason.NOT_ENACTED
    assert "maxReplicas, tolerance and behavior, and the quota" in sentence(decided[-1])


WITHOUT_WORKERS = {
    "minReplicas is 1": {"min_workers": 1},
    "minReplicas is 0": {"min_workers": 0},
    "the job crashed and spec.replicas is unknown": {"min_workers": 1, "spec_workers": None},
}


def without_workers(case):
    return lambda at_s: counts(0) | flow(at_s) | WITHOUT_WORKERS[case]


def test_a_scale_target_at_0_replicas_is_scaled_up():
    decided = in_an_hour()["minReplicas is 1"][-1]
    assert decided.reason == Reason.UP
    assert "for a scale target at 0 replicas, where the HPA is off: " in sentence(decided)


@pytest.mark.parametrize("case", ["minReplicas is 0", "the job crashed and spec.replicas is unknown"])
def test_no_workers_do_not_mean_that_the_hpa_is_off(case):
    decided = in_an_hour()[case][-1]
    assert decided.reason == Reason.NOT_ENACTED
    assert "off" not in sentence(decided)


DEFAULT = {"policy": "drain"}
AN_HOUR = {  # the signals at a time, and the rules
    **{case: (seen, DEFAULT | {"max_workers": 10}) for case, seen in JUMPS.items()},
    **{("without samples", count): (without_samples(count), DRAIN) for count in (1, 2, 10)},
    "without rates": (without_rates, DRAIN),
    "more partitions": (more_partitions, DRAIN),
    **{case: (with_a_wrong_input(*case[1:]), {"policy": case[0]}) for case in product(SIZED_BY, WRONG_INPUT, LEVELS)},
    **{("read rarely", each): (read_rarely(each), DEFAULT) for each in READ_EVERY_S},
    **{("rising", growth): (rising(growth), DEFAULT) for growth in GROWTHS},
    "a rate that lags": (with_a_rate_that_lags, DRAIN | {"worker_capacity_records_per_s": 200.0}),
    "read early": (read_early, DRAIN),
    "rarely a record": (rarely_a_record, DRAIN | {"rate_window_s": 180.0, "worker_capacity_records_per_s": 1 / 280}),
    **{("never all ready", ready): (never_all_ready(ready), DRAIN) for ready in (20, 24)},
    **{case: (without_workers(case), DRAIN) for case in WITHOUT_WORKERS},
}


@cache
def in_an_hour():
    """The decisions of each job of AN_HOUR."""

    def seen(case, at_s):
        return AN_HOUR[case][0](at_s)

    return history_each(AN_HOUR, seen, range(0, 3601, 15), lambda case: AN_HOUR[case][1])


def test_p_11_a_restart_continues_from_the_encoded_state():
    ticks = [*always(60, **BEHIND), *always(400, from_s=75.0, workers=20, **BEHIND)]
    state, found = EMPTY, []
    for one in ticks:
        state = decode(VERSION, encode_fast(state), encode_slow(state))
        state, decisions = advance(state, one, drain())
        found += rows(decisions)
    assert found == history(ticks, drain())


def test_a_restart_without_state_has_no_target_yet():
    fresh = history(always(45, from_s=30.0, **BEHIND), drain())
    assert {d.required_workers for d in fresh} == {None}


# --- X


def test_x_02_an_idle_job_has_no_backlog_time():
    found = last(always(60, throughput=0), drain(cooldown_down_s=None))
    assert (found.backlog_time_s, found.required_workers) == (0, 10)


def test_x_03_negative_growth_counts_as_0():
    found = last(always(60, throughput=2000, growth=-500, backlog=60_000), drain())
    assert (found.growth_records_per_s, found.required_workers) == (-500, 10)


def test_x_08_each_workload_has_one_decision_a_tick():
    ticks = [tick(at_s, job(**counts(), **flow(at_s)), job(stage="map", **flow(at_s))) for at_s in (0, 15, 30)]
    assert [len(each) for each in fold(ticks, drain())] == [1, 1, 1]


def test_x_09_the_latch_outlasts_the_stabilization_window_of_an_hpa():
    """The controller takes the largest target of its window, so a scale-down must stand as long."""
    controller, memory, workers, served = hpa.Hpa(max_workers=100), hpa.Memory(), np.array([14.0]), []
    running = Fluid(lambda at_s: 1000.0 if at_s < 300 else 300.0, workers=14)
    state = EMPTY
    while running.at_s <= 1800:
        state, decisions = advance(state, tick(running.at_s, running.rows()), drain(rescale_worth_s=None))
        wanted = decisions.numbers["required_workers"]
        workers, memory = hpa.recommend(controller, memory, workers, wanted, running.at_s)
        served.append(wanted[0])
        running.scale(int(workers[0]))
        running.run(30)
    assert workers == 4
    assert served.count(4.0) * 30 > 300


def test_x_11_limits_ignore_float_noise():
    """0.6 of 30 is 0.9 of 20 in real numbers and less in floats: dataflow's strict limit holds 30."""
    found = last(always(60, workers=30, throughput=1000, utilization_ratio=0.6), book(max_workers=60))
    assert (found.reason, found.required_workers) == (Reason.HOLD, 30)


# --- every policy: no scale-ups and no changes that cannot help


def each_policy(story, until_s, **rules):
    """The same history for every policy, without the bounds that would prevent a change anyway."""
    free = {"quanta": "none", "cooldown_up_s": 0.0, "cooldown_down_s": 0.0, "down_window_s": 0.0, "max_workers": 100}
    book_of_all = RuleBook(by_workload={name: Rules(policy=name, **free | rules) for name in POLICIES})
    return closed_each({name: story() for name in POLICIES}, until_s, book_of_all)


def sizes(decided, from_s, until_s):
    return {d.required_workers for d in decided if from_s <= d.at_s <= until_s}


@cache
def stuck():
    """From 300 s to 600 s nothing is processed while the input goes on."""
    jam = {"sink": lambda at_s: 0.0 if at_s >= 300 else inf, "more": lambda _: {"partitions": 10}}
    return each_policy(lambda: Fluid(lambda at_s: 600.0, **jam), 600)


@pytest.mark.parametrize("policy", POLICIES)
def test_no_scale_up_while_stuck(policy):
    decided = stuck()[policy]
    assert max(sizes(decided, 300, 600)) <= next(d for d in decided if d.at_s == 300).workers
    assert decided[-1].reason == Reason.STUCK


@cache
def ill():
    """From 300 s on the sink takes half and reports it, and the backlog grows without end."""

    def more(at_s):
        return {"partitions": 10, "sink_healthy": float(at_s < 300)}

    return each_policy(
        lambda: Fluid(lambda at_s: 600.0, sink=lambda at_s: 300.0 if at_s >= 300 else inf, more=more), 900
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_no_scale_up_while_the_sink_is_unhealthy(policy):
    decided = ill()[policy]
    assert max(sizes(decided, 300, 900)) <= next(d for d in decided if d.at_s == 300).workers
    assert all(d.reason != Reason.UP for d in decided if d.at_s >= 300)


@cache
def blind():
    """From 300 s to 600 s the stream has no samples, and the input doubles meanwhile."""
    streams = ("processed_records", "appended_records", "backlog_records", "utilization_ratio")
    gone = {
        "missing": lambda at_s: streams if 300 <= at_s < 600 else (),
        "more": lambda _: {"partitions": 10},
    }
    return each_policy(lambda: Fluid(lambda at_s: 600.0 if at_s < 360 else 1200.0, **gone), 600)


@pytest.mark.parametrize("policy", POLICIES)
def test_no_change_during_a_metrics_outage_of_five_minutes(policy):
    decided = blind()[policy]
    before = next(d for d in decided if d.at_s == 270)
    # Partitions are still reported, and a policy that follows them continues.
    none, then = (set(), Reason.HOLD) if policy == "segments" else ({None}, Reason.EXPIRED)
    assert sizes(decided, 300, 599) == {before.required_workers} | none
    assert {d.workers for d in decided if 300 <= d.at_s <= 600} == {before.required_workers}
    assert {d.reason for d in decided if 300 <= d.at_s < 600} == {Reason.STALE, then}


@cache
def grown():
    """A rescale stops processing for a minute: its backlog is not due to the load."""

    def more(at_s):
        return {"partitions": 12.0 if at_s < 300 else 24.0}

    load = {False: 600.0, True: 1600.0}
    return each_policy(
        lambda: Fluid(lambda at_s: load[at_s >= 300], pause_s=60.0, more=more), 900, rescale_pause_s=60.0
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_no_change_during_the_pause_of_a_rescale(policy):
    decided = grown()[policy]
    changes = [now.at_s for was, now in pairwise(decided) if was.workers != now.workers]
    assert changes
    assert all(len(sizes(decided, changed, changed + 60)) == 1 for changed in changes)


def test_the_outlook_of_one_stage_explains_no_need_of_another():
    def both(at_s, first, second):
        return tick(at_s, job(**counts(), stage="a", **flow(at_s, first)), job(stage="b", **flow(at_s, second)))

    own, other = (
        last([both(at_s, *rates) for at_s in range(0, 121, 15)], drain()) for rates in [(950, 700), (700, 950)]
    )
    assert "no backlog is expected within 15 min. 12 would restore headroom; the backlog time stays" in sentence(own)
    assert sentence(other).endswith("capacity 1 000/s (configured); 12 would fit the load")
    assert (own.stage, other.stage) == ("a", "a")


def test_a_source_that_backpressure_leaves_idle_does_not_make_a_scale_up_a_trial():
    """A full later stage is the cause of its backlog, and more workers help."""

    def behind(at_s):
        source = job(
            **counts(), stage="source", **flow(at_s, 1000, growth=500), utilization_ratio=0.05, backpressured_ratio=0.9
        )
        return tick(at_s, source, job(stage="map", processed_records=1000 * at_s, utilization_ratio=1.0))

    decision = last([behind(at_s) for at_s in range(0, 121, 15)], drain())
    assert decision.bound is not Bound.TRIAL
    assert decision.required_workers > 15


@pytest.mark.parametrize("name", ["audit", "zz-audit"])
def test_the_metrics_of_a_workload_do_not_depend_on_the_names_of_its_stages(name):
    def both(at_s):
        return tick(at_s, job(**counts(), stage="clicks", **flow(at_s, 900)), job(stage=name, **flow(at_s, 5)))

    decision = last([both(at_s) for at_s in range(0, 121, 15)], drain())
    assert (decision.stage, decision.throughput_records_per_s) == ("clicks", 900)


def test_a_scale_up_that_only_a_bound_requires_names_no_smaller_size():
    decision = last(always(30, throughput=700, partitions=120.0), drain(max_partitions_per_worker=5))
    assert sentence(decision) == (
        "Scaling up from 10 to 24 workers: backlog time 0.0 s, input 700/s, throughput 700/s, capacity 1 000/s "
        "(configured); max_partitions_per_worker requires 24 workers for 120 partitions"
    )


def test_two_shards_decide_like_one():
    """The same jobs in one state and in two."""
    names = ["shop/a", "shop/b"]
    rules = RuleBook(by_workload={name: drain().by_workload[JOB] for name in names})
    rows = [[job(name, **counts(), **flow(at_s, **BEHIND)) for name in names] for at_s in range(0, 121, 15)]
    whole = fold([tick(15 * number, *rows_of) for number, rows_of in enumerate(rows)], rules)
    parts = [
        fold(
            [tick(15 * number, rows_of[place]) for number, rows_of in enumerate(rows)],
            RuleBook(by_workload={name: rules.by_workload[name]}),
        )
        for place, name in enumerate(names)
    ]
    assert whole == [a + b for a, b in zip(*parts, strict=True)]
