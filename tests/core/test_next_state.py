"""The state between ticks: targets, scale-down window, pause budget, scale-ups without effect, failures."""

from dataclasses import replace
from functools import cache
from itertools import pairwise, product

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
    history,
    history_each,
    job,
    last,
    rows,
    steady,
    tick,
)

from adapter.core.decisions import Bound, Reason
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules

HUNDRED = {"policy": "drain", "worker_capacity_records_per_s": 100.0, "forecast_horizon_s": 0.0}
HUNDRED |= {"cooldown_up_s": 0.0, "rescale_worth_s": 0.0}  # with a worth: see test_scale_down_cost


def at(decided):
    return {decision.at_s: decision for decision in decided}


def never(at_s):
    return False


def step(before, after, when_s):
    """A load that is another one from when_s on."""
    return lambda at_s: before if at_s < when_s else after


# --- the scale-down window


def test_s1_18_a_scale_down_goes_to_the_largest_size_needed_in_the_window():
    """1000/s need 13 workers, 300/s need 4. The scale-down waits until the need of 13 has left the window."""
    rules = book(**HUNDRED, cooldown_down_s=0.0, down_window_s=180.0)
    decided = closed(Fluid(step(1000.0, 300.0, 240), workers=20), 840, rules)
    assert {d.required_workers for d in decided if 30 < d.at_s < 240 + 180} == {13}
    assert decided[-1].required_workers == 4


def test_the_window_is_named_as_the_bound():
    held = closed(Fluid(step(1000.0, 300.0, 120), workers=14), 300, book(**HUNDRED, cooldown_down_s=0.0))[-1]
    assert (held.required_workers, held.bound, held.wanted_workers, held.window_workers) == (14, Bound.WINDOW, 4, 14)


def test_missing_ticks_do_not_empty_the_window():
    """After it 4 are needed, but all 20 may have been needed in between."""
    before = [tick(at_s, job(**counts(20), **flow(at_s, 1000))) for at_s in np.arange(0.0, 301.0, 15.0)]
    after = [tick(at_s, job(**counts(20), **flow(at_s, 300))) for at_s in np.arange(2000.0, 2100.0, 15.0)]
    decided = history([*before, *after], book(**HUNDRED, cooldown_down_s=0.0, down_window_s=600.0))
    last = decided[-1]
    assert (last.needed_workers, last.window_workers, last.required_workers) == (4, 20, 20)


def test_without_a_window_a_scale_down_is_immediate():
    rules = book(**HUNDRED, cooldown_down_s=0.0, down_window_s=0.0)
    assert closed(Fluid(step(1000.0, 300.0, 120), workers=14), 300, rules)[-1].required_workers == 4


# --- the pause budget


def spent(load, until_s, **rules):
    decided = closed(Fluid(load, workers=40), until_s, book(**HUNDRED | {"rescale_pause_s": 60.0} | rules))
    return [decision.at_s for decision in decided if decision.reason in (Reason.DOWN, Reason.IDLE)], decided


@pytest.mark.simulation
def test_the_pause_budget_limits_the_scale_downs_of_a_day():
    """0.1 % of a day is 86 s: one pause of a minute, and the next when the rest has come back."""
    downs, decided = spent(
        lambda at_s: 3000 - 1.5 * at_s,
        1500,
        pause_budget_ratio=0.001,
        down_window_s=60.0,
        cooldown_down_s=0.0,
    )
    assert len(downs) == 1
    assert (decided[-1].bound, decided[-1].reason) == (Bound.BUDGET, Reason.HOLD)


@pytest.mark.simulation
def test_time_restores_the_pause_budget():
    """Of a tenth of a second each second, ten minutes make a minute."""
    rules = {"pause_budget_ratio": 0.1, "down_window_s": 60.0, "cooldown_down_s": 0.0}
    assert len(spent(lambda at_s: 3000 - 1.5 * at_s, 1500, **rules)[0]) > 2


@pytest.mark.simulation
def test_a_pending_scale_down_stands_and_is_charged_once():
    """Nobody enacts it while the load falls on: each piece that an HPA makes of a down is a pause."""
    running, state, rules = Fluid(lambda at_s: 3000 - 1.5 * at_s, workers=50), EMPTY, book(**HUNDRED)
    targets = []
    while running.at_s <= 1200:
        state, decisions = advance(state, tick(running.at_s, running.rows()), rules)
        targets.append(decisions.numbers["required_workers"][0])
        running.run(30)
    assert len({target for target in targets if target < 50}) == 1
    assert state.slow.history.budget_s[0] >= 864 - 30


