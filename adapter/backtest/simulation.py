"""Simulate a calibrated job under each policy in a closed loop: its cost and its lateness."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adapter.backtest.calibration import CalibratedJob
from adapter.backtest.trace import Trace, Window, windows
from adapter.backtest.units import random_seed
from adapter.core.samples import Array
from adapter.simulator import closed_loop
from adapter.simulator.closed_loop import STEPS_A_TICK
from adapter.simulator.policies import EPOCH_S
from adapter.simulator.profiles import STEP_S, TICK_S
from adapter.simulator.world import SimulatedJob

_LATE_RATIO = 0.001  # of the time; a policy that is late for longer requests too few workers
_SPAN_S = 300.0  # the backlog absorbs an input above the capacity for less than this
_SPAN_QUANTILE = 0.999


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRun:
    """One policy on one job; arrays have the shape (T,), one value per tick of the HPA."""

    policy: str
    at_s: Array
    rate_records_per_s: Array
    workers: Array  # paid: ready, starting or stopping
    capacity_records_per_s: Array  # the input at which the first of the ready workers is full
    backlog_time_s: Array
    worker_hours: float  # of each step of the simulation, which is shorter than a tick
    rescales: int
    pause_s: float  # in total


def simulate(job: CalibratedJob, policies: Sequence[str], start_s: float, seed: int = 0) -> dict[str, PolicyRun]:
    """Policy -> its run. All policies meet the same disturbances. A long history is cut into windows of some days.

    start_s: Unix seconds of the first step; 0 for a load without a date.
    """
    rate = job.rate_records_per_s
    parts = windows(Trace(name=job.profile.name, step_s=STEP_S, rate=rate))
    outcomes = [
        closed_loop.run(
            [_window_job(job, rate, policy, part, seed) for policy in policies],
            record=True,
            begin_s=(start_s or EPOCH_S) + part.begin * STEP_S,
        )
        for part in parts
    ]
    at_s = start_s + np.concatenate([tick_ends_s(part) for part in parts])
    return {
        policy: _policy_run(policy, at_s, [(outcome, lane) for outcome in outcomes])
        for lane, policy in enumerate(policies)
    }


def late_ratio(backlog_time_s: Array, target_s: float) -> float:
    """Share of the known time in which the backlog time exceeds the target; NaN if it is never known."""
    known = backlog_time_s[np.isfinite(backlog_time_s)]
    return float((known > target_s).mean()) if len(known) else np.nan


def headroom_advice(run: PolicyRun, target_s: float) -> str:
    """How late the job is with the policy's sizes, and which setting would change that."""
    late = late_ratio(run.backlog_time_s, target_s)
    within = f"The backlog time is below {target_s:g} s for {1 - late:.2%} of the simulated time"
    if late <= _LATE_RATIO:
        return f"{within}."
    overload = overload_ratio(run)
    if overload <= 1:
        return (
            f"{within}. {run.rescales} rescales ({run.pause_s:.0f} s of pause) and the catching up after them cause "
            "the rest. Fewer rescales would help: with drain, raise rescale_worth_s. If a longer backlog time is "
            "acceptable, set backlog_time_target_s."
        )
    return (
        f"{within}. For minutes at a time the input exceeds the capacity of the workers by {overload - 1:.0%}: raise "
        "min_workers, or with drain raise min_spare_workers or lower target_utilization_ratio. If the job is at "
        "max_workers, raise max_workers to a number that divides the partitions evenly, or add partitions."
    )


def overload_ratio(run: PolicyRun) -> float:
    """Input / capacity of the workers, over the 99.9 % quantile of five-minute spans."""
    size = max(round(_SPAN_S / TICK_S), 1)
    count = max(len(run.at_s) // size, 1)
    arrived, capacity = (
        column[: count * size].reshape(count, -1).mean(axis=1)
        for column in (run.rate_records_per_s, run.capacity_records_per_s)
    )
    return float(np.quantile(arrived / np.maximum(capacity, 1e-9), _SPAN_QUANTILE))


def _window_job(job: CalibratedJob, rate: Array, policy: str, part: Window, seed: int) -> SimulatedJob:
    own_seed = random_seed(seed, part.index)
    return SimulatedJob(rate[part.begin : part.end], part.lead_steps, policy, job.profile, own_seed, job.rules)


def tick_ends_s(part: Window) -> Array:
    """The end of each scored tick of a window, in seconds from the first step of the load."""
    first = part.lead_steps // STEPS_A_TICK + 1
    ends: Array = np.arange(part.begin + first * STEPS_A_TICK, part.end + 1, STEPS_A_TICK, dtype=np.float64)
    return STEP_S * ends


def _policy_run(policy: str, at_s: Array, parts: Sequence[tuple[closed_loop.Outcome, int]]) -> PolicyRun:
    """Join the windows of one policy. parts: the outcome of each window, and the lane of the policy in it."""
    columns = {
        name: np.concatenate([outcome.series[name][:, lane] for outcome, lane in parts]) for name in closed_loop.SERIES
    }
    sums = {
        name: sum(float(outcome.tally.sums[name][lane]) for outcome, lane in parts)
        for name in ("worker_s", "ups", "downs", "paused_s")
    }
    return PolicyRun(
        policy=policy,
        at_s=at_s,
        rate_records_per_s=columns["rate_records_per_s"],
        workers=columns["paid_workers"],
        capacity_records_per_s=columns["capacity_records_per_s"],
        backlog_time_s=columns["delay_s"],
        worker_hours=sums["worker_s"] / 3600,
        rescales=round(sums["ups"] + sums["downs"]),
        pause_s=sums["paused_s"],
    )
