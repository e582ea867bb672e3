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


def learned_each(cases):
    """The settings that count in the end in jobs side by side. cases: by name, the arguments of `rescaled`, and rules.

    A job that ends earlier than another has no samples from then on.
    """
    jobs = [rescaled(**{name: case[name] for name in SIMULATED & case.keys()}) for case in cases.values()]
    rules = [{name: case[name] for name in case.keys() - SIMULATED} for case in cases.values()]
    named = {name: Rules(**{"policy": "drain"} | CONFIGURED | own) for name, own in zip(cases, rules, strict=True)}
    state, last = EMPTY, {}
    for number, seen in enumerate(zip_longest(*jobs, fillvalue=())):
        of_each = [[(name, *row[1:]) for row in rows] for name, rows in zip(cases, seen, strict=True)]
        state, decisions = advance(state, tick(float(number * TICK_S), *of_each), RuleBook(by_workload=named))
        last |= {name: decisions for name, rows in zip(cases, seen, strict=True) if rows}
    return {name: settings(decisions, name) for name, decisions in last.items()}


def settings(decisions, workload):
    """The rules of a workload in a record."""
    place = decisions.text["workload"].index(workload)
    return {name.removeprefix("rules."): column[place] for name, column in decisions.record.items()}


def learned(*pauses_s, of="rescale_pause_s", **more):
    """The setting that counts after rescales with these pauses. more: as of learned_each."""
    return learned_each({JOB: {"pauses_s": pauses_s, **more}})[JOB][of]


PAUSES_S = (20.0, 57.0, 130.0)


@cache
def after_three_rescales():
    return learned_each({str(pause_s): {"pauses_s": [pause_s] * 3} for pause_s in PAUSES_S})


@pytest.mark.parametrize("pause_s", PAUSES_S)
def test_three_rescales_replace_the_setting(pause_s):
    assert after_three_rescales()[str(pause_s)]["rescale_pause_s"] == pytest.approx(pause_s, abs=TICK_S / 2)


def test_a_rescale_of_a_job_that_catches_up_shows_the_whole_pause():
    """After 300 s it processes 1 100/s of 800/s input for longer than it takes until the next rescale."""
    assert learned(*[300.0] * 3) == pytest.approx(300.0, abs=TICK_S / 2)


def test_two_rescales_do_not_replace_the_setting():
    assert learned(57.0, 57.0) == CONFIGURED_S


@cache
def before_an_event():
    """After two and three rescales. The event begins 650 s after the last tick."""

    def case(rescales):
        last_s = rescales * (LEFT_S + 300) + LEFT_S
        event = Event(begin_s=last_s + 650, end_s=last_s + 900, times=1.5)
        return {"pauses_s": [300.0] * rescales, "warm_up_s": 400.0, "expected": (event,)}

    return learned_each({str(rescales): case(rescales) for rescales in (2, 3)})


@pytest.mark.parametrize(("rescales", "expecting"), [(2, 0.0), (3, 1.0)])
def test_an_expected_event_counts_as_early_as_a_measured_pause_requires(rescales, expecting):
    """The event begins within the pause of 300 s and the warm-up of 400 s."""
    assert before_an_event()[str(rescales)]["expecting"] == expecting


def test_one_odd_rescale_changes_nothing():
    assert learned(57.0, 57.0, 57.0, 600.0) == pytest.approx(57.0, abs=TICK_S / 2)


@cache
def without_a_pause():
    return learned_each({JOB: {"pauses_s": [0.0] * 3}})[JOB]


def test_a_job_without_a_pause_needs_none():
    assert without_a_pause()["rescale_pause_s"] == 0.0


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


@cache
def while_less_is_processed():
    return learned_each({name: {"pauses_s": [0.0] * 3, **case} for name, case in LESS.items()})


@pytest.mark.parametrize("case", LESS)
@pytest.mark.parametrize("of", ["rescale_pause_s", "metric_delay_s"])
def test_a_job_with_a_backlog_that_processes_less_for_another_reason_does_not_stop(case, of):
    assert while_less_is_processed()[case][of] == 0.0


