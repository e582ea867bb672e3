"""Timelines, simulated runs and recommendations -> sections of a report."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from adapter.backtest.calibration import CalibratedJob, Estimate, calibrate
from adapter.backtest.history import HistoryError
from adapter.backtest.open_loop import Recommendations, metric_policies
from adapter.backtest.report_charts import ACTUAL
from adapter.backtest.report_content import MEASURED, SIMULATED, Fact, HpaTarget, Resize, Score, Section, Track
from adapter.backtest.rescales import rescales, worker_changes
from adapter.backtest.simulation import PolicyRun, headroom_advice, late_ratio, simulate
from adapter.backtest.timelines import Timeline
from adapter.backtest.trace import Trace, resample
from adapter.core.rules import Rules
from adapter.core.samples import Array, first_known
from adapter.simulator.profiles import Profile


def trace_section(trace: Trace, profile: Profile, policies: Sequence[str], seed: int = 0, note: str = "") -> Section:
    """Policies and baselines on a recorded load. profile: of the size that the load needs, see trace.fit_profile."""
    job = CalibratedJob(profile=profile, rate_records_per_s=resample(trace), estimates=())
    runs, target_s = simulate(job, policies, 0.0, seed), Rules().backlog_time_target_s
    first = runs[policies[0]]
    return Section(
        title=f"{trace.name}, {profile.name}, metrics {profile.metric_delay_s:g} s late",
        target_s=target_s,
        at_s=first.at_s,
        rate_records_per_s=first.rate_records_per_s,
        simulated=tuple(_simulated_track(run) for run in runs.values()),
        scores=tuple(_simulated_score(run, target_s) for run in runs.values()),
        notes=(note,) if note else (),
        target=_hpa_target(runs, target_s),
    )


def history_section(
    timeline: Timeline, recommendations: Sequence[Recommendations], rules: Rules, policies: Sequence[str]
) -> Section:
    """The actual run, the recommendations of each policy for it (open loop), and simulations (closed loop).

    If the history is not sufficient to simulate the job, the section states why.
    """
    target_s = rules.backlog_time_target_s
    job, runs, note = _simulated_job(timeline, rules, policies)
    return Section(
        title=timeline.workload,
        target_s=target_s,
        at_s=timeline.at_s,
        rate_records_per_s=timeline.input_rate_records_per_s,
        simulated=(_actual_track(timeline), *(_simulated_track(run) for run in runs.values())) if runs else (),
        recommended=_recommended_tracks(timeline, recommendations),
        scores=(_actual_score(timeline, target_s), *(_simulated_score(run, target_s) for run in runs.values())),
        facts=tuple(_fact(estimate) for estimate in job.estimates) if job else (),
        notes=(note,) if note else (),
        target=_hpa_target(runs, target_s),
    )


def _simulated_job(
    timeline: Timeline, rules: Rules, policies: Sequence[str]
) -> tuple[CalibratedJob | None, dict[str, PolicyRun], str]:
    """The job, its runs, and a note; no runs if the history does not describe the job well enough."""
    try:
        job = calibrate(timeline, rules)
    except HistoryError as error:
        return None, {}, f"Not simulated: {error}."
    return job, simulate(job, policies, float(timeline.at_s[0])), ""


def _actual_track(timeline: Timeline) -> Track:
    return Track(name=ACTUAL, at_s=timeline.at_s, workers=timeline.workers, backlog_time_s=timeline.backlog_time_s)


def _recommended_tracks(timeline: Timeline, recommendations: Sequence[Recommendations]) -> tuple[Track, ...]:
    if not recommendations:
        return ()
    actual = Track(name=ACTUAL, at_s=timeline.at_s, workers=timeline.workers)
    return actual, *(
        Track(name=one.policy, at_s=one.at_s, workers=one.required_workers, changes=one.changes)
        for one in recommendations
    )


def _simulated_track(run: PolicyRun) -> Track:
    found = np.flatnonzero(np.diff(run.workers)) + 1
    at_s, before, after = (each.tolist() for each in (run.at_s[found], run.workers[found - 1], run.workers[found]))
    return Track(
        name=run.policy,
        at_s=run.at_s,
        workers=run.workers,
        backlog_time_s=run.backlog_time_s,
        changes=tuple(
            Resize(at_s=time_s, before=old, after=new) for time_s, old, new in zip(at_s, before, after, strict=True)
        ),
    )


def _simulated_score(run: PolicyRun, target_s: float) -> Score:
    return Score(
        name=run.policy,
        kind=SIMULATED,
        worker_hours=_worker_hours(run.at_s, run.workers),
        late_ratio=_or_none(late_ratio(run.backlog_time_s, target_s)),
        late_minutes=_late_minutes(run.at_s, run.backlog_time_s, target_s),
        p99_s=_p99(run.backlog_time_s),
        rescales=run.rescales,
        pause_s=run.pause_s,
    )


def _actual_score(timeline: Timeline, target_s: float) -> Score:
    """The score of the recorded run. Rescales and pauses count as far as the history shows them."""
    workers = timeline.workers
    found = rescales(timeline)
    pauses_s = [rescale.pause_s for rescale in found if math.isfinite(rescale.pause_s)]
    return Score(
        name=ACTUAL,
        kind=MEASURED,
        worker_hours=_worker_hours(timeline.at_s, workers),
        late_ratio=_or_none(late_ratio(timeline.backlog_time_s, target_s)),
        late_minutes=_late_minutes(timeline.at_s, timeline.backlog_time_s, target_s),
        p99_s=_p99(timeline.backlog_time_s),
        rescales=len(worker_changes(first_known(timeline.spec_workers, workers))),  # not each pod that becomes ready
        pause_s=sum(pauses_s) if len(pauses_s) == len(found) else None,
    )


def _worker_hours(at_s: Array, workers: Array) -> float | None:
    """Unknown ticks count as the mean of the known ones."""
    if not np.isfinite(workers).any():
        return None
    return float(np.nanmean(workers) * len(at_s) * (at_s[1] - at_s[0]) / 3600)


def _late_minutes(at_s: Array, backlog_time_s: Array, target_s: float) -> float | None:
    """Unknown ticks count as the mean of the known ones."""
    return _or_none(late_ratio(backlog_time_s, target_s) * len(at_s) * (at_s[1] - at_s[0]) / 60)


def _p99(values: Array) -> float | None:
    known = values[np.isfinite(values)]
    return float(np.quantile(known, 0.99)) if len(known) else None


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _fact(estimate: Estimate) -> Fact:
    spread = f" ± {estimate.spread:.3g}" if math.isfinite(estimate.spread) and estimate.spread > 0 else ""
    value = f"{estimate.value:.4g}{spread} {estimate.unit}".strip()
    return Fact(name=estimate.name, value=value, observations=estimate.observations, source=estimate.source)


def _hpa_target(runs: Mapping[str, PolicyRun], target_s: float) -> HpaTarget | None:
    """For the first policy; baselines do not use the adapter's metric."""
    first = next(iter(metric_policies(runs)), None)
    if first is None:
        return None
    return HpaTarget(policy=first, advice=headroom_advice(runs[first], target_s))
