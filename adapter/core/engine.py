"""The only loop: advance(state, samples, rules) -> (state, decisions). Live stream, backtest and tests all fold it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from adapter.core import bounds, gates, policies
from adapter.core.capacity import Proof, learn
from adapter.core.decisions import Decisions, Reason
from adapter.core.grouping import every, first_largest, largest, pick, smallest
from adapter.core.observe import Tick, observe
from adapter.core.policies.verdict import Evidence, Verdict
from adapter.core.rates import Mask
from adapter.core.report import NOTHING, Judgement, report
from adapter.core.rules import RuleBook
from adapter.core.samples import Array, IntArray, Samples, first_known
from adapter.core.signals import moves
from adapter.core.state import EMPTY, State


def advance(state: State, samples: Samples, rules: RuleBook) -> tuple[State, Decisions]:
    """Fold one tick of one shard into the state, and decide for each of its workloads.

    A tick that is not newer than the last one changes nothing and decides nothing: late and repeated samples, and a
    clock that runs backwards, are without effect.
    """
    if state.fast.at_s.size and samples.at_s <= state.fast.at_s[-1]:
        return state, NOTHING
    tick = observe(state, samples, rules)
    limits = bounds.limits(tick.rules, tick.facts, tick.at_s)
    verdict, stage = _sized(tick, limits.most)
    situation = _situation(tick, limits)
    gate = gates.first_closed(situation)

    current = first_known(tick.facts["spec_workers"], tick.workers)
    wanted = verdict.wanted_workers
    # Sized by those that are ready; who asks for no fewer than them does not ask for fewer than there should be.
    decided = np.where(wanted >= tick.workers, np.fmax(wanted, current), wanted)
    answer = np.where(gate == gates.OPEN, decided, _held(tick, situation, gate, current))
    served, bound = bounds.within(answer, current, tick.rules, limits)
    judgement = Judgement(
        verdict=verdict,
        stage=stage,
        situation=situation,
        gate=gate,
        limits=limits,
        current=current,
        served=served,
        bound=bound,
    )
    return _remembered(tick, served), report(tick, judgement, samples.faults)


def replay(ticks: Iterable[Samples], rules: RuleBook, state: State = EMPTY) -> Iterator[tuple[State, Decisions]]:
    """The fold over many ticks: exactly what the live stream does with them one by one."""
    for samples in ticks:
        state, decisions = advance(state, samples, rules)
        yield state, decisions


_EXPIRED = gates.REASONS.index(Reason.EXPIRED)
_NO_WORKERS = gates.REASONS.index(Reason.NO_WORKERS)
_UNKNOWN = [gates.REASONS.index(reason) for reason in (Reason.NO_DATA, Reason.STALE, Reason.NO_WORKERS)]


def _held(tick: Tick, situation: gates.Situation, gate: IntArray, current: Array) -> Array:
    """What a closed gate serves: the last target; before the first one the workers there are, if all else is known.

    Without any sample or count of workers, or with one that is too old, even a held target is not an answer.
    """
    target = tick.state.fast.target_workers
    held = np.where(np.isin(gate, _UNKNOWN), target, first_known(target, current))
    uncounted = (gate == _NO_WORKERS) & (situation.workers_age_s > tick.rules["error_after_s"])
    silent = (gate == _EXPIRED) | uncounted | (np.isin(gate, _UNKNOWN) & np.isnan(situation.sample_age_s))
    return np.where(silent, np.nan, held)


def _sized(tick: Tick, most: Array) -> tuple[Verdict, IntArray]:
    """What each workload's policy asks for, and the stage that asks for it: the one with the largest size (S3-08)."""
    owner, signals, count = tick.owner, tick.signals, len(tick.workers)
    hottest = _hottest(tick, count)
    evidence = Evidence(
        workers=tick.workers[owner],
        most_workers=most[owner],
        partitions=first_known(tick.facts["partitions"], most)[owner],
        throughput_records_per_s=signals["throughput_records_per_s"],
        growth_records_per_s=signals["growth_records_per_s"],
        highest_backlog_records=signals["highest_backlog_records"],
        rising=_rising(tick),
        backlog_records=signals["backlog_records"],
        backlog_time_s=signals["backlog_time_s"],
        lowest_backlog_time_s=signals["lowest_backlog_time_s"],
        utilization_ratio=hottest[owner],
        rules=tick.stage_rules,
    )
    verdict = policies.size(evidence, tick.stage_rules["policy"].astype(np.int64))
    stage = first_largest(verdict.wanted_workers, tick.counting, owner, count)
    return Verdict(
        wanted_workers=pick(verdict.wanted_workers, stage),
        keep_up_workers=pick(verdict.keep_up_workers, stage),
        catch_up_workers=pick(verdict.catch_up_workers, stage),
    ), stage


def _rising(tick: Tick) -> Mask:
    """Whether the backlog rises, and is more than what lies between two commits."""
    rises = tick.signals["rising"] == 1
    rising: Mask = rises & (tick.signals["backlog_time_s"] > tick.stage_rules["short_backlog_time_s"])
    return rising


def _hottest(tick: Tick, count: int) -> Array:
    """The largest utilisation among each workload's stages; unknown while one that told its own before is silent."""
    busy, before = tick.signals["utilization_ratio"], tick.signals["measured_utilization_ratio"]
    told = np.isfinite(busy) | np.isnan(before)
    all_told = every(told, np.ones(len(told), dtype=bool), tick.owner, count)
    return np.where(all_told, largest(busy, tick.owner, count), np.nan)


def _situation(tick: Tick, limits: bounds.Limits) -> gates.Situation:
    owner, count, fast = tick.owner, len(tick.workers), tick.state.fast
    moving = moves(tick.signals["throughput_records_per_s"]) | ~(tick.signals["backlog_records"] > 0)
    return gates.Situation(
        paused=limits.no_up & limits.no_down,
        sample_age_s=tick.at_s - smallest(fast.seen_at_s, owner, count),
        workers_age_s=tick.at_s - fast.counted_at_s,
        changed_age_s=tick.at_s - fast.changed_at_s,
        asked_age_s=tick.at_s - fast.asked_at_s,
        incomplete=_incomplete(tick.facts),
        rates_known=every(tick.rates_known, tick.counting, owner, count),
        nothing_moves=~every(moving, tick.counting, owner, count) & (tick.workers > 0),
        rules=tick.rules,
    )


def _incomplete(facts: Mapping[str, Array]) -> Mask:
    """Workers are not yet as many as were asked for, or not yet ready; what nobody counts is not missing."""
    asked = first_known(facts["spec_workers"], facts["workers"], facts["ready_workers"])
    exist, ready = first_known(facts["workers"], asked), first_known(facts["ready_workers"], asked)
    missing: Mask = np.isfinite(asked) & ((exist != asked) | (ready < asked))
    return missing


def _remembered(tick: Tick, served: Array) -> State:
    state, signals = tick.state, tick.signals
    rules, growth = tick.stage_rules, signals["growth_records_per_s"]
    throughput, workers = signals["throughput_records_per_s"], tick.workers[tick.owner]
    proof = Proof(
        saturated=tick.rates_known & (signals["lowest_backlog_time_s"] > rules["short_backlog_time_s"]),
        overtaken=tick.rates_known & _rising(tick) & (growth > rules["growth_noise_ratio"] * throughput),
    )
    capacity = learn(state.slow.worker_capacity, throughput, workers, proof)
    return State(fast=replace(state.fast, target_workers=served), slow=replace(state.slow, worker_capacity=capacity))