def test_old_rescales_are_forgotten():
    assert learned(*[20.0] * 3, *[90.0] * 4) == pytest.approx(90.0, abs=TICK_S / 2)


def late(delay_s):
    """Samples that are older than their time."""
    past = {}

    def rows(running):
        past[running.at_s] = replace(running)
        seen = past.get(running.at_s - delay_s, past[0.0])
        return replace(seen, workers=running.workers).rows()

    return rows


DELAYS_S, WARM_UPS_S = (0.0, 60.0, 120.0), (0.0, 90.0, 180.0)


@cache
def with_delays():
    # The first rescale comes before the samples rise steadily.
    return learned_each({str(delay_s): {"pauses_s": [57.0] * 4, "rows": late(delay_s)} for delay_s in DELAYS_S})


@pytest.mark.parametrize("delay_s", DELAYS_S)
def test_the_delay_of_the_samples_is_measured_by_the_pause(delay_s):
    assert with_delays()[str(delay_s)]["metric_delay_s"] == pytest.approx(delay_s, abs=TICK_S)


@cache
def with_warm_ups():
    return learned_each({str(warm_s): {"pauses_s": [57.0] * 3, "warm_s": warm_s} for warm_s in WARM_UPS_S})


@pytest.mark.parametrize("warm_up_s", WARM_UPS_S)
def test_the_time_until_the_throughput_rises_no_more_is_measured(warm_up_s):
    assert with_warm_ups()[str(warm_up_s)]["warm_up_s"] == pytest.approx(warm_up_s, abs=2 * TICK_S)


def test_a_rescale_whose_backlog_ends_early_does_not_shorten_the_warm_up():
    """The input of every other rescale is low, so that half of the speed is enough."""
    found = learned(*[57.0] * 5, load=lambda at_s: 800.0 if at_s % 954 < 477 else 200.0, warm_s=180.0, of="warm_up_s")
    assert found == pytest.approx(180.0, abs=2 * TICK_S)


def vary(running, second):
    """The workers are 3 % faster in every other minute."""
    running.each = 103.0 if second % 120 < 60 else 100.0


def scale_again(running, second):
    """More workers start without a pause, one minute after the pause."""
    if second == 240:
        running.pause_s = 0.0
        running.scale(2 * running.workers)


@cache
def while_it_rises():
    full = {"pauses_s": [57.0] * 3, "load": lambda at_s: 3000.0}
    return learned_each({change.__name__: {"change": change, **full} for change in (vary, scale_again)})


@pytest.mark.parametrize("change", [vary, scale_again])
def test_a_throughput_that_rises_for_another_reason_is_no_warm_up(change):
    assert while_it_rises()[change.__name__]["warm_up_s"] <= 2 * TICK_S


def test_a_warm_up_that_another_change_cuts_off_is_unknown():
    """The new workers are ready some time after each pause, while the job still warms up for 180 s."""

    def rows(running):
        ready = running.at_s - running.stopped_until_s >= 45
        return [row for row in running.rows() if row[2] != "ready_workers"] + job(ready_workers=20 if ready else 8)

    given = {"load": lambda at_s: 3000.0, "rows": rows, "warm_s": 180.0, "of": "warm_up_s"}
    assert learned(*[57.0] * 5, **given) == UNTIL_MEASURED["warm_up_s"]


@cache
def while_it_grows():
    """Of a job that is behind and grows all the time, so that its throughput rises with each rescale."""
    growing = {"load": lambda at_s: 3000.0, "rows": late(60.0), "warm_s": 180.0, "most": 9}
    return learned_each({JOB: {"pauses_s": [57.0] * 4 + [0.0] * 2, **growing}})[JOB]


@pytest.mark.parametrize(("of", "value"), [("metric_delay_s", 60.0), ("warm_up_s", 180.0)])
def test_rescales_without_a_pause_show_neither_a_delay_nor_a_warm_up(of, value):
    assert while_it_grows()[of] == pytest.approx(value, abs=2 * TICK_S)


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


