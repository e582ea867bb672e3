"""What a rescale costs, measured from the rescales of a job, in place of the settings."""

from dataclasses import replace
from functools import cache
from itertools import zip_longest

import numpy as np
import pytest
from builders import EMPTY, JOB, TICK_S, Fluid, advance, book, counts, flow, job, rows, tick

from adapter.core.periods import Event
from adapter.core.rule_book import RuleBook
from adapter.core.rules import POLICIES, UNTIL_MEASURED, Rules

LEFT_S = 420  # between two rescales
CONFIGURED_S = 30.0
CONFIGURED = {"rescale_pause_s": CONFIGURED_S}
WARMING = {"rescale_pause_s": 57.0, "warm_up_s": 180.0, "metric_delay_s": 0.0}


def rescaled(pauses_s, *, load=lambda at_s: 800.0, rows=Fluid.rows, warm_s=0.0, **more):
    """The samples of a job at each tick, while it rescales with these pauses, by turns one up and one down.

    more: most, the workers that scale-ups add before a scale-down removes them, and change, which is called with the
    job and the second at every tick.
    """
    running, most, change = Fluid(load), more.get("most", 2), more.get("change", lambda running, second: None)
    for number, pause_s in enumerate(pauses_s):
        for second in range(0, LEFT_S + int(pause_s), TICK_S):
            yield rows(running)
            if second == 120:
                running.pause_s, running.warm_up_s = pause_s, warm_s if pause_s else 0.0
                running.scale(10 + number % most + 1)
            change(running, second)
            running.run()
    for _ in range(LEFT_S // TICK_S):
        yield rows(running)
        running.run()


SIMULATED = {"pauses_s", "load", "rows", "warm_s", "most", "change"}
JOBS = {}  # by name, the arguments of `rescaled`, and rules


@cache
def learned_each():
    """The settings that count in the end in JOBS side by side.

    A job that ends earlier than another has no samples from then on.
    """
    cases = {str(case): given for case, given in JOBS.items()}
    jobs = [rescaled(**{name: case[name] for name in SIMULATED & case.keys()}) for case in cases.values()]
    rules = [{name: case[name] for name in case.keys() - SIMULATED} for case in cases.values()]
    named = {name: Rules(**{"policy": "drain"} | CONFIGURED | own) for name, own in zip(cases, rules, strict=True)}
    state, last = EMPTY, {}
    for number, seen in enumerate(zip_longest(*jobs, fillvalue=())):
        of_each = [[(name, *row[1:]) for row in rows] for name, rows in zip(cases, seen, strict=True)]
        state, decisions = advance(state, tick(float(number * TICK_S), *of_each), RuleBook(by_workload=named))
        last |= {name: decisions for name, rows in zip(cases, seen, strict=True) if rows}
    return {case: settings(last[str(case)], str(case)) for case in JOBS}


def settings(decisions, workload):
    """The rules of a workload in a record."""
    place = decisions.text["workload"].index(workload)
    return {name.removeprefix("rules."): column[place] for name, column in decisions.record.items()}


def learned(*case, of="rescale_pause_s"):
    """The setting that counts in the end in one of JOBS."""
    return learned_each()[case][of]


PAUSES_S = (20.0, 57.0, 130.0)
JOBS |= {("three rescales", pause_s): {"pauses_s": [pause_s] * 3} for pause_s in PAUSES_S}


@pytest.mark.parametrize("pause_s", PAUSES_S)
def test_three_rescales_replace_the_setting(pause_s):
    assert learned("three rescales", pause_s) == pytest.approx(pause_s, abs=TICK_S / 2)


JOBS["catches up",] = {"pauses_s": [300.0] * 3}


def test_a_rescale_of_a_job_that_catches_up_shows_the_whole_pause():
    """After 300 s it processes 1 100/s of 800/s input for longer than it takes until the next rescale."""
    assert learned("catches up") == pytest.approx(300.0, abs=TICK_S / 2)


JOBS["two rescales",] = {"pauses_s": [57.0] * 2}


def test_two_rescales_do_not_replace_the_setting():
    assert learned("two rescales") == CONFIGURED_S


def before_an_event(rescales):
    """The event begins 650 s after the last tick."""
    last_s = rescales * (LEFT_S + 300) + LEFT_S
    event = Event(begin_s=last_s + 650, end_s=last_s + 900, times=1.5)
    return {"pauses_s": [300.0] * rescales, "warm_up_s": 400.0, "expected": (event,)}


JOBS |= {("before an event", rescales): before_an_event(rescales) for rescales in (2, 3)}


@pytest.mark.parametrize(("rescales", "expecting"), [(2, 0.0), (3, 1.0)])
def test_an_expected_event_counts_as_early_as_a_measured_pause_requires(rescales, expecting):
    """The event begins within the pause of 300 s and the warm-up of 400 s."""
    assert learned("before an event", rescales, of="expecting") == expecting


JOBS["one odd rescale",] = {"pauses_s": [57.0, 57.0, 57.0, 600.0]}
JOBS["no pause",] = {"pauses_s": [0.0] * 3}


def test_one_odd_rescale_changes_nothing():
    assert learned("one odd rescale") == pytest.approx(57.0, abs=TICK_S / 2)


def test_a_job_without_a_pause_needs_none():
    assert learned("no pause") == 0.0


def unreadable(running):
    """40 000 records that no consumer can read, such as markers of transactions."""
    rows, waits = running.rows(), running.appended - running.processed
    return [row for row in rows if row[2] != "backlog_records"] + job(backlog_records=waits + 40_000)


def slow_sink(running, second):
    """The sink halves its speed after each rescale, for some minutes."""
    running.sink = lambda at_s: 500.0 if 320 <= second < LEFT_S else np.inf


def backlog_of_an_hour(at_s):
    return 60_000.0 if at_s < 60 else 500.0


LESS = {
    "a slow sink": {"load": backlog_of_an_hour, "change": slow_sink},
    "less input and records that no consumer can read": {
        "load": lambda at_s: 200.0 if at_s % LEFT_S >= 250 else 900.0,
        "rows": unreadable,
    },
}


JOBS |= {(name,): {"pauses_s": [0.0] * 3, **case} for name, case in LESS.items()}


@pytest.mark.parametrize("case", LESS)
@pytest.mark.parametrize("of", ["rescale_pause_s", "metric_delay_s"])
def test_a_job_with_a_backlog_that_processes_less_for_another_reason_does_not_stop(case, of):
    assert learned(case, of=of) == 0.0


JOBS["old rescales",] = {"pauses_s": [20.0] * 3 + [90.0] * 4}


def test_old_rescales_are_forgotten():
    assert learned("old rescales") == pytest.approx(90.0, abs=TICK_S / 2)


def late(delay_s):
    """Samples that are older than their time."""
    past = {}

    def rows(running):
        past[running.at_s] = replace(running)
        seen = past.get(running.at_s - delay_s, past[0.0])
        return replace(seen, workers=running.workers).rows()

    return rows


DELAYS_S, WARM_UPS_S = (0.0, 60.0, 120.0), (0.0, 90.0, 180.0)
# The first rescale comes before the samples rise steadily.
JOBS |= {("late", delay_s): {"pauses_s": [57.0] * 4, "rows": late(delay_s)} for delay_s in DELAYS_S}
JOBS |= {("warms up", warm_s): {"pauses_s": [57.0] * 3, "warm_s": warm_s} for warm_s in WARM_UPS_S}


@pytest.mark.parametrize("delay_s", DELAYS_S)
def test_the_delay_of_the_samples_is_measured_by_the_pause(delay_s):
    assert learned("late", delay_s, of="metric_delay_s") == pytest.approx(delay_s, abs=TICK_S)


@pytest.mark.parametrize("warm_up_s", WARM_UPS_S)
def test_the_time_until_the_throughput_rises_no_more_is_measured(warm_up_s):
    assert learned("warms up", warm_up_s, of="warm_up_s") == pytest.approx(warm_up_s, abs=2 * TICK_S)


JOBS["backlog ends early",] = {
    "pauses_s": [57.0] * 5,
    "load": lambda at_s: 800.0 if at_s % 954 < 477 else 200.0,
    "warm_s": 180.0,
}


def test_a_rescale_whose_backlog_ends_early_does_not_shorten_the_warm_up():
    """The input of every other rescale is low, so that half of the speed is enough."""
    found = learned("backlog ends early", of="warm_up_s")
    assert found == pytest.approx(180.0, abs=2 * TICK_S)


def vary(running, second):
    """The workers are 3 % faster in every other minute."""
    running.each = 103.0 if second % 120 < 60 else 100.0


def scale_again(running, second):
    """More workers start without a pause, one minute after the pause."""
    if second == 240:
        running.pause_s = 0.0
        running.scale(2 * running.workers)


FULL = {"pauses_s": [57.0] * 3, "load": lambda at_s: 3000.0}
JOBS |= {(change.__name__,): {"change": change, **FULL} for change in (vary, scale_again)}


@pytest.mark.parametrize("change", [vary, scale_again])
def test_a_throughput_that_rises_for_another_reason_is_no_warm_up(change):
    assert learned(change.__name__, of="warm_up_s") <= 2 * TICK_S


def ready_after_the_pause(running):
    """The new workers are ready some time after each pause, while the job still warms up for 180 s."""
    ready = running.at_s - running.stopped_until_s >= 45
    return [row for row in running.rows() if row[2] != "ready_workers"] + job(ready_workers=20 if ready else 8)


JOBS["ready after the pause",] = FULL | {"pauses_s": [57.0] * 5, "rows": ready_after_the_pause, "warm_s": 180.0}


def test_a_warm_up_that_another_change_cuts_off_is_unknown():
    assert learned("ready after the pause", of="warm_up_s") == UNTIL_MEASURED["warm_up_s"]


# It is behind and grows all the time, so that its throughput rises with each rescale.
GROWS = {"pauses_s": [57.0] * 4 + [0.0] * 2, "rows": late(60.0), "warm_s": 180.0, "most": 9}
JOBS["grows",] = FULL | GROWS


@pytest.mark.parametrize(("of", "value"), [("metric_delay_s", 60.0), ("warm_up_s", 180.0)])
def test_rescales_without_a_pause_show_neither_a_delay_nor_a_warm_up(of, value):
    assert learned("grows", of=of) == pytest.approx(value, abs=2 * TICK_S)


def requested(*sizes):
    """The changes of a job whose workers are requested 45 s before they are ready."""
    coming = list(sizes)

    def change(running, second):
        if second == 120:
            running.workers = coming.pop(0)
        running.more = lambda at_s: {"spec_workers": coming[0]} if 60 <= second < 120 else {}

    return change


SIZES = {
    "one scale-up": (9, 12),
    "several": (9, 12, 14, 16, 18),
    "scale-downs after it": (9, 20, 19, 18, 17, 16, 15),
}


JOBS |= {
    (name, pause_s): {"pauses_s": [pause_s] * len(sizes), "change": requested(*sizes)}
    for name, sizes in SIZES.items()
    for pause_s in (0.0, 57.0)
}


@pytest.mark.parametrize("pause_s", [0.0, 57.0])
@pytest.mark.parametrize("sizes", SIZES)
def test_the_time_until_new_workers_are_ready_is_measured(pause_s, sizes):
    """The first rescale comes before the samples rise steadily, and is not measured."""
    assert learned(sizes, pause_s, of="worker_start_s") == pytest.approx(45.0, abs=TICK_S)


READY = {  # workers of which 13 were requested at 0 s, from some times on
    "all at once": ({45: 13}, 45.0),
    "one after the other": ({30: 11, 45: 12, 75: 13}, 75.0),
    "some are lost later": ({45: 13, 120: 9, 180: 13}, 45.0),
    "one never starts": ({45: 12}, UNTIL_MEASURED["worker_start_s"]),
}


@cache
def after_starts():
    """The settings in the end, by READY."""
    seen, state = {case: counts(10) for case in READY}, EMPTY
    rules = RuleBook(by_workload=dict.fromkeys(READY, Rules(policy="drain")))
    for at_s in range(-300, 601, TICK_S):
        for case, (ready, _) in READY.items():
            seen[case] |= {"spec_workers": 13, "workers": 13} if at_s == 0 else {}
            seen[case] |= {"ready_workers": ready[at_s]} if at_s in ready else {}
        stream = flow(at_s + 300.0, throughput=800)
        state, decisions = advance(
            state, tick(float(at_s), *(job(case, **seen[case], **stream) for case in seen)), rules
        )
    return {case: settings(decisions, case) for case in READY}


@pytest.mark.parametrize("case", READY)
def test_a_start_ends_when_all_new_workers_are_ready(case):
    _, start_s = READY[case]
    assert after_starts()[case]["worker_start_s"] == start_s


def not_ready_in_a_pause(running):
    ready = 0 if running.at_s < running.stopped_until_s else running.workers
    return [row for row in running.rows() if row[2] != "ready_workers"] + job(ready_workers=ready)


def never_ready(running):
    return [row for row in running.rows() if row[2] != "ready_workers"] + job(ready_workers=9)


JOBS |= {(rows.__name__,): {"pauses_s": [57.0] * 4, "rows": rows} for rows in (not_ready_in_a_pause, never_ready)}


def test_a_job_that_stops_until_its_new_workers_are_ready_does_not_wait_for_them():
    assert learned("not_ready_in_a_pause", of="worker_start_s") == 0.0


def test_workers_that_never_become_ready_show_no_start():
    assert learned("never_ready", of="worker_start_s") == UNTIL_MEASURED["worker_start_s"]


TARGETS = {  # the pause, rules -> the target
    "a short backlog": (20.0, {}, 60.0),
    "a longer one": (57.0, {}, 57.0 + 180.0 / 4),
    "with a replay": (57.0, {"replay_s": 60.0}, 57.0 + 180.0 / 4 + 30.0),
    "late metrics": (57.0, {"metric_delay_s": 30.0}, 57.0 + 180.0 / 4 - 30.0),
    "very late metrics": (57.0, {"metric_delay_s": 120.0}, 60.0),
    "at most three minutes": (200.0, {}, 180.0),
    "a price of minutes over the target": (57.0, {"late_minute_price": 1.0}, 60.0),
    "a policy that does not weigh a rescale": (57.0, {"policy": "beam-flink"}, 60.0),
}


WARM = {"warm_up_s": 180.0, "metric_delay_s": 0.0}
JOBS |= {(name,): {"pauses_s": [pause_s] * 3, **WARM | rules} for name, (pause_s, rules, _) in TARGETS.items()}


@pytest.mark.parametrize("case", TARGETS)
def test_an_unset_target_is_the_backlog_that_a_rescale_makes_if_that_is_longer(case):
    *_, target_s = TARGETS[case]
    assert learned(case, of="backlog_time_target_s") == pytest.approx(target_s, abs=TICK_S / 2)


JOBS |= {
    (of, value_s): {"pauses_s": [57.0] * 3, "rows": late(60.0), "warm_s": 180.0, of: value_s}
    for of, default_s in UNTIL_MEASURED.items()
    for value_s in (200.0, default_s)
}


@pytest.mark.parametrize("of", UNTIL_MEASURED)
def test_a_cost_that_is_set_stays(of):
    assert learned(of, 200.0, of=of) == 200.0


@pytest.mark.parametrize("of", UNTIL_MEASURED)
def test_a_value_that_is_used_until_it_is_measured_stays_if_it_is_set(of):
    assert learned(of, UNTIL_MEASURED[of], of=of) == UNTIL_MEASURED[of]


@pytest.mark.parametrize("of", ["warm_up_s", "metric_delay_s"])
def test_a_job_without_a_pause_keeps_the_settings_that_a_pause_shows(of):
    assert learned("no pause", of=of) == UNTIL_MEASURED[of]


JOBS["one late rescale",] = {"pauses_s": [57.0] * 2, "rows": late(60.0)}
JOBS["one late rescale that warms up",] = {"pauses_s": [57.0] * 2, "rows": late(60.0), "warm_s": 30.0}


def test_one_rescale_shows_the_delay_but_no_warm_up():
    """The first of the two comes before the samples rise steadily, and is not measured."""
    assert learned("one late rescale", of="metric_delay_s") == pytest.approx(60.0, abs=TICK_S)
    assert learned("one late rescale that warms up", of="warm_up_s") == UNTIL_MEASURED["warm_up_s"]


NO_PAUSE = pytest.approx(UNTIL_MEASURED["metric_delay_s"])
SHOWN = pytest.approx(180.0, abs=TICK_S)


ODD_STOPS = {  # pauses -> the delay
    "one odd stop at the end": ([0.0, 0.0, 0.0, 57.0], NO_PAUSE),
    "one odd stop at the beginning": ([0.0, 57.0, 0.0, 0.0], NO_PAUSE),
    "two of five": ([0.0, 57.0, 0.0, 57.0, 0.0, 0.0], NO_PAUSE),
    "one of two": ([0.0, 57.0, 0.0], SHOWN),
    "two of four": ([0.0, 0.0, 57.0, 0.0, 57.0], SHOWN),
    "three of five": ([0.0, 0.0, 0.0, 57.0, 57.0, 57.0], SHOWN),
}


JOBS |= {(name,): {"pauses_s": each, "rows": late(180.0)} for name, (each, _) in ODD_STOPS.items()}
JOBS["most show no pause",] = {"pauses_s": [0.0] + [57.0] * 3 + [0.0] * 4, "rows": late(180.0)}


@pytest.mark.parametrize("case", ODD_STOPS)
def test_a_delay_does_not_count_while_most_rescales_show_no_pause(case):
    """The first rescale comes before the samples rise steadily, and is not measured."""
    _, delay_s = ODD_STOPS[case]
    assert learned(case, of="metric_delay_s") == delay_s


def test_a_delay_that_three_rescales_have_shown_stays_while_most_show_no_pause():
    assert learned("most show no pause", of="metric_delay_s") == SHOWN


def staying():
    """The count of the workers falls with the pause of a scale-down, and rises before that of a scale-up."""
    delayed, most = late(120.0), [10.0]

    def rows(running):
        paused = running.at_s < running.stopped_until_s
        most[0] = float(max(most[0], running.workers)) if paused else float(running.workers)
        known = [row for row in delayed(running) if row[2] not in ("workers", "ready_workers")]
        return [*known, *job(workers=most[0], ready_workers=most[0])]

    return rows


def late_at_first():
    early, present = late(60.0), late(0.0)

    def rows(running):
        seen = early(running), present(running)
        return seen[running.at_s > 950]

    return rows


JOBS["workers stay",] = {"pauses_s": [57.0] * 7, "rows": staying()}
JOBS["late at first",] = {"pauses_s": [57.0] * 3, "rows": late_at_first()}


def test_workers_that_stay_until_the_pause_ends_do_not_shorten_the_delay():
    assert learned("workers stay", of="metric_delay_s") == pytest.approx(120.0, abs=TICK_S)


def test_of_two_rescales_the_longer_delay_counts():
    assert learned("late at first", of="metric_delay_s") == pytest.approx(60.0, abs=TICK_S)


def slow_start(until_s=480, load=1000.0, **rules):
    """The capacity of 20 workers, of 2000/s when warm, that were full at half their speed until their backlog ended."""
    running = Fluid(lambda at_s: 800.0 if at_s < 300 else load if at_s < until_s else 600.0)
    state, named = EMPTY, book(**{"policy": "drain"} | rules)
    while running.at_s < until_s + 420:
        busy = 1.0 if running.appended > running.processed else running.busy
        seen = replace(running, more=lambda _, busy=busy: {"utilization_ratio": busy}).rows()
        state, decisions = advance(state, tick(running.at_s, seen), named)
        if running.at_s == 300:
            running.pause_s, running.warm_up_s = 57.0, 3 * until_s - 1000
            running.scale(20)
        running.run()
    return decisions.numbers["capacity_records_per_s"][0]


@pytest.mark.parametrize("rules", [{}, {"metric_delay_s": 0.0}, {"warm_up_s": 60.0}], ids=str)
def test_a_throughput_during_a_warm_up_of_unknown_length_is_no_lasting_capacity(rules):
    """The utilization corrects it."""
    assert slow_start(**rules) == pytest.approx(2000, rel=0.1)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"metric_delay_s": 0.0, "warm_up_s": 60.0}, id="both are set"),
        pytest.param({"policy": "dataflow", "until_s": 600}, id="a published policy does not learn them"),
        pytest.param({"until_s": 1200, "load": 1300.0}, id="more than ten minutes after the rescale"),
    ],
)
def test_a_full_job_shows_its_capacity_outside_a_warm_up_of_unknown_length(given):
    assert slow_start(**given) < 1500


