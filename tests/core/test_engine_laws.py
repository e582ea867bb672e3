"""What must hold for any history: random ticks of eight jobs, all policies, with gaps, resets, restarts and changes.

A history is drawn from a seed: ten times as fast as draw by draw, and as easy to repeat. The decisions of a seed are
cached, so that each law reads the same histories.
"""

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from builders import assemble, fold
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from adapter.core.bounds import BOUNDS
from adapter.core.decide import decide
from adapter.core.decisions import Bound, Reason
from adapter.core.engine import advance, replay
from adapter.core.periods import Event, Period
from adapter.core.policies import policy_of
from adapter.core.reasons import REASONS
from adapter.core.record import decision_input_of
from adapter.core.report import rows
from adapter.core.rule_book import RuleBook
from adapter.core.rules import POLICIES, Rules
from adapter.core.samples import STAGE_SIGNALS
from adapter.core.state import EMPTY, VERSION, decode, encode_fast, encode_slow

FOUND, STAGED, SUNK = "shop/found", "shop/staged", "shop/drain"  # of a fleet; with two stages; of a slow sink
NAMES = tuple(sorted([*(f"shop/{policy}" for policy in POLICIES), FOUND, STAGED]))
ERROR_AFTER_S = 40.0
# So quick that a history of some minutes meets all of them.
QUICK = {
    "settle_s": 0.0,
    "rescale_pause_s": 0.0,
    "worker_start_s": 0.0,
    "in_flight_timeout_s": 30.0,
    "not_enacted_after_s": 45.0,
    "stale_after_s": 10.0,
    "error_after_s": ERROR_AFTER_S,
    "failures_window_s": 120.0,
    "down_window_s": 45.0,
    "rescale_worth_s": 5.0,
    "cooldown_up_s": 60.0,
    "latch_s": 90.0,
    "cooldown_down_s": 20.0,
    "ineffective_block_s": 60.0,
    "pause_budget_ratio": 0.0002,
    "low_cpu_ratio": 0.4,
}
ENDLESS = Event(begin_s=0, end_s=1e12, times=1.2)
SECOND_MINUTE = Period(days=(0, 1, 2, 3, 4, 5, 6), begin_min=1, end_min=2)
RULES = RuleBook(
    by_workload={f"shop/{policy}": Rules(policy=policy, **QUICK) for policy in POLICIES if policy != "drain"}
    | {
        "shop/drain": Rules(**QUICK | {"rescale_pause_s": 15.0}),
        "shop/beam-flink": Rules(policy="beam-flink", expected=(ENDLESS,), **QUICK),
        STAGED: Rules(**QUICK, excluded=(SECOND_MINUTE,), max_step_up_workers=2, max_partitions_per_worker=2),
    },
    by_fleet=(
        # One pause is more than a day allows.
        Rules(**QUICK | {"rescale_pause_s": 15.0, "pause_budget_ratio": 1e-4}, max_workers=30),
    ),
)
STAGES = {name: ["read", "write"] if name == STAGED else [""] for name in NAMES}
COUNTERS = ("processed_records", "appended_records", "backlog_records")
VARIED = {"quanta": "none", "min_spare_workers": 3, "segments_per_worker": 2, "forecast_horizon_s": 600.0}
LENGTH = 30
EACH_RECORDS = 1_500  # of one worker in 15 s

