"""Ready workers that are lost and return: which of these changes settles."""

from functools import cache

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
    history_each,
    rows,
    tick,
)

from adapter.core.reasons import Reason
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules

CONFIGURED = book(policy="drain", worker_capacity_records_per_s=100.0, cooldown_up_s=None)


FLAP_EVERY_S, SIZED_BY = (60, 75, 90), ("drain", "dataflow")


@cache
def overloaded():
    """Jobs of 4 workers, one of which is unready for a tick every few seconds. After 20 min the input doubles.

    Returns the last state, and the targets of each policy and interval by second.
    """

    def running(every_s):
        job = Fluid(lambda at_s: 300.0 if at_s < 1200 else 600.0, workers=4)
        job.more = lambda at_s: {"ready_workers": job.workers - float(at_s % every_s == 0)}
        return job

    jobs = {f"{policy} {every_s}": running(every_s) for policy in SIZED_BY for every_s in FLAP_EVERY_S}
    named = RuleBook(by_workload={name: Rules(policy=name.split()[0]) for name in jobs})
    state, targets = EMPTY, {name: {} for name in jobs}
    for at_s in range(0, 1500, TICK_S):
        state, decisions = advance(state, tick(at_s, *(each.rows(name) for name, each in jobs.items())), named)
        for decision in rows(decisions):
            targets[decision.workload][at_s] = decision.required_workers
        for each in jobs.values():
            each.run()
    return state, targets


@pytest.mark.parametrize("policy", SIZED_BY)
@pytest.mark.parametrize("every_s", FLAP_EVERY_S)
def test_a_job_whose_readiness_flaps_is_scaled_up_within_minutes(policy, every_s):
    targets = overloaded()[1][f"{policy} {every_s}"]
    assert targets[1185] == 4
    assert targets[1485] >= 7


@pytest.mark.parametrize("every_s", FLAP_EVERY_S)
def test_the_capacity_that_a_flapping_job_shows_is_that_of_all_its_workers(every_s):
    slow = overloaded()[0].slow
    stage = [workload for workload, _ in slow.stages].index(f"drain {every_s}")
    assert [slow.table.sizes[0, stage], slow.table.rates[0, stage]] == [4, pytest.approx(400)]
    assert np.isnan(slow.table.sizes[1, stage])


def starting(ready_s):
    """10 workers become 16 at 900 s, which are ready at ready_s."""
    return lambda at_s: counts(10.0 + 6 * (at_s >= 900), ready_workers=10.0 + 6 * (at_s >= ready_s) - 2 * (at_s == 600))


def updated(ready):
    """The rolling update begins a quarter of an hour after the workers were counted first."""
    extra = {"workers": 13.0, "ready_workers": ready}
    return lambda at_s: counts() | (extra if at_s >= 900 and at_s % 60 < 30 else {})


def lost_node(flap_s):
    return lambda at_s: counts(ready_workers=5.0 if 600 <= at_s < 960 else 10.0 - 2 * (at_s == flap_s))


def returning(at_s):
    return counts(ready_workers=8.0 if 900 <= at_s < 1260 else 9.0 if 1260 <= at_s < 1290 else 10.0)


def fewer(at_s):
    return counts(ready_workers=10.0 - 2 * (at_s == 600)) | ({"workers": 9.0} if at_s >= 900 else {})


COUNTS = {  # the counts of the workers of a job at a time
    "flaps": lambda at_s: counts(ready_workers=10.0 - 2 * (at_s >= 300 and at_s % 60 == 0)),
    "one of ten flaps": lambda at_s: counts(ready_workers=10.0 - (at_s >= 900 and at_s % 60 < 30)),
    **{("updated", ready): updated(ready) for ready in (10.0, 13.0)},
    **{("lost node", flap_s): lost_node(flap_s) for flap_s in (None, 300)},
    "returning": returning,
    **{("starting", ready_s): starting(ready_s) for ready_s in (900, 1080)},
    "fewer": fewer,
}


@cache
def counted():
    """The decisions on each of COUNTS."""

    def rules(case):
        return {} if "updated" in case else {"in_flight_timeout_s": 60.0}

    return history_each(COUNTS, lambda case, at_s: COUNTS[case](at_s) | flow(at_s), range(0, 1800, TICK_S), rules)


def settled(case):
    """When Settling began."""
    closed = [d.at_s for d in counted()[case] if d.reason == Reason.SETTLING]
    return [at_s for at_s in closed if at_s - TICK_S not in closed]


