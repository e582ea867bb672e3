"""A count of partitions that is no longer reported (S2-18: held, with a limit of age)."""

from dataclasses import asdict
from functools import cache
from itertools import product

import pytest
from builders import JOB, book, counts, flow, fold, history, history_each, job, last, replay, tick

from adapter.core.decide import decide
from adapter.core.decisions import Bound, Reason
from adapter.core.engine import advance
from adapter.core.messages import sentence
from adapter.core.reasons import REASONS
from adapter.core.record import decision_input_of
from adapter.core.report import rows
from adapter.core.rule_book import RuleBook
from adapter.core.rules import POLICIES
from adapter.core.samples import EVERY
from adapter.core.state import EMPTY, VERSION, decode, encode_fast, encode_slow

REPORTED_UNTIL_S, ERROR_AFTER_S, UNTIL_S, BACK_S = 60, 180, 480, 420
FAULT = "pravega: no answer from http://controller:10080 within 5 s"
LAST_GOOD_S = REPORTED_UNTIL_S + ERROR_AFTER_S


def silent(at_s):
    return REPORTED_UNTIL_S < at_s < BACK_S


def stream(at_s, **more):
    """A stream of 7 segments whose controller does not answer for a while, and its readers."""
    partitions = {"partitions": None if silent(at_s) else 7.0}
    return tick(at_s, job(**counts(5), **partitions, **more), faults=[(EVERY, FAULT)] if silent(at_s) else [])


def alone():
    """Only the segments are ever reported."""
    return [stream(at_s) for at_s in range(0, UNTIL_S, 15)]


def loaded():
    """The load is always reported."""
    return [stream(at_s, **flow(at_s)) for at_s in range(0, UNTIL_S, 15)]


SIGNALS = {"of the segments alone": alone, "of the load, too": loaded}
every_signal = pytest.mark.parametrize("ticks", SIGNALS.values(), ids=SIGNALS)


# --- the age of the count


@every_signal
@pytest.mark.parametrize("policy", POLICIES)
def test_s2_18_a_lost_count_is_shown_until_error_after_s(ticks, policy):
    left = {d.at_s: d.partitions for d in history(ticks(), book(policy=policy))}
    assert {left[at_s] for at_s in left if at_s <= LAST_GOOD_S or at_s >= BACK_S} == {7}
    assert {left[at_s] for at_s in left if LAST_GOOD_S < at_s < BACK_S} == {None}


def test_a_count_that_was_never_reported_has_no_age():
    found = last([tick(0, job(**counts(), **flow(0)))])
    assert (found.partitions, found.partitions_age_s) == (None, None)


def test_s2_18_the_age_of_a_count_survives_a_restart():
    ticks, state = alone(), EMPTY
    for one in ticks[:10]:
        state, _ = advance(state, one, book())
    stored = decode(VERSION, encode_fast(state), encode_slow(state))
    assert fold(ticks[10:], book(), stored) == fold(ticks[10:], book(), state)


# --- a part of them


@pytest.mark.parametrize("policy", POLICIES)
def test_a_partial_count_while_a_job_restarts_does_not_lower_the_target(policy):
    """Some workers report their partitions earlier than others."""

    def seen(at_s):
        partitions = 4.0 if 150 < at_s <= 180 else 20.0
        return tick(at_s, job(**counts(10), **flow(at_s), partitions=partitions))

    found = {d.at_s: d for d in history([seen(at_s) for at_s in range(0, 300, 15)], book(policy=policy))}
    targets = {found[at_s].required_workers for at_s in range(165, 300, 15)}
    assert targets == {found[150].required_workers}


# The share of the partitions that is scraped, and until when; from 1800 s on.
PARTS = {"a worker misses scrapes": (11 / 12, 1860), "half of them do": (1 / 2, 2100)}
LIMITED = {"drain": True, "dataflow": True, "segments": False}  # whether the partitions only limit the policy
APART_S = (300, 660, 900, 1140, 1260)  # between two parts that are not scraped


def scraped(share, at_s):
    """The signals of a job of 12 partitions of which a share is scraped."""
    counted = share * (1e6 + 1000.0 * at_s)
    load = {"processed_records": counted, "appended_records": counted, "backlog_records": 0.0}
    return counts(12) | load | {"utilization_ratio": 0.8, "partitions": round(12 * share)}