# --- the latch


def test_a_pending_scale_up_stands_until_it_is_enacted():
    """A burst of two minutes wants more; when it is over and before it was enacted, the target stands."""
    burst = Fluid(lambda at_s: 2000.0 if 300 <= at_s < 420 else 500.0)
    decided = at(closed(burst, 600, book(**HUNDRED), follows=never))
    highest = max(d.required_workers for d in decided.values() if d.required_workers)
    assert highest > 10
    assert decided[600].required_workers == highest
    assert (decided[600].bound, decided[600].reason) == (Bound.LATCH, Reason.UP)


def test_a_pending_scale_up_grows_and_does_not_shrink():
    grows = closed(Fluid(step(500.0, 2000.0, 120)), 480, book(**HUNDRED), follows=never)
    sizes = [d.required_workers for d in grows if d.required_workers]
    assert sizes == sorted(sizes)
    assert sizes[-1] > sizes[0]


def test_a_pending_scale_down_is_withdrawn_if_the_load_rises():
    rules = book(**HUNDRED, cooldown_down_s=0.0)
    sizes = [d.required_workers for d in closed(Fluid(step(300.0, 1500.0, 120)), 300, rules, follows=never)]
    assert sizes[120 // 30] == 4
    assert sizes[-1] > 10


def test_after_the_latch_a_new_target_is_decided():
    burst = Fluid(lambda at_s: 2000.0 if 300 <= at_s < 420 else 500.0)
    decided = closed(burst, 900, book(**HUNDRED, latch_s=300.0, cooldown_down_s=3000.0), follows=never)
    assert decided[-1].required_workers == 10


# --- the minute


@pytest.mark.parametrize("safety", [{}, {"safety": False}], ids=["with safety", "by the text alone"])
def test_s4_07_netflix_decides_once_a_minute(safety):
    """The load grows at each of two ticks a minute, and the workers do not follow."""
    rules = book(policy="netflix", worker_capacity_records_per_s=100.0, **safety)
    decided = closed(Fluid(lambda at_s: 500.0 + 5.0 * at_s), 600, rules, follows=never)
    larger = [now.at_s for before, now in pairwise(decided) if now.required_workers != before.required_workers]
    assert len(larger) >= 3
    assert {at_s % 60 for at_s in larger[1:]} == {0}
    assert Bound.MINUTE in {d.bound for d in decided if d.at_s % 60}


# --- cooldowns


@pytest.mark.simulation
def test_s4_29_no_scale_up_during_the_cooldown():
    load = {0: 900.0, 900: 1500.0, 1200: 3000.0}
    rules = book(policy="dataflow", quanta="none", cooldown_up_s=600.0)
    decided = closed(Fluid(lambda at_s: load[max(since for since in load if since <= at_s)]), 1800, rules)
    first, second, *_ = [d.at_s for d in decided if d.reason == Reason.UP]
    assert second - first == 630  # the change is visible one tick later
    assert Bound.COOLDOWN in {d.bound for d in decided if first < d.at_s < second}


@pytest.mark.simulation
def test_no_scale_down_during_the_cooldown():
    rules = book(**HUNDRED, down_window_s=0.0)
    decided = at(closed(Fluid(lambda at_s: 300.0, workers=14), 900, rules))
    assert (decided[570].bound, decided[570].required_workers) == (Bound.COOLDOWN, 14)
    assert (decided[600].reason, decided[600].required_workers) == (Reason.DOWN, 4)


def test_s4_29_a_scale_down_does_not_block_a_scale_up_of_netflix():
    rules = book(policy="netflix", worker_capacity_records_per_s=100.0, cooldown_down_s=0.0)
    running = Fluid(lambda at_s: 600.0 if at_s < 240 else 2400.0 if at_s < 360 else 4800.0, workers=20)
    decided = closed(running, 700, rules)
    down, first, second = [d.at_s for d in decided if d.reason in (Reason.DOWN, Reason.UP)][:3]
    assert [d.reason for d in decided if d.at_s in (down, first)] == [Reason.DOWN, Reason.UP]
    assert first - down < 300 <= second - first


# --- scale-ups without effect


RISES = step(900.0, 1500.0, 300)


def behind(sink=lambda at_s: 1000.0, load=RISES, workers=11, **more):
    """A job. From 300 s on 1500/s arrive, while the sink takes 1000/s for any number of workers."""
    return Fluid(load, workers, sink=sink, **more)


def behind_after_pauses():
    """The sink takes more for a while after each pause."""
    running = behind(pause_s=30.0)
    running.sink = lambda at_s: 1600.0 if at_s < running.stopped_until_s + 90 else 1000.0
    return running


EAGER, ANY = {"policy": "drain", "low_cpu_ratio": 0.0}, {"max_workers": 100_000}
LOADS = {300: 900.0, 900: 1500.0, 2400: 300.0, 3600: 950.0}  # until
SINKS = {  # the job, its rules, and the last second
    "too slow": (behind(), EAGER | ANY, 900),
    "too slow, a short block": (behind(), EAGER | ANY | {"ineffective_block_s": 60.0}, 4500),
    "too slow once an hour": (
        behind(load=lambda at_s: 1500.0 if at_s % 3600 >= 2700 else 900.0),
        EAGER | {"max_workers": 1000, "ineffective_block_s": 60.0},
        7200,
    ),
    "too slow until 900 s": (behind(lambda at_s: 1000.0 if at_s < 900 else 1e6), EAGER | ANY, 1500),
    **{
        f"{later}/s later": (behind(lambda at_s, later=later: 1000.0 if at_s < 900 else later), EAGER | ANY, 1200)
        for later in (1270.0, 1400.0)
    },
    # 3.5 % more arrive than the sink takes. Nothing reports the utilization.
    "slightly too slow": (
        behind(load=step(900.0, 1035.0, 600), workers=8, each=125.0, missing=lambda at_s: ("utilization_ratio",)),
        {"policy": "drain"},
        3600,
    ),
    # The job scales up to 19, which helps, and to 42, which does not. Then the load falls, and it comes back.
    "too slow for a while": (
        behind(load=lambda at_s: next((each for until_s, each in LOADS.items() if at_s < until_s), 0.0), workers=10),
        EAGER | {"ineffective_block_s": 14_400.0},
        3500,
    ),
    "fast": (Fluid(lambda at_s: 1000 + 2 * max(0.0, at_s - 300), workers=10), {"policy": "drain"}, 1500),
    "the backlog drains": (
        behind(lambda at_s: 1000.0 if at_s < 480 else 1600.0),
        EAGER | {"max_workers": 1000},
        1500,
    ),
    "more after a pause": (behind_after_pauses(), EAGER | {"max_workers": 1000}, 1200),
    "a published policy": (behind(), {"policy": "dataflow", "max_workers": 1000}, 1500),
}


@cache
def behind_sinks():
    """The decisions on the jobs of SINKS, until their last second."""
    rules = RuleBook(by_workload={name: Rules(**rules) for name, (_, rules, _) in SINKS.items()})
    decided = closed_each({name: running for name, (running, *_) in SINKS.items()}, 7200, rules)
    return {name: [d for d in decided[name] if d.at_s <= last_s] for name, (*_, last_s) in SINKS.items()}


@pytest.mark.simulation
def test_a_scale_up_without_effect_blocks_the_next_one_for_half_an_hour():
    decided = behind_sinks()["too slow"]
    first = next(d for d in decided if d.bound == Bound.INEFFECTIVE)
    assert (first.blocked_s, first.reason) == (1800, Reason.HOLD)
    assert len([d for d in decided if d.reason == Reason.UP]) <= 2  # the first had nothing to be measured by


def test_the_block_precedes_the_next_scale_up():
    decided = behind_sinks()["too slow"]
    first = next(place for place, d in enumerate(decided) if d.bound == Bound.INEFFECTIVE)
    assert all(d.reason != Reason.UP for d in decided[first:])


@pytest.mark.simulation
def test_the_block_doubles_up_to_eight_times():
    decided = behind_sinks()["too slow, a short block"]
    begun = [now.blocked_s for was, now in pairwise(decided) if (now.blocked_s or 0) > (was.blocked_s or 0)]
    assert begun[:4] == [60, 120, 240, 480]
    assert set(begun[4:]) <= {480}


@pytest.mark.simulation
def test_a_block_long_after_the_last_one_is_short_again():
    decided = behind_sinks()["too slow once an hour"]
    begun = [(d.at_s, d.blocked_s) for was, d in pairwise(decided) if (d.blocked_s or 0) > (was.blocked_s or 0)]
    first, second = ([blocked_s for at_s, blocked_s in begun if at_s // 3600 == hour] for hour in (0, 1))
    assert (first[:2], second[0]) == ([60, 120], 60)


@pytest.mark.simulation
def test_a_block_ends_when_the_throughput_shows_the_gain():
    """The sink takes 1000/s until 900 s, and everything after."""
    decided = behind_sinks()["too slow until 900 s"]
    blocked = [d.at_s for d in decided if d.blocked_s]
    assert blocked[0] < 900 <= blocked[-1] < 990
    assert decided[-1].backlog_time_s < 10


@pytest.mark.parametrize(("sink", "ends"), [(1270.0, False), (1400.0, True)])
def test_a_gain_ends_a_block_if_it_exceeds_a_quarter_of_what_is_expected_and_noise(sink, ends):
    """From 19 to 38 workers 1000/s are expected; noise is 5 % of the 1000/s before."""
    decided = behind_sinks()[f"{sink}/s later"]
    assert next(d.reference_workers for d in decided if d.blocked_s) == 38
    assert any(not d.blocked_s for d in decided if d.at_s > 900) is ends


@pytest.mark.simulation
def test_a_sink_that_is_slightly_too_slow_blocks_as_well():
    decided = behind_sinks()["slightly too slow"]
    assert any(d.bound == Bound.INEFFECTIVE for d in decided)
    assert max(d.required_workers or 0 for d in decided) <= 20  # without the block 100, the maximum


@pytest.mark.simulation
def test_a_block_allows_the_size_before_the_scale_up_without_effect():
    decided = behind_sinks()["too slow for a while"]
    (returned,) = (d for d in decided if d.at_s > 1500 and d.reason == Reason.UP)
    assert (returned.reference_workers, returned.required_workers, returned.bound) == (4, 19, Bound.INEFFECTIVE)
    assert decided[-1].blocked_s > 0
    assert decided[-1].backlog_time_s == 0


def test_a_scale_up_that_helped_blocks_nothing():
    decided = behind_sinks()["fast"]
    assert max(d.required_workers or 0 for d in decided) > 20
    assert all(d.bound != Bound.INEFFECTIVE for d in decided)


def test_a_scale_up_is_not_judged_while_the_backlog_drains():
    """The sink takes 1600/s: the backlog falls, however little the new workers brought."""
    decided = behind_sinks()["the backlog drains"]
    assert any(d.reason == Reason.UP for d in decided)
    assert all(d.bound != Bound.INEFFECTIVE for d in decided)


def test_a_scale_up_is_not_judged_while_its_workers_warm_up():
    """The metrics are 90 s late, which the policy has not measured yet, so it takes the workers for warm too early."""
    running, rules = Fluid(lambda at_s: 800.0 + 2 * max(0.0, at_s - 600)), book(policy="drain", max_workers=1000)
    running.pause_s, running.warm_up_s = 57.0, 180.0
    state, past, bounds = EMPTY, {}, []
    for _ in range(2100 // TICK_S):
        past[running.at_s] = replace(running)
        seen = replace(past.get(running.at_s - 90, past[0.0]), workers=running.workers)
        state, decisions = advance(state, tick(running.at_s, seen.rows()), rules)
        (decided,) = rows(decisions)
        bounds.append(decided.bound)
        running.scale(decided.required_workers)
        running.run()
    assert running.workers > 40
    assert Bound.INEFFECTIVE not in bounds


def test_a_scale_up_of_more_than_an_hour_ago_is_not_judged():
    """Two hours after a scale-up, each record takes longer, and the maximum holds the job for ten minutes."""
    running = Fluid(lambda at_s: 800.0 if at_s < 600 else 1060.0 if at_s < 7200 else 1100.0, pause_s=20.0)
    state, bounds = EMPTY, set()
    while running.at_s < 8400:
        most = 10 if running.at_s < 900 else 13 if running.at_s < 7800 else 200
        running.each = 100.0 if running.at_s < 7200 else 80.0
        state, decisions = advance(state, tick(running.at_s, running.rows()), book(policy="drain", max_workers=most))
        (decided,) = rows(decisions)
        bounds.add(decided.bound)
        running.scale(decided.required_workers)
        running.run(30)
    assert Bound.INEFFECTIVE not in bounds
    assert running.workers > 13


def test_a_scale_up_that_has_shown_its_gain_is_not_judged_again():
    """Half an hour after a scale-up whose workers cleared a backlog, a release makes them half as fast."""
    running = Fluid(lambda at_s: 820.0, workers=8, pause_s=20.0, missing=lambda at_s: ["utilization_ratio"])
    running.sink = lambda at_s: running.workers * (100.0 if at_s < 2400 else 50.0)
    decided = closed_each({JOB: running}, 2685, book(policy="drain"), tick_s=TICK_S)[JOB]
    assert Bound.INEFFECTIVE not in {d.bound for d in decided}
    assert running.workers > 18


def test_a_sink_that_takes_more_after_a_pause_shows_no_gain():
    decided = behind_sinks()["more after a pause"]
    assert (decided[-1].bound, decided[-1].required_workers) == (Bound.INEFFECTIVE, 29)


def test_published_policies_have_no_block():
    decided = behind_sinks()["a published policy"]
    assert all(d.bound != Bound.INEFFECTIVE for d in decided)


def test_a_saturated_stage_starts_a_trial_from_its_throughput():
    state, rules = EMPTY, book(policy="drain", cooldown_up_s=0.0)
    for one in steady(120, throughput=1000, growth=500, backlog=30_000):
        state, _ = advance(state, one, rules)
    trial = state.slow.trial
    assert (trial.from_workers[0], trial.from_records_per_s[0]) == (10, 1000)


# --- replica counts of other actors


def with_other_actor(changes, until_s=1080, **rules):
    """The decisions with a pending target (10 -> more) and replica counts of another actor at certain times."""
    count = 10
    ticks = []
    for at_s in np.arange(0.0, until_s + 1, 30.0):
        count = changes.get(at_s, count)
        ticks.append(tick(at_s, job(**counts(count), **flow(at_s, 1000, 0, 60_000))))
    return at(history(ticks, book(**HUNDRED | {"policy": "dataflow", "quanta": "none"} | rules)))


def test_a_manual_scale_is_adopted():
    decided = with_other_actor({120.0: 30}, until_s=180)
    assert decided[90].required_workers == 20
    assert {decided[at_s].required_workers for at_s in (120, 150, 180)} == {30}
    assert decided[120].reason == Reason.SETTLING


def test_a_count_on_the_way_to_the_target_is_not_adopted():
    decided = with_other_actor({120.0: 15}, until_s=180)
    assert {decided[at_s].required_workers for at_s in (120, 150, 180)} == {20}


def test_a_count_away_from_the_target_is_adopted():
    assert with_other_actor({120.0: 8}, until_s=180)[180].required_workers == 8


def test_a_target_that_is_not_enacted_is_reported_after_15_min():
    decided = with_other_actor({}, **{"policy": "drain", "quanta": "none"})
    first = min(at_s for at_s, d in decided.items() if d.reason == Reason.UP)
    reported = [at_s for at_s, d in decided.items() if d.reason == Reason.NOT_ENACTED]
    assert min(reported) == first + 900
    assert {decided[at_s].required_workers for at_s in reported} == {decided[first].required_workers}


def test_without_a_spec_the_existing_workers_show_a_rescale():
    def decided(*missing):
        running = Fluid(step(700.0, 1500.0, 600), pause_s=60.0, missing=lambda at_s: missing)
        found = closed(running, 1800, book(policy="drain", rescale_worth_s=0.0))
        return [(d.required_workers, d.spec_changed_age_s) for d in found]

    assert decided("spec_workers", "ready_workers") == decided()


def test_without_a_spec_a_worker_that_is_missing_for_a_tick_does_not_lower_the_target():
    def seen(at_s):
        return tick(at_s, job(workers=9.0 if at_s == 300 else 10.0, **flow(at_s, 900), utilization_ratio=0.9))

    decided = history([seen(at_s) for at_s in range(0, 601, TICK_S)], book(**HUNDRED))
    assert {d.required_workers for d in decided[2:]} == {10}


# --- failures


RESTARTS = {  # when a counter of restarts rose, the reason in the end, and the restarts that count then
    "none": ((), Reason.HOLD, 0),
    "one": ((500,), Reason.HOLD, 1),
    "two": ((500, 700), Reason.FAILURES, 2),
    "three": ((500, 700, 800), Reason.FAILURES, 3),
    "two, long ago": ((150, 200), Reason.HOLD, 0),
    "the first long ago": ((200, 700), Reason.FAILURES, 2),
}
RESCALED = "a rescale"  # from 10 to 12 workers at 495 s


@cache
def restarted():
    """The last decision for each of RESTARTS, and for RESCALED."""

    def seen(case, at_s):
        times_s = (500, 520, 560) if case == RESCALED else RESTARTS[case][0]
        restarts = float(sum(at_s >= since_s for since_s in times_s))
        workers = 12 if case == RESCALED and at_s >= 495 else 10
        return counts(workers) | flow(at_s) | {"restarts": restarts, "utilization_ratio": 0.95}

    decided = history_each([*RESTARTS, RESCALED], seen, range(0, 901, 30), lambda _: {})
    return {case: each[-1] for case, each in decided.items()}


@pytest.mark.parametrize("case", RESTARTS)
def test_s4_09_unplanned_restarts_are_counted(case):
    _, reason, known = RESTARTS[case]
    assert (restarted()[case].reason, restarted()[case].restarts) == (reason, known)


def test_x_05_the_restarts_of_our_own_rescale_are_no_failures():
    assert restarted()[RESCALED].restarts == 0


DOWN = list(product(("ready_workers", "workers"), (45, 300)))  # which count is lower, and how long


def down(lost, down_s):
    """Flink counts the registered TaskManagers, and Kubernetes restarts a container after up to 5 min."""

    def seen(at_s):
        less = {lost: 8.0} if at_s >= 300 and at_s % 330 < down_s else {}
        return counts() | less | flow(at_s) | {"restarts": float(at_s // 330)}

    return seen


@pytest.mark.parametrize(("lost", "down_s"), DOWN)
def test_failures_that_make_workers_unready_are_counted(lost, down_s):
    assert {d.reason for d in failing()[lost, down_s] if d.at_s >= 1500} == {Reason.FAILURES}


def losing(at_s, restarts, lost=0.0):
    """The signals of a busy job of 100 workers."""
    found = counts(100, ready_workers=100.0 - lost)
    return {**found, **flow(at_s), "restarts": float(restarts), "utilization_ratio": 0.9}


SPOT = {"lost": 1, "every_s": 390, "away_s": 60, "restarts_at_s": (0,)}
LOST = {  # what is other than in SPOT -> the reason
    "a node now and then": ({}, Reason.HOLD),
    "the job restarts again when the worker is back": ({"restarts_at_s": (0, 60)}, Reason.HOLD),
    "more than a tenth of the workers": ({"lost": 11}, Reason.FAILURES),
    "a pod that crashes in a loop": ({"every_s": 75}, Reason.FAILURES),
    "its restarts are seen late": ({"every_s": 75, "away_s": 30, "restarts_at_s": (30,)}, Reason.FAILURES),
    "a pod that waits five minutes for its restart": ({"every_s": 315, "away_s": 300}, Reason.HOLD),
    "all workers stay": ({"lost": 0}, Reason.FAILURES),
}


def losses(case):
    spot = SPOT | LOST[case][0]

    def seen(at_s):
        turn, since_s = divmod(at_s - 600, spot["every_s"])
        is_lost = at_s >= 600 and since_s < spot["away_s"]
        restarts = sum(turn + (since_s >= each_s) for each_s in spot["restarts_at_s"]) if at_s >= 600 else 0
        return losing(at_s, restarts, spot["lost"] * is_lost)

    return seen


@pytest.mark.parametrize("case", LOST)
def test_s4_09_the_restarts_with_a_few_lost_workers_are_failures_only_in_a_loop(case):
    _, reason = LOST[case]
    assert at(failing()[case])[2400].reason == reason


def crashing(at_s):
    lost_at_s = (600, *range(900, 2401, 75))
    restarts = sum(at_s >= each_s for each_s in lost_at_s)
    return losing(at_s, restarts, lost=float(any(each_s <= at_s < each_s + 60 for each_s in lost_at_s)))


def test_a_loop_of_crashes_that_begins_minutes_after_a_lost_node_closes_the_gate():
    """One interval between them is longer than the time in which losses count together."""
    found = failing()["crashing"]
    assert {d.reason for d in found if d.at_s < 975} == {Reason.NO_DATA, Reason.HOLD}
    assert {d.reason for d in found if 990 <= d.at_s <= 1200} == {Reason.FAILURES}


def restarting(at_s):
    restarts = max(0, (at_s - 105) // 195) + (at_s >= 1590)
    return losing(at_s, restarts, lost=float(1590 <= at_s < 1650))


def test_a_lost_worker_does_not_end_the_failures_of_a_job_that_restarts_again_and_again():
    assert {d.reason for d in failing()["restarting"] if d.at_s >= 600} == {Reason.FAILURES}


def late_nodes(at_s):
    """The desired workers rise to 30, and nodes come after in_flight_timeout_s. The job restarts with those of each."""
    waves = np.clip((at_s - 1170) // 60, 0, 4)
    return counts(10.0 if at_s < 600 else 30.0, ready_workers=10.0 + 5 * waves, restarts=float(waves)) | flow(at_s)


def test_the_restarts_with_each_node_that_comes_late_are_no_failures():
    assert Reason.FAILURES not in {d.reason for d in failing()["late nodes"]}


def stopped(ready_s):
    """The Flink operator stops all workers, and the new ones may wait for a node."""

    def seen(at_s):
        running = 10.0 if at_s < 600 else 12.0 * (at_s >= ready_s)
        found = counts(10.0 if at_s < 600 else 12.0, ready_workers=running) | {"workers": running}
        return found | flow(at_s) | {"restarts": 3.0 * (at_s >= ready_s + 30)}

    return seen


@pytest.mark.parametrize("ready_s", [615, 1050])
def test_the_restart_when_the_workers_of_a_rescale_are_ready_is_no_failure(ready_s):
    assert at(failing()["stopped", ready_s])[1500].restarts == 0


def test_restarts_before_the_first_tick_are_no_failures():
    ticks = [tick(at_s, job(**counts(), **flow(at_s), restarts=99.0)) for at_s in (0, 15, 30, 45, 60)]
    assert history(ticks)[-1].restarts == 0


@pytest.mark.parametrize(("counter", "known"), [((27, 30), 0), ((0, 0, 2), 2), ((27, 27, 30), 3)])
def test_a_restart_counter_that_is_lower_for_one_tick_shows_no_failures(counter, known):
    """The series of one pod may be missing. A counter that stays lower is that of other pods or another job."""
    seen = zip(range(500, 600, TICK_S), counter, strict=False)
    restarts = [*((at_s, 30) for at_s in range(0, 500, TICK_S)), *seen]
    ticks = [tick(at_s, job(**counts(), **flow(at_s), restarts=count)) for at_s, count in restarts]
    assert history(ticks)[-1].restarts == known


@pytest.mark.parametrize("back_at_s", [500, 1800])
def test_restarts_while_the_pipeline_was_down_are_no_failures(back_at_s):
    seen = [*range(0, 301, 15), *range(back_at_s, back_at_s + 301, 15)]
    ticks = [tick(at_s, job(**counts(), **flow(at_s), restarts=3.0 * (at_s >= back_at_s))) for at_s in seen]
    assert history(ticks)[-1].restarts == 0


def hidden(missing_s):
    return lambda at_s: counts(restarts=None if at_s % 300 < missing_s else float(at_s // 300)) | flow(at_s)


@pytest.mark.parametrize("missing_s", [45, 120])
def test_failures_that_hide_their_counter_for_a_while_are_counted(missing_s):
    assert Reason.FAILURES in {d.reason for d in failing()["hidden", missing_s]}


def hidden_by_a_rescale(at_s):
    restarts = None if 600 <= at_s < 720 else 3.0 * (at_s >= 600)
    return counts(10 if at_s < 615 else 12, restarts=restarts) | flow(at_s)


def test_a_rescale_that_hides_the_counter_is_no_failure():
    assert at(failing()["hidden by a rescale"])[900].restarts == 0


def unknown(at_s):
    return counts(restarts=None if 300 <= at_s < 600 else 3.0 * (at_s >= 300)) | flow(at_s)


def test_restarts_while_their_counter_was_missing_are_no_failures():
    assert at(failing()["unknown"])[900].restarts == 0


MANY = {"max_workers": 200, "quanta": "none"}
FAILING = {  # the signals at a time, and the rules
    **{case: (down(*case), {}) for case in DOWN},
    **{case: (losses(case), MANY) for case in LOST},
    "crashing": (crashing, MANY),
    "restarting": (restarting, MANY),
    "late nodes": (late_nodes, {}),
    **{("stopped", ready_s): (stopped(ready_s), {}) for ready_s in (615, 1050)},
    **{("hidden", missing_s): (hidden(missing_s), {}) for missing_s in (45, 120)},
    "hidden by a rescale": (hidden_by_a_rescale, {}),
    "unknown": (unknown, {}),
}


@cache
def failing():
    """The decisions on each job of FAILING."""

    def seen(case, at_s):
        return FAILING[case][0](at_s)

    return history_each(FAILING, seen, range(0, 2701, TICK_S), lambda case: FAILING[case][1])


def test_a_reset_of_the_restart_counter_is_no_failure():
    ticks = [tick(at_s, job(**counts(), **flow(at_s), restarts=9.0 if at_s < 45 else 1.0)) for at_s in range(0, 61, 15)]
    assert history(ticks)[-1].restarts == 0


@pytest.mark.parametrize("down_window_s", [45, 150, 300])
def test_a_scale_down_pays_whether_its_window_has_ten_ticks_or_fewer(down_window_s):
    rules = book(policy="drain", worker_capacity_records_per_s=100.0, down_window_s=down_window_s, rescale_worth_s=60)
    idle = steady(until_s=900, throughput=120, utilization_ratio=0.3, **counts(4))
    assert last(idle, rules).required_workers == 2


@pytest.mark.parametrize(
    ("gap_s", "down_s"),
    [
        pytest.param(0, 1515, id="five seconds with one of five workers too many save a second of the job"),
        pytest.param(120, 1515, id="a gap within a part of the window counts as the size before it"),
        pytest.param(600, 2115, id="a longer gap does not count"),
    ],
)
def test_missing_samples_delay_a_scale_down_that_has_to_pay(gap_s, down_s):
    rules = book(policy="drain", worker_capacity_records_per_s=100.0, down_window_s=300, rescale_worth_s=300)
    idle = steady(until_s=2400, throughput=300, utilization_ratio=0.6, **counts(5))
    ticks = [each for each in idle if not 900 < each.at_s <= 900 + gap_s]
    assert next(each.at_s for each in history(ticks, rules) if each.reason is Reason.DOWN) == down_s


@cache
def sizes_by_window():
    """The workers at each tick, by the window for scale-downs, while the load falls twice."""
    hundred = {"policy": "drain", "worker_capacity_records_per_s": 100.0, "rescale_worth_s": 60}
    named = {str(window_s): Rules(**hundred, down_window_s=window_s) for window_s in (45, 600)}
    done, sizes, state = 0.0, {name: [16] for name in named}, EMPTY
    for place, load in enumerate([*[1100.0] * 40, *[450.0] * 40, *[150.0] * 120]):
        done += 15 * load
        load = {"processed_records": done, "appended_records": done, "backlog_records": 0}
        seen = [job(name, **counts(each[-1]), **load) for name, each in sizes.items()]
        state, decisions = advance(state, tick(15.0 * place, *seen), RuleBook(by_workload=named))
        for decided in rows(decisions):
            sizes[decided.workload].append(int(decided.required_workers or sizes[decided.workload][-1]))
    return {name: each[1:] for name, each in sizes.items()}


@pytest.mark.parametrize("down_window_s", [45, 600])
def test_a_scale_down_is_followed_by_another_where_the_load_falls_further(down_window_s):
    sizes = sizes_by_window()[str(down_window_s)]
    assert 2 < sizes[79] < 16
    assert sizes[-1] == 2