def warming(running, until_s, change_s=300, each=100.0, **rules):
    """The decisions of each tick, by second; 10 workers become 20 of this speed, pause 57 s and warm up for 180 s."""
    named, state, decided = book(policy="drain", **WARMING | rules), EMPTY, {}
    while running.at_s <= until_s:
        state, decisions = advance(state, tick(running.at_s, running.rows()), named)
        decided[running.at_s] = rows(decisions)[0]
        if running.at_s == change_s:
            running.pause_s, running.warm_up_s, running.each = 57.0, 180.0, each
            running.scale(20)
        running.run()
    return decided


def test_a_rate_that_includes_the_warm_up_is_no_capacity():
    """The job is full from the rescale on. Its utilization shows the capacity of 20 workers, 2000/s."""
    decided = warming(Fluid(lambda at_s: 800.0 if at_s < 300 else 3000.0), 885)
    capacities = [decision.capacity_records_per_s for at_s, decision in decided.items() if at_s >= 315]
    assert capacities == pytest.approx([2000.0] * len(capacities), rel=0.02)


def test_an_overloaded_job_shows_no_capacity_while_it_warms_up():
    """Its utilization is unknown and its backlog grows, so each throughput exceeds all that it has carried."""
    running = Fluid(lambda at_s: 800.0 if at_s < 300 else 3000.0)
    running.missing = lambda at_s: ("utilization_ratio",)
    decided = warming(running, 885)
    assert min(at_s for at_s, d in decided.items() if d.confidence == "observed") >= 300 + 57 + 180 + 60


