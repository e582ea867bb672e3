"""S0-28 / S3-10, the scenario of both sources: balance, a step of the input, keep up, catch up, a new balance.

First as published, with rescales that cost nothing: a fluid job of 100 records/s a worker is folded through `advance`;
R is 60 s. Decisions are read on the minute. The rates are those of the last window, so that a number of the table is
met one window after it became true. Then closed, each policy with its defaults: starts and pauses of 30 s, and an HPA.
"""

from dataclasses import dataclass
from functools import cache
from itertools import groupby, pairwise

import pytest
from builders import book, counts, history, job, last, tick

from adapter.core.decisions import Reason
from adapter.core.engine import advance
from adapter.core.report import rows
from adapter.core.rules import POLICIES, Rules
from adapter.core.state import EMPTY
from adapter.simulator import scenario
from adapter.simulator.scenario import END_S, NAMES, STEP_S, TICK_S

CAPACITY = 100  # records/s a worker
BALANCE, STEPPED = 1000, 1500
START_S, PAUSE_S = int(Rules().worker_start_s), int(Rules().rescale_pause_s)


@dataclass
class FluidJob:
    """The counts of each second with ten or twenty workers."""

    workers: int = 10
    at_s: int = 0
    appended: float = 0
    processed: float = 0
    utilization: float = 1.0
    sized: bool = True  # CPU bound: utilization follows the load; else it idles behind a slow sink

    def second(self):
        arriving, able = (BALANCE if self.at_s < STEP_S else STEPPED), self.workers * CAPACITY
        self.appended += arriving
        passed = min(able, self.appended - self.processed)
        self.processed += passed
        self.utilization = passed / able if self.sized else 0.5
        self.at_s += 1

    def seen(self):
        signals = {
            "processed_records": self.processed,
            "appended_records": self.appended,
            "backlog_records": self.appended - self.processed,
            "utilization_ratio": self.utilization,
        }
        return tick(self.at_s, job(**counts(self.workers), **signals))


def play(until_s, resized=None, **start):
    """The ticks of the story, the last one at until_s; resized: second -> workers from then on."""
    running, ticks = FluidJob(**start), []
    for at_s in range(until_s + 1):
        if at_s % 15 == 0 or at_s == until_s:
            ticks.append(running.seen())
        running.workers = (resized or {}).get(at_s, running.workers)
        running.second()
    return ticks


def at(until_s, policy="dataflow", resized=None, **start):
    return last(play(until_s, resized, **start), book(policy=policy, quanta="none", settle_s=0.0, rescale_pause_s=0.0))


def numbers(found):
    return (found.throughput_records_per_s, found.growth_records_per_s, found.backlog_records, found.backlog_time_s)


def terms(found):
    return (found.keep_up_workers, found.catch_up_workers)


@pytest.mark.parametrize("policy", ["dataflow", "beam-flink"])
def test_s0_28_1_balance_holds(policy):
    found = at(120, policy)
    assert numbers(found) == (1000, 0, 0, 0)
    assert (found.reason, found.required_workers, *terms(found)) == (Reason.HOLD, 10, 10, 0)


@pytest.mark.parametrize("policy", ["dataflow", "beam-flink"])
def test_s0_28_2_s3_10_a_step_of_the_input_needs_20_workers(policy):
    found = at(180, policy)
    assert numbers(found) == (1000, 500, 30_000, 30)
    assert (found.reason, found.required_workers, *terms(found)) == (Reason.UP, 20, 15, 5)


def test_s0_28_2_beam_flink_holds_while_the_cpu_is_not_the_bottleneck():
    found = at(180, "beam-flink", sized=False)
    assert (found.reason, found.required_workers, *terms(found)) == (Reason.HOLD, 10, 15, 5)