@cache
def after_requests():
    """After rescales without a pause, and with one, to each of SIZES."""
    return learned_each(
        {
            f"{name}, {pause_s}": {"pauses_s": [pause_s] * len(sizes), "change": requested(*sizes)}
            for name, sizes in SIZES.items()
            for pause_s in (0.0, 57.0)
        }
    )


@pytest.mark.parametrize("pause_s", [0.0, 57.0])
@pytest.mark.parametrize("sizes", SIZES)
def test_the_time_until_new_workers_are_ready_is_measured(pause_s, sizes):
    """The first rescale comes before the samples rise steadily, and is not measured."""
    assert after_requests()[f"{sizes}, {pause_s}"]["worker_start_s"] == pytest.approx(45.0, abs=TICK_S)


READY = {  # workers of which 13 were requested at 0 s, from some times on
    "all at once": ({45: 13}, 45.0),
    "one after the other": ({30: 11, 45: 12, 75: 13}, 75.0),
    "some are lost later": ({45: 13, 120: 9, 180: 13}, 45.0),
    "one never starts": ({45: 12}, UNTIL_MEASURED["worker_start_s"]),
}


@pytest.mark.parametrize(("ready", "start_s"), READY.values(), ids=READY)
def test_a_start_ends_when_all_new_workers_are_ready(ready, start_s):
    seen, state = {"spec_workers": 10, "workers": 10, "ready_workers": 10}, EMPTY
    for at_s in range(-300, 601, TICK_S):
        seen |= {"spec_workers": 13, "workers": 13} if at_s == 0 else {}
        seen |= {"ready_workers": ready[at_s]} if at_s in ready else {}
        samples = tick(float(at_s), job(**seen, **flow(at_s + 300.0, throughput=800)))
        state, decisions = advance(state, samples, book(policy="drain"))
    assert decisions.record["rules.worker_start_s"][0] == start_s


def test_a_job_that_stops_until_its_new_workers_are_ready_does_not_wait_for_them():
    def rows(running):
        ready = 0 if running.at_s < running.stopped_until_s else running.workers
        return [row for row in running.rows() if row[2] != "ready_workers"] + job(ready_workers=ready)

    assert learned(*[57.0] * 4, rows=rows, of="worker_start_s") == 0.0


def test_workers_that_never_become_ready_show_no_start():
    def rows(running):
        return [row for row in running.rows() if row[2] != "ready_workers"] + job(ready_workers=9)

    assert learned(*[57.0] * 4, rows=rows, of="worker_start_s") == UNTIL_MEASURED["worker_start_s"]


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


@cache
def with_targets():
    warm = {"warm_up_s": 180.0, "metric_delay_s": 0.0}
    return learned_each(
        {name: {"pauses_s": [pause_s] * 3, **warm | rules} for name, (pause_s, rules, _) in TARGETS.items()}
    )


@pytest.mark.parametrize("case", TARGETS)
def test_an_unset_target_is_the_backlog_that_a_rescale_makes_if_that_is_longer(case):
    *_, target_s = TARGETS[case]
    assert with_targets()[case]["backlog_time_target_s"] == pytest.approx(target_s, abs=TICK_S / 2)


@cache
def with_a_cost_of(value_s):
    """Of jobs with one of UNTIL_MEASURED set, to its default if value_s is None."""
    return learned_each(
        {
            of: {
                "pauses_s": [57.0] * 3,
                "rows": late(60.0),
                "warm_s": 180.0,
                of: default_s if value_s is None else value_s,
            }
            for of, default_s in UNTIL_MEASURED.items()
        }
    )


@pytest.mark.parametrize("of", UNTIL_MEASURED)
def test_a_cost_that_is_set_stays(of):
    assert with_a_cost_of(200.0)[of][of] == 200.0


@pytest.mark.parametrize("of", UNTIL_MEASURED)
def test_a_value_that_is_used_until_it_is_measured_stays_if_it_is_set(of):
    assert with_a_cost_of(None)[of][of] == UNTIL_MEASURED[of]