@cache
def with_a_part():
    """The decisions of each policy for each of PARTS."""

    def seen(case, at_s):
        _, (share, until_s) = case
        return scraped(share if 1800 <= at_s < until_s else 1.0, at_s)

    cases = [(policy, part) for policy in LIMITED for part in PARTS.values()]
    return history_each(cases, seen, range(0, 3600, 15), lambda case: {"policy": case[0]})


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize(("policy", "kept"), LIMITED.items())
def test_a_part_that_is_not_scraped_does_not_scale_down_a_policy_that_it_only_limits(policy, kept, part):
    found = with_a_part()[policy, part]
    assert ({d.required_workers for d in found if d.at_s >= 1785} == {12}) is kept


@cache
def with_two_parts():
    """The decisions of jobs whose second part is not scraped after each of APART_S."""

    def seen(apart_s, at_s):
        second_s = 1800 + apart_s
        share = 11 / 12 if 1800 <= at_s < 1860 else 1 / 2 if second_s <= at_s < second_s + 120 else 1.0
        return scraped(share, at_s)

    return history_each(APART_S, seen, range(0, 3600, 15), lambda _: {"policy": "drain"})


@pytest.mark.parametrize("apart_s", APART_S)
def test_a_second_part_that_is_not_scraped_does_not_scale_down_either(apart_s):
    assert {d.required_workers for d in with_two_parts()[apart_s] if d.at_s >= 1785} == {12}


def test_falls_soon_after_each_other_do_not_keep_an_old_count_for_ever():
    """The topic is created anew with 48 partitions, and every nine minutes a worker misses scrapes of two of them."""

    def seen(at_s):
        fewer = 2 if at_s >= 2100 and (at_s - 2100) % 540 < 30 else 0
        partitions = 100 if at_s < 1800 else 48 - fewer
        return tick(at_s, job(**counts(12), **flow(at_s), utilization_ratio=0.8, partitions=partitions))

    found = history([seen(at_s) for at_s in range(0, 4801, 15)], book(policy="drain"))
    assert {d.partitions for d in found if 1800 <= d.at_s < 2400} == {100}
    assert max(d.partitions for d in found if d.at_s > 3600) == 48


def test_a_count_that_returns_bit_by_bit_does_not_scale_down():
    def seen(at_s):
        partitions = 12 if at_s < 1800 or at_s >= 2400 else 4 if at_s < 1890 else 8
        return tick(at_s, job(**counts(12), **flow(at_s), utilization_ratio=0.8, partitions=partitions))

    found = history([seen(at_s) for at_s in range(0, 3000, 15)], book(policy="drain"))
    assert {d.required_workers for d in found if d.at_s >= 1785} == {12}


FEWER_EVERY_S = (300, 540, 700)


@cache
def with_fewer_partitions():
    """The decisions of jobs of which each loses a partition again and again."""

    def seen(every_s, at_s):
        fewer = max(0, at_s - 1800) // every_s
        passed = min(at_s, 1800) * 1000.0 + max(0, at_s - 1800) * 200.0
        load = {"processed_records": passed, "appended_records": passed, "backlog_records": 0.0}
        busy = 0.8 if at_s < 1800 else 0.16
        return counts(12) | load | {"utilization_ratio": busy, "partitions": 60 - fewer}

    return history_each(FEWER_EVERY_S, seen, range(0, 7201, 15), lambda _: {"policy": "drain"})


@pytest.mark.parametrize("every_s", FEWER_EVERY_S)
def test_partitions_that_become_fewer_again_and_again_delay_a_scale_down_and_do_not_prevent_it(every_s):
    found = {d.at_s: d for d in with_fewer_partitions()[every_s]}
    assert min(found[at_s].required_workers for at_s in range(1800, 3600, 15)) <= 4


def test_a_part_that_is_not_scraped_allows_a_scale_up():
    """Ten of sixty partitions are scraped for nine minutes, in which the load doubles."""

    def seen(at_s):
        share = 1 / 6 if 1800 <= at_s < 2340 else 1.0
        load = flow(at_s, growth=1000 if at_s > 1815 else 0)
        return tick(at_s, job(**counts(12), **load, utilization_ratio=0.85, partitions=60 * share))

    decided = {d.at_s: d for d in history([seen(at_s) for at_s in range(0, 2101, 15)], book(max_workers=60))}
    assert decided[2100].required_workers > 20


