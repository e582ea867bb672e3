"""A record -> the same decision again, and another one where one input was another."""

import numpy as np
import pytest
from builders import JOB, TICK_S, Fluid, book, column, counts, flow, job, replay, rows, steady, tick

from adapter.core.bounds import BOUNDS
from adapter.core.decide import decide
from adapter.core.decisions import Bound, Reason
from adapter.core.reasons import REASONS
from adapter.core.record import INPUTS, decision_input_of, with_input
from adapter.core.rules import POLICIES

BEHIND = {"throughput": 1000, "growth": 500, "utilization_ratio": 0.95, "partitions": 60}
KNOWN = {"forecast_horizon_s": 0.0, "worker_capacity_records_per_s": 100.0, "quanta": "none"}
KNOWN |= {"cooldown_up_s": 0.0, "rescale_worth_s": 0.0}


def recorded(ticks, **rules):
    """The last record and its decision."""
    decisions = list(replay(ticks, book(**KNOWN | rules)))[-1][1]
    return dict(decisions.record), next(found for found in rows(decisions) if found.workload == JOB)


def again(columns):
    found = decide(decision_input_of(columns))
    return found.served[0], REASONS[found.reason[0]], BOUNDS[found.bound[0]]


def otherwise(columns, name, value):
    return again(with_input(columns, name, column(value)))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_record_gives_the_decision_again(policy):
    columns, found = recorded(steady(**BEHIND), policy=policy)
    assert again(columns) == (found.required_workers, found.reason, found.bound)


def test_the_record_of_the_deciding_stage_is_enough():
    both = [
        tick(
            at_s,
            job(**counts(), stage="read", **flow(at_s, 1000, 500)),
            job(stage="write", **flow(at_s, 500, 400)),
        )
        for at_s in range(0, 61, 15)
    ]
    columns, found = recorded(both, policy="drain", worker_capacity_records_per_s=None)
    assert found.stage == "write"
    assert again(columns) == (found.required_workers, found.reason, found.bound)


def test_a_record_keeps_a_target_for_the_step_of_another_stage():
    """The target outlasts latch_s while any stage is in a step of the input."""
    for _, decisions in replay(two_stages_with_steps(1200), book(policy="drain")):
        assert again(decisions.record)[0] == pytest.approx(decisions.numbers["required_workers"][0], nan_ok=True)


def two_stages_with_steps(until_s):
    generator, stages = np.random.default_rng(0), {"join": [500.0, 0.0, 0.0], "read": [300.0, 0.0, 0.0]}
    for at_s in range(0, until_s, TICK_S):
        seen = []
        for stage, (rate, arrived, processed) in stages.items():
            now = generator.choice([200.0, 400.0, 800.0, 1600.0]) if generator.random() < 0.08 else rate
            came = arrived + now * TICK_S
            done = processed + min(1.2 * now * TICK_S, 900.0 * TICK_S, came - processed)
            stages[stage] = [now, came, done]
            counters = {"appended_records": came, "processed_records": done, "backlog_records": came - done}
            seen.append(job(stage=stage, **counters, utilization_ratio=0.7))
        yield tick(at_s, job(**counts(), partitions=60), *seen)


QUICK = {"rescale_pause_s": 5.0, "warm_up_s": 5.0, "metric_delay_s": 0.0, "settle_s": 10.0}
SCALES_DOWN_SOON = {"policy": "drain", "rescale_worth_s": 20.0, "cooldown_down_s": 0.0}


def test_a_record_keeps_what_another_stage_needs_while_a_scale_down_is_pending():
    """Such a scale-down has passed the window, so the window no longer shows what the other stage needs."""
    columns, found = recorded(two_idle_stages(until_s=915), **SCALES_DOWN_SOON, **QUICK)
    assert (found.stage, found.spec_workers, found.held_workers) == ("b", 13, 3)
    assert (found.needed_workers, found.required_workers) == (5, 5)
    assert again(columns)[0] == 5


def two_idle_stages(until_s):
    """From 900 s on, "a" has the larger load, and "b" a short backlog that keeps its size."""
    for at_s in range(0, until_s + 1, TICK_S):
        loads = {"a": (800, 0), "b": (500, 2000 if at_s > 900 else 0)}
        counted = {name: 200 * min(at_s, 900) + rate * max(at_s - 900, 0) for name, (rate, _) in loads.items()}
        yield tick(
            at_s,
            job(**counts(13)),
            *(
                job(stage=name, processed_records=done, appended_records=done + waits, backlog_records=waits)
                for (name, done), (_, waits) in zip(counted.items(), loads.values(), strict=True)
            ),
        )


def test_a_lower_input_lowers_a_target_that_a_higher_one_raised():
    """A scale-down to 4 is not enacted when the load rises."""
    ticks = []
    for at_s in range(0, 1306, TICK_S):
        arrived = 300 * min(at_s, 1290) + 560 * max(at_s - 1290, 0)
        flowing = {"processed_records": arrived, "appended_records": arrived, "backlog_records": 0}
        ticks.append(tick(at_s, job(**counts(), **flowing, partitions=60)))
    columns, found = recorded(ticks, **SCALES_DOWN_SOON, rescale_pause_s=0.0)
    assert (found.required_workers, found.held_workers) == (5, 4)
    assert otherwise(columns, "input_rate_records_per_s", 300)[0] == 4


