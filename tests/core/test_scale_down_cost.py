"""When a scale-down pays: the saving of a smaller size against the cost of a rescale."""

from dataclasses import replace
from functools import cache
from math import e, nan

import numpy as np
import pytest
from builders import (
    EMPTY,
    Fluid,
    advance,
    book,
    closed,
    closed_each,
    column,
    counts,
    flow,
    history_each,
    job,
    replay,
    rows,
    tick,
)
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.bounds import BOUNDS
from adapter.core.decide import decide
from adapter.core.decision_input import DAY_S
from adapter.core.decisions import Bound, Reason
from adapter.core.messages import sentence
from adapter.core.record import decision_input_of
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.core.scale_down_cost import Bucket, CurrentSize, FewerWorkers, paying_workers
from adapter.core.state import BUCKETS

HUNDRED = {"policy": "drain", "worker_capacity_records_per_s": 100.0, "cooldown_down_s": 0.0}
WIDTH_S = 360.0
WORTH_S = 300.0


def paying(**known):
    """Of one job. peaks: of the closed buckets, oldest first; before them nothing was seen."""
    usual = {"running": nan, "age_s": 0.0, "current": 10.0, "since_s": DAY_S, "worth_s": WORTH_S}
    usual |= {"account": nan, "account_s": nan}
    lane = {name: column(value) for name, value in (usual | known).items() if name != "peaks"}
    seen = [nan] * (BUCKETS - len(known["peaks"])) + list(known["peaks"])
    return paying_workers(
        np.array(seen, dtype=float)[:, None],
        Bucket(largest_workers=lane["running"], age_s=lane["age_s"], width_s=column(WIDTH_S)),
        FewerWorkers(largest_workers=lane["account"], age_s=lane["account_s"]),
        CurrentSize(current_workers=lane["current"], since_s=lane["since_s"]),
        lane["worth_s"],
    )[0]


# --- when it pays


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"peaks": [10], "running": 0, "age_s": 299}, 10),
        ({"peaks": [10], "running": 0, "age_s": 300}, 0),
        ({"peaks": [10], "running": 5, "age_s": 345}, 10),
        ({"peaks": [10, 5], "running": 5, "age_s": 240}, 5),
        ({"peaks": [10, 8, 8, 8], "running": 8, "age_s": 345}, 10),
        ({"peaks": [10, 8, 8, 8, 8], "running": 8, "age_s": 75}, 8),
        ({"peaks": [9] * BUCKETS, "running": 9, "age_s": 0}, 9),
        ({"peaks": [9] * BUCKETS, "running": 9, "age_s": 0, "worth_s": 375}, 10),
        ({"peaks": [10, 8, 8, 8, 8, 2], "running": 2, "age_s": 150}, 2),
        ({"peaks": [10, 8, 8, 8, 8, 8, 8, 2], "running": 2, "age_s": 150}, 2),
        ({"peaks": [], "running": 2, "age_s": 345}, 10),
        ({"peaks": [2] * 5, "running": 2, "age_s": 300, "since_s": 345}, 10),
        ({"peaks": [2] * 5, "running": 2, "age_s": 300, "since_s": 375}, 2),
        ({"peaks": [12] * 5, "running": 11, "age_s": 300}, 10),
        ({"peaks": [2] * 5, "running": nan, "age_s": 300}, 10),
        ({"peaks": [2, 2, 2, nan], "running": 2, "age_s": 300}, 10),
        ({"peaks": [0] * 5, "running": 0, "age_s": 300, "current": 0}, 0),
        ({"peaks": [9] * BUCKETS, "running": 9, "worth_s": 600, "account": 9, "account_s": 5999}, 10),
        ({"peaks": [9] * BUCKETS, "running": 9, "worth_s": 600, "account": 9, "account_s": 6001}, 9),
        ({"peaks": [9] * BUCKETS, "running": 10, "worth_s": 600, "account": 9, "account_s": DAY_S}, 10),
        ({"peaks": [10, 8], "running": 7, "age_s": 345, "account": 9, "account_s": 3001}, 9),
    ],
    ids=[
        "nothing is needed: not yet",
        "nothing is needed: after the worth itself",
        "half: not in the same time",
        "half: in twice the time",
        "a fifth: not in four times",
        "a fifth: in five times",
        "a tenth: at the end of the window",
        "a tenth that is worth more: never",
        "one of two sizes pays",
        "two sizes pay: the smaller one",
        "what was before the window is not known, and saved nothing",
        "before the last change another size was there: not yet",
        "before the last change another size was there: now",
        "more was needed than is there",
        "the running bucket has no sample",
        "the bucket before it has no sample",
        "none is there",
        "a tenth that is worth more: not before the account has saved it",
        "a tenth that is worth more: once the account has saved it",
        "the account ends when all are needed",
        "the account pays, the window does not yet",
    ],
)
def test_a_scale_down_pays_once_it_would_have_saved_the_cost_of_a_rescale(known, expected):
    assert paying(**known) == expected