def test_fewer_partitions_limit_the_size_after_ten_minutes():
    def seen(at_s):
        return tick(at_s, job(**counts(12), **flow(at_s), utilization_ratio=0.8, partitions=12 if at_s < 600 else 6))

    found = {d.at_s: d for d in history([seen(at_s) for at_s in range(0, 1501, 15)], book(policy="drain"))}
    assert {found[at_s].required_workers for at_s in range(600, 1200, 15)} == {12}
    assert (found[1200].required_workers, found[1200].bound) == (6, Bound.PARTITIONS)


# --- policies that follow it


@every_signal
def test_s2_18_a_lost_count_holds_the_target_then_ends_it_then_recovers(ticks):
    by_time = {d.at_s: d for d in history(ticks(), book(policy="segments"))}
    assert (by_time[60].reason, by_time[60].required_workers) == (Reason.UP, 7)
    held = [by_time[at_s] for at_s in range(75, LAST_GOOD_S + 1, 15)]
    assert {(d.reason, d.required_workers) for d in held} == {(Reason.STALE, 7)}
    gone = [by_time[at_s] for at_s in range(LAST_GOOD_S + 15, BACK_S, 15)]
    assert {(d.reason, d.required_workers) for d in gone} == {(Reason.EXPIRED, None)}
    assert (by_time[BACK_S].reason, by_time[BACK_S].required_workers) == (Reason.UP, 7)


@every_signal
def test_the_sentence_names_the_old_count_its_age_and_its_source(ticks):
    by_time = {d.at_s: sentence(d) for d in history(ticks(), book(policy="segments"))}
    assert by_time[90] == f"Holding 7 workers: the segments were last counted 30 s ago: {FAULT}"
    gone = f"The segments of {JOB} were last counted 195 s ago; check the source that counts them"
    assert by_time[LAST_GOOD_S + 15] == f"{gone}: {FAULT}"


def test_the_sentence_of_new_segments_asks_for_samples_and_not_for_the_count():
    ticks = [
        tick(at_s, job(**counts(), **flow(at_s), partitions=10 if at_s < 600 else 20)) for at_s in range(0, 901, 15)
    ]
    found = history(ticks, book(policy="segments"))
    assert not [sentence(d) for d in found if "unknown; check the source" in sentence(d)]


def test_s2_01_a_new_count_of_segments_is_followed_at_once():
    ticks = [tick(at_s, job(**counts(5), partitions=segments)) for at_s, segments in ((0, 5), (15, 7), (30, 3))]
    found = history(ticks, book(policy="segments"))
    assert [(d.required_workers, d.reason) for d in found] == [(5, Reason.HOLD), (7, Reason.UP), (3, Reason.DOWN)]
    assert [sentence(d) for d in found] == [
        "Holding 5 workers: the load needs 5 workers for 5 segments",
        "Scaling up from 5 to 7 workers: the load needs 7 workers for 7 segments",
        "Scaling down from 5 to 3 workers: the load needs 3 workers for 3 segments",
    ]


def test_without_a_count_of_segments_there_is_no_target():
    found = last([tick(0, job(**counts()))], book(policy="segments"))
    assert (found.reason, found.required_workers, found.sample_age_s) == (Reason.NO_DATA, None, None)
    lost = [tick(at_s, job(**counts(), **(flow(at_s) if at_s <= 60 else {}))) for at_s in range(0, UNTIL_S, 15)]
    assert {d.reason for d in history(lost, book(policy="segments"))} == {Reason.NO_DATA}
    never = f"The segments of {JOB} were never counted; check the source that counts them"
    assert {sentence(d) for d in history(lost, book(policy="segments"))} == {never}


def test_s2_17_segments_are_followed_without_the_load():
    def seen(at_s):
        load = flow(at_s) if at_s <= REPORTED_UNTIL_S else {}
        return tick(at_s, job(**counts(5), partitions=7 if at_s < LAST_GOOD_S + 60 else 8, **load))

    rules, state, found = book(policy="segments"), EMPTY, {}
    for at_s in range(0, UNTIL_S, 15):
        state = decode(VERSION, encode_fast(state), encode_slow(state))
        state, decisions = advance(state, seen(at_s), rules)
        (found[at_s],) = rows(decisions)
    held = [found[at_s] for at_s in range(75, LAST_GOOD_S + 1, 15)]
    assert {(d.reason, d.required_workers) for d in held} == {(Reason.STALE, 7)}
    assert (found[LAST_GOOD_S + 15].required_workers, found[LAST_GOOD_S + 15].sample_age_s) == (7, 195)
    assert (found[LAST_GOOD_S + 60].reason, found[LAST_GOOD_S + 60].required_workers) == (Reason.UP, 8)