@pytest.mark.parametrize("name", INPUTS)
def test_an_input_at_its_own_value_changes_nothing(name):
    columns, found = recorded(steady(**BEHIND), policy="drain")
    assert otherwise(columns, name, INPUTS[name].read(columns)[0])[0] == found.required_workers


def test_a_backlog_at_its_own_value_does_not_warm_the_workers():
    """The job warms up for three minutes, so its throughput is less than the capacity of its workers."""
    running = Fluid(lambda at_s: 3000.0 if at_s < 600 else 2600.0)
    ticks = []
    for at_s in range(0, 721, TICK_S):
        ticks.append(tick(at_s, running.rows()))
        if at_s == 600:
            running.pause_s, running.warm_up_s = 57.0, 180.0
            running.scale(20)
        running.run()
    timing = {"rescale_pause_s": 57.0, "warm_up_s": 180.0, "metric_delay_s": 0.0}
    columns, found = recorded(ticks, policy="drain", **timing)
    own = INPUTS["backlog_records"].read(columns)[0]
    assert otherwise(columns, "backlog_records", own)[0] == found.required_workers


@pytest.mark.parametrize(
    ("name", "value", "size"),
    [
        ("input_rate_records_per_s", 700, 10),
        ("backlog_records", 600_000, 30),
        ("capacity_records_per_s", 2000, 10),
        ("partitions", 12, 12),
        ("max_workers", 15, 15),
        ("min_workers", 30, 30),
    ],
)
def test_a_change_of_the_deciding_input_changes_the_decision(name, value, size):
    columns, found = recorded(steady(30, **BEHIND), policy="drain")
    assert (found.reason, found.required_workers) == (Reason.UP, 20)
    assert otherwise(columns, name, value)[0] == size


def test_another_input_has_another_newest_rate_and_rise():
    """Right after a step the newest rate decides how many workers a scale-up adds."""
    ticks = [*steady(300, throughput=1000), *(faster(at_s) for at_s in (315, 330))]
    columns, found = recorded(ticks, policy="drain", rescale_pause_s=0.0)
    assert found.input_rate_records_per_s < 2000
    newest = "policy_input.latest_input_rate_records_per_s"
    assert columns[newest].tolist() == pytest.approx([2000])
    other = with_input(columns, "input_rate_records_per_s", column(2 * found.input_rate_records_per_s))
    assert other[newest].tolist() == pytest.approx([4000])


@pytest.mark.parametrize(("name", "value"), [("input_rate_records_per_s", 200), ("capacity_records_per_s", 9000)])
def test_a_target_does_not_outlast_a_step_that_another_input_ends(name, value):
    """The second step comes when the latch of the first one has ended."""
    ticks = [*steady(300, throughput=1000), *(faster(at_s, to=1500) for at_s in (315, 330)), faster(345, to=2500)]
    columns, found = recorded(ticks, policy="drain", latch_s=15.0)
    assert (found.in_step, found.bound) == (1, Bound.LATCH)
    assert otherwise(columns, name, value)[0] == 10


def test_a_step_of_another_stage_outlasts_the_input_of_the_deciding_one():
    """The input of both stages steps twice; the deciding one alone then no longer needs more workers."""

    def seen(at_s):
        return tick(at_s, job(**counts()), *(topic(at_s, name, each) for name, each in (("a", 1000), ("b", 900))))

    def topic(at_s, name, each):
        arrived = each * (min(at_s, 300) + 1.5 * np.clip(at_s - 300, 0, 30) + 2.5 * max(at_s - 330, 0))
        waiting = {"appended_records": arrived, "backlog_records": arrived - each * at_s}
        return job(stage=name, processed_records=each * at_s, **waiting)

    columns, found = recorded([seen(at_s) for at_s in range(0, 346, 15)], policy="drain", latch_s=15.0)
    assert (found.stage, found.in_step) == ("a", 1)
    assert otherwise(columns, "input_rate_records_per_s", 200)[0] == 19


def faster(at_s, to=2000):
    """The counters of a job whose input rose at 300 s."""
    arrived = 1000 * 300 + to * (at_s - 300)
    flowing = {"processed_records": 1000 * at_s, "appended_records": arrived, "backlog_records": arrived - 1000 * at_s}
    return tick(at_s, job(**counts(), **flowing))


def test_a_record_of_a_held_target_holds_it_again():
    columns, found = recorded([*steady(**BEHIND), tick(75, job(**counts()))], policy="drain")
    assert (found.reason, found.required_workers) == (Reason.STALE, 20)
    assert again(columns) == (20, Reason.STALE, Bound.NONE)


def test_a_record_without_samples_gives_no_target():
    columns, _ = recorded([tick(0)], policy="drain")
    served, reason, _ = again(columns)
    assert np.isnan(served)
    assert reason == Reason.NO_DATA
