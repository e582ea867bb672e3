"""What is known + what was judged -> decisions: the evidence beside the answer."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import isnan

import numpy as np

from adapter.core import gates
from adapter.core.bounds import BOUNDS, Limits
from adapter.core.decisions import Bound, Decision, Decisions, Reason, StageSignals
from adapter.core.grouping import pick
from adapter.core.observe import Tick
from adapter.core.policies.verdict import Verdict
from adapter.core.rules import POLICIES
from adapter.core.samples import EVERY, WHOLE, Array, IntArray

TEXTS = ("workload", "policy", "reason", "bound", "fault", "stage")
NUMBERS = tuple(f.name for f in fields(Decision) if f.name not in (*TEXTS, "at_s"))
STAGE_NUMBERS = tuple(f.name for f in fields(StageSignals) if f.name not in ("workload", "stage"))
NOTHING = Decisions(at_s=np.nan, text={}, numbers={}, stages=(), stage_numbers={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What gates, policy and bounds said; every array has the shape (workloads,).

    stage: the deciding one, else -1. current: the workers asked for, else those there are.
    """

    verdict: Verdict
    stage: IntArray
    situation: gates.Situation
    gate: IntArray
    limits: Limits
    current: Array
    served: Array
    bound: IntArray


def report(tick: Tick, judged: Judgement, faults: Mapping[str, str]) -> Decisions:
    """One decision a workload, with the numbers it was made from; the signals are those of the deciding stage."""
    slow = tick.state.slow
    visible = [place for place, (_, stage) in enumerate(slow.stages) if stage != WHOLE]
    return Decisions(
        at_s=tick.at_s,
        text=_text(tick, judged, faults),
        numbers=_numbers(tick, judged),
        stages=tuple(slow.stages[place] for place in visible),
        stage_numbers={name: tick.signals[name][visible] for name in STAGE_NUMBERS},
    )


def rows(decisions: Decisions) -> list[Decision]:
    """The decisions one by one, unknown as None."""
    if not decisions.text:
        return []
    texts = zip(*(decisions.text[name] for name in TEXTS), strict=True)
    numbers = zip(*(_known(decisions.numbers[name]) for name in NUMBERS), strict=True)
    return [
        Decision(
            at_s=decisions.at_s,
            workload=workload,
            policy=policy,
            reason=Reason(reason),
            bound=Bound(bound),
            fault=fault,
            stage=stage,
            **dict(zip(NUMBERS, values, strict=True)),
        )
        for (workload, policy, reason, bound, fault, stage), values in zip(texts, numbers, strict=True)
    ]


def stage_rows(decisions: Decisions) -> list[StageSignals]:
    """The signals of visible stages one by one, unknown as None."""
    numbers = zip(*(_known(decisions.stage_numbers[name]) for name in STAGE_NUMBERS), strict=True)
    return [
        StageSignals(workload=workload, stage=stage, **dict(zip(STAGE_NUMBERS, values, strict=True)))
        for (workload, stage), values in zip(decisions.stages, numbers, strict=False)
    ]


def _known(column: Array) -> list[float | None]:
    return [None if isnan(value) else value for value in column.tolist()]


# Something was not seen: what a failing source said may be why.
_UNTOLD = [gates.REASONS.index(r) for r in (Reason.NO_DATA, Reason.EXPIRED, Reason.STALE, Reason.NO_WORKERS)]


def _text(tick: Tick, judged: Judgement, faults: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    names = tick.state.slow.workloads
    stages = tick.state.slow.stages
    of_all = faults.get(EVERY, "")
    told = ~np.isin(judged.gate, _UNTOLD)
    return {
        "workload": names,
        "policy": tuple(POLICIES[int(number)] for number in tick.rules["policy"].tolist()),
        "reason": tuple(_reasons(judged)),
        "bound": tuple(_BOUND_NAMES[number] for number in judged.bound.tolist()),
        "fault": tuple(
            faults.get(name, "" if known else of_all) for name, known in zip(names, told.tolist(), strict=True)
        ),
        "stage": tuple(stages[place][1] if place >= 0 else WHOLE for place in judged.stage.tolist()),
    }


def _reasons(judged: Judgement) -> list[str]:
    up, down, hold = (gates.REASONS.index(reason) for reason in (Reason.UP, Reason.DOWN, Reason.HOLD))
    moved = np.select([judged.served > judged.current, judged.served < judged.current], [up, down], hold)
    return [_REASON_NAMES[number] for number in np.where(judged.gate == gates.OPEN, moved, judged.gate).tolist()]


def _numbers(tick: Tick, judged: Judgement) -> Mapping[str, Array]:
    seen, verdict, decided = judged.situation, judged.verdict, judged.gate == gates.OPEN
    of_stage = {name: pick(tick.signals[name], judged.stage) for name in _SHOWN}
    return of_stage | {
        "required_workers": judged.served,
        "wanted_workers": np.where(decided, verdict.wanted_workers, np.nan),
        "keep_up_workers": np.where(decided, verdict.keep_up_workers, np.nan),
        "catch_up_workers": np.where(decided, verdict.catch_up_workers, np.nan),
        "spec_workers": tick.facts["spec_workers"],
        "workers": tick.workers,
        "ready_workers": tick.facts["ready_workers"],
        "min_workers": judged.limits.least,
        "max_workers": judged.limits.most,
        "partitions": tick.facts["partitions"],
        "backlog_time_target_s": tick.rules["time_to_reduce_backlog_s"],
        "sample_age_s": seen.sample_age_s,
        "workers_age_s": seen.workers_age_s,
        "changed_age_s": seen.changed_age_s,
        "fleet": tick.facts["fleet"],
    }


_REASON_NAMES = tuple(reason.value for reason in gates.REASONS)
_BOUND_NAMES = tuple(bound.value for bound in BOUNDS)
_SHOWN = (*STAGE_NUMBERS, "worker_capacity_records_per_s")