def test_s2_18_a_lost_count_changes_no_other_age():
    assert {d.sample_age_s for d in history(loaded(), book(policy="segments"))} == {0}


@pytest.mark.parametrize("until", [5, 10, 20], ids=["reported", "held", "too old"])
@every_signal
def test_a_record_of_followed_segments_gives_the_same_target(ticks, until):
    decisions = list(replay(ticks()[:until], book(policy="segments")))[-1][1]
    again = decide(decision_input_of(decisions.record))
    assert again.served == pytest.approx(decisions.numbers["required_workers"], nan_ok=True)
    assert REASONS[again.reason[0]] == decisions.text["reason"][0]


# --- policies that it only limits


LOADS = {  # of a stream, and the share of its hottest partition
    "more partitions would be needed": ({"growth": 500}, None),
    "one of them is hot": ({"growth": 500}, 6.0),
    "a backlog falls": ({"growth": -300, "backlog": 600_000}, None),
}


@cache
def with_and_without_a_count():
    """The decisions of every policy that does not follow the segments, by its load and whether they are counted."""

    def seen(case, at_s):
        _, load, is_counted = case
        stream, hottest_ratio = LOADS[load]
        partitions = 12 if is_counted or at_s <= REPORTED_UNTIL_S else None
        known = {"utilization_ratio": 0.9, "hottest_partition_ratio": hottest_ratio, "partitions": partitions}
        return counts() | flow(at_s, **stream) | known

    rules = {"max_partitions_per_worker": 4, "worker_capacity_records_per_s": 110.0}
    cases = product((policy for policy in POLICIES if policy != "segments"), LOADS, (True, False))
    return history_each(cases, seen, range(0, UNTIL_S, 15), lambda case: {"policy": case[0], **rules})


@pytest.mark.simulation
@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy != "segments"])
def test_a_lost_count_changes_no_bound_and_no_spread(policy, load):
    counted, lost = (with_and_without_a_count()[policy, load, is_counted] for is_counted in (True, False))
    other = {"workload": JOB, "partitions": None, "partitions_age_s": None}
    assert [asdict(d) | other for d in lost] == [asdict(d) | other for d in counted]


def test_a_lost_count_stays_a_bound_and_is_named():
    ticks = [stream(at_s, **flow(at_s, growth=900), utilization_ratio=0.95) for at_s in range(0, BACK_S, 15)]
    found = last(ticks)
    assert (found.required_workers, found.bound, found.partitions) == (7, Bound.PARTITIONS, None)
    assert "only the partitions last known, so no more workers" in sentence(found)
    age = "the partitions were last counted 345 s ago: check the source that counts them"
    assert sentence(found).endswith(f"; {age}; {FAULT}")


# --- a workload without a stage


def test_a_discovered_workload_with_only_an_hpa_is_forgotten_in_an_hour():
    def seen(at_s):
        found = {**counts(), **flow(at_s), "fleet": 0} if at_s <= 120 else {}
        return tick(at_s, job(**found, max_workers=10))

    there = {at_s: state.slow.workloads for at_s, (state, _) in _replay(seen, range(0, 4200, 60))}
    assert there[120 + 3540] == (JOB,)
    assert there[4140] == ()


def _replay(seen, times):
    return zip(times, replay([seen(at_s) for at_s in times], RuleBook(by_workload={})), strict=True)


def test_visible_stages_replace_the_whole_workload():
    def seen(at_s):
        return tick(at_s, job(**counts(5), partitions=7), job(stage="read", **flow(at_s)) if at_s > 30 else [])

    *_, (_, decisions) = replay([seen(at_s) for at_s in range(0, 121, 15)], book(policy="segments"))
    assert [stage for _, stage in decisions.stages] == ["read"]
    assert decisions.text["stage"] == ("read",)