# The samples of a tick: mostly as in the last one, so that most ticks are decided.
MOODS = {"load": [0.0, 0.5, 0.8, 0.95, 1.2, 2.0, 8.0], "speed": [1.0] * 8 + [0.0, 0.3]}
RARELY = {
    "reset": (False, True, 0.01),
    "jump": (0, 2_000_000, 0.01),
    "skip": (False, True, 0.03),
    "not_ready": (0, 1, 0.05),
    "running": (1, 0, 0.02),
    "sink_healthy": (1, 0, 0.04),
    "failover": (0, 1, 0.05),
    "pause_up": (0, 1, 0.05),
    "pause_down": (0, 1, 0.05),
    "max_workers": (40, 12, 0.05),
    "min_workers": (1, 9, 0.05),
    "rule.up_cpu_ratio": (None, 0.8, 0.05),
    "rule.min_spare_workers": (None, 3, 0.05),
    "stuck_backlog_records": (None, 5_000, 0.05),
    "hottest_partition_ratio": ("reported", None, 0.05),
    "backpressured_ratio": (None, 0.7, 0.1),
    "utilization_ratio": ("reported", None, 0.1),
    "missing": ((), COUNTERS, 0.04),
    "uncounted": (False, True, 0.04),
}
NO_SIGNALS = ("reset", "jump", "skip", "not_ready", "missing", "uncounted")
GAPS_S = [15] * 6 + [5, 30]
SEEDS = range(5)
each_seed = pytest.mark.parametrize("seed", SEEDS)
seeds = st.sampled_from(SEEDS)
# A smaller seed is no simpler one. An example of `few` is a whole history, one of `many` is one tick.
few = settings(max_examples=3, phases=[Phase.generate])
many = settings(max_examples=30, phases=[Phase.generate])


class Job:
    """One stage, tick by tick."""

    def __init__(self, chance, workload):
        self.chance, self.workload = chance, workload
        self.workers, self.processed, self.appended, self.restarts = 10, 0, chance.choice([0, 30_000, 300_000]), 0
        self.mood = {name: of[3] if name == "load" else of[0] for name, of in MOODS.items()}
        self.silent, self.coming, self.hot = 0, 0, chance.choice([None, None, 6.0])

    def step(self, seconds):
        """The signals of the next tick, by name; None is missing."""
        chance = self.chance
        for name, of in MOODS.items():
            if chance.random() < 0.08:
                self.mood[name] = chance.choice(of)
        if chance.random() < 0.04:
            before, self.workers = self.workers, chance.choice([0, 3, 8, 10, 12, 20, 30])
            self.coming = max(self.workers - before, 0) if chance.random() < 0.5 else 0
        self.coming *= chance.random() < 0.9  # desired workers that are not ready
        self.restarts += chance.random() < 0.04
        rare = {name: off if chance.random() < odds else usual for name, (usual, off, odds) in RARELY.items()}
        helpful = min(self.workers - self.coming, 8 if self.workload == SUNK else np.inf)
        able = int(helpful * EACH_RECORDS * seconds / 15 * self.mood["speed"])
        self.appended += int(10 * EACH_RECORDS * seconds / 15 * self.mood["load"])
        self.appended += rare["jump"]
        passed = self.appended - self.processed if rare["skip"] else min(able, self.appended - self.processed)
        self.processed = 0 if rare["reset"] else self.processed + passed
        return self._signals(rare, passed / max(self.workers * EACH_RECORDS * seconds / 15, 1))

    def _signals(self, rare, busy):
        self.silent = max(self.silent - 1, 5 * (self.chance.random() < 0.01))
        counts = {"spec_workers": self.workers, "workers": self.workers}
        counts["ready_workers"] = max(self.workers - self.coming - rare["not_ready"], 0)
        signals = dict(zip(COUNTERS, (self.processed, self.appended, self.appended - self.processed), strict=True))
        signals |= dict.fromkeys(rare["missing"]) | {"restarts": self.restarts, "partitions": 24}
        signals |= dict.fromkeys(counts) if rare["uncounted"] else counts
        signals |= {name: value for name, value in rare.items() if name not in NO_SIGNALS}
        signals |= {"utilization_ratio": min(busy, 1.0) if rare["utilization_ratio"] else None}
        signals |= {"hottest_partition_ratio": self.hot if rare["hottest_partition_ratio"] else None}
        signals |= {"fleet": 0 if self.workload == FOUND else None}
        return dict.fromkeys(signals) if self.silent else signals


