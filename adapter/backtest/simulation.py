"""A calibrated job under each policy, closed loop -> what it would have cost and how late it would have been."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adapter.backtest.calibration import Calibrated
from adapter.backtest.trace import Trace, Window, windows
from adapter.backtest.units import chance
from adapter.core.samples import Array
from adapter.simulator import closed_loop
from adapter.simulator.profiles import STEP_S, TICK_S, WORKER_CAPACITY_RECORDS_PER_S
from adapter.simulator.world import Case

_LATE_RATIO = 0.001  # of the time; more of it is a policy that asks for too little
_SPAN_S = 300.0  # an input that outruns the workers for less is what the backlog is for
_SPAN_QUANTILE = 0.999
_MILLI_STEP = 50  # a value that a person would write
_LEAST_MILLI = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One policy on one job; arrays (T,), one a tick of the HPA. Rates are those of the job, not of the plant.

    workers: those that are paid for. carried_records_per_s: what the ready ones carry. pause_s: in all.
    """

    policy: str
    at_s: Array
    rate_records_per_s: Array
    workers: Array
    carried_records_per_s: Array
    backlog_time_s: Array
    rescales: int
    pause_s: float


def closed(job: Calibrated, policies: Sequence[str], start_s: float, seed: int = 0) -> dict[str, Run]:
    """Policy -> its run. All policies meet the same chance; a long history is cut into windows of some days.

    start_s: Unix seconds of the first step.
    """
    ticks = int(TICK_S / STEP_S)
    rate = job.rate_records_per_s[: len(job.rate_records_per_s) // ticks * ticks]
    parts = windows(Trace(name=job.profile.name, step_s=STEP_S, rate=rate))
    outcomes = [
        closed_loop.run([_case(job, rate, policy, part, seed) for policy in policies], record=True) for part in parts
    ]
    return {
        policy: _run(job, policy, start_s, [(one, lane) for one in outcomes]) for lane, policy in enumerate(policies)
    }


def late_ratio(backlog_time_s: Array, target_s: float) -> float:
    """Share of the known time in which the backlog time is over the target; NaN where nothing is known."""
    known = backlog_time_s[np.isfinite(backlog_time_s)]
    return float((known > target_s).mean()) if len(known) else np.nan


def average_value(run: Run, target_s: float) -> tuple[str, str]:
    """The HPA's averageValue for required_workers that keeps the target, and why, in one sentence.

    The HPA asks for metric / averageValue workers, so 800m is a quarter more than the policy says.
    """
    late = late_ratio(run.backlog_time_s, target_s)
    within = f"the backlog time was under {target_s:g} s for {1 - late:.2%} of the simulated time"
    if late <= _LATE_RATIO:
        return "1", f"The metric already is the number of workers, and with it {within}."
    short = outrun_ratio(run)
    if short <= 1:
        return "1", (
            f"With it {within}; the rest comes from {run.rescales} rescales ({run.pause_s:.0f} s of pause) and from "
            "catching up, not from too few workers, so that more of them would hardly help."
        )
    milli = max(int(1000 / short) // _MILLI_STEP * _MILLI_STEP, _LEAST_MILLI)
    return f"{milli}m", (
        f"With 1, {within}, and for minutes the input was {short - 1:.0%} more than the workers carry; "
        f"{milli}m makes the HPA ask for {1000 / milli - 1:.0%} more workers than the policy does."
    )


def outrun_ratio(run: Run) -> float:
    """The input of nearly the worst five minutes / what the workers carried in them."""
    size = max(round(_SPAN_S / TICK_S), 1)
    count = max(len(run.at_s) // size, 1)
    arrived, carried = (
        column[: count * size].reshape(count, -1).mean(axis=1)
        for column in (run.rate_records_per_s, run.carried_records_per_s)
    )
    return float(np.quantile(arrived / np.maximum(carried, 1e-9), _SPAN_QUANTILE))


def _case(job: Calibrated, rate: Array, policy: str, part: Window, seed: int) -> Case:
    own = chance(seed, part.index)
    return Case(rate[part.begin : part.end], part.lead_steps, policy, job.profile, own, job.rules)


def _run(job: Calibrated, policy: str, start_s: float, parts: Sequence[tuple[closed_loop.Outcome, int]]) -> Run:
    """The windows of one policy, one behind the other. parts: of each window the lane that is the policy's."""
    columns = {name: np.concatenate([one.series[name][:, lane] for one, lane in parts]) for name in closed_loop.SERIES}
    sums = {
        name: sum(float(one.tally.sums[name][lane]) for one, lane in parts) for name in ("ups", "downs", "paused_s")
    }
    ready = columns["ready_workers"]
    at_s: Array = start_s + (np.arange(len(ready), dtype=np.float64) + 1) * TICK_S
    return Run(
        policy=policy,
        at_s=at_s,
        rate_records_per_s=columns["rate_records_per_s"] * job.scale,
        workers=columns["paid_workers"],
        carried_records_per_s=WORKER_CAPACITY_RECORDS_PER_S * ready**job.profile.scaling_exponent * job.scale,
        backlog_time_s=columns["delay_s"],
        rescales=round(sums["ups"] + sums["downs"]),
        pause_s=sums["paused_s"],
    )
