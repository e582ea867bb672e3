"""Timelines, simulated runs and recommendations -> sections of a report."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np

from adapter.backtest.calibration import CalibratedJob, Estimate, calibrate, value_or_default
from adapter.backtest.history import HistoryError
from adapter.backtest.open_loop import metric_policies
from adapter.backtest.report_charts import ACTUAL
from adapter.backtest.report_content import MEASURED, SIMULATED, Fact, HpaTarget, Resize, Score, Section, Track
from adapter.backtest.rescales import rescales, worker_changes
from adapter.backtest.simulation import (
    PolicyRun,
    Progress,
    headroom_advice,
    ignore,
    late_ratio,
    require_ticks,
    simulate,
)
from adapter.backtest.timelines import Timeline, bridge_gaps, gaps
from adapter.core.rules import Rules
from adapter.core.samples import Array, first_known
from adapter.simulator.profiles import Profile

_LEAST_UNKNOWN_RATIO = 0.01  # of the time; a smaller one gets a note only if it contains a long gap


@dataclass(frozen=True, slots=True)
class JobSimulation:
    """A job of a history, and its runs; without them, `note` says why."""

    job: CalibratedJob | None = None
    runs: Mapping[str, PolicyRun] = field(default_factory=dict)
    note: str = ""


def trace_section(trace: str, profile: Profile, runs: Mapping[str, PolicyRun]) -> Section:
    """Policies and baselines on a recorded load."""
    first, target_s = next(iter(runs.values())), value_or_default(Rules(), "backlog_time_target_s")
    return Section(
        title=f"{trace}, {profile.name}, metrics {profile.metric_delay_s:g} s late",
        target_s=target_s,
        at_s=first.at_s,
        rate_records_per_s=first.rate_records_per_s,
        simulated=tuple(_simulated_track(run) for run in runs.values()),
        scores=tuple(_simulated_score(run, target_s) for run in runs.values()),
        target=_hpa_target(runs, target_s),
    )


def simulate_histories(
    timelines: Mapping[str, Timeline],
    rules: Mapping[str, Rules],
    policies: Sequence[str],
    progress: Progress = ignore,
) -> dict[str, JobSimulation]:
    """Workload -> its simulation, together for all workloads of a history."""
    jobs: dict[str, CalibratedJob] = {}
    found: dict[str, JobSimulation] = {}
    for name, timeline in timelines.items():
        try:
            if metric_policies(policies):
                require_ticks(name, rules[name])
            jobs[name] = calibrate(timeline, rules[name])
        except HistoryError as error:
            found[name] = JobSimulation(note=f"Not simulated: {error}.")
    if jobs:
        start_s = float(timelines[next(iter(jobs))].at_s[0])
        runs = simulate(list(jobs.values()), policies, start_s, progress=progress)
        found |= {name: JobSimulation(jobs[name], own) for name, own in zip(jobs, runs, strict=True)}
    return found


def history_section(
    timeline: Timeline, recommendations: Sequence[Track], rules: Rules, simulation: JobSimulation
) -> Section:
    """The actual run, the recommendations of each policy for it (open loop), and simulations (closed loop).

    If the history is not sufficient to simulate the job, the section states why.
    """
    target_s = value_or_default(rules, "backlog_time_target_s")
    runs, actual = simulation.runs, _actual_track(timeline)
    estimates = simulation.job.estimates if simulation.job else ()
    notes = (simulation.note, *(estimate.note for estimate in estimates), *_unknown_notes(timeline, actual, bool(runs)))
    return Section(
        title=timeline.workload,
        target_s=target_s,
        at_s=timeline.at_s,
        rate_records_per_s=timeline.input_rate_records_per_s,
        simulated=(actual, *(_simulated_track(run) for run in runs.values())) if runs else (),
        recommended=(replace(actual, backlog_time_s=np.empty(0)), *recommendations) if recommendations else (),
        scores=(_actual_score(timeline, target_s), *(_simulated_score(run, target_s) for run in runs.values())),
        facts=tuple(_fact(estimate) for estimate in estimates),
        notes=tuple(each for each in notes if each),
        target=_hpa_target(runs, target_s),
    )


def _unknown_notes(timeline: Timeline, actual: Track, is_simulated: bool) -> Iterator[str]:
    """When the history begins, and for which share of the time the workers and the input are unknown."""
    workers, rate = bridge_gaps(actual.workers, timeline.step_s), timeline.input_rate_records_per_s
    known = np.flatnonzero(np.isfinite(workers) | np.isfinite(rate))
    if len(known) and gaps(np.where(np.arange(len(rate)) < known[0], np.nan, 0.0), timeline.step_s):
        begin = datetime.fromtimestamp(timeline.at_s[known[0]], UTC).strftime("%Y-%m-%d %H:%M")
        yield f"The history begins at {begin} UTC, {known[0] * timeline.step_s / 3600:.1f} h after --from."
    share = _unknown_ratio(workers, timeline.step_s)
    if 0 < share < 1:
        simulated = (
            " Those of simulated policies cover the whole period; the comparison with actual is of mean workers."
        )
        sentence = f"Workers are unknown for {share:.1%} of the time. Actual worker-hours and their cost leave it out."
        yield f"{sentence}{simulated if is_simulated else ''}"
    share = _unknown_ratio(rate, timeline.step_s)
    if is_simulated and share:
        yield f"Input is unknown for {share:.1%} of the time. The simulation interpolates it."


def _unknown_ratio(values: Array, step_s: float) -> float:
    """The share of the unknown ticks; 0 if it is negligible."""
    share = float(np.isnan(values).mean())
    return share if share >= _LEAST_UNKNOWN_RATIO or gaps(values, step_s) else 0.0


def _actual_track(timeline: Timeline) -> Track:
    workers = np.fmax(timeline.spec_workers, timeline.ready_workers)  # paid from start to end, as the simulated ones
    return Track(name=ACTUAL, at_s=timeline.at_s, workers=workers, backlog_time_s=timeline.backlog_time_s)


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


def _actual_score(timeline: Timeline, target_s: float) -> Score:
    """The score of the recorded run. Rescales and pauses count as far as the history shows them."""
    found = rescales(timeline)
    pauses_s = [rescale.pause_s for rescale in found if math.isfinite(rescale.pause_s)]
    changes = len(worker_changes(first_known(timeline.spec_workers, timeline.workers)))  # not each pod that gets ready
    pause_s = sum(pauses_s) if len(pauses_s) == len(found) else None
    track = _actual_track(timeline)
    track = replace(track, workers=bridge_gaps(track.workers, timeline.step_s))
    return _score(track, MEASURED, target_s, changes, pause_s)


def _simulated_score(run: PolicyRun, target_s: float) -> Score:
    score = _score(_simulated_track(run), SIMULATED, target_s, run.rescales, run.pause_s)
    return replace(score, worker_hours=run.worker_hours)


def _score(track: Track, kind: str, target_s: float, rescales: int, pause_s: float | None) -> Score:
    """The score of a run, over its known ticks."""
    known = track.workers[np.isfinite(track.workers)]
    step_s = float(track.at_s[1] - track.at_s[0])
    late = late_ratio(track.backlog_time_s, target_s)
    return Score(
        name=track.name,
        kind=kind,
        worker_hours=float(known.sum() * step_s / 3600) if len(known) else None,
        known_ratio=len(known) / len(track.workers),
        late_ratio=_or_none(late),
        late_minutes=_or_none(late * np.isfinite(track.backlog_time_s).sum() * step_s / 60),
        p99_s=_p99(track.backlog_time_s),
        rescales=rescales,
        pause_s=pause_s,
    )


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