@cache
def history(seed, length=LENGTH):
    """Ticks as (at_s, rows)."""
    chance = Random(seed)  # noqa: S311 - a test's dice
    jobs = {(name, stage): Job(chance, name) for name in NAMES for stage in STAGES[name]}
    at_s, ticks = 0, []
    for _ in range(length):
        gap_s = chance.choice(GAPS_S)
        at_s += gap_s
        reported = [(name, stage, job.step(gap_s)) for (name, stage), job in jobs.items()]
        ticks.append((at_s, [row for name, stage, signals in reported for row in rows_of(name, stage, signals)]))
    return ticks


def rows_of(name, stage, signals):
    return [
        (name, stage if signal in STAGE_SIGNALS else "", signal, value)
        for signal, value in signals.items()
        if value is not None
    ]


def ticks_of(reported, only=NAMES):
    return [assemble(at_s, [row for row in of_tick if row[0] in only]) for at_s, of_tick in reported]


@cache
def folded(seed):
    """State and decisions after every tick of a seed."""
    return list(replay(ticks_of(history(seed)), RULES))


@cache
def decided(seed):
    return [rows(decisions) for _, decisions in folded(seed)]


def decisions_of(seed, workload=None):
    return [d for of_tick in decided(seed) for d in of_tick if workload in (None, d.workload)]


# --- ticks and states


@each_seed
def test_p_11_ticks_through_encoded_states_equal_one_replay(seed):
    state, by_hand = EMPTY, []
    for one in ticks_of(history(seed)):
        state = decode(VERSION, encode_fast(state), encode_slow(state))
        state, decisions = advance(state, one, RULES)
        by_hand.append(rows(decisions))
    last = folded(seed)[-1][0]
    assert by_hand == decided(seed)
    assert (encode_fast(state), encode_slow(state)) == (encode_fast(last), encode_slow(last))


@few
@given(seeds, st.integers(0, LENGTH))
def test_no_decision_depends_on_later_ticks(seed, count):
    assert fold(ticks_of(history(seed)[:count]), RULES) == decided(seed)[:count]


@few
@given(seeds, st.integers(0, 10**9))
def test_the_order_of_rows_does_not_matter(seed, dice):
    chance = Random(dice)  # noqa: S311 - a test's dice
    shuffled = [(at_s, chance.sample(of_tick, len(of_tick))) for at_s, of_tick in history(seed)]
    assert fold(ticks_of(shuffled), RULES) == decided(seed)


@few
@given(seeds, st.sets(st.sampled_from(NAMES), min_size=1, max_size=len(NAMES) - 1))
def test_another_workload_or_shard_changes_no_decision(seed, here):
    for part in (here, set(NAMES) - here):
        rules = replace(RULES, by_workload={name: of for name, of in RULES.by_workload.items() if name in part})
        found = fold(ticks_of(history(seed), only=part), rules)
        assert found == [[d for d in of_tick if d.workload in part] for of_tick in decided(seed)]


@pytest.mark.parametrize("name", NAMES)
def test_a_workload_alone_has_the_same_decisions_to_the_last_bit(name):
    rules = replace(RULES, by_workload={other: of for other, of in RULES.by_workload.items() if other == name})
    for seed in SEEDS[:2]:
        found = fold(ticks_of(history(seed), only={name}), rules)
        assert found == [[d for d in of_tick if d.workload == name] for of_tick in decided(seed)]


@few
@given(seeds, st.permutations(range(len(NAMES))))
def test_the_order_of_workloads_changes_no_decision(seed, order):
    """Other names give the workloads other places."""
    other = {name: f"shop/{place}" for name, place in zip(NAMES, order, strict=True)}
    reported = [(at_s, [(other[row[0]], *row[1:]) for row in of_tick]) for at_s, of_tick in history(seed)]
    rules = replace(RULES, by_workload={other[name]: of for name, of in RULES.by_workload.items()})
    found = fold([assemble(*one) for one in reported], rules)
    moved = [[replace(d, workload=other[d.workload]) for d in of_tick] for of_tick in decided(seed)]
    assert found == [sorted(of_tick, key=lambda d: d.workload) for of_tick in moved]