@pytest.mark.parametrize("rate_window_s", [60.0, 600.0])
def test_a_job_that_rescales_as_soon_as_it_is_warm_shows_its_capacity(rate_window_s):
    """20 workers carry 1200/s, while 10 carried 1000/s. They are warm for less than a rate window."""
    running, until_s = Fluid(lambda at_s: 3000.0), 600 + 237 + max(45, rate_window_s / 2)
    decided = warming(running, until_s, change_s=600, each=60.0, rate_window_s=rate_window_s)
    *_, last = decided.values()
    assert last.capacity_records_per_s == pytest.approx(1200.0, rel=0.02)


def test_a_scale_up_is_not_judged_by_the_throughput_of_the_warm_up():
    """One more worker carries its share. Its warm-up fills most of the window when it is judged."""
    running, state = Fluid(lambda at_s: 800.0 if at_s < 600 else 1150.0 if at_s < 900 else 2000.0), EMPTY
    running.missing = lambda at_s: ("utilization_ratio",)
    named = book(policy="drain", max_step_up_workers=1, rate_window_s=600.0, **WARMING)
    while running.at_s < 1800:
        state, decisions = advance(state, tick(running.at_s, running.rows()), named)
        running.pause_s, running.warm_up_s = 57.0, 180.0
        running.scale(rows(decisions)[0].required_workers)
        running.run()
    assert running.workers > 11
    assert np.isnan(state.slow.trial.blocked_until_s).all()