# A pause of 57 s and the slow start make a backlog of 102 s; it is over the target for 210 s.
PRICES = {  # what a scale-down has to save
    "no price: what follows from the pause": ({}, 180),
    "lateness alone cannot be compared": ({"late_minute_price": 2.0}, 180),
    "workers alone cannot be compared": ({"worker_hour_price": 1.0}, 180),
    "workers that cost nothing": ({"worker_hour_price": 0.0, "late_minute_price": 2.0}, 180),
    "lateness of 7, work of 20 an hour": ({"worker_hour_price": 1.0, "late_minute_price": 2.0}, 180 + 1260),
    "twice the price of the work": ({"worker_hour_price": 2.0, "late_minute_price": 2.0}, 180 + 630),
    "nothing is late": ({"worker_hour_price": 1.0, "late_minute_price": 2.0, "backlog_time_target_s": 120.0}, 180),
    "as set": ({"worker_hour_price": 1.0, "late_minute_price": 2.0, "rescale_worth_s": 60.0}, 60),
}


@cache
def half_needed():
    """The decisions for each of PRICES, while a job needs ten of its twenty workers."""
    rules = HUNDRED | {"rescale_pause_s": 57.0, "warm_up_s": 180.0, "down_window_s": 600.0}
    return history_each(
        PRICES,
        lambda _, at_s: counts(20) | flow(at_s, throughput=800),
        range(0, 3001, 15),
        lambda case: rules | PRICES[case][0],
    )


@pytest.mark.parametrize("case", PRICES)
def test_a_scale_down_also_pays_for_the_lateness_after_it_where_both_prices_are_set(case):
    _, worth_s = PRICES[case]
    down = next(each for each in half_needed()[case] if each.reason is Reason.DOWN)
    assert (down.required_workers, round((down.at_s - 2 * worth_s) / 120)) == (10, 0)


@pytest.mark.parametrize(
    ("worth_s", "after_s"),
    [
        pytest.param(1, 60, id="nothing: two ticks, a first step by the mean of both loads"),
        pytest.param(10, 90, id="little"),
        pytest.param(30, 240, id="half a minute"),
        pytest.param(60, 480, id="a minute"),
    ],
)
def test_the_cheaper_a_rescale_is_the_sooner_a_scale_down_follows_a_fall(worth_s, after_s):
    rules = book(policy="drain", worker_capacity_records_per_s=100.0, rescale_worth_s=worth_s)
    decided = closed(Fluid(lambda at_s: 1600.0 if at_s < 1800 else 700.0, workers=20), 2400, rules)
    assert next(each.at_s for each in decided if each.reason is Reason.DOWN) == 1800 + after_s
    assert decided[-1].required_workers == 9


# --- laws

sizes = st.one_of(st.just(nan), st.integers(0, 40).map(float))
lanes = st.fixed_dictionaries(
    {
        "peaks": st.lists(sizes, min_size=BUCKETS, max_size=BUCKETS),
        "running": sizes,
        "age_s": st.floats(0, WIDTH_S),
        "current": st.integers(0, 30).map(float),
        "since_s": st.floats(0, 2 * BUCKETS * WIDTH_S),
        "worth_s": st.floats(1, 2000),
    }
)


def needed(lane, count):
    """The largest size of the running bucket and of a number of buckets before it; NaN if one is unknown."""
    return np.max([lane["running"], *lane["peaks"][::-1][:count]])


@given(lanes)
def test_the_paying_size_is_the_present_one_or_one_that_saved_enough(lane):
    found = paying(**lane)
    assert found <= lane["current"]
    if found < lane["current"]:
        spans = [min(lane["age_s"] + n * WIDTH_S, lane["since_s"]) for n in range(BUCKETS + 1)]
        enough = [span for n, span in enumerate(spans) if needed(lane, n) == found]
        assert (1 - found / lane["current"]) * max(enough) >= lane["worth_s"]


@given(lanes)
def test_the_paying_size_is_never_below_the_recent_need(lane):
    assert not paying(**lane) < min(lane["running"], lane["current"])


@given(lanes, st.floats(1, 4))
def test_a_dearer_rescale_never_gives_a_smaller_size(lane, dearer):
    assert paying(**lane | {"worth_s": lane["worth_s"] * dearer}) >= paying(**lane)


