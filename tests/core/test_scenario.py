"""S0-28 / S3-10, the scenario of both sources: balance, a step of the input, keep up, catch up, a new balance.

As published, with rescales that cost nothing: a fluid job of 100 records/s a worker is folded through `advance`;
R is 60 s. Decisions are read on the minute. The rates are those of the last window, so that a number of the table is
met one window after it became true. Each policy with starts, pauses and an HPA: tests/bench/test_closed_scenario.py.
"""

from dataclasses import dataclass

import pytest
from builders import book, counts, history, job, last, tick

from adapter.core.decisions import Reason
from adapter.core.engine import advance
from adapter.core.report import rows
from adapter.core.state import EMPTY

CAPACITY = 100  # records/s a worker
BALANCE, STEPPED = 1000, 1500
STEP_S = 120


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