def test_a_neighbour_with_a_longer_window_changes_no_measurement():
    """A counter that begins anew at each rescale rises steadily in a short window alone."""

    def last_pauses(*neighbours):
        rules = {JOB: Rules(policy="drain")} | {name: Rules(rate_window_s=600.0) for name in neighbours}
        running, state, before = Fluid(lambda at_s: 800.0), EMPTY, 0.0
        for at_s in range(0, 2700, TICK_S):
            seen = replace(running, processed=running.processed - before).rows()
            others = [job(name, **counts(), **flow(at_s)) for name in neighbours]
            state, _ = advance(state, tick(at_s, seen, *others), RuleBook(by_workload=rules))
            if at_s % 450 == 435:
                running.pause_s = 90.0
                running.scale(21 - running.workers)
                before = running.processed
            running.run()
        return state.slow.last_rescales.pause_s[:, list(state.slow.workloads).index(JOB)].tolist()

    alone = last_pauses()
    assert np.isfinite(alone).sum() >= 3
    assert last_pauses("shop/other") == pytest.approx(alone, nan_ok=True)


def test_a_first_count_of_the_workers_begins_no_measurement():
    """An outage without a rescale is no pause: only the rescale after it counts, which has none."""
    running, state, named = Fluid(lambda at_s: 800.0), EMPTY, book(policy="drain")
    for at_s in range(0, 3600, TICK_S):
        seen = [row for row in running.rows() if at_s > 300 or not row[2].endswith("workers")]
        state, _ = advance(state, tick(at_s, seen), named)
        if at_s == 900:
            running.stopped_until_s = at_s + 600.0
        if at_s == 2700:
            running.scale(20)
        running.run()
    assert state.slow.last_rescales.pause_s[-1].tolist() == [0.0]


