"""Decision inputs -> the target and its reason: gates, then the policy, then the bounds. Reads nothing else."""

from dataclasses import dataclass, replace

import numpy as np

from adapter.core import gates
from adapter.core.aggregation import first_largest, largest, pick, some
from adapter.core.bounds import BOUNDS
from adapter.core.clamps import BoundInputs, apply_bounds, bound_inputs_of
from adapter.core.decision_input import DecisionInput, WorkloadStatus
from adapter.core.policies.interface import Outlook, PolicyResult
from adapter.core.policies.sizing import OUTLOOK, policy_has, size
from adapter.core.rates import Mask
from adapter.core.reasons import REASONS, Reason
from adapter.core.samples import Array, IntArray, first_known

_INDEX = {reason: number for number, reason in enumerate(REASONS)}
_CAPS = [number for number, bound in enumerate(BOUNDS) if bound.record.is_cap]
_LEAST_LOAD_RATIO = 0.1
_UNKNOWN = [_INDEX[reason] for reason in (Reason.NO_DATA, Reason.STALE, Reason.NO_WORKERS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherStages:
    """What a decision takes from the stages that did not decide; every array has the shape (workloads,)."""

    in_step: Mask  # one of them is in a step of the input
    needed_workers: Array  # the largest size that one of them needs, NaN for none


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionResult:
    """The results of gates, policy and bounds; every array has the shape (workloads,)."""

    policy_result: PolicyResult
    stage: IntArray  # the deciding stage, otherwise -1
    others: OtherStages
    gate: IntArray  # an index into REASONS, or OPEN
    reason: IntArray  # an index into REASONS
    unbounded: Array  # the size before the bounds
    bound_inputs: BoundInputs
    blocked_s: Array  # no scale-up for this long
    served: Array  # the target, NaN if there is none
    bound: IntArray  # an index into BOUNDS


def decide(inputs: DecisionInput) -> DecisionResult:
    """The decision of each workload."""
    policy_result, stage, others = _size(inputs)
    gate = gates.first_closed(inputs.gate_inputs)
    gate = np.where((gate == gates.OPEN) & np.isnan(policy_result.wanted_workers), _INDEX[Reason.NO_DATA], gate)
    current, workers = inputs.status.current_workers, _present_workers(inputs)
    wanted = policy_result.wanted_workers
    # The policy sized the ready workers, which may differ from the desired ones: a scale-up exceeds both.
    decided = np.select(
        [wanted > workers, wanted < workers], [np.fmax(wanted, current), np.fmin(wanted, current)], current
    )
    unbounded = np.where(gate == gates.OPEN, decided, _held_target(inputs, gate))
    bound_inputs = bound_inputs_of(inputs, policy_result, stage, gate)
    served, bound = apply_bounds(unbounded, current, inputs.status.rules, inputs.range_, bound_inputs)
    return DecisionResult(
        policy_result=policy_result,
        stage=stage,
        others=others,
        gate=gate,
        reason=_reason(inputs, gate, served, _is_idle(inputs, stage) & (unbounded < current) & ~np.isin(bound, _CAPS)),
        unbounded=unbounded,
        bound_inputs=bound_inputs,
        blocked_s=pick(inputs.blockers.blocked_s, stage),
        served=served,
        bound=bound,
    )


def _present_workers(inputs: DecisionInput) -> Array:
    """The present workers of each workload."""
    workers = np.full(len(inputs.status.current_workers), np.nan)
    workers[inputs.workload_index] = inputs.policy_input.workers
    return workers


def _size(inputs: DecisionInput) -> tuple[PolicyResult, IntArray, OtherStages]:
    """The size of each workload and its deciding stage: the one with the largest size (S3-08), rather one with load.

    A stage that stands still while another one processes records wants the present size: it needs a repair, and after
    that perhaps all workers.
    """
    sizes, count = size(inputs.policy_input), len(inputs.status.current_workers)
    present, stands = inputs.policy_input.workers, inputs.blockers.stands
    sizes = replace(
        sizes,
        wanted_workers=np.where(stands, present, sizes.wanted_workers),
        needed_workers=np.where(stands, present, sizes.needed_workers),
    )
    keys = sizes.wanted_workers, _has_load(inputs, count).astype(np.float64)
    stage = first_largest(keys, inputs.sized, inputs.workload_index, count)
    elsewhere = inputs.sized & (np.arange(len(present)) != stage[inputs.workload_index])
    others_need = largest(np.where(elsewhere, sizes.needed_workers, np.nan), inputs.workload_index, count)
    others_need = np.fmax(others_need, inputs.status.needed_workers)
    needed = np.fmax(pick(sizes.needed_workers, stage), others_need)
    # The outlook of this stage does not say why the workload keeps its size where another stage needs more.
    decides = pick(sizes.needed_workers, stage) == needed
    columns = {name: getattr(sizes.outlook, name) for name in OUTLOOK}
    outlook = {name: np.where(decides, pick(values, stage), np.nan) for name, values in columns.items()}
    # A step in any stage delays the scale-up of the workload.
    others_in_step = some(elsewhere & (columns["in_step"] > 0), inputs.workload_index, count)
    outlook["in_step"] = np.fmax(pick(columns["in_step"], stage), others_in_step)
    return (
        PolicyResult(
            wanted_workers=pick(sizes.wanted_workers, stage),
            keep_up_workers=pick(sizes.keep_up_workers, stage),
            catch_up_workers=pick(sizes.catch_up_workers, stage),
            needed_workers=needed,
            outlook=Outlook(**outlook),
        ),
        stage,
        OtherStages(in_step=others_in_step, needed_workers=others_need),
    )


def _has_load(inputs: DecisionInput, count: int) -> Mask:
    """Whether a stage processes a considerable part of what the busiest stage of its workload does.

    Not the busiest stage alone: of two stages in a row, noise would make now one and now the other the busiest.
    """
    load = np.nan_to_num(inputs.policy_input.throughput_records_per_s)
    loaded: Mask = load >= _LEAST_LOAD_RATIO * largest(load, inputs.workload_index, count)[inputs.workload_index]
    return loaded


def _held_target(inputs: DecisionInput, gate: IntArray) -> Array:
    """The target while a gate is closed: the last one, or the current workers before the first.

    There is no target if samples or the worker counts are missing or too old. Unschedulable workers are left out, so
    that an HPA does not request more of them. A stuck job gets no more workers than it has.
    """
    gate_inputs, status = inputs.gate_inputs, inputs.status
    target, rules = status.target_workers, status.rules
    held = np.where(np.isin(gate, _UNKNOWN), target, first_known(target, status.current_workers))
    held = np.where(gate == _INDEX[Reason.UNSCHEDULABLE], np.fmin(held, _present_workers(inputs)), held)
    held = np.where(gate == _INDEX[Reason.STUCK], np.fmin(held, status.current_workers), held)
    uncounted = (gate == _INDEX[Reason.NO_WORKERS]) & (gate_inputs.workers_age_s > rules.error_after_s)
    unknown = (
        uncounted | (gate == _INDEX[Reason.EXPIRED]) | (np.isin(gate, _UNKNOWN) & np.isnan(gate_inputs.sample_age_s))
    )
    return np.where(unknown, np.nan, held)


def is_onward(status: WorkloadStatus, served: Array) -> Mask:
    """Whether a new target and the one before it are on the same side of the current size.

    Such a target keeps the date of the one before it, which is not enacted yet.
    """
    current, target = status.current_workers, status.target_workers
    onward: Mask = (np.sign(served - current) == np.sign(target - current)) & (served != current)
    return onward


def _reason(inputs: DecisionInput, gate: IntArray, served: Array, idle: Mask) -> IntArray:
    """The closed gate, otherwise the result of the decision. idle: where a scale-down follows from the missing load."""
    status = inputs.status
    current = status.current_workers
    overdue = is_onward(status, served) & ~status.hpa_off & (status.committed_age_s >= status.rules.not_enacted_after_s)
    moved = np.select(
        [overdue, served > current, (served < current) & idle, served < current],
        [_INDEX[Reason.NOT_ENACTED], _INDEX[Reason.UP], _INDEX[Reason.IDLE], _INDEX[Reason.DOWN]],
        _INDEX[Reason.HOLD],
    )
    return np.where(gate == gates.OPEN, moved, gate)


def _is_idle(inputs: DecisionInput, stage: IntArray) -> Mask:
    """Whether the policy sizes by the load, and there is no load."""
    seen, by_load = inputs.policy_input, ~policy_has("follows_partitions", inputs.status.rules)
    idle: Mask = by_load & (pick(seen.input_rate_records_per_s, stage) <= 0) & (pick(seen.backlog_records, stage) <= 0)
    return idle
