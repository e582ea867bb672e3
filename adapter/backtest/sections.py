"""Courses, runs and answers of policies -> chapters of a report."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from adapter.backtest.calibration import Calibrated, Estimate, calibrated
from adapter.backtest.history import HistoryError
from adapter.backtest.open_loop import Asked, ours
from adapter.backtest.report_charts import RAN
from adapter.backtest.report_content import MEASURED, SIMULATED, Chapter, Fact, Mark, Score, Target, Track
from adapter.backtest.rescales import rescales
from adapter.backtest.simulation import Run, average_value, closed, late_ratio
from adapter.backtest.timelines import Course
from adapter.backtest.trace import Trace, scaled
from adapter.core.rules import Rules
from adapter.core.samples import Array
from adapter.simulator.profiles import Profile


def of_trace(trace: Trace, profile: Profile, policies: Sequence[str], seed: int = 0) -> Chapter:
    """What policies and rivals make of a recorded load, scaled to the profile's job."""
    job = Calibrated(profile=profile, rate_records_per_s=scaled(trace, profile), scale=1.0, estimates=())
    runs, target_s = closed(job, policies, 0.0, seed), Rules().backlog_time_target_s
    first = runs[policies[0]]
    return Chapter(
        title=f"{trace.name}, {profile.name}, metrics {profile.metric_delay_s:g} s late",
        target_s=target_s,
        at_s=first.at_s,
        rate_records_per_s=first.rate_records_per_s,
        simulated=tuple(_simulated(one) for one in runs.values()),
        scores=tuple(_score(one, target_s) for one in runs.values()),
        target=_target(runs, target_s),
    )


def of_history(
    course: Course, asked: Sequence[Asked], rules: Rules, *, policies: Sequence[str], seed: int = 0
) -> Chapter:
    """What ran, what was asked for looking on, and what would have been.

    policies: those that are simulated. seed: of their chance. A job that the history does not show enough of is not
    simulated, and the chapter says why.
    """
    target_s = rules.backlog_time_target_s
    looked_on = (Track(name=RAN, at_s=course.at_s, workers=course.workers), *map(_looked_on, asked))
    job, runs, note = _closed(course, rules, policies, seed)
    return Chapter(
        title=course.workload,
        target_s=target_s,
        at_s=course.at_s,
        rate_records_per_s=course.input_rate_records_per_s,
        simulated=(_ran(course), *(_simulated(one) for one in runs.values())) if runs else (),
        asked=looked_on if asked else (),
        scores=(_measured(course, job, target_s), *(_score(one, target_s) for one in runs.values())),
        facts=tuple(_fact(estimate) for estimate in job.estimates) if job else (),
        notes=(note,) if note else (),
        target=_target(runs, target_s),
    )


def _closed(
    course: Course, rules: Rules, policies: Sequence[str], seed: int
) -> tuple[Calibrated | None, dict[str, Run], str]:
    """The job, its runs, and what to say about them; no runs where the history does not show enough of the job."""
    try:
        job = calibrated(course, rules)
    except HistoryError as error:
        return None, {}, f"Not simulated: {error}."
    return job, closed(job, policies, float(course.at_s[0]), seed), ""


def _ran(course: Course) -> Track:
    return Track(name=RAN, at_s=course.at_s, workers=course.workers, backlog_time_s=course.backlog_time_s)


def _looked_on(asked: Asked) -> Track:
    marks = tuple(Mark(at_s=c.at_s, before=c.before, after=c.after, why=c.why) for c in asked.changes)
    return Track(name=asked.policy, at_s=asked.at_s, workers=asked.required_workers, marks=marks)


def _simulated(run: Run) -> Track:
    return Track(name=run.policy, at_s=run.at_s, workers=run.workers, backlog_time_s=run.backlog_time_s)


def _score(run: Run, target_s: float) -> Score:
    return Score(
        name=run.policy,
        kind=SIMULATED,
        worker_hours=_hours(run.at_s, run.workers),
        late_ratio=_or_none(late_ratio(run.backlog_time_s, target_s)),
        p99_s=_quantile(run.backlog_time_s),
        rescales=run.rescales,
        pause_s=run.pause_s,
    )


def _measured(course: Course, job: Calibrated | None, target_s: float) -> Score:
    """What really ran. Rescales and pauses as far as the history shows them."""
    workers = course.workers
    known = np.diff(workers[np.isfinite(workers)])
    seen = rescales(course, job.worker_capacity_records_per_s if job else np.nan)
    paused = [rescale.pause_s for rescale in seen if math.isfinite(rescale.pause_s)]
    return Score(
        name=RAN,
        kind=MEASURED,
        worker_hours=_hours(course.at_s, workers),
        late_ratio=_or_none(late_ratio(course.backlog_time_s, target_s)),
        p99_s=_quantile(course.backlog_time_s),
        rescales=int(np.count_nonzero(known)),
        pause_s=sum(paused) if len(paused) == len(seen) else None,
    )


def _hours(at_s: Array, workers: Array) -> float | None:
    """Worker-hours; what is unknown counts as the mean of what is known."""
    if not np.isfinite(workers).any():
        return None
    return float(np.nanmean(workers) * len(at_s) * (at_s[1] - at_s[0]) / 3600)


def _quantile(values: Array) -> float | None:
    known = values[np.isfinite(values)]
    return float(np.quantile(known, 0.99)) if len(known) else None


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _fact(estimate: Estimate) -> Fact:
    spread = f" ± {estimate.spread:.3g}" if math.isfinite(estimate.spread) and estimate.spread > 0 else ""
    value = f"{estimate.value:.4g}{spread} {estimate.unit}".strip()
    return Fact(name=estimate.name, value=value, seen=estimate.observations, how=estimate.how)


def _target(runs: Mapping[str, Run], target_s: float) -> Target | None:
    """For the first of our policies: rivals do not go through our metric."""
    first = next(iter(ours(runs)), None)
    if first is None:
        return None
    value, why = average_value(runs[first], target_s)
    return Target(policy=first, average_value=value, why=why)