@pytest.mark.parametrize("of", ["warm_up_s", "metric_delay_s"])
def test_a_job_without_a_pause_keeps_the_settings_that_a_pause_shows(of):
    assert without_a_pause()[of] == UNTIL_MEASURED[of]


def test_one_rescale_shows_the_delay_but_no_warm_up():
    """The first of the two comes before the samples rise steadily, and is not measured."""
    rows = late(60.0)
    assert learned(57.0, 57.0, rows=rows, of="metric_delay_s") == pytest.approx(60.0, abs=TICK_S)
    assert learned(57.0, 57.0, rows=rows, warm_s=30.0, of="warm_up_s") == UNTIL_MEASURED["warm_up_s"]


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


@cache
def after_odd_stops():
    return learned_each({name: {"pauses_s": each, "rows": late(180.0)} for name, (each, _) in ODD_STOPS.items()})


@pytest.mark.parametrize("case", ODD_STOPS)
def test_a_delay_does_not_count_while_most_rescales_show_no_pause(case):
    """The first rescale comes before the samples rise steadily, and is not measured."""
    _, delay_s = ODD_STOPS[case]
    assert after_odd_stops()[case]["metric_delay_s"] == delay_s


def test_a_delay_that_three_rescales_have_shown_stays_while_most_show_no_pause():
    assert learned(*[0.0] + [57.0] * 3 + [0.0] * 4, rows=late(180.0), of="metric_delay_s") == SHOWN


def test_workers_that_stay_until_the_pause_ends_do_not_shorten_the_delay():
    """The count of the workers falls with the pause of a scale-down, and rises before that of a scale-up."""
    delayed, most = late(120.0), [10.0]

    def rows(running):
        paused = running.at_s < running.stopped_until_s
        most[0] = float(max(most[0], running.workers)) if paused else float(running.workers)
        known = [row for row in delayed(running) if row[2] not in ("workers", "ready_workers")]
        return [*known, *job(workers=most[0], ready_workers=most[0])]

    found = learned(*[57.0] * 7, rows=rows, of="metric_delay_s")
    assert found == pytest.approx(120.0, abs=TICK_S)


def test_of_two_rescales_the_longer_delay_counts():
    early, present = late(60.0), late(0.0)

    def rows(running):
        seen = early(running), present(running)
        return seen[running.at_s > 950]

    assert learned(57.0, 57.0, 57.0, rows=rows, of="metric_delay_s") == pytest.approx(60.0, abs=TICK_S)


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

    assert np.isfinite(last_pauses()).sum() >= 3
    assert last_pauses("shop/other") == pytest.approx(last_pauses(), nan_ok=True)


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


@cache
def silent_while_down():
    restarted.before = 0.0
    return learned_each({rows.__name__: {"pauses_s": [57.0] * 3, "rows": rows} for rows in (silent, restarted)})


@pytest.mark.parametrize("rows", [silent, restarted])
def test_a_job_that_is_silent_while_it_is_down_is_measured(rows):
    found = silent_while_down()[rows.__name__]["rescale_pause_s"]
    assert found == pytest.approx(57.0, abs=TICK_S)


def test_less_input_is_no_stop():
    """The input halves in each rescale."""
    assert learned(0.0, 0.0, 0.0, load=lambda at_s: 800.0 if at_s % LEFT_S < 120 else 300.0) == 0.0


def test_a_counter_that_is_committed_rarely_is_not_measured():
    def rows(running):
        done = running.processed // 48_000 * 48_000
        return replace(running, processed=done).rows()

    assert learned(57.0, 57.0, 57.0, rows=rows) == CONFIGURED_S


PUBLISHED = [name for name in POLICIES if name not in ("drain", "segments")]


@cache
def of_published():
    return learned_each({policy: {"pauses_s": [57.0] * 3, "policy": policy} for policy in PUBLISHED})


@pytest.mark.parametrize("policy", PUBLISHED)
@pytest.mark.parametrize("of", CONFIGURED)
def test_a_published_policy_keeps_its_settings(policy, of):
    assert of_published()[policy][of] == CONFIGURED[of]
