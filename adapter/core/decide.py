"""Decision inputs -> what to serve, and why: gates, then the policy, then the bounds. Reads nothing else."""

from dataclasses import dataclass, fields

import numpy as np

from adapter.core import bounds, gates
from adapter.core.bounds import BoundInputs
from adapter.core.capacity import rate_at
from adapter.core.decision_input import DecisionInput
from adapter.core.decisions import Reason
from adapter.core.grouping import first_largest, pick
from adapter.core.observe import settled_s
from adapter.core.partitions import hot_limit
from adapter.core.policies.interface import Outlook, PolicyResult
from adapter.core.policies.sizing import size, where
from adapter.core.rates import Mask
from adapter.core.samples import Array, IntArray, first_known

OUTLOOK = tuple(f.name for f in fields(Outlook))
_INDEX = {reason: number for number, reason in enumerate(gates.REASONS)}
_UNKNOWN = [_INDEX[reason] for reason in (Reason.NO_DATA, Reason.STALE, Reason.NO_WORKERS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionResult:
    """What gates, policy and bounds said; every array has the shape (workloads,).

    stage: the deciding one, else -1. gate: an index into REASONS, or OPEN. reason: an index into REASONS.
    answer: the size before the bounds. blocked_s: more workers are not tried for so long. served: the target, NaN when
    there is none. bound: an index into BOUNDS.
    """

    policy_result: PolicyResult
    stage: IntArray
    gate: IntArray
    reason: IntArray
    answer: Array
    bound_inputs: BoundInputs
    blocked_s: Array
    served: Array
    bound: IntArray


def decide(inputs: DecisionInput) -> DecisionResult:
    """The decision of each workload."""
    policy_result, stage = _sized(inputs)
    gate = gates.first_closed(inputs.gate_inputs)
    gate = np.where((gate == gates.OPEN) & np.isnan(policy_result.wanted_workers), _INDEX[Reason.NO_DATA], gate)
    current, workers = inputs.status.current_workers, _at_work(inputs)
    wanted = policy_result.wanted_workers
    # Sized by those that are ready, which may be more or fewer than there should be: more is more than both.
    decided = np.select(
        [wanted > workers, wanted == workers, wanted < workers],
        [np.fmax(wanted, current), current, np.fmin(wanted, current)],
        wanted,
    )
    answer = np.where(gate == gates.OPEN, decided, _held(inputs, gate))
    bound_inputs = _bound_inputs(inputs, policy_result, stage, gate)
    served, bound = bounds.apply_bounds(answer, current, inputs.status.rules, inputs.range_, bound_inputs)
    return DecisionResult(
        policy_result=policy_result,
        stage=stage,
        gate=gate,
        reason=_reason(inputs, gate, served, stage),
        answer=answer,
        bound_inputs=bound_inputs,
        blocked_s=pick(inputs.blockers.blocked_s, stage),
        served=served,
        bound=bound,
    )


def _at_work(inputs: DecisionInput) -> Array:
    """Workers at work, of each workload."""
    workers = np.full(len(inputs.status.current_workers), np.nan)
    workers[inputs.workload_index] = inputs.policy_input.workers
    return workers


def _sized(inputs: DecisionInput) -> tuple[PolicyResult, IntArray]:
    """What each workload's policy asks for, and the stage that asks for it: the one with the largest size (S3-08)."""
    said, count = size(inputs.policy_input, inputs.policy), len(inputs.status.current_workers)
    stage = first_largest(said.wanted_workers, inputs.counting, inputs.workload_index, count)
    outlook = said.outlook
    picked = None
    if outlook is not None:
        picked = Outlook(**{name: pick(getattr(outlook, name), stage) for name in OUTLOOK})
    needed = np.full(count, -np.inf)
    known = inputs.counting & np.isfinite(said.needed_workers)
    np.maximum.at(needed, inputs.workload_index[known], said.needed_workers[known])
    return PolicyResult(
        wanted_workers=pick(said.wanted_workers, stage),
        keep_up_workers=pick(said.keep_up_workers, stage),
        catch_up_workers=pick(said.catch_up_workers, stage),
        needed_workers=np.where(np.isinf(needed), np.nan, needed),
        outlook=picked,
    ), stage


def _held(inputs: DecisionInput, gate: IntArray) -> Array:
    """What a closed gate serves: the last target; before the first one the workers there are, if all else is known.

    Without any sample or count of workers, or with one that is too old, even a held target is not an answer. Workers
    that find no place are not asked for, so that an HPA does not pile them up; nor is what is stuck given more of them.
    """
    see, status = inputs.gate_inputs, inputs.status
    target, rules = status.target_workers, status.rules
    held = np.where(np.isin(gate, _UNKNOWN), target, first_known(target, status.current_workers))
    held = np.where(gate == _INDEX[Reason.UNSCHEDULABLE], np.fmin(held, _at_work(inputs)), held)
    held = np.where(gate == _INDEX[Reason.STUCK], np.fmin(held, status.current_workers), held)
    uncounted = (gate == _INDEX[Reason.NO_WORKERS]) & (see.workers_age_s > rules.error_after_s)
    silent = uncounted | (gate == _INDEX[Reason.EXPIRED]) | (np.isin(gate, _UNKNOWN) & np.isnan(see.sample_age_s))
    return np.where(silent, np.nan, held)


def _bound_inputs(inputs: DecisionInput, policy_result: PolicyResult, stage: IntArray, gate: IntArray) -> BoundInputs:
    """What holds a decision back. A target that is held, or was committed and waits, is not decided anew: only what
    became wrong in the meantime cuts it (a pause, a sink, the limits)."""
    status, policy_input, rules = inputs.status, inputs.policy_input, inputs.status.rules
    behind = pick(policy_input.backlog_time_s, stage) > rules.short_backlog_time_s
    idle = pick(inputs.blockers.measured_utilization_ratio, stage) < rules.low_cpu_ratio
    target, current = status.target_workers, status.current_workers
    young = (status.committed_age_s < rules.latch_s) & (target != current)
    free = gate == gates.OPEN
    rising, falling = young & (target > current), young & (target < current)
    more, fewer = free & ~rising, free & ~falling
    suspect = free & behind & idle & (current > 0)
    fresh = inputs.gate_inputs.changed_age_s < rules.warm_up_s
    patient = where("waits_until_warm", rules.policy)
    changed = np.isfinite(inputs.gate_inputs.changed_age_s)
    cooldown_up_s = first_known(rules.cooldown_up_s, np.where(patient & changed, settled_s(rules), np.nan))
    # A down that waits to be enacted has paid already: what is needed now may stop it, and nothing else of the window.
    window = np.fmax(np.where(falling, np.nan, status.peak_workers), policy_result.needed_workers)
    near = patient & (window >= current * (1 - rules.tolerance_ratio))
    return BoundInputs(
        no_up=status.no_up,
        no_down=status.no_down,
        failover=status.failover,
        sink_unhealthy=status.sink_unhealthy,
        behind=behind,
        blocked=more & (pick(inputs.blockers.blocked_s, stage) > 0),
        # What a trial gained shows when it has warmed up, and not before.
        cooling_up=more & ((status.asked_age_s < cooldown_up_s) | (suspect & fresh)),
        cooling_down=fewer & (status.asked_age_s < rules.cooldown_down_s),
        unaffordable=fewer & (status.budget_s < rules.rescale_pause_s),
        suspect=suspect,
        hot_workers=np.where(free, pick(_hot(inputs), stage), np.nan),
        window_workers=np.where(
            free & (rules.down_window_s > 0), np.where(near, np.fmax(window, current), window), np.nan
        ),
        pending_workers=np.where(free & young, target, np.nan),
    )


def _hot(inputs: DecisionInput) -> Array:
    """The most workers that help a stage whose heaviest partition alone fills a subtask; NaN where none does."""
    policy_input, heaviest = inputs.policy_input, inputs.blockers.hottest_partition_ratio
    rules, one, slots = policy_input.rules, np.ones(len(heaviest)), policy_input.rules.slots_per_worker
    able = rate_at(policy_input.table, one, one) / slots
    load = heaviest * policy_input.input_rate_records_per_s / policy_input.partitions
    most = np.ceil(hot_limit(policy_input.partitions, heaviest) / slots)
    return np.where(load > rules.high_utilization_ratio * able, most, np.nan)


def _reason(inputs: DecisionInput, gate: IntArray, served: Array, stage: IntArray) -> IntArray:
    """The gate that held, else what the decision comes to."""
    status = inputs.status
    current, target = status.current_workers, status.target_workers
    waits = (np.sign(served - current) == np.sign(target - current)) & (served != current)
    overdue = waits & (status.committed_age_s >= status.rules.not_enacted_after_s)
    idle = _is_idle(inputs, stage)
    moved = np.select(
        [overdue, served > current, (served < current) & idle, served < current],
        [_INDEX[Reason.NOT_ENACTED], _INDEX[Reason.UP], _INDEX[Reason.IDLE], _INDEX[Reason.DOWN]],
        _INDEX[Reason.HOLD],
    )
    return np.where(gate == gates.OPEN, moved, gate)


def _is_idle(inputs: DecisionInput, stage: IntArray) -> Mask:
    seen = inputs.policy_input
    idle: Mask = (pick(seen.input_rate_records_per_s, stage) <= 0) & (pick(seen.backlog_records, stage) <= 0)
    return idle