@few
@given(seeds, st.integers(0, LENGTH - 1), st.integers(0, LENGTH - 1))
def test_late_and_repeated_ticks_change_nothing(seed, after, late):
    ticks = ticks_of(history(seed))
    more = [*ticks[: after + 1], *ticks[: min(after + 1, late)], *ticks[after + 1 :]]
    assert [of_tick for of_tick in fold(more, RULES) if of_tick] == decided(seed)


@few
@given(seeds, st.integers(1, 20_000))
def test_decisions_do_not_depend_on_the_date(seed, days):
    """A shift by whole days moves no excluded period."""
    offset_s = 86_400 * days
    found = fold(ticks_of([(at_s + offset_s, of_tick) for at_s, of_tick in history(seed)]), RULES)
    assert [[replace(d, at_s=d.at_s - offset_s) for d in of_tick] for of_tick in found] == decided(seed)


@few
@given(seeds, st.integers(-8, 20))
def test_p_08_x_12_the_unit_of_counts_changes_no_target(seed, power):
    unit, counted = 2.0**power, (*COUNTERS, "stuck_backlog_records")
    scaled = [
        (at_s, [(*row[:3], row[3] * unit if row[2] in counted else row[3]) for row in of_tick])
        for at_s, of_tick in history(seed)
    ]
    by_name = {name: replace(of, lag_threshold_records=50_000 * unit) for name, of in RULES.by_workload.items()}
    found = fold(ticks_of(scaled), replace(RULES, by_workload=by_name))
    assert unit_free(found) == unit_free(decided(seed))


def unit_free(found):
    names = (
        "workload",
        "reason",
        "bound",
        "required_workers",
        "backlog_time_s",
        "utilization_ratio",
        "required_parallelism",
    )
    return [[getattr(d, name) for name in names] for of_tick in found for d in of_tick]


@each_seed
def test_a_parameter_of_other_policies_changes_no_size(seed):
    by_name = {name: varied(of) for name, of in RULES.by_workload.items()}
    found = fold(ticks_of(history(seed)), replace(RULES, by_workload=by_name))
    assert unit_free(found) == unit_free(decided(seed))


def varied(rules):
    """The rules with other values of the parameters that only other policies name."""
    named = {name for policy in POLICIES for name in policy_of(policy).parameters}
    others = named - set(policy_of(rules.policy).parameters)
    return replace(rules, **{name: VARIED.get(name) or getattr(rules, name) / 2 for name in others})


# --- decisions


def test_the_histories_reach_every_reason_and_every_bound():
    seen = [d for seed in SEEDS for d in decisions_of(seed)]
    assert set(Reason) - {d.reason for d in seen} == set()
    assert set(Bound) - {d.bound for d in seen} == {Bound.MISSING_METRICS}  # a history is too short


@each_seed
def test_x_06_every_number_is_finite_or_none(seed):
    for decision in decisions_of(seed):
        values = [getattr(decision, name) for name in decision.__dataclass_fields__]
        assert all(abs(value) < 1e18 for value in values if isinstance(value, float))


@each_seed
def test_p_06_a_target_is_whole_and_within_minimum_maximum_and_partitions(seed):
    for decision in decisions_of(seed):
        if decision.required_workers is not None:
            assert decision.required_workers == int(decision.required_workers)
            assert decision.min_workers <= decision.required_workers <= 100
        if decision.required_workers is not None and not decision.reason.is_gate:
            assert decision.required_workers <= decision.max_workers
            assert decision.partitions is None or decision.required_workers <= decision.partitions


