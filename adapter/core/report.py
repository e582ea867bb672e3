"""A tick and its results -> decisions: the size, its reason and the numbers it follows from."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from math import isnan
from typing import Any

import numpy as np

from adapter.core import gates
from adapter.core.aggregation import pick
from adapter.core.bounds import BOUNDS
from adapter.core.contradicting_input import contradicting_input
from adapter.core.decide import DecisionResult
from adapter.core.decision_input import DecisionInput
from adapter.core.decisions import CONFIDENCE, NUMBERS, STAGE_NUMBERS, Bound, Decision, Decisions, Reason
from adapter.core.disputes import disputes
from adapter.core.falling_counters import falling_counters
from adapter.core.formatting import RESOURCES
from adapter.core.ingest import failed
from adapter.core.limits import at_least_one
from adapter.core.observe import Tick
from adapter.core.policies.interface import forecast_input_rate
from adapter.core.policies.sizing import OUTLOOK, backlog_time_target
from adapter.core.rates import Mask
from adapter.core.reasons import REASONS
from adapter.core.record import record_columns
from adapter.core.relayed_load import bottleneck, required_parallelism, stage_load, true_rate
from adapter.core.rules import POLICIES
from adapter.core.samples import EVERY, WHOLE, Array, IntArray, Samples
from adapter.core.split_loads import split_loads

NO_DECISIONS = Decisions(at_s=np.nan, text={}, numbers={}, stages=(), stage_numbers={})


def report(tick: Tick, inputs: DecisionInput, result: DecisionResult, samples: Samples) -> Decisions:
    """One decision a workload; its signals are those of the deciding stage."""
    slow = tick.state.slow
    visible = [] if tick.plain else [place for place, (_, stage) in enumerate(slow.stages) if stage != WHOLE]
    return Decisions(
        at_s=tick.at_s,
        text=_text(tick, result, samples),
        numbers={**_numbers(tick, inputs, result), "source_failed": _source_failed(tick, result, samples)},
        stages=tuple(slow.stages[place] for place in visible),
        stage_numbers=_stage_numbers(tick, visible),
        record=record_columns(inputs, result),
    )


def rows(decisions: Decisions) -> list[Decision]:
    """The decisions one by one, unknown as None."""
    if not decisions.text:
        return []
    columns: dict[str, Iterable[Any]] = {
        **decisions.text,
        "reason": map(Reason, decisions.text["reason"]),
        "bound": map(Bound, decisions.text["bound"]),
        **{name: _none_for_unknown(decisions.numbers[name]) for name in NUMBERS},
    }
    return [
        Decision(at_s=decisions.at_s, **dict(zip(columns, values, strict=True)))
        for values in zip(*columns.values(), strict=True)
    ]


def _none_for_unknown(column: Array) -> list[float | None]:
    return [None if isnan(value) else value for value in column.tolist()]


# A sample is missing: the error of a source may explain it.
_MISSING_SAMPLES = [REASONS.index(r) for r in (Reason.NO_DATA, Reason.EXPIRED, Reason.STALE, Reason.NO_WORKERS)]


def _text(tick: Tick, result: DecisionResult, samples: Samples) -> Mapping[str, tuple[str, ...]]:
    confidence = np.nan_to_num(pick(tick.signals.confidence, result.stage))
    stages = [*(stage for _, stage in tick.state.slow.stages), WHOLE]  # the last for an index of -1
    return {
        "workload": tick.state.slow.workloads,
        "policy": _names_at(POLICIES, tick.rules.policy),
        "reason": _names_at([reason.value for reason in REASONS], result.reason),
        "bound": _names_at([bound.value for bound in BOUNDS], result.bound),
        "confidence": _names_at(CONFIDENCE, confidence),
        "fault": _faults(tick, result, samples.faults),
        "dispute": disputes(tick, samples.disputes),
        "stage": _names_at(stages, result.stage),
        "bottleneck": _names_at(stages, bottleneck(tick)),
    }


def _names_at(names: Sequence[str], place: Array | IntArray) -> tuple[str, ...]:
    return tuple(np.array(names, dtype=object)[place.astype(np.int64)].tolist())


def _faults(tick: Tick, result: DecisionResult, faults: Mapping[str, str]) -> tuple[str, ...]:
    names, found = tick.state.slow.workloads, _found_faults(tick, faults)
    if not (faults or any(found)):
        return ("",) * len(names)
    of_all = np.where(_lacks_samples(tick, result), faults.get(EVERY, ""), "").tolist()
    return tuple(
        reduce(_join, (sentences.get(name, "") for sentences in found), _own_fault(faults.get(name, ""), every))
        for name, every in zip(names, of_all, strict=True)
    )


def _found_faults(tick: Tick, faults: Mapping[str, str]) -> tuple[Mapping[str, str], ...]:
    """Per cause, the faults that the samples show. The note of a source that leaves records out is enough."""
    contradicting = {name: text for name, text in contradicting_input(tick).items() if name not in faults}
    return tick.complaints, falling_counters(tick), split_loads(tick), contradicting


def _source_failed(tick: Tick, result: DecisionResult, samples: Samples) -> Array:
    of_all = _lacks_samples(tick, result) & (EVERY in samples.faults)
    return (failed(samples, tick.state.slow.workloads) | of_all).astype(np.float64)


def _lacks_samples(tick: Tick, result: DecisionResult) -> Mask:
    return np.isin(result.gate, _MISSING_SAMPLES) | _is_partition_count_old(tick)


def _is_partition_count_old(tick: Tick) -> Mask:
    """Whether the count of partitions is too old to show. As a bound the last count stays."""
    old: Mask = tick.partitions_age_s > tick.rules.error_after_s
    return old


def _own_fault(fault: str, every: str) -> str:
    """The fault of one workload. A source that names the workload replaces the faults of all workloads."""
    own, of_all = ({part for part in each.split("; ") if not _is_count(part)} for each in (fault, every))
    return _join(fault, every) if own.isdisjoint(of_all) else fault


def _is_count(part: str) -> bool:
    """Whether it only counts the faults that were left out, as in "1 more"."""
    return part.removesuffix(" more").isdigit()


def _join(one: str, other: str) -> str:
    """Two faults as one."""
    return other if one in other else one if other in one else f"{one}; {other}"


def _stage_numbers(tick: Tick, visible: list[int]) -> Mapping[str, Array]:
    if not visible:
        return dict.fromkeys(STAGE_NUMBERS, np.empty(0))
    loads = _loads(tick)
    return {n: (loads[n] if n in loads else getattr(tick.signals, n))[visible] for n in STAGE_NUMBERS}


def _loads(tick: Tick) -> Mapping[str, Array]:
    return dict(zip(_LOADS, (stage_load(tick), true_rate(tick), required_parallelism(tick)), strict=True))


def _numbers(tick: Tick, inputs: DecisionInput, result: DecisionResult) -> Mapping[str, Array]:
    ages, decided = inputs.gate_inputs, result.gate == gates.OPEN
    of_stage = {name: pick(getattr(tick.signals, name), result.stage) for name in _SHOWN}
    of_now = {name: pick(getattr(tick.now, name), result.stage) for name in _SHOWN_NOW}
    of_stage |= {name: pick(column, bottleneck(tick)) for name, column in _loads(tick).items()}
    of_now |= {name: tick.largest(getattr(tick.now, name)) for name in _LARGEST}
    sizes = _sizes(result)
    workers = np.where(tick.workers > 0, tick.workers, np.nan)
    return (
        of_stage
        | of_now
        | {name: np.where(decided, column, np.nan) for name, column in sizes.items()}
        | {
            "required_workers": result.served,
            # Of the hottest stage, because an HPA on utilization has to relieve it.
            "utilization_ratio": pick(inputs.policy_input.utilization_ratio, result.stage),
            "relayed_load_ratio": pick(inputs.policy_input.relayed_load_ratio, result.stage),
            "forecast_input_rate_records_per_s": pick(forecast_input_rate(inputs.policy_input), result.stage),
            "held_workers": inputs.status.target_workers,
            "spec_workers": tick.counts.spec_workers,
            "workers": tick.workers,
            "ready_workers": tick.counts.ready_workers,
            "min_workers": inputs.range_.least,
            "max_workers": inputs.range_.ceiling,
            "max_by_default": inputs.range_.by_default.astype(np.float64),
            "hpa_off": inputs.status.hpa_off.astype(np.float64),
            "partitions": np.where(_is_partition_count_old(tick), np.nan, at_least_one(tick.facts.partitions)),
            "partitions_age_s": tick.partitions_age_s,
            "sink_healthy": tick.facts.sink_healthy,
            "bad_annotations": tick.bad_annotations,
            "slots_per_worker": tick.rules.slots_per_worker,
            "worker_capacity_records_per_s": of_stage["capacity_records_per_s"] / workers,
            "backlog_time_target_s": backlog_time_target(tick.rules),
            "short_backlog_time_s": tick.rules.short_backlog_time_s,
            "sample_age_s": tick.load_age_s,
            "workers_age_s": ages.workers_age_s,
            "changed_age_s": ages.changed_age_s,
            "stopped_age_s": tick.at_s - tick.state.fast.disturbed_at_s,
            "spec_changed_age_s": ages.spec_changed_age_s,
            "committed_age_s": inputs.status.committed_age_s,
            "restarts": ages.failures,
            "fleet": tick.facts.fleet,
        }
    )


def _sizes(result: DecisionResult) -> dict[str, Array]:
    """The numbers of the policy and the bounds; they count only if no gate is closed."""
    policy_result = result.policy_result
    return {
        "wanted_workers": policy_result.wanted_workers,
        "needed_workers": policy_result.needed_workers,
        "keep_up_workers": policy_result.keep_up_workers,
        "catch_up_workers": policy_result.catch_up_workers,
        "window_workers": result.bound_inputs.window_workers,
        "allowed_workers": result.bound_inputs.hot_workers,
        "blocked_s": np.where(result.blocked_s > 0, result.blocked_s, np.nan),
        **{name: getattr(policy_result.outlook, name) for name in OUTLOOK},
    }


_LOADS = ("load_ratio", "true_rate_records_per_s", "required_parallelism")
_SHOWN = (
    *(name for name in STAGE_NUMBERS if name not in _LOADS),
    "capacity_records_per_s",
    "relative_lag_change_ratio",
    "hottest_partition_ratio",
)
_LARGEST = ("busiest_subtask_ratio", *RESOURCES)  # of all stages
_SHOWN_NOW = ("stuck_backlog_records", "highest_partition_backlog_records", "slowest_worker_ratio")
