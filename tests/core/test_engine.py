"""What the fold of ticks does with whole histories: one behaviour a test."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from builders import JOB, TICK_S, book, counts, flow, fold, history, history_each, job, last, steady, tick

from adapter.core.decisions import Bound, Reason
from adapter.core.engine import advance
from adapter.core.report import rows
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.core.samples import EVERY
from adapter.core.state import EMPTY

BEHIND = {"throughput": 1000, "growth": 500}  # after 60 s: backlog 30 000, 30 s behind, 15 + 5 workers needed
ANY = {"quanta": "none"}


def reasons(ticks, rules=None):
    return [decision.reason for decision in history(ticks, rules)]


def targets(ticks, rules=None):
    return [decision.required_workers for decision in history(ticks, rules)]


def without(ticks, number, *signals):
    """The same ticks, one of them without some signals."""
    rows_of = job(**flow(ticks[number].at_s, **BEHIND) | counts())
    return [
        *ticks[:number],
        tick(ticks[number].at_s, [r for r in rows_of if r[2] not in signals]),
        *ticks[number + 1 :],
    ]


# --- the numbers of a decision


def test_s0_01_s3_01_a_decision_has_the_signals_it_follows_from():
    found = last(steady(**BEHIND, utilization_ratio=0.8), book(**ANY))
    assert found.reason == Reason.UP
    assert (found.required_workers, found.keep_up_workers, found.catch_up_workers) == (20, 15, 5)
    assert (found.throughput_records_per_s, found.growth_records_per_s) == (1000, 500)
    assert (found.input_rate_records_per_s, found.backlog_records, found.backlog_time_s) == (1500, 30_000, 30)
    assert (found.utilization_ratio, found.sample_age_s, found.workers) == (0.8, 0, 10)


def test_s3_02_an_uncounted_input_rate_is_derived():
    assert last(steady(**BEHIND, appended_records=None)).input_rate_records_per_s == 1500


def test_rates_without_counters_are_enough():
    rates = {"throughput_records_per_s": 1000, "input_rate_records_per_s": 1500, "backlog_records": 30_000}
    found = last([tick(15, job(**counts(), **rates))], book(**ANY))
    assert (found.required_workers, found.growth_records_per_s) == (20, 500)


def test_s3_08_s0_04_the_stage_with_the_largest_size_decides():
    def both(at_s):
        first = flow(at_s, 100, 50, 3000 - 50 * 60)
        return tick(at_s, job(**counts(), stage="a", **first), job(stage="b", **flow(at_s, 500, 0, 45_000)))

    ticks = [both(at_s) for at_s in range(0, 61, 15)]
    found = last(ticks, book(**ANY))
    assert (found.required_workers, found.stage, found.backlog_time_s) == (25, "b", 90)


def test_every_visible_stage_shows_its_signals():
    _, decisions = advance(
        EMPTY, tick(0, job(**counts(), stage="a", backlog_records=5), job(backlog_records=3)), book()
    )
    assert decisions.stages == (("shop/orders", "a"),)
    assert decisions.stage_numbers["backlog_records"].tolist() == [5]
    assert np.isnan(decisions.stage_numbers["throughput_records_per_s"]).all()


def test_a_hot_stage_without_backlog_prevents_a_scale_down():
    def both(at_s, hot):
        return tick(
            at_s, job(**counts(60), utilization_ratio=0.1, **flow(at_s)), job(stage="map", utilization_ratio=hot)
        )

    assert last([both(at_s, 0.1) for at_s in range(0, 61, 15)]).reason == Reason.DOWN
    assert last([both(at_s, 0.95) for at_s in range(0, 61, 15)]).reason == Reason.HOLD


def test_a_missing_utilization_of_a_hot_stage_still_prevents_a_scale_down():
    def both(at_s, hot):
        cool = job(**counts(60), stage="read", utilization_ratio=0.1, **flow(at_s))
        return tick(at_s, cool, job(stage="map", utilization_ratio=hot, **flow(at_s)))

    decided = history([both(at_s, 0.95 if at_s <= 60 else None) for at_s in range(0, 76, 15)])
    assert [d.required_workers for d in decided[-2:]] == [60, 60]


def test_s0_16_partitions_limit_the_target():
    found = last(steady(**BEHIND, partitions=12))
    assert (found.required_workers, found.bound) == (12, Bound.PARTITIONS)


def test_p_06_the_target_is_a_quantum_of_the_maximum():
    assert last(steady(throughput=1000, growth=300, max_workers=60)).required_workers == 20
    assert last(steady(throughput=1000, growth=300, max_workers=60), book(quanta="divisors")).required_workers == 20
    assert last(steady(throughput=1000, growth=300, max_workers=60), book(**ANY)).required_workers == 16


# --- unknown inputs


def test_x_06_there_is_no_target_before_the_first_rate():
    decided = history(steady(**BEHIND))
    assert [d.required_workers for d in decided[:2]] == [None, None]
    assert [d.reason for d in decided] == [Reason.NO_DATA, Reason.NO_DATA, Reason.UP, Reason.UP, Reason.UP]


def test_a_configured_workload_without_samples_has_a_reason():
    assert reasons([tick(0), tick(15)]) == [Reason.NO_DATA, Reason.NO_DATA]


def test_an_empty_shard_decides_nothing():
    assert fold([tick(0), tick(15)], RuleBook(by_workload={})) == [[], []]


def test_a_workload_of_counts_alone_has_no_data():
    assert reasons([tick(at_s, job(**counts())) for at_s in (0, 15, 30)]) == [Reason.NO_DATA] * 3


def test_a_stage_without_a_backlog_sample_is_not_sized():
    assert last(steady(**BEHIND, backlog_records=None)).reason == Reason.NO_DATA


def test_one_tick_gives_no_rate():
    assert last(steady(until_s=0, **BEHIND)).required_workers is None


def test_unknown_workers_hold_the_target():
    ticks = steady(**BEHIND, spec_workers=None, workers=None, ready_workers=None)
    assert reasons(ticks)[-1] == Reason.NO_WORKERS
    assert targets(ticks)[-1] is None


def test_workers_without_a_spec_are_enough():
    found = last(steady(**BEHIND, spec_workers=None, ready_workers=None), book(**ANY))
    assert (found.reason, found.required_workers, found.spec_workers) == (Reason.UP, 20, None)


@pytest.mark.parametrize("policy", ["dataflow", "beam-flink"])
def test_unknown_utilization_never_scales_down(policy):
    assert last(steady(**counts(60)), book(policy=policy)).reason == Reason.HOLD
    assert last(steady(**counts(60), utilization_ratio=0.1), book(policy=policy)).reason == Reason.DOWN


@pytest.mark.parametrize("missing", ["processed_records", "backlog_records"])
def test_a_tick_with_a_missing_sample_holds_the_target(missing):
    decided = history(without(steady(75, **BEHIND), 5, missing), book(**ANY))
    assert decided[-2].reason == Reason.UP
    assert (decided[-1].reason, decided[-1].sample_age_s) == (Reason.STALE, 15)
    assert decided[-1].required_workers == decided[-2].required_workers


def test_missing_worker_counts_are_replaced_by_the_last_ones():
    decided = history(without(steady(75, **BEHIND), 5, *counts()), book(**ANY))
    assert (decided[-1].reason, decided[-1].workers, decided[-1].workers_age_s) == (Reason.UP, 10, 15)


@pytest.mark.parametrize("lost", ["ready_workers", "workers"])
def test_a_count_that_is_lost_does_not_contradict_a_later_change_of_the_spec(lost):
    def seen(at_s):
        known = counts(10) if at_s < 60 else counts(20) | {lost: None}
        return tick(at_s, job(**known, **flow(at_s)))

    decided = history([seen(at_s) for at_s in range(0, 901, 15)], book(**ANY))
    assert {found.reason for found in decided if found.at_s >= 180} == {Reason.HOLD}


def test_a_failed_source_holds_the_target_then_ends_it_then_recovers():
    silence = [tick(at_s) for at_s in range(75, 301, 15)]
    back = steady(375, from_s=315, **BEHIND)
    decided = history([*steady(**BEHIND), *silence, *back], book(**ANY))
    by_time = {decision.at_s: decision for decision in decided}
    assert {by_time[at_s].reason for at_s in range(75, 241, 15)} == {Reason.STALE}
    assert {by_time[at_s].required_workers for at_s in range(75, 241, 15)} == {20}
    assert {by_time[at_s].reason for at_s in range(255, 301, 15)} == {Reason.EXPIRED}
    assert {by_time[at_s].required_workers for at_s in range(255, 331, 15)} == {None}
    assert (by_time[315].reason, by_time[375].reason) == (Reason.NO_DATA, Reason.UP)


def test_an_expired_sample_is_unknown_in_every_signal():
    found = last([*steady(**BEHIND), *(tick(at_s) for at_s in range(75, 301, 15))], book(rate_window_s=600.0))
    assert found.reason == Reason.EXPIRED
    signals = (found.backlog_records, found.throughput_records_per_s, found.growth_records_per_s, found.backlog_time_s)
    assert signals == (None, None, None, None)


def test_a_held_decision_shows_the_fault():
    ticks = [*steady(**BEHIND), tick(75, faults=[(EVERY, "kafka: no broker answers")])]
    assert last(ticks).fault == "kafka: no broker answers"


def test_a_workload_with_samples_does_not_show_a_general_fault():
    ticks = [
        *steady(**BEHIND),
        tick(75, job(**counts(), **flow(75, **BEHIND)), faults=[(EVERY, "prometheus: refused")]),
    ]
    assert (last(ticks).fault, last(ticks).source_failed) == ("", 0)


@pytest.mark.parametrize(
    ("workload", "has_samples", "is_assumption", "failed"),
    [
        pytest.param(JOB, True, False, 1, id="one of its sources"),
        pytest.param(JOB, True, True, 0, id="an assumption about its offsets"),
        pytest.param(EVERY, False, False, 1, id="every workload, and it has no samples"),
        pytest.param("shop/other", True, False, 0, id="another workload"),
    ],
)
def test_a_failed_source_is_no_assumption(workload, has_samples, is_assumption, failed):
    load = [job(**counts(), **flow(75, **BEHIND))] if has_samples else []
    newest = tick(75, *load, faults=[(workload, "1 partition has no committed offset")])
    newest = replace(newest, assumed=frozenset({workload} if is_assumption else ()))
    assert last([*steady(**BEHIND), newest]).source_failed == failed


# --- time


@pytest.mark.parametrize("at_s", [60, 45, 0], ids=["repeated", "late", "much too late"])
def test_a_late_or_repeated_tick_changes_nothing(at_s):
    state = EMPTY
    for one in steady(**BEHIND):
        state, _ = advance(state, one, book())
    after, decisions = advance(state, tick(at_s, job(**counts(3), **flow(at_s, 5, 5, 5))), book())
    assert after is state
    assert rows(decisions) == []


def test_the_length_of_a_tick_does_not_change_the_rates():
    at = [0, 5, 10, 30, 31, 60]
    found = last([tick(at_s, job(**counts(), **flow(at_s, **BEHIND))) for at_s in at], book(**ANY))
    assert found.required_workers == 20


def test_a_window_shorter_than_a_tick_never_has_a_rate():
    assert last(steady(300, **BEHIND), book(rate_window_s=7.0)).reason == Reason.NO_DATA


# --- gates


def test_x_01_stuck_never_scales_up():
    ticks = [tick(at_s, job(**counts(), **flow(at_s, 0, 500, 1000))) for at_s in range(0, 121, 15)]
    found = last(ticks)
    assert (found.reason, found.required_workers, found.backlog_time_s) == (Reason.STUCK, 10, 86_400)


def test_x_02_an_idle_workload_has_no_backlog_time_and_goes_down_step_by_step():
    found = last(steady(throughput=0), book(**ANY))
    assert (found.reason, found.required_workers, found.backlog_time_s) == (Reason.IDLE, 9, 0)


def test_x_03_a_draining_backlog_needs_no_more_workers():
    assert last(steady(throughput=2000, growth=-500, backlog=60_000)).reason == Reason.HOLD


def test_x_04_a_counter_reset_holds_the_target():
    restarted = [
        tick(at_s, job(**counts(), **flow(at_s, **BEHIND) | {"processed_records": 1000 * (at_s - 75)}))
        for at_s in range(75, 121, 15)
    ]
    decided = history([*steady(**BEHIND), *restarted], book(**ANY))
    assert [d.reason for d in decided[5:]] == [Reason.NO_DATA, Reason.NO_DATA, Reason.UP, Reason.UP]
    assert [d.required_workers for d in decided[5:7]] == [20, 20]
    assert all(d.throughput_records_per_s == 1000 for d in decided[2:])


def test_x_04_a_recreated_topic_gives_no_rate():
    def seen(at_s):
        since = 200 * (at_s - 60)
        return tick(at_s, job(**counts(), processed_records=60_000 + since, appended_records=since, backlog_records=0))

    anew = [seen(at_s) for at_s in range(75, 121, 15)]
    decided = history([*steady(**BEHIND), *anew], book(**ANY))
    assert decided[5].reason == Reason.NO_DATA
    assert decided[-1].input_rate_records_per_s == 200


def test_x_05_starting_workers_hold_the_target_until_ready_or_timeout():
    steps = [(at_s, counts(10, spec_workers=20)) for at_s in range(75, 421, 15)]
    ticks = [*steady(**BEHIND), *(tick(at_s, job(**now, **flow(at_s, **BEHIND))) for at_s, now in steps)]
    by_time = {decision.at_s: decision for decision in history(ticks, book(in_flight_timeout_s=300.0, **ANY))}
    assert {by_time[at_s].reason for at_s in range(75, 375, 15)} == {Reason.IN_FLIGHT}
    assert {by_time[at_s].required_workers for at_s in range(75, 375, 15)} == {20}
    assert (by_time[375].reason, by_time[375].required_workers) == (Reason.UNSCHEDULABLE, 10)


def test_x_05_rates_after_a_change_are_those_of_the_new_size():
    changed = [tick(at_s, job(**counts(20), **flow(at_s, 1000, 500))) for at_s in range(75, 166, 15)]
    decided = history([*steady(**BEHIND), *changed], book(**ANY))
    assert [d.reason for d in decided[5:10]] == [Reason.SETTLING] * 5  # 45 s, then half a window of clean points
    assert decided[10].reason == Reason.UP
    assert decided[5].required_workers == 20


def test_the_age_of_a_stop_and_that_of_a_rescale_differ():
    stood = [tick(at_s, job(**counts(10), **flow(60) | {"backlog_records": at_s})) for at_s in range(75, 136, 15)]
    goes_on = [tick(at_s, job(**counts(10), **flow(at_s - 75) | {"backlog_records": 9.0})) for at_s in (150, 165)]
    stopped = history([*steady(**BEHIND), *stood, *goes_on], book(**ANY))[-1]
    assert (stopped.reason, stopped.stopped_age_s, stopped.changed_age_s) == (Reason.SETTLING, 30, 30)
    rescaled = history([*steady(**BEHIND), tick(75, job(**counts(20), **flow(75, **BEHIND)))], book(**ANY))[-1]
    assert (rescaled.reason, rescaled.stopped_age_s, rescaled.changed_age_s) == (Reason.SETTLING, None, 0)


def test_without_settling_a_change_still_waits_for_clean_rates():
    changed = [tick(at_s, job(**counts(20), **flow(at_s, **BEHIND))) for at_s in range(75, 106, 15)]
    decided = history([*steady(**BEHIND), *changed], book(settle_s=0.0, rescale_pause_s=0.0, **ANY))
    assert [d.reason for d in decided[5:]] == [Reason.SETTLING, Reason.SETTLING, Reason.UP]


def test_a_workload_at_zero_with_a_backlog_gets_a_worker():
    ticks = [tick(at_s, job(**counts(0), **flow(at_s, 0, 100, 0))) for at_s in range(0, 61, 15)]
    found = last(ticks, book(min_workers=0, **ANY))
    assert (found.reason, found.required_workers) == (Reason.UP, 1)


def test_a_workload_at_zero_without_backlog_stays_at_zero():
    ticks = [tick(at_s, job(**counts(0), **flow(at_s, 0, 0, 0))) for at_s in range(0, 61, 15)]
    found = last(ticks, book(min_workers=0))
    assert (found.reason, found.required_workers) == (Reason.HOLD, 0)


PAUSES = {
    "by rule": ({}, {"pause_up_until_s": 1e9, "pause_down_until_s": 1e9}),
    "by annotation": ({"pause_up": 1, "pause_down": 1}, {}),
    "one by rule, one by annotation": ({"pause_down": 1}, {"pause_up_until_s": 1e9}),
}


@pytest.mark.parametrize(("signals", "rules"), PAUSES.values(), ids=PAUSES)
def test_a_pause_of_both_directions_holds_the_present_workers(signals, rules):
    found = last(steady(**BEHIND, **signals), book(**rules))
    assert (found.reason, found.required_workers) == (Reason.PAUSED, 10)


def test_a_pause_of_scale_ups_is_a_bound():
    found = last(steady(**BEHIND, pause_up=1), book(**ANY))
    assert (found.reason, found.bound, found.required_workers, found.wanted_workers) == (
        Reason.HOLD,
        Bound.PAUSE,
        10,
        20,
    )


def test_a_pause_of_scale_downs_allows_a_scale_up():
    assert last(steady(**BEHIND, pause_down=1), book(**ANY)).required_workers == 20


def test_a_pause_without_samples_has_no_target():
    rules = book(pause_up_until_s=1e9, pause_down_until_s=1e9)
    assert (last([tick(0)], rules).reason, last([tick(0)], rules).required_workers) == (Reason.PAUSED, None)


def test_a_pause_that_ends_without_samples_leaves_no_target():
    rules = book(pause_up_until_s=40.0, pause_down_until_s=40.0)
    assert targets([tick(at_s, job(**counts())) for at_s in (0, 30, 45)], rules) == [10, 10, None]


def test_s4_29_a_step_starts_at_the_desired_workers():
    found = last(steady(**BEHIND), book(max_step_up_workers=3, **ANY))
    assert (found.required_workers, found.bound, found.wanted_workers) == (13, Bound.STEP, 20)


# --- workloads that come and go


def test_a_discovered_workload_has_the_rules_of_its_fleet():
    rules = RuleBook(by_workload={}, by_fleet=(Rules(max_workers=50), Rules(max_workers=17, cooldown_up_s=0.0)))
    found = last(steady(**BEHIND | {"backlog": 40_000}, fleet=1), rules)
    assert (found.fleet, found.required_workers, found.bound) == (1, 17, Bound.MAX)


def test_a_configured_workload_keeps_its_own_rules_in_a_fleet():
    rules = replace(book(max_workers=17, **ANY), by_fleet=(Rules(max_workers=50),))
    assert last(steady(**BEHIND, fleet=0), rules).required_workers == 17


def test_a_fleet_that_left_the_configuration_gives_the_default_rules():
    assert last(steady(**BEHIND, fleet=7), RuleBook(by_workload={})).max_workers == 100


def test_a_job_of_more_than_100_workers_keeps_them_below_the_maximum_of_its_hpa():
    busy = steady(throughput=500_000, utilization_ratio=0.78, **counts(500), max_workers=600.0, partitions=2000.0)
    found = last(busy, RuleBook(by_workload={}))
    assert (found.required_workers, found.max_workers, found.bound) == (500, 600, Bound.NONE)


def test_a_discovered_workload_survives_a_tick_without_rows():
    ticks = [*steady(**BEHIND, **dict.fromkeys(counts())), tick(75)]
    assert [d.reason for d in history(ticks, RuleBook(by_workload={}))][-2:] == [Reason.NO_WORKERS, Reason.STALE]


def test_a_discovered_workload_is_forgotten_after_an_hour():
    found = {**BEHIND, "fleet": 0}
    ticks = [*steady(**found), tick(3645), tick(3660), *steady(3735, from_s=3675, **found)]
    decided = fold(ticks, RuleBook(by_workload={}, by_fleet=(Rules(cooldown_up_s=0.0),)))
    assert [len(each) for each in decided[5:8]] == [1, 0, 1]
    assert [each[0].reason for each in decided[7:]] == [Reason.NO_DATA] * 2 + [Reason.UP] * 3


def test_a_discovered_workload_is_forgotten_after_a_day_in_which_a_source_fails():
    fault = [(EVERY, "kafka: no answer")]
    ticks = [*steady(**BEHIND, fleet=0), *(tick(60 + age_s, faults=fault) for age_s in (3600, 86_385, 86_400))]
    assert [len(each) for each in fold(ticks, RuleBook(by_workload={}))[4:]] == [1, 1, 1, 0]


def test_a_discovered_workload_survives_the_first_ten_minutes_after_a_fault():
    """Prometheus is away for four hours, and its first scrapes are due when it answers."""
    fault = [(EVERY, "prometheus: no answer")]
    away = (tick(at_s, faults=fault) for at_s in (3600, 7200, 10_800, 14_400))
    ticks = [*steady(**BEHIND, fleet=0), *away, *(tick(14_400 + age_s) for age_s in (15, 585, 600))]
    assert [len(each) for each in fold(ticks, RuleBook(by_workload={}))[5:]] == [1, 1, 1, 1, 1, 1, 0]


def test_a_configured_workload_is_never_forgotten():
    assert last([*steady(**BEHIND), tick(100_000)]).reason == Reason.EXPIRED


def test_a_new_workload_starts_without_a_target():
    new = [tick(at_s, job("shop/new", **counts(), **flow(at_s, **BEHIND), fleet=0)) for at_s in range(75, 136, 15)]
    rules = replace(book(), by_fleet=(Rules(cooldown_up_s=0.0),))
    decided = history([*steady(**BEHIND), *new], rules, workload="shop/new")
    assert [d.reason for d in decided] == [Reason.NO_DATA] * 2 + [Reason.UP] * 3


def test_a_renamed_stage_holds_the_target_until_the_old_one_expires():
    def named(at_s, stage):
        return tick(at_s, job(stage=stage, **counts(), **flow(at_s, **BEHIND)))

    ticks = [named(at_s, "old" if at_s <= 60 else "new") for at_s in range(0, 226, 15)]
    by_time = {decision.at_s: decision for decision in history(ticks, book(**ANY))}
    assert {by_time[at_s].reason for at_s in range(75, 195, 15)} == {Reason.STALE}
    assert {by_time[at_s].required_workers for at_s in range(75, 195, 15)} == {20}
    assert (by_time[195].reason, by_time[195].stage) == (Reason.UP, "new")


def moved(at_s, faults=()):
    """After a minute the load is that of a stage, and the whole job still reports the CPU of its containers."""
    stage = "read" if at_s > 60 else ""
    return tick(at_s, job(**counts(), cpu_ratio=0.9), job(stage=stage, **flow(at_s, **BEHIND)), faults=faults)


def test_a_stage_whose_load_moved_to_another_stage_counts_no_longer():
    by_time = {found.at_s: found for found in history([moved(at_s) for at_s in range(0, 901, 15)], book(**ANY))}
    assert {by_time[at_s].reason for at_s in range(75, 181, 15)} == {Reason.STALE}
    assert {by_time[at_s].stage for at_s in range(195, 901, 15)} == {"read"}
    assert {by_time[at_s].reason for at_s in range(195, 901, 15)} <= {Reason.UP, Reason.NOT_ENACTED}


def test_a_stage_whose_load_is_missing_while_a_source_fails_still_counts():
    found = last([moved(at_s, faults=[(JOB, "kafka does not answer")]) for at_s in range(0, 901, 15)], book(**ANY))
    assert found.reason == Reason.EXPIRED


def test_a_fault_of_an_unknown_workload_is_no_decision():
    assert fold([tick(0, faults=[("shop/two names", "one slug")])], RuleBook(by_workload={})) == [[]]


# --- capacity


def test_s4_11_a_worker_shows_its_capacity_while_the_backlog_never_ends():
    assert last(steady(90, throughput=1000, growth=500, backlog=20_000)).worker_capacity_records_per_s == 100


def test_a_workload_that_is_not_saturated_shows_no_capacity():
    assert last(steady(90, throughput=1000)).worker_capacity_records_per_s is None


@pytest.mark.parametrize("risen", [220, 900])
def test_a_job_whose_load_rises_shows_no_capacity_by_the_mean_of_its_window(risen):
    """Ten workers carry 1000/s. After the rise the mean of the window is of less load than the utilization."""
    ticks, processed = [], 0.0
    for at_s in np.arange(0.0, 301.0, 15.0):
        load = 200.0 if at_s <= 225 else risen  # learned each minute, so also at 240 s
        processed += load * 15
        seen = {"processed_records": processed, "appended_records": processed, "backlog_records": 0.0}
        ticks.append(tick(at_s, job(**counts(), **seen, utilization_ratio=load / 1000)))
    shown = [found.worker_capacity_records_per_s for found in history(ticks, book(policy="drain"))]

    assert min(each for each in shown if each is not None) == pytest.approx(100, rel=0.05)


LATE_S = (0, 5, 9)


@cache
def with_late_commits():
    """The decisions on jobs that commit up to LATE_S late. They have twelve workers and as many partitions."""
    random = np.random.default_rng(1).uniform(size=121)

    def seen(late_s, at_s):
        backlog = 300.0 * late_s * random[at_s // 15]
        load = {"processed_records": 300.0 * at_s - backlog, "appended_records": 300.0 * at_s}
        return counts(12, partitions=12) | load | {"backlog_records": backlog}

    return history_each(LATE_S, seen, range(0, 1801, 15), lambda _: {"policy": "drain"})


@pytest.mark.parametrize("late_s", LATE_S, ids="commits up to {} s late".format)
def test_a_job_of_unknown_capacity_tries_a_smaller_size_however_its_offsets_are_committed(late_s):
    assert with_late_commits()[late_s][-1].required_workers == 6


def stages(at_s, standing, workload=JOB, **moving):
    """A stage that moves, and one with a backlog of which nothing is processed."""
    still = {"processed_records": 60, "appended_records": 60 + standing, "backlog_records": standing}
    of_a, of_b = job(workload, stage="a", **flow(at_s, **moving)), job(workload, stage="b", **still)
    return [*job(workload, **counts()), *of_a, *of_b]


@pytest.mark.parametrize("standing", [1, 1_000_000])
def test_a_stage_that_stands_does_not_keep_another_one_from_being_scaled_up(standing):
    found = last([tick(at_s, stages(at_s, standing, **BEHIND)) for at_s in range(0, 61, 15)], book(**ANY))
    assert (found.reason, found.required_workers) == (Reason.UP, 20)


STANDING = {"markers": (12, "drain"), "records": (1000, "dataflow")}  # how many, and the policy


@cache
def sizes_while_a_stage_stands():
    """The last size of each of STANDING."""
    rules = {name: Rules(policy=policy, worker_capacity_records_per_s=100.0) for name, (_, policy) in STANDING.items()}
    idle = [
        tick(at_s, *(stages(at_s, count, name, throughput=10) for name, (count, _) in STANDING.items()))
        for at_s in range(0, 3601, 15)
    ]
    return {found.workload: found.required_workers for found in fold(idle, RuleBook(by_workload=rules))[-1]}


def test_a_job_with_a_stage_that_stands_is_not_scaled_down():
    assert sizes_while_a_stage_stands()["records"] == 10


def test_markers_on_a_topic_without_input_do_not_keep_a_job_from_being_scaled_down():
    assert sizes_while_a_stage_stands()["markers"] == 1


def test_utilization_is_estimated_from_a_configured_capacity():
    found = last(steady(throughput=400), book(worker_capacity_records_per_s=100.0, **ANY))
    assert (found.utilization_ratio, found.reason, found.required_workers) == (0.4, Reason.DOWN, 9)


# --- bad numbers


@pytest.mark.parametrize("number", [2.0**53, 2.0**63], ids=["2^53", "2^63"])
def test_huge_counts_stay_finite(number):
    ticks = [
        tick(at_s, job(**counts(), processed_records=number, appended_records=number, backlog_records=number))
        for at_s in range(0, 61, 15)
    ]
    assert last(ticks).reason == Reason.STUCK
    rates = {"throughput_records_per_s": 1e-8, "input_rate_records_per_s": number, "backlog_records": number}
    assert last([tick(0, job(**counts(), **rates))]).required_workers == 100


def test_x_06_a_negative_backlog_is_unknown():
    assert last(steady(**BEHIND, backlog_records=-1)).reason == Reason.NO_DATA


@pytest.mark.parametrize("policy", ["dataflow", "beam-flink"])
def test_a_job_that_has_just_stopped_is_not_scaled_down(policy):
    """The slope of the backlog shows a stop half a window late, the counters show it at once."""
    stopped = [
        tick(
            at_s,
            job(
                **counts(),
                processed_records=60_000.0,
                appended_records=1000.0 * at_s,
                backlog_records=1000.0 * (at_s - 60),
                utilization_ratio=0.0,
            ),
        )
        for at_s in (75.0, 90.0, 105.0, 120.0)
    ]
    decided = history([*steady(60, utilization_ratio=0.95), *stopped], book(policy=policy, **ANY))
    assert all(decision.required_workers >= 10 for decision in decided if decision.required_workers is not None)


# --- regressions


COMMITS_S = (5, 7, 9, 20, 25, 30, 45, 60)


@cache
def committing():
    """1 000 records/s, six workers, and offsets that move once a commit or checkpoint interval."""

    def seen(at_s, every_s):
        return job(
            f"shop/every-{every_s}",
            **counts(6),
            processed_records=1000.0 * (at_s // every_s * every_s),
            appended_records=1000.0 * at_s,
            backlog_records=1000.0 * (at_s % every_s),
            utilization_ratio=0.95,
        )

    ticks = [tick(at_s, *(seen(at_s, every_s) for every_s in COMMITS_S)) for at_s in np.arange(0.0, 3600.0, 15.0)]
    rules = Rules(policy="dataflow", max_workers=50, **ANY)
    return fold(ticks, RuleBook(by_workload={f"shop/every-{every_s}": rules for every_s in COMMITS_S}))


@pytest.mark.simulation
@pytest.mark.parametrize("every_s", COMMITS_S)
def test_a_steady_job_that_commits_in_steps_is_left_alone(every_s):
    decided = [d for of_tick in committing() for d in of_tick if d.workload == f"shop/every-{every_s}"]
    assert {d.required_workers for d in decided} <= {None, 6}


@cache
def with_unready_workers():
    """The decisions on a job with a pod that crashes, and on one with a worker that is no longer ready."""
    seen = {
        "crashing": lambda at_s: counts(20, ready_workers=20 if at_s % 300 == 0 else 19) | flow(at_s, growth=1000),
        "no longer ready": lambda at_s: counts(12, ready_workers=11 if at_s else 12) | flow(at_s),
    }
    rules = {"crashing": ANY | {"in_flight_timeout_s": 240.0}, "no longer ready": ANY}
    return history_each(seen, lambda case, at_s: seen[case](at_s), range(0, 1801, 15), lambda case: rules[case])


def test_a_crashing_pod_does_not_prevent_decisions():
    decided = [found.reason for found in with_unready_workers()["crashing"]]
    assert len([reason for reason in decided if reason in (Reason.UP, Reason.NOT_ENACTED)]) > len(decided) / 2


def test_a_worker_that_is_no_longer_ready_does_not_lower_the_target():
    assert {found.required_workers for found in with_unready_workers()["no longer ready"]} <= {None, 12}


def test_workers_that_never_became_ready_leave_the_target_after_the_timeout():
    ticks = [tick(at_s, job(**counts(12, ready_workers=10), **flow(at_s))) for at_s in np.arange(0.0, 661.0, 15.0)]
    by_time = {decision.at_s: decision for decision in history(ticks, book(**ANY))}
    assert {by_time[at_s].required_workers for at_s in range(30, 600, 15)} == {12}
    assert (by_time[600].reason, by_time[600].required_workers) == (Reason.UNSCHEDULABLE, 10)


def test_a_pause_continues_while_the_hpa_is_not_read():
    paused = {"pause_up": 1.0, "pause_down": 1.0}
    seen = [tick(at_s, job(**counts() | paused, **flow(at_s, **BEHIND))) for at_s in (0.0, 15.0, 30.0, 45.0)]
    missed = tick(60.0, job(workers=10.0, **flow(60.0, **BEHIND)))
    assert reasons([*seen, missed], book(**ANY)) == [Reason.PAUSED] * 5


def test_x_04_a_partition_that_returns_is_no_progress():
    def seen(at_s, partitions):
        share = partitions / 12
        return tick(
            at_s,
            job(
                **counts(),
                partitions=float(partitions),
                processed_records=share * (1e7 + 1000 * at_s),
                appended_records=share * (1e7 + 6e5 + 1000 * at_s),
                backlog_records=share * 6e5,
            ),
        )

    ticks = [seen(at_s, 11 if at_s == 150 else 12) for at_s in np.arange(0.0, 301.0, 15.0)]
    rates = {decision.throughput_records_per_s for decision in history(ticks, book(**ANY))}
    assert all(rate is None or rate == pytest.approx(1000) for rate in rates)


def gauges(partitions, backlog, **more):
    """A busy Flink job that reports its throughput and backlog as gauges."""
    load = {"throughput_records_per_s": 1000.0, "backlog_records": backlog}
    return counts(100) | load | {"utilization_ratio": 0.6, "partitions": float(partitions)} | more


def added(partitions):
    return lambda at_s: gauges(100 + partitions * (at_s >= 300), 5e4 + 200.0 * at_s)


def first_offsets(at_s):
    if at_s < 300:
        return gauges(100, 5000.0)
    return gauges(100, 500.0, processed_records=1000.0 * at_s, processed_source=1.0)


def scraped(*partitions):
    def seen(at_s):
        present = partitions[at_s // TICK_S % len(partitions)]
        return gauges(present, 500.0 * present)

    return seen


SCRAPED = {
    "in some ticks": scraped(200, 194, 200, 200),
    "in most ticks": scraped(198, 197, 199, 196, 195, 200, 199),
    "more at each tick, until all are back": scraped(200, 184, 168, 200),
}
GAUGES = SCRAPED | {10: added(10), 50: added(50), "first offsets": first_offsets}


@cache
def by_gauges():
    """The decisions on each of GAUGES."""
    return history_each(GAUGES, lambda case, at_s: GAUGES[case](at_s), range(0, 1501, TICK_S), lambda _: ANY)


@pytest.mark.parametrize("case", SCRAPED)
def test_a_scrape_that_misses_a_few_of_many_workers_leaves_the_rates_known(case):
    """Each partition adds to the gauges. Now and then, or in most ticks, some of 200 are missing."""
    found = by_gauges()[case]
    assert {(d.reason, d.growth_records_per_s) for d in found if d.at_s >= 180} == {(Reason.HOLD, 0.0)}


def rates(case):
    """The rates of growth and of input after an event at 300 s, where they are known."""
    found = [d for d in by_gauges()[case] if d.at_s >= 300]
    assert found[0].reason == Reason.NO_DATA
    return {(d.growth_records_per_s, d.input_rate_records_per_s) for d in found if d.reason != Reason.NO_DATA}


@pytest.mark.parametrize("added", [10, 50])
def test_added_partitions_bring_no_backlog(added):
    assert rates(added) == {(200.0, 1200.0)}


def test_the_first_offsets_of_a_job_are_compared_with_no_backlog_of_its_gauge():
    assert rates("first offsets") == {(0.0, 1000.0)}


def test_an_hpa_of_an_unknown_workload_adds_no_workload():
    state, decisions = advance(EMPTY, tick(0.0, job("shop/ordres", **counts())), RuleBook(by_workload={}))
    assert (state.slow.workloads, decisions.text["workload"]) == ((), ())


def test_unknown_workers_show_the_fault_of_their_source():
    found = last([tick(15.0, job(**flow(15.0)), faults=[(EVERY, "cluster: 403 Forbidden")])])
    assert (found.reason, found.fault) == (Reason.NO_WORKERS, "cluster: 403 Forbidden")


def test_workers_that_are_unknown_for_too_long_end_the_target():
    seen = steady(60)
    blind = [tick(at_s, job(**flow(at_s))) for at_s in np.arange(75.0, 301.0, 15.0)]
    decided = history([*seen, *blind])
    assert decided[-1].reason == Reason.NO_WORKERS
    assert [d.required_workers for d in decided if d.workers_age_s and d.workers_age_s > 180] == [None] * 4


def test_s3_13_quanta_are_those_of_the_partitions_not_of_the_maximum():
    found = last(steady(**BEHIND, **counts(6), partitions=24.0), book(max_workers=20))
    assert (found.keep_up_workers, found.catch_up_workers) == (9, 3)
    assert found.required_workers == 12  # a quantum of 24, not of 20
