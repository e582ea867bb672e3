"""Simulate a calibrated job under each policy in a closed loop: its cost and its lateness."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias, TypeVar

import numpy as np

from adapter.backtest.calibration import CalibratedJob
from adapter.backtest.history import HistoryError
from adapter.backtest.trace import Trace, Window, windows
from adapter.backtest.unit_simulation import SERIES
from adapter.backtest.units import random_seed
from adapter.config.settings import TICKS
from adapter.core.rules import Rules
from adapter.core.samples import Array
from adapter.simulator import closed_loop
from adapter.simulator.closed_loop import STEPS_A_TICK
from adapter.simulator.profiles import STEP_S, TICK_S
from adapter.simulator.world import SimulatedJob

_LATE_RATIO = 0.001  # of the time; a policy that is late for longer requests too few workers
_SPAN_S = 300.0  # the backlog absorbs an input above the capacity for less than this
_SPAN_QUANTILE = 0.999
_MOST_LANES = 64  # of one run: their series of four days take 80 MB
TOTALS = ("worker_s", "ups", "downs", "paused_s")  # of score.SUMS
Progress: TypeAlias = Callable[[float], None]  # is called with the share of the work that is done
Piece: TypeAlias = tuple[dict[str, float], dict[str, Array]]  # the sums and the series of one window
_Item = TypeVar("_Item")


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


def ignore(share: float) -> None:
    """Show no progress."""


@dataclass(frozen=True, slots=True)
class _Lane:
    """One policy on one window of one job."""

    job: int  # index of the job
    policy: str
    window: Window


def simulate(
    jobs: Sequence[CalibratedJob],
    policies: Sequence[str],
    start_s: float,
    progress: Progress = ignore,
) -> list[dict[str, PolicyRun]]:
    """For each job, policy -> its run. All runs meet the same disturbances; a long load is cut into windows of days.

    jobs: with the same number of steps. start_s: Unix seconds of the first step.
    """
    parts = windows(Trace(name="load", step_s=STEP_S, rate=jobs[0].rate_records_per_s))
    at_s = start_s + tick_ends_s(parts)
    batches = list(_batches(jobs, policies, parts))
    pieces: dict[tuple[int, str], list[Piece]] = {}
    for done, lanes in enumerate(batches):

        def report(share: float, done: int = done) -> None:
            progress((done + share) / len(batches))

        outcome = closed_loop.run(
            _simulated_jobs(jobs, lanes),
            record=True,
            begin_s=start_s + lanes[0].window.begin * STEP_S,
            progress=report,
        )
        for place, lane in enumerate(lanes):
            pieces.setdefault((lane.job, lane.policy), []).append(_piece(outcome, place, lane.window))
    return [{policy: policy_run(policy, at_s, pieces[job, policy]) for policy in policies} for job in range(len(jobs))]


def require_ticks(workload: str, rules: Rules) -> None:
    """Raises HistoryError for a window of fewer ticks than a policy needs: a simulated tick may be a longer one."""
    for name, least, _ in TICKS:
        given_s = getattr(rules, name)
        if given_s is not None and given_s < least * TICK_S:
            fault = f"expected {name} >= {least * TICK_S:g}, got {given_s:g}; change it in a copy of the configuration"
            raise HistoryError(f"{workload}: the simulation decides every {TICK_S:g} s: {fault}")


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


def _batches(jobs: Sequence[CalibratedJob], policies: Sequence[str], parts: Sequence[Window]) -> Iterator[list[_Lane]]:
    """The lanes of each run: of jobs of similar size, and of one window, because rules may have times."""
    sizes = [max(job.profile.max_workers, job.profile.partitions) for job in jobs]
    for size in sorted({size.bit_length() for size in sizes}):
        alike = [job for job, own in enumerate(sizes) if own.bit_length() == size]
        for part in parts:
            yield from _chunks([_Lane(job, policy, part) for job, policy in product(alike, policies)], _MOST_LANES)


def _chunks(items: Sequence[_Item], most: int) -> Iterator[list[_Item]]:
    for begin in range(0, len(items), most):
        yield list(items[begin : begin + most])


def _simulated_jobs(jobs: Sequence[CalibratedJob], lanes: Sequence[_Lane]) -> list[SimulatedJob]:
    """The jobs of a run. Lanes with the same input share one array."""
    inputs: dict[tuple[int, Window], Array] = {}
    found = []
    for lane in lanes:
        job, part = jobs[lane.job], lane.window
        rate = inputs.setdefault((lane.job, part), job.rate_records_per_s[part.begin : part.end])
        own_seed = random_seed(0, part.index)
        found.append(SimulatedJob(rate, part.lead_steps, lane.policy, job.profile, own_seed, job.rules))
    return found


def tick_ends_s(parts: Iterable[Window]) -> Array:
    """The end of each scored tick of windows, in seconds from the first step of the load."""
    ends = []
    for part in parts:
        first = part.begin + (part.lead_steps // STEPS_A_TICK + 1) * STEPS_A_TICK
        ends.append(np.arange(first, part.end + 1, STEPS_A_TICK, dtype=np.float64))
    return STEP_S * np.concatenate(ends)


def _piece(outcome: closed_loop.Outcome, lane: int, part: Window) -> Piece:
    """One lane of a run: its sums, and its series after the lead-in."""
    first = part.lead_steps // STEPS_A_TICK
    series = {name: outcome.series[own][first:, lane].copy() for name, own in SERIES.items()}
    return {name: float(outcome.tally.sums[name][lane]) for name in TOTALS}, series


def policy_run(policy: str, at_s: Array, pieces: Sequence[Piece]) -> PolicyRun:
    """Join the windows of one policy."""
    columns = {name: np.concatenate([series[name] for _, series in pieces]) for name in SERIES}
    sums = {name: sum(own[name] for own, _ in pieces) for name in TOTALS}
    return PolicyRun(
        policy=policy,
        at_s=at_s,
        rate_records_per_s=columns["rate_records_per_s"],
        workers=columns["workers"],
        capacity_records_per_s=columns["capacity_records_per_s"],
        backlog_time_s=columns["backlog_time_s"],
        worker_hours=sums["worker_s"] / 3600,
        rescales=round(sums["ups"] + sums["downs"]),
        pause_s=sums["paused_s"],
    )
