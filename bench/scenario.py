"""The published scenario (S0-28) in a closed loop, for every policy with its defaults.

Steady state, a step of the input, a scale-up, a backlog that shrinks, a new steady state. A worker carries 100
records/s and starts in 30 s; a rescale stops the job for 30 s. The input is 1 000/s, and 1 500/s from the second minute
(S3-10 gives the shape without numbers).

Each policy starts in its own steady state: before the scenario it runs at 1 000/s from ten workers, which are exactly
full. A policy with a lower target utilization has scaled up by the start.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from adapter.core.engine import advance
from adapter.core.policies import policy_of
from adapter.core.rule_book import RuleBook
from adapter.core.rules import POLICIES, UNTIL_MEASURED, Rules
from adapter.core.samples import WHOLE, Array, Samples
from adapter.core.state import EMPTY
from adapter.simulator import fluid, hpa

NAMES = tuple(sorted(POLICIES))
RATE_RECORDS_PER_S, STEPPED_RECORDS_PER_S = 1000.0, 1500.0
STEP_S, END_S = 120, 2400
TICK_S = 15  # every time below is a multiple of it, so that one step of the fluid model between two ticks is exact
WORKERS = 10
WORKER_CAPACITY_RECORDS_PER_S = 100.0
PARTITIONS = 60  # as in S3-14: 10, 12, 15, 20 and 30 workers share them evenly
SEGMENTS = 10  # of `segments`: at 150/s each, above a target of 100/s, Pravega splits each in two (S2-17)

_BEFORE_S = 3600  # netflix goes down no sooner than 1800 s after its first up
_HPA = hpa.Hpa(max_workers=PARTITIONS, behavior=hpa.SHIPPED)
_TARGET_MILLI = 1000  # AverageValue "1"
_WORKLOADS = tuple(f"scenario/{name}" for name in NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioTick:
    """All policies at one tick; every array has the shape (len(NAMES),), in their order.

    Rates of the input and spec_workers hold from this tick, throughput and ready_workers since the last one.
    """

    at_s: int  # since the start of the scenario
    input_rate_records_per_s: float
    throughput_records_per_s: Array  # 0 in a pause
    backlog_records: Array
    backlog_time_s: Array  # as the adapter reports it
    spec_workers: Array  # set by the HPA
    ready_workers: Array  # includes paused workers


def play() -> tuple[ScenarioTick, ...]:
    """Run the scenario; returns its ticks from 0 to END_S."""
    return tuple(scene for scene in _ticks() if scene.at_s >= 0)


def _ticks() -> Iterator[ScenarioTick]:
    """Counts -> advance -> HPA -> workers -> counts."""
    jobs, now = _jobs(), fluid.initial_state(np.full(len(NAMES), WORKERS), PARTITIONS)
    book = RuleBook(by_workload={f"scenario/{name}": Rules(policy=name) for name in NAMES})
    state, memory, processed = EMPTY, hpa.Memory(), now.processed_records
    for at_s in range(-_BEFORE_S, END_S + 1, TICK_S):
        state, decisions = advance(state, _samples(at_s, now), book)
        required_milli = np.round(decisions.numbers["required_workers"] * 1000)
        proposal = hpa.by_average_value(required_milli, _TARGET_MILLI, now.spec_workers, hpa.EXACT)
        sizes, memory = hpa.recommend(_HPA, memory, now.spec_workers, proposal, at_s)
        yield ScenarioTick(
            at_s=at_s,
            input_rate_records_per_s=_rate(at_s),
            throughput_records_per_s=(now.processed_records - processed) / TICK_S,
            backlog_records=now.backlog_records.sum(axis=1),
            backlog_time_s=decisions.numbers["backlog_time_s"],
            spec_workers=sizes,
            ready_workers=now.ready_workers,
        )
        processed = now.processed_records
        now = fluid.step(jobs, fluid.rescale(jobs, now, sizes), _load(at_s), TICK_S)


def _jobs() -> fluid.JobModel:
    every, rules = np.ones((len(NAMES), 1)), Rules()
    return fluid.JobModel(
        worker_capacity_records_per_s=every[:, 0] * WORKER_CAPACITY_RECORDS_PER_S,
        scaling_exponent=every[:, 0],
        pooled=every[:, 0] < 1,
        start_delay_s=every * UNTIL_MEASURED["worker_start_s"],
        pause_up_s=every * rules.rescale_pause_s,
        pause_down_s=every * rules.rescale_pause_s,
        replay_s=every * 0,
        warm_up_s=every[:, 0] * 0,
        warm_up_ratio=every[:, 0],
    )


def _rate(at_s: int) -> float:
    return RATE_RECORDS_PER_S if at_s < STEP_S else STEPPED_RECORDS_PER_S


def _partitions(at_s: int) -> Array:
    segments = float(SEGMENTS if at_s < STEP_S else 2 * SEGMENTS)
    by_partitions = np.array([policy_of(name).follows_partitions for name in NAMES])
    return np.where(by_partitions, segments, float(PARTITIONS))


def _load(at_s: int) -> fluid.Conditions:
    partitions = _partitions(at_s)[:, None]
    return fluid.Conditions(
        rate_records_per_s=np.full(len(NAMES), _rate(at_s)),
        share=np.where(np.arange(PARTITIONS) < partitions, 1 / partitions, 0.0),
        speed_ratio=np.ones((len(NAMES), PARTITIONS)),  # as many workers as partitions at most
        sink_ratio=np.ones(len(NAMES)),
    )


def _samples(at_s: int, now: fluid.JobState) -> Samples:
    """The samples that a broker and Kubernetes report; whole records."""
    appended, processed = np.round(now.appended_records), np.round(now.processed_records)
    return Samples(
        at_s=float(_BEFORE_S + at_s),  # Unix seconds are never negative
        workloads=_WORKLOADS,
        stages=tuple((workload, WHOLE) for workload in _WORKLOADS),
        by_stage={
            "appended_records": appended,
            "processed_records": processed,
            "backlog_records": appended - processed,
            "utilization_ratio": now.utilization_ratio,
        },
        by_workload={
            "partitions": _partitions(at_s),
            "spec_workers": now.spec_workers,
            "workers": now.spec_workers,
            "ready_workers": now.ready_workers,
        },
    )