def test_s0_28_2_the_first_seconds_of_growth_show_the_step():
    growing = history(play(180), book(quanta="none"))
    first = next(decision for decision in growing if decision.reason == Reason.UP)
    assert (first.at_s, first.growth_records_per_s) == (150, 250)
    assert first.required_workers == 15  # 12.5 to keep up with the half of it that is seen, 2.5 to catch up


@pytest.mark.parametrize("policy", ["dataflow", "beam-flink"])
def test_s0_28_4_no_worker_is_added_while_the_backlog_drains_within_r(policy):
    found = at(225, policy, resized={180: 20})
    assert numbers(found) == (2000, -500, 7_500, 3.75)
    assert (found.reason, found.required_workers, found.keep_up_workers) == (Reason.HOLD, 20, 20)


def test_s0_28_5_the_sizes_of_the_new_balance():
    calm = at(300, resized={180: 20})
    assert numbers(calm) == (1500, 0, 0, 0)
    assert (calm.utilization_ratio, *terms(calm)) == (0.75, 20, 0)
    assert at(300, "beam-flink", resized={180: 20}).reason == Reason.HOLD  # 75 % is not below 70 %


@pytest.mark.parametrize(("workers", "expected"), [(20, 19), (19, 18), (18, 17), (17, 17)])
def test_s0_28_5_dataflow_goes_down_one_by_one_to_17(workers, expected):
    assert at(420, resized={180: 20, 300: workers}).required_workers == expected


@pytest.mark.parametrize(
    ("until_s", "reason", "required", "terms_of_it"),
    [(360, Reason.HOLD, 10, (15, 20)), (361, Reason.UP, 36, (15, 20 + 1 / 12))],
    ids=["360 s: B is 120 s", "361 s: B is 120.5 s"],
)
def test_s0_28_s0_10_without_an_earlier_decision_beam_flink_waits_for_120_s(until_s, reason, required, terms_of_it):
    found = at(until_s, "beam-flink", sized=False)
    assert (found.reason, found.required_workers, terms(found)) == (reason, required, pytest.approx(terms_of_it))


def test_s0_28_the_whole_scenario_in_a_closed_loop():
    """Workers follow the served target on the minute; the backlog is gone and the size rests."""
    running, state, sizes, rules = FluidJob(), EMPTY, [], book(quanta="none")
    for at_s in range(1201):
        if at_s % 15 == 0:
            state, decisions = advance(state, running.seen(), rules)
        if at_s % 60 == 0:
            running.workers = int(rows(decisions)[0].required_workers or running.workers)
            sizes.append(running.workers)
        running.second()
    assert max(sizes) == 20
    assert sizes[-3:] == [17, 17, 17]
    assert running.appended == running.processed


@dataclass(frozen=True)
class ExpectedBehaviour:
    """The behaviour of a policy in the closed loop. sizes: its targets, in order.

    outgrown: the workers of the balance do not carry the new input, so that a backlog grows until more have started.
    """

    policy: str
    sizes: tuple[int, ...]
    first_at_s: int | None
    outgrown: bool = True


BEHAVIOURS = [
    # A tick after the step, for the newest rate; 19 are needed, and 20 share 60 partitions evenly.
    ExpectedBehaviour("drain", sizes=(10, 20), first_at_s=150),
    # The pause of the first up is 45 000 records more to catch up with; 20 is the quantum that 90 % of CPU allow.
    ExpectedBehaviour("dataflow", sizes=(10, 15, 30, 20), first_at_s=150),
    # Hot, so it scales up at once, on a quarter of the step; four scale-downs, because it has no scale-down window.
    ExpectedBehaviour("beam-flink", sizes=(10, 12, 30, 26, 25, 24, 22), first_at_s=135),
    # 15 are 70 % busy and carry the new input; the backlog of each pause looks like load.
    ExpectedBehaviour("varga", sizes=(15, 22, 28, 23), first_at_s=135, outgrown=False),
    # As many as the stream has segments.
    ExpectedBehaviour("segments", sizes=(10, 20), first_at_s=150),
    # 60 % of 17 workers, and 20 share the partitions evenly: at 1 500/s they are 75 % busy, under its 80 %.
    ExpectedBehaviour("netflix", sizes=(20,), first_at_s=None, outgrown=False),
]
every_policy = pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda behaviour: behaviour.policy)


