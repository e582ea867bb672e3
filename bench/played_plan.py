"""Play the oracle's plans in the simulator, and keep the one with the smallest capacity margin that is in time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from adapter.backtest.units import Unit
from adapter.core.samples import Array
from adapter.simulator import closed_loop
from adapter.simulator.profiles import STEP_S, TICK_S, Profile
from adapter.simulator.score import Tally, scores
from adapter.simulator.world import SimulatedJob
from bench import oracle, receding_horizon

PRICE_S = 900.0  # of a rescale: a quarter of an hour of the workers after it
LATE_PCT = 0.1  # of the records; the limit for every policy
MARGINS = tuple(percent / 100 for percent in range(0, 31, 2))  # of the capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLimit:
    """The limit that a plan has to keep in the simulator, and the price of a rescale."""

    slo_s: float  # no record of the plan waits longer
    price_s: float  # of a rescale, seconds of the workers after it
    score: str  # of score.scores, which the played plan keeps
    most_pct: float  # of that score
    known_s: float = np.inf  # a plan knows the load of this time ahead when it is made


LATE = PlanLimit(slo_s=oracle.SLO_S, price_s=PRICE_S, score="late_pct", most_pct=LATE_PCT)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedPlan:
    """A plan with its simulated score."""

    margin_ratio: float  # the share of the capacity that the plan leaves unused
    sums: Mapping[str, Array]  # one row of Tally.sums


def play(
    units: Sequence[Unit], rates: Sequence[Array], margins: Sequence[float] = MARGINS, limit: PlanLimit = LATE
) -> list[PlayedPlan]:
    """For each unit, the plan with the smallest margin that keeps the limit; if none does, the least late plan.

    margins: of the capacity, rising. The units have equal lengths. All plans of all units are simulated side by side.
    """
    jobs = [_job(unit, rate, margin, limit) for unit, rate in zip(units, rates, strict=True) for margin in margins]
    sums = closed_loop.run(jobs).tally.sums
    missed_pct = scores(Tally(sums))[limit.score].reshape(len(units), len(margins))
    kept = missed_pct <= limit.most_pct
    chosen = [
        int(np.argmax(row)) if row.any() else int(np.argmin(missed_pct[number])) for number, row in enumerate(kept)
    ]
    return [
        PlayedPlan(
            margin_ratio=margins[margin],
            sums={name: values[number * len(margins) + margin] for name, values in sums.items()},
        )
        for number, margin in enumerate(chosen)
    ]


def records_by_slot(rate: Array) -> Array:
    """Records that arrive in each slot of the oracle; the last slot may be shorter."""
    records: Array = np.add.reduceat(rate, np.arange(0, len(rate), round(oracle.SLOT_S / STEP_S))) * STEP_S
    return records


def lost_s(profile: Profile) -> float:
    """Seconds of a job's work that a rescale costs: its pause, the work that it repeats, and its warm-up."""
    pause_s = max(profile.pause_up_s, profile.pause_down_s)
    return pause_s + profile.checkpoint_s / 2 + profile.warm_up_s * (1 - profile.warm_up_ratio) / 2


def _job(unit: Unit, rate: Array, margin: float, limit: PlanLimit) -> SimulatedJob:
    capacity = oracle.capacity_records(unit.profile) * (1 - margin)
    task = oracle.SizingTask(arrival_records=records_by_slot(rate), capacity_records=capacity, slo_s=limit.slo_s)
    return SimulatedJob(
        rate_records_per_s=rate,
        lead_steps=unit.window.lead_steps,
        policy=unit.policy,
        profile=unit.profile,
        seed=unit.random_seed,
        schedule_workers=_schedule(_planned_workers(task, unit.profile, limit), unit.profile, len(rate)),
    )


def _planned_workers(task: oracle.SizingTask, profile: Profile, limit: PlanLimit) -> Array:
    """The workers of each slot."""
    if limit.known_s == np.inf:
        return oracle.upper(task, lost_s(profile), limit.price_s).workers
    known_slots = int((limit.known_s - profile.start_s) / oracle.SLOT_S)  # a scale-up is set start_s earlier
    return receding_horizon.workers_with(task, known_slots, lost_s(profile), limit.price_s)


def _schedule(workers: Array, profile: Profile, steps: int) -> Array:
    """The size to set at each tick. A scale-up is set as much earlier as its workers take to start."""
    ticks = round(steps * STEP_S / TICK_S)
    early = int(np.ceil(profile.start_s / TICK_S))
    by_tick = np.repeat(workers, round(oracle.SLOT_S / TICK_S))
    padded = np.pad(by_tick, (0, max(ticks + 1 + early - len(by_tick), 0)), mode="edge")
    schedule: Array = np.lib.stride_tricks.sliding_window_view(padded, early + 1).max(axis=1)[: ticks + 1]
    return schedule