def silent(running):
    """A job that reports nothing while it is down, and whose counters begin anew."""
    if running.at_s < running.stopped_until_s:
        return job(**counts(running.workers))
    return running.rows()


def restarted(running):
    """The counter of a job that forgets what it processed before its last stop."""
    before = getattr(restarted, "before", 0.0)
    if running.at_s < running.stopped_until_s:
        restarted.before = running.processed
        return job(**counts(running.workers))
    return replace(running, processed=running.processed - before, appended=running.appended - before).rows()


JOBS |= {(rows.__name__,): {"pauses_s": [57.0] * 3, "rows": rows} for rows in (silent, restarted)}


@pytest.mark.parametrize("rows", [silent, restarted])
def test_a_job_that_is_silent_while_it_is_down_is_measured(rows):
    assert learned(rows.__name__) == pytest.approx(57.0, abs=TICK_S)


def committed_rarely(running):
    return replace(running, processed=running.processed // 48_000 * 48_000).rows()


JOBS["less input",] = {"pauses_s": [0.0] * 3, "load": lambda at_s: 800.0 if at_s % LEFT_S < 120 else 300.0}
JOBS["committed rarely",] = {"pauses_s": [57.0] * 3, "rows": committed_rarely}


def test_less_input_is_no_stop():
    """The input halves in each rescale."""
    assert learned("less input") == 0.0


def test_a_counter_that_is_committed_rarely_is_not_measured():
    assert learned("committed rarely") == CONFIGURED_S


PUBLISHED = [name for name in POLICIES if name not in ("drain", "segments")]
JOBS |= {(policy,): {"pauses_s": [57.0] * 3, "policy": policy} for policy in PUBLISHED}


@pytest.mark.parametrize("policy", PUBLISHED)
@pytest.mark.parametrize("of", CONFIGURED)
def test_a_published_policy_keeps_its_settings(policy, of):
    assert learned(policy, of=of) == CONFIGURED[of]