@each_seed
def test_a_decision_of_the_policy_has_a_target(seed):
    for decision in decisions_of(seed):
        if decision.reason in (Reason.UP, Reason.DOWN, Reason.IDLE, Reason.HOLD, Reason.NOT_ENACTED):
            assert decision.required_workers is not None
            assert decision.wanted_workers is not None


@each_seed
def test_no_scale_up_while_stuck_or_while_the_sink_is_unhealthy(seed):
    reported = {
        (workload, at_s): value
        for at_s, of_tick in history(seed)
        for workload, _, signal, value in sorted(of_tick, key=lambda row: row[3])
        if signal == "sink_healthy"
    }
    for decision in decisions_of(seed):
        if decision.reason == Reason.STUCK or reported.get((decision.workload, decision.at_s)) == 0:
            current = decision.workers if decision.spec_workers is None else decision.spec_workers
            least = decision.min_workers  # the minimum applies even then
            assert (decision.required_workers or 0) <= max(current or 0, least)


@each_seed
def test_x_06_a_tick_with_a_missing_sample_holds_the_target_or_has_none(seed):
    whole = {(at_s, name) for at_s, of_tick in history(seed) for name in NAMES if complete(name, of_tick)}
    for workload in NAMES:
        for before, now in pairwise(decisions_of(seed, workload)):
            if (now.at_s, workload) not in whole and now.bound == Bound.NONE:
                # before the first target a known gate (in flight, settling) may serve the workers there are
                # a count of another actor becomes the target
                adopted = before.required_workers is None or now.spec_workers != before.spec_workers
                known = {before.required_workers, None} | ({now.spec_workers} if adopted else set())
                # unschedulable workers leave the target, and a stuck job gets no more workers
                known |= {now.workers} if now.reason in (Reason.UNSCHEDULABLE, Reason.STUCK) else set()
                assert now.required_workers in known


def complete(workload, of_tick):
    seen = {(stage, signal) for name, stage, signal, _ in of_tick if name == workload}
    return {(stage, signal) for stage in STAGES[workload] for signal in COUNTERS} <= seen


@pytest.mark.parametrize("signal", ["processed_records", "backlog_records", "utilization_ratio"])
@many
@given(seed=seeds, place=st.integers(3, LENGTH - 1))
def test_x_06_an_unknown_input_never_changes_the_target(signal, seed, place):
    """The target is the previous one or the one with the signal, except for limits that changed meanwhile.

    A missing input rate is derived from the backlog. The utilization may be all that shows the capacity, without which
    no partition is known to be too hot.
    """
    found = without(signal, seed, place)
    for held, whole, now in zip(decided(seed)[place - 1], decided(seed)[place], found, strict=True):
        if now.bound == Bound.NONE and not (signal == "utilization_ratio" and whole.bound == Bound.HOT):
            allowed = {held.required_workers, whole.required_workers, None, now.spec_workers}
            assert now.required_workers in allowed, now.workload


GAUGES = [
    "partitions",
    "hottest_partition_ratio",
    "spec_workers",
    "workers",
    "ready_workers",
    "min_workers",
    "failover",
    "restarts",
]


@pytest.mark.parametrize("signal", GAUGES)
@many
@given(seed=seeds, place=st.integers(3, LENGTH - 1))
def test_x_06_a_missing_gauge_keeps_its_last_value(signal, seed, place):
    """Until it is too old. `segments` follows the partitions, and holds until they are counted."""
    at_s, of_tick = history(seed)[place]
    recent = [row for then_s, reported in history(seed)[:place] if then_s >= at_s - ERROR_AFTER_S for row in reported]
    last = {row[:2]: row[3] for row in recent if row[2] == signal}
    same = [row for row in of_tick if row[2] != signal]
    same += [(*row[:3], last[row[:2]]) for row in of_tick if row[2] == signal and row[:2] in last]
    unchanged = rows(advance(folded(seed)[place - 1][0], assemble(at_s, same), RULES)[1])
    for now, was in zip(without(signal, seed, place), unchanged, strict=True):
        holds = now.policy == "segments" and signal == "partitions" and now.reason == Reason.STALE
        assert now.required_workers == was.required_workers or holds