def test_a_flapping_readiness_settles_once_in_ten_minutes():
    assert settled("flaps") == [300, 900, 1500]


def test_a_loss_that_does_not_settle_does_not_settle_when_it_ends():
    assert settled("one of ten flaps") == []


@pytest.mark.parametrize("ready", [10.0, 13.0], ids=["starting", "ready"])
def test_the_extra_workers_of_a_rolling_update_do_not_settle(ready):
    assert Reason.SETTLING not in {d.reason for d in counted()["updated", ready]}


@pytest.mark.parametrize(("flap_s", "begins"), [(None, [600, 960]), (300, [300, 960])])
def test_a_lost_node_settles_when_it_is_gone_and_when_it_is_back(flap_s, begins):
    """A flap shortly before the loss hides the loss, not the return."""
    assert settled(("lost node", flap_s)) == begins


def test_a_lost_node_whose_workers_return_one_by_one_settles_when_all_are_back():
    assert settled("returning") == [900, 1290]


@pytest.mark.parametrize("ready_s", [900, 1080])
def test_a_rescale_shortly_after_a_flap_settles_once_its_workers_are_ready(ready_s):
    assert settled(("starting", ready_s)) == [600, ready_s]


def test_fewer_existing_workers_shortly_after_a_flap_settle():
    assert [d.reason for d in counted()["fewer"] if d.at_s == 915] == [Reason.SETTLING]


LOST = {"input for more workers": (0, Reason.UP), "workers are lost": (4, Reason.SETTLING)}


@cache
def with_lost_workers():
    """Input of 900/s exceeds what 8 of 12 workers process, and 1 500/s what 12 process."""

    def running(lost):
        job = Fluid(lambda at_s: 900.0 if at_s < 1500 or lost else 1500.0, workers=18)
        job.more = lambda at_s: {"ready_workers": job.workers - float(lost * (at_s >= 1500))}
        return job

    rules = RuleBook(by_workload=dict.fromkeys(LOST, CONFIGURED.by_workload[JOB]))
    return closed_each({case: running(lost) for case, (lost, _) in LOST.items()}, 1560, rules)


@pytest.mark.parametrize("case", LOST)
def test_lost_workers_are_no_reason_for_more_workers(case):
    _, reason = LOST[case]
    decided = with_lost_workers()[case]
    assert [d.required_workers for d in decided if d.at_s == 1470] == [12]
    assert decided[-1].reason == reason


def test_a_lower_bound_of_the_capacity_does_not_end_settling():
    """10 workers carried 300/s and may carry more. Input of 500/s for the 8 that remain proves nothing."""
    running = Fluid(lambda at_s: 300.0 if running.workers == 10 else 500.0, missing=lambda at_s: ("utilization_ratio",))
    decided = closed(running, 1800, book(policy="drain", cooldown_up_s=None))
    changed_s = next(d.at_s for d in decided if d.reason == Reason.DOWN) + 30
    assert {d.reason for d in decided if changed_s <= d.at_s < changed_s + 45} == {Reason.SETTLING}


def test_the_count_of_another_actor_is_held_until_the_rates_show_its_workers():
    """900/s exceed what 8 workers process, but only the rates after the change show how much that is."""
    running, state, decided = Fluid(lambda at_s: 900.0, workers=12), EMPTY, {}
    for at_s in range(0, 645, TICK_S):
        running.scale(8 if at_s >= 600 else 12)
        state, decisions = advance(state, tick(at_s, running.rows()), CONFIGURED)
        decided[at_s] = rows(decisions)[0].reason
        running.run()
    assert {decided[at_s] for at_s in range(600, 645, TICK_S)} == {Reason.SETTLING}


def test_input_of_a_stuck_partition_does_not_end_settling():
    """The workers process 900/s; 500/s more wait in a stuck partition. The scale-down is not reversed."""
    running = Fluid(lambda at_s: 900.0, workers=18)

    def stuck(at_s):
        appended = running.appended + 500 * at_s
        waiting = {"backlog_records": appended - running.processed, "stuck_backlog_records": 500.0 * at_s}
        return {"appended_records": appended} | waiting

    running.more = stuck
    decided = closed(running, 4000, CONFIGURED)
    assert [d.reason for d in decided].count(Reason.DOWN) == 1
    assert Reason.UP not in {d.reason for d in decided}