@given(lanes, st.lists(st.integers(0, 10), min_size=BUCKETS + 1, max_size=BUCKETS + 1))
def test_a_larger_need_never_gives_a_smaller_size(lane, more):
    raised = [size + added for size, added in zip(lane["peaks"], more[1:], strict=True)]
    assert paying(**lane | {"peaks": raised, "running": lane["running"] + more[0]}) >= paying(**lane)


@given(lanes, st.integers(0, BUCKETS))
def test_a_bucket_without_samples_never_pays(lane, number):
    """From an unknown bucket on backwards nothing counts: it is as if the window began after it."""
    if number == BUCKETS:
        assert paying(**lane | {"running": nan}) == lane["current"]
    else:
        forgotten = [nan] * (number + 1) + lane["peaks"][number + 1 :]
        unseen = [*lane["peaks"][:number], nan, *lane["peaks"][number + 1 :]]
        assert paying(**lane | {"peaks": unseen}) == paying(**lane | {"peaks": forgotten})


@given(st.lists(lanes, min_size=1, max_size=5))
def test_the_paying_size_does_not_depend_on_other_jobs(jobs):
    parts = {name: np.array([lane[name] for lane in jobs], dtype=float) for name in jobs[0]}
    together = paying_workers(
        parts["peaks"].T,
        Bucket(largest_workers=parts["running"], age_s=parts["age_s"], width_s=np.full(len(jobs), WIDTH_S)),
        FewerWorkers(largest_workers=np.full(len(jobs), np.nan), age_s=np.full(len(jobs), np.nan)),
        CurrentSize(current_workers=parts["current"], since_s=parts["since_s"]),
        parts["worth_s"],
    )
    assert together.tolist() == [paying(**lane) for lane in jobs]


# --- in the fold


def fallen(to, when_s=600.0, workers=10):
    """A job of 800/s that 10 workers carry, and of `to` from when_s on."""
    return Fluid(lambda at_s: 800.0 if at_s < when_s else to, workers=workers)


def first_down(decided):
    return next((d.at_s for d in decided if d.reason in (Reason.DOWN, Reason.IDLE)), None)


PAUSES_S, WORTHS_S = (5.0, 10.0, 20.0, 30.0, 72.0, 120.0, 150.0), (300.0, 600.0, 3600.0)
FALLS = [  # the load to which it falls, and the rules
    *((load, {}) for load in (80.0, 400.0, 640.0, 720.0)),
    *((80.0, {"rescale_worth_s": worth_s}) for worth_s in (None, 0.0)),
    *((400.0, {"rescale_pause_s": pause_s}) for pause_s in PAUSES_S),
    *((400.0, {"rescale_worth_s": worth_s}) for worth_s in WORTHS_S),
]


@cache
def after_falls():
    """The decisions on a job for each of FALLS, and on "fluctuates": its load halves for 5 minutes of every 20."""
    jobs = {str(fall): fallen(fall[0]) for fall in FALLS}
    jobs["fluctuates"] = Fluid(lambda at_s: 400.0 if at_s % 1200 < 300 else 800.0)
    named = {str(fall): Rules(**HUNDRED | fall[1]) for fall in FALLS} | {"fluctuates": Rules(**HUNDRED)}
    return closed_each(jobs, 10_000.0, RuleBook(by_workload=named))


def first_downs(*falls):
    """When `drain` first removes workers after each of some FALLS."""
    return [first_down(after_falls()[str(fall)]) for fall in falls]


@pytest.mark.simulation
def test_a_scale_down_follows_a_deep_fall_soon_and_a_shallow_one_late():
    deep, half, shallow, none = first_downs(*((load, {}) for load in (80.0, 400.0, 640.0, 720.0)))
    assert 600 + 300 < deep < half < shallow < 600 + 3600
    assert none is None


@pytest.mark.simulation
def test_a_load_that_fluctuates_causes_no_scale_down():
    """Half of the load would have to last for ten minutes."""
    assert first_down(after_falls()["fluctuates"]) is None


@pytest.mark.simulation
def test_before_it_pays_the_sentence_says_so():
    held = next(d for d in after_falls()[str((400.0, {}))] if d.at_s == 900)
    assert (held.bound, held.wanted_workers, held.window_workers, held.required_workers) == (Bound.WINDOW, 5, 10, 10)
    assert sentence(held).endswith(
        "the policy wants 5 workers; not scaling down yet: the saving has not yet covered the cost of a rescale"
    )


@pytest.mark.simulation
def test_without_a_rescale_cost_the_whole_window_counts():
    soon, late = first_downs(*((80.0, {"rescale_worth_s": worth_s}) for worth_s in (None, 0.0)))
    assert soon < 1500
    assert late >= 600 + 3600


