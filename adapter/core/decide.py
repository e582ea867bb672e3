"""A case -> what is asked for, and why: gates, then the policy, then the bounds. It looks at nothing but the case."""

from dataclasses import dataclass, fields

import numpy as np

from adapter.core import bounds, gates, policies
from adapter.core.bounds import Brakes
from adapter.core.capacity import rate_at
from adapter.core.case import Case, settled_s
from adapter.core.decisions import Reason
from adapter.core.grouping import first_largest, pick
from adapter.core.partitions import hot_limit
from adapter.core.policies.verdict import Outlook, Verdict
from adapter.core.rates import Mask
from adapter.core.rules import POLICIES
from adapter.core.samples import Array, IntArray, first_known

OUTLOOK = tuple(f.name for f in fields(Outlook))
_INDEX = {reason: number for number, reason in enumerate(gates.REASONS)}
_UNKNOWN = [_INDEX[reason] for reason in (Reason.NO_DATA, Reason.STALE, Reason.NO_WORKERS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What gates, policy and bounds said; every array has the shape (workloads,).

    stage: the deciding one, else -1. gate: an index into REASONS, or OPEN. reason: an index into REASONS.
    answer: the size before the bounds. blocked_s: more workers are not tried for so long. served: the target, NaN when
    there is none. bound: an index into BOUNDS.
    """

    verdict: Verdict
    stage: IntArray
    gate: IntArray
    reason: IntArray
    answer: Array
    brakes: Brakes
    blocked_s: Array
    served: Array
    bound: IntArray


def decide(case: Case) -> Judgement:
    """The decision of each workload."""
    verdict, stage = _sized(case)
    gate = gates.first_closed(case.situation)
    gate = np.where((gate == gates.OPEN) & np.isnan(verdict.wanted_workers), _INDEX[Reason.NO_DATA], gate)
    current, workers = case.standing.current_workers, _at_work(case)
    wanted = verdict.wanted_workers
    # Sized by those that are ready, which may be more or fewer than there should be: more is more than both.
    decided = np.select(
        [wanted > workers, wanted == workers, wanted < workers],
        [np.fmax(wanted, current), current, np.fmin(wanted, current)],
        wanted,
    )
    answer = np.where(gate == gates.OPEN, decided, _held(case, gate))
    brakes = _brakes(case, verdict, stage, gate)
    served, bound = bounds.within(answer, current, case.standing.rules, case.range_, brakes)
    return Judgement(
        verdict=verdict,
        stage=stage,
        gate=gate,
        reason=_reason(case, gate, served, stage),
        answer=answer,
        brakes=brakes,
        blocked_s=pick(case.marks.blocked_s, stage),
        served=served,
        bound=bound,
    )


def _at_work(case: Case) -> Array:
    """Workers at work, of each workload."""
    workers = np.full(len(case.standing.current_workers), np.nan)
    workers[case.owner] = case.evidence.workers
    return workers


def _sized(case: Case) -> tuple[Verdict, IntArray]:
    """What each workload's policy asks for, and the stage that asks for it: the one with the largest size (S3-08)."""
    said, count = policies.size(case.evidence, case.policy), len(case.standing.current_workers)
    stage = first_largest(said.wanted_workers, case.counting, case.owner, count)
    outlook = said.outlook
    picked = None
    if outlook is not None:
        picked = Outlook(**{name: pick(getattr(outlook, name), stage) for name in OUTLOOK})
    needed = np.full(count, -np.inf)
    known = case.counting & np.isfinite(said.needed_workers)
    np.maximum.at(needed, case.owner[known], said.needed_workers[known])
    return Verdict(
        wanted_workers=pick(said.wanted_workers, stage),
        keep_up_workers=pick(said.keep_up_workers, stage),
        catch_up_workers=pick(said.catch_up_workers, stage),
        needed_workers=np.where(np.isinf(needed), np.nan, needed),
        outlook=picked,
    ), stage


def _held(case: Case, gate: IntArray) -> Array:
    """What a closed gate serves: the last target; before the first one the workers there are, if all else is known.

    Without any sample or count of workers, or with one that is too old, even a held target is not an answer. Workers
    that find no place are not asked for, so that an HPA does not pile them up; nor is what is stuck given more of them.
    """
    see, standing = case.situation, case.standing
    target, rules = standing.target_workers, standing.rules
    held = np.where(np.isin(gate, _UNKNOWN), target, first_known(target, standing.current_workers))
    held = np.where(gate == _INDEX[Reason.UNSCHEDULABLE], np.fmin(held, _at_work(case)), held)
    held = np.where(gate == _INDEX[Reason.STUCK], np.fmin(held, standing.current_workers), held)
    uncounted = (gate == _INDEX[Reason.NO_WORKERS]) & (see.workers_age_s > rules["error_after_s"])
    silent = uncounted | (gate == _INDEX[Reason.EXPIRED]) | (np.isin(gate, _UNKNOWN) & np.isnan(see.sample_age_s))
    return np.where(silent, np.nan, held)


def _brakes(case: Case, verdict: Verdict, stage: IntArray, gate: IntArray) -> Brakes:
    """What holds a decision back. A target that is held, or was committed and waits, is not decided anew: only what
    became wrong in the meantime cuts it (a pause, a sink, the limits)."""
    standing, evidence, rules = case.standing, case.evidence, case.standing.rules
    behind = pick(evidence.backlog_time_s, stage) > rules["short_backlog_time_s"]
    idle = pick(case.marks.measured_utilization_ratio, stage) < rules["low_cpu_ratio"]
    target, current = standing.target_workers, standing.current_workers
    young = (standing.committed_age_s < rules["latch_s"]) & (target != current)
    free = gate == gates.OPEN
    rising, falling = young & (target > current), young & (target < current)
    more, fewer = free & ~rising, free & ~falling
    suspect = free & behind & idle & (current > 0)
    fresh = case.situation.changed_age_s < rules["warm_up_s"]
    drains = rules["policy"] == POLICIES.index("drain")
    changed = np.isfinite(case.situation.changed_age_s)
    cooldown_up_s = first_known(rules["cooldown_up_s"], np.where(drains & changed, settled_s(rules), np.nan))
    # A down that waits to be enacted has paid already: what is needed now may stop it, and nothing else of the window.
    window = np.fmax(np.where(falling, np.nan, standing.peak_workers), verdict.needed_workers)
    near = drains & (window >= current * (1 - rules["tolerance_ratio"]))
    return Brakes(
        no_up=standing.no_up,
        no_down=standing.no_down,
        failover=standing.failover,
        sink_unhealthy=standing.sink_unhealthy,
        behind=behind,
        blocked=more & (pick(case.marks.blocked_s, stage) > 0),
        # What a trial gained shows when it has warmed up, and not before.
        cooling_up=more & ((standing.asked_age_s < cooldown_up_s) | (suspect & fresh)),
        cooling_down=fewer & (standing.asked_age_s < rules["cooldown_down_s"]),
        unaffordable=fewer & (standing.budget_s < rules["rescale_pause_s"]),
        suspect=suspect,
        hot_workers=np.where(free, pick(_hot(case), stage), np.nan),
        window_workers=np.where(
            free & (rules["down_window_s"] > 0), np.where(near, np.fmax(window, current), window), np.nan
        ),
        pending_workers=np.where(free & young, target, np.nan),
    )


def _hot(case: Case) -> Array:
    """The most workers that help a stage whose heaviest partition alone fills a subtask; NaN where none does."""
    evidence, heaviest = case.evidence, case.marks.hottest_partition_ratio
    rules, one, slots = evidence.rules, np.ones(len(heaviest)), evidence.rules["slots_per_worker"]
    able = rate_at(evidence.table, one, one) / slots
    load = heaviest * evidence.input_rate_records_per_s / evidence.partitions
    most = np.ceil(hot_limit(evidence.partitions, heaviest) / slots)
    return np.where(load > rules["high_utilization_ratio"] * able, most, np.nan)


def _reason(case: Case, gate: IntArray, served: Array, stage: IntArray) -> IntArray:
    """The gate that held, else what the decision comes to."""
    standing = case.standing
    current, target = standing.current_workers, standing.target_workers
    waits = (np.sign(served - current) == np.sign(target - current)) & (served != current)
    overdue = waits & (standing.committed_age_s >= standing.rules["not_enacted_after_s"])
    idle = _is_idle(case, stage)
    moved = np.select(
        [overdue, served > current, (served < current) & idle, served < current],
        [_INDEX[Reason.NOT_ENACTED], _INDEX[Reason.UP], _INDEX[Reason.IDLE], _INDEX[Reason.DOWN]],
        _INDEX[Reason.HOLD],
    )
    return np.where(gate == gates.OPEN, moved, gate)


def _is_idle(case: Case, stage: IntArray) -> Mask:
    seen = case.evidence
    idle: Mask = (pick(seen.input_rate_records_per_s, stage) <= 0) & (pick(seen.backlog_records, stage) <= 0)
    return idle