def without(signal, seed, place):
    """The decisions of one tick without one of its signals."""
    at_s, of_tick = history(seed)[place]
    less = assemble(at_s, [row for row in of_tick if row[2] != signal])
    return rows(advance(folded(seed)[place - 1][0], less, RULES)[1])


@each_seed
def test_unknown_utilization_never_scales_down(seed):
    blind = [(at_s, [row for row in of_tick if row[2] != "utilization_ratio"]) for at_s, of_tick in history(seed)]
    for decision in (d for of_tick in fold(ticks_of(blind), RULES) for d in of_tick):
        needs_it = decision.policy in ("dataflow", "beam-flink", "netflix")
        if needs_it and decision.reason == Reason.DOWN and decision.bound == Bound.NONE:
            assert decision.utilization_ratio is not None  # idle, or estimated from a capacity that is known


@each_seed
def test_x_01_a_backlog_without_throughput_never_scales_up(seed):
    """But for a minimum."""
    still = [
        (at_s, [(*row[:3], 7.0) if row[2] == "processed_records" else row for row in of_tick])
        for at_s, of_tick in history(seed)
    ]
    for decision in (d for of_tick in fold(ticks_of(still), RULES) for d in of_tick):
        if decision.backlog_records and decision.workers and not decision.throughput_records_per_s:
            assert decision.reason != Reason.UP or decision.bound in (Bound.MIN, Bound.MEMORY)


UNCONFIRMED = (Reason.DISCONTINUITY, Reason.SETTLING, Reason.NO_DATA)


@pytest.mark.parametrize("signal", ["backlog_records", "appended_records"])
@many
@given(seed=seeds, place=st.integers(3, LENGTH - 1), more=st.sampled_from([50.0, 5e3, 1e5, 1e6]))
def test_p_05_more_backlog_or_input_at_one_tick_never_needs_fewer_workers(signal, seed, place, more):
    """Of `drain`, from the same state, and once the change is confirmed.

    Until then the target is held: a jump of the backlog, a counter that may have started anew, and a step of the input
    wait for the next tick. More workers help neither a job that stands still nor a partition that is too hot, so that
    they keep what they have.
    """
    at_s, of_tick = history(seed)[place]
    raised = [(*row[:3], row[3] + more) if row[2] == signal else row for row in of_tick]
    before, _ = folded(seed)[place - 1]
    more_rows = rows(advance(before, assemble(at_s, raised), RULES)[1])
    for held, less, now in zip(decided(seed)[place - 1], decided(seed)[place], more_rows, strict=True):
        if now.policy == "drain" and None not in (less.required_workers, now.required_workers):
            waits = now.reason in UNCONFIRMED or now.in_step or now.reason == Reason.STUCK or now.bound == Bound.HOT
            present = [size for size in (held.required_workers, now.spec_workers) if size is not None]
            least = min([less.required_workers, *present]) if waits else less.required_workers
            assert least <= now.required_workers, now.workload


# --- the record


@each_seed
def test_a_decision_is_reproducible_from_its_record_alone(seed):
    for _, decisions in folded(seed):
        if decisions.record:
            reported = json.loads(json.dumps({name: known(column) for name, column in decisions.record.items()}))
            columns = {name: np.array(column, dtype=np.float64) for name, column in reported.items()}
            again = decide(decision_input_of(columns))
            assert np.array_equal(again.served, decisions.numbers["required_workers"], equal_nan=True)
            assert [REASONS[place].value for place in again.reason] == list(decisions.text["reason"])
            assert [BOUNDS[place].value for place in again.bound] == list(decisions.text["bound"])


def known(column):
    return [None if value != value else value for value in column.tolist()]