@pytest.mark.simulation
def test_a_pending_scale_down_is_not_withdrawn_by_its_own_cost():
    """It counts at once and makes the next one dearer, but has paid itself."""
    running = Fluid(lambda at_s: 800.0 if at_s < 600 else 320.0)
    decided = closed(running, 3000, book(**HUNDRED), follows=lambda at_s: False)
    down = first_down(decided)
    assert {d.required_workers for d in decided if down <= d.at_s <= 3000} == {4}


def test_a_scale_down_in_steps_reaches_its_target():
    """Each step of the HPA is a change, and little was saved since."""
    state, rules = EMPTY, book(**HUNDRED, settle_s=0.0)
    running, targets = Fluid(lambda at_s: 800.0 if at_s < 600 else 320.0), []
    while running.at_s <= 1800:
        state, decisions = advance(state, tick(running.at_s, running.rows()), rules)
        target = decisions.numbers["required_workers"][0]
        targets.append(target)
        running.scale(None if np.isnan(target) else max(target, running.workers - 1))
        running.run(30)
    first = targets.index(4.0)
    assert set(targets[first:]) == {4.0}
    assert running.workers == 4


@pytest.mark.simulation
def test_unset_a_rescale_is_worth_six_pauses_and_less_of_long_ones():
    """At least a minute, at most five."""
    downs = first_downs(*((400.0, {"rescale_pause_s": pause_s}) for pause_s in PAUSES_S))
    assert downs[0] == downs[1] < downs[2] < downs[3] == downs[4] < downs[5] == downs[6]


@pytest.mark.simulation
def test_a_worth_beyond_a_tenth_of_the_window_is_not_cut():
    """Half of the work is saved: each 300 s more of worth take 600 s longer."""
    downs = first_downs(*((400.0, {"rescale_worth_s": worth_s}) for worth_s in WORTHS_S))
    assert downs[1] - downs[0] == pytest.approx(600, abs=360)
    assert downs[2] - downs[0] == pytest.approx(6600, abs=720)


@pytest.mark.simulation
def test_a_quarter_that_is_not_needed_for_hours_is_removed_after_many_scale_downs():
    """An hour saves 900 s of the work, and after ten scale-downs the next one costs 1 050 s."""
    assert 600 + 3600 < counted()["a quarter"] < 600 + 7200


@pytest.mark.simulation
def test_a_quarter_is_removed_also_after_a_gradual_fall():
    """The account then begins with the window, not with the first worker that was not needed."""
    assert 600 + 7200 < counted()["a quarter, gradually"] < 600 + 10_800


def test_scale_downs_are_counted_and_fade():
    state, rules, downs_at_s = EMPTY, book(**HUNDRED, rescale_worth_s=0.0, down_window_s=0.0), []
    running = Fluid(lambda at_s: 800.0 if at_s < 300 else (400.0 if at_s < 900 else 100.0))
    while running.at_s <= 1500:
        state, decisions = advance(state, tick(running.at_s, running.rows()), rules)
        target = decisions.numbers["required_workers"][0]
        if target < running.workers:
            downs_at_s.append(running.at_s)
        running.scale(None if np.isnan(target) else target)
        running.run(30)
    assert len(downs_at_s) >= 2
    faded = sum(e ** ((before_s - downs_at_s[-1]) / DAY_S) for before_s in downs_at_s)
    assert (state.slow.history.downs[0], state.slow.history.downs_at_s[0]) == (pytest.approx(faded), downs_at_s[-1])


COUNTED = {  # scale-downs before, the seconds since then, and how the load falls from 800: to what, and how long
    "none": (nan, 0.0, 400.0, 0.0),
    "four": (4.0, 0.0, 400.0, 0.0),
    "four, long ago": (4.0, 5 * DAY_S, 400.0, 0.0),
    "a quarter": (10.0, 0.0, 600.0, 0.0),
    "a quarter, gradually": (10.0, 0.0, 600.0, 3600.0),
}


@cache
def counted():
    """When workers are removed after the falls of COUNTED."""

    def running(later, falls_s):
        return Fluid(lambda at_s: np.interp(at_s, [600, 600 + falls_s], [800.0, later]))

    jobs = {case: running(*fall) for case, (_, _, *fall) in COUNTED.items()}
    rules = RuleBook(by_workload=dict.fromkeys(jobs, Rules(**HUNDRED, rescale_worth_s=300.0)))
    state, found = EMPTY, {}
    for at_s in np.arange(0.0, 36_000.0, 30.0):
        state, decisions = advance(state, tick(at_s, *(each.rows(case) for case, each in jobs.items())), rules)
        found = {d.workload: at_s for d in rows(decisions) if d.reason == Reason.DOWN} | found
        if len(found) == len(jobs):
            break
        if at_s == 600:
            downs, ago_s = np.transpose([COUNTED[case][:2] for case in state.slow.workloads])
            history = replace(state.slow.history, downs=downs, downs_at_s=600 - ago_s)
            state = replace(state, slow=replace(state.slow, history=history))
        for each in jobs.values():
            each.run(30)
    return found