@cache
def story():
    return scenario.play()


def seen(behaviour, name):
    """One column of the story: tick -> the policy's value."""
    return {scene.at_s: round(float(getattr(scene, name)[NAMES.index(behaviour.policy)]), 6) for scene in story()}


def changes(behaviour):
    """Tick -> by how many workers the HPA changed the size then."""
    sizes = seen(behaviour, "spec_workers")
    return {at_s: sizes[at_s] - sizes[before] for before, at_s in pairwise(sizes) if sizes[at_s] != sizes[before]}


def within(column, from_s, to_s):
    """The values of the ticks from from_s to to_s, both included."""
    return [value for at_s, value in column.items() if from_s <= at_s <= to_s]


def test_s0_28_the_table_has_every_policy():
    assert tuple(behaviour.policy for behaviour in BEHAVIOURS) == POLICIES


@pytest.mark.simulation
@every_policy
def test_s0_28_closed_the_sizes_of_every_policy(behaviour):
    sizes = seen(behaviour, "spec_workers")
    assert tuple(size for size, _ in groupby(sizes.values())) == behaviour.sizes
    assert next(iter(changes(behaviour)), None) == behaviour.first_at_s


@pytest.mark.simulation
@every_policy
def test_s0_28_1_closed_in_balance_nothing_changes_and_nothing_waits(behaviour):
    assert not within(changes(behaviour), 0, STEP_S)
    assert set(within(seen(behaviour, "throughput_records_per_s"), 0, STEP_S)) == {BALANCE}
    assert set(within(seen(behaviour, "backlog_records"), 0, STEP_S)) == {0}


@pytest.mark.simulation
@every_policy
def test_s0_28_2_closed_the_backlog_grows_until_more_workers_have_started(behaviour):
    started_s = (behaviour.first_at_s or END_S) + START_S
    backlog = within(seen(behaviour, "backlog_records"), STEP_S, started_s)
    each_s = STEPPED - BALANCE if behaviour.outgrown else 0
    assert {(after - before) / TICK_S for before, after in pairwise(backlog)} == {each_s}


@pytest.mark.simulation
@every_policy
def test_s0_28_3_4_closed_the_backlog_falls_once_all_workers_run(behaviour):
    last_up_s = max((at_s for at_s, more in changes(behaviour).items() if more > 0), default=STEP_S)
    end_s = min((at_s for at_s in changes(behaviour) if at_s > last_up_s), default=END_S)
    backlog = within(seen(behaviour, "backlog_records"), last_up_s + START_S + PAUSE_S, end_s)
    assert all(after < before or after == before == 0 for before, after in pairwise(backlog))
    assert backlog[-1] < STEPPED * Rules().short_backlog_time_s


@pytest.mark.simulation
@every_policy
def test_s0_11_s0_28_4_closed_no_scale_down_with_ten_seconds_of_backlog(behaviour):
    late = seen(behaviour, "backlog_time_s")
    downs = [at_s for at_s, more in changes(behaviour).items() if more < 0]
    assert max((late[at_s] for at_s in downs), default=0) < Rules().short_backlog_time_s


@pytest.mark.simulation
@every_policy
def test_s0_28_5_closed_the_new_balance_is_calm_and_carries_the_input(behaviour):
    assert not within(changes(behaviour), END_S - 600, END_S)
    assert set(within(seen(behaviour, "throughput_records_per_s"), END_S - 600, END_S)) == {STEPPED}
    assert set(within(seen(behaviour, "backlog_time_s"), END_S - 600, END_S)) == {0}
    assert seen(behaviour, "ready_workers")[END_S] == behaviour.sizes[-1] >= STEPPED / CAPACITY