@pytest.mark.simulation
def test_four_scale_downs_of_the_last_day_double_the_cost_of_the_next_one():
    none, four, long_ago = (counted()[case] for case in ("none", "four", "four, long ago"))
    assert four - none == 600  # 300 s more of half of the work
    assert none <= long_ago <= none + 30


# --- up


WAITS = {  # the highest input, the rules, and how long no second scale-up comes
    "pause and warm-up": (2200.0, {}, 150),
    "and the delay of the metrics": (2200.0, {"metric_delay_s": 60.0}, 210),
    "other ones": (2200.0, {"rescale_pause_s": 60.0, "warm_up_s": 240.0}, 300),
    "configured": (2200.0, {"cooldown_up_s": 300.0}, 300),
    "steps that max_step_up_workers limits": (4000.0, {"max_step_up_workers": 5}, 150),
    "another policy": (4000.0, {"policy": "dataflow", "quanta": "none"}, 0),
}
ABOVE_CAPACITY = {  # the rules of jobs whose highest input is above the capacity of the new workers
    "default": {},
    "long": {"rescale_pause_s": 60.0, "warm_up_s": 240.0},
    "cooldown": {"cooldown_up_s": 300.0},
}


@pytest.mark.parametrize("case", WAITS)
def test_no_scale_up_before_the_new_workers_are_warm_and_measured(case):
    *_, wait_s = WAITS[case]
    decided, first, second = two_scale_ups(case)
    changed = first + 30  # the change is visible one tick later
    assert second == max(changed + wait_s, next(d.at_s for d in decided if d.at_s > changed and open_(d)))
    assert {d.bound for d in decided if changed <= d.at_s < second and open_(d)} <= {Bound.COOLDOWN}


@pytest.mark.parametrize("case", ["default", "long"])
def test_input_above_the_capacity_of_the_new_workers_does_not_wait_until_they_are_warm(case):
    _, first, second = two_scale_ups(case)
    assert second - first <= 90


def test_a_configured_cooldown_holds_against_input_above_the_capacity():
    _, first, second = two_scale_ups("cooldown")
    assert second - (first + 30) == 300  # the change is visible one tick later


@cache
def after_two_rises():
    """The decisions for WAITS and ABOVE_CAPACITY, while the input rises in two steps."""

    def running(highest):
        return Fluid(lambda at_s: 900.0 if at_s < 600 else (1500.0 if at_s < 660 else highest))

    cases = WAITS | {case: (4000.0, rules, None) for case, rules in ABOVE_CAPACITY.items()}
    named = {case: Rules(**HUNDRED | rules) for case, (_, rules, _) in cases.items()}
    return closed_each(
        {case: running(highest) for case, (highest, *_) in cases.items()}, 1200, RuleBook(by_workload=named)
    )


def two_scale_ups(case):
    """The decisions while the input rises in two steps, and the times of the first two scale-ups."""
    decided = after_two_rises()[case]
    first, second, *_ = [d.at_s for d in decided if d.reason == Reason.UP]
    return decided, first, second


def open_(decision):
    """Whether no gate held it."""
    return decision.reason in (Reason.UP, Reason.DOWN, Reason.HOLD)


# --- records


@pytest.mark.simulation
def test_each_decision_of_a_scale_down_follows_from_its_record():
    """Waiting until it pays, going down in steps, and cooling down."""
    rules = book(**HUNDRED | {"cooldown_down_s": None}, max_step_down_workers=2)
    ticks = [
        tick(at_s, job(**counts(10 if at_s < 1500 else 8), **flow(at_s, 800 if at_s < 600 else 300)))
        for at_s in np.arange(0.0, 2401.0, 30.0)
    ]
    bounds = set()
    for _, decisions in replay(ticks, rules):
        again, (found,) = decide(decision_input_of(decisions.record)), rows(decisions)
        bounds.add(found.bound)
        assert BOUNDS[again.bound[0]] == found.bound
        np.testing.assert_array_equal(again.served, decisions.numbers["required_workers"])
    assert bounds >= {Bound.WINDOW, Bound.STEP, Bound.LATCH}
