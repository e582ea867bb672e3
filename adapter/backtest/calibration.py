"""Estimate the simulated job from a timeline: the capacity of a worker and the cost of a rescale, with evidence.

A value that the timeline does not show comes from the configuration, and its estimate says so.
"""

from dataclasses import dataclass, replace

import numpy as np

from adapter.backtest.history import HistoryError
from adapter.backtest.rescales import Rescale, rescales
from adapter.backtest.timelines import Timeline, bridged, gaps
from adapter.core.rates import Mask
from adapter.core.rules import Rules
from adapter.core.samples import Array
from adapter.simulator.profiles import STEP_S, Profile

_LEAST = 8  # observations that an estimate of the capacity rests on: two minutes of 15 s
_CLEAN_S = 300.0  # so long after a rescale throughput says nothing about the capacity: jobs pause and warm up
_BUSY_RATIO = 0.3  # below it utilization is mostly what an idle worker costs
_MOST_MISSING_RATIO = 0.2  # of the input; with more of it unknown the rest is not the user's history
_UTILIZATION_AT_PEAK_RATIO = 0.75  # of the workers that a fixed size would have; the profile's default
_NO_DELAY = "metric_delay_s of the configuration: a history does not show when its values could first be read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One number about the job. observations: source many it rests on; 0 where it is the configuration's or a default.

    spread: half the distance between the 10 % and 90 % quantiles of the observations, NaN for fewer than three.
    source: where it comes from.
    """

    name: str
    value: float
    unit: str
    observations: int
    source: str
    spread: float = np.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedJob:
    """A job to simulate.

    rate_records_per_s: its input in steps of STEP_S. rules: those of the workload; None derives them from the profile.
    """

    profile: Profile
    rate_records_per_s: Array
    estimates: tuple[Estimate, ...]
    rules: Rules | None = None


def calibrate(timeline: Timeline, rules: Rules) -> CalibratedJob:
    """The job of a timeline. rules: the workload's own. Raises HistoryError where input or capacity are unknown."""
    capacity = _capacity(timeline, rules)
    rate = _input(timeline)
    found = rescales(timeline, capacity.value)
    start, warm_up, first = _start(found, rules), _warm_up(found), _warm_up_ratio(found)
    up, down, partitions = _pause(found, rules, up=True), _pause(found, rules, up=False), _partitions(timeline)
    late = _given("metric delay", rules.metric_delay_s, "s", _NO_DELAY)
    profile = replace(
        _profile(timeline, rules, rate / capacity.value, found),
        worker_capacity_records_per_s=capacity.value,
        start_s=start.value,
        pause_up_s=up.value,
        pause_down_s=down.value,
        warm_up_s=warm_up.value,
        warm_up_ratio=first.value,
        metric_delay_s=late.value,
        partitions=int(partitions.value),
        max_workers=min(rules.max_workers, int(partitions.value) or rules.max_workers),
    )
    estimates = (capacity, start, up, down, warm_up, first, late, partitions, *_outages(timeline))
    return CalibratedJob(
        profile=profile,
        rate_records_per_s=rate,
        estimates=estimates,
        rules=rules,
    )


def _capacity(timeline: Timeline, rules: Rules) -> Estimate:
    """What one worker carries, records/s: by the surest way that the timeline allows."""
    each = timeline.throughput_records_per_s / np.where(timeline.workers > 0, timeline.workers, np.nan)
    clean = _clean(timeline) & (each > 0)
    behind = clean & (timeline.backlog_time_s > max(rules.short_backlog_time_s, 2 * timeline.pace_s))
    busy = clean & (timeline.utilization_ratio > _BUSY_RATIO)
    if behind.sum() >= _LEAST:
        return _measured("worker capacity", "records/s", each[behind], "throughput of a worker while records waited")
    if busy.sum() >= _LEAST:
        full = each[busy] / np.minimum(timeline.utilization_ratio[busy], 1.0)
        return _measured("worker capacity", "records/s", full, "throughput of a worker / its utilization")
    if rules.worker_capacity_records_per_s is not None:
        source = (
            "worker_capacity_records_per_s of the configuration: the job was never behind, and tells no utilization"
        )
        return _given("worker capacity", rules.worker_capacity_records_per_s, "records/s", source)
    if clean.sum() >= _LEAST:
        most = float(np.quantile(each[clean], 0.99))
        source = (
            "the most a worker was seen to do: a lower bound, for the job was never behind and tells no utilization; "
            "set worker_capacity_records_per_s where you know better"
        )
        return Estimate(
            name="worker capacity", value=most, unit="records/s", observations=int(clean.sum()), source=source
        )
    raise HistoryError(
        f"{timeline.workload}: throughput or workers are unknown, so nobody can say what a worker carries; read "
        "processed_records and ready_workers, or set worker_capacity_records_per_s"
    )


def _clean(timeline: Timeline) -> Mask:
    """Where the number of workers has been the same for long enough, and nothing was missing."""
    workers = timeline.workers
    moved = np.concatenate([[False], (np.diff(workers) != 0) & np.isfinite(np.diff(workers))])
    since = np.maximum.accumulate(np.where(moved, timeline.at_s, -np.inf))
    known: Mask = (timeline.at_s - since > _CLEAN_S) & np.isfinite(timeline.throughput_records_per_s * workers)
    return known


def _input(timeline: Timeline) -> Array:
    """Records that arrive a second, in steps of STEP_S; a straight line stands in for what is missing."""
    rate = timeline.input_rate_records_per_s
    missing = float(np.isnan(rate).mean()) if len(rate) else 1.0
    if missing > _MOST_MISSING_RATIO:
        raise HistoryError(
            f"{timeline.workload}: the input is unknown for {missing:.0%} of the time; read appended_records or "
            "input_rate_records_per_s, or choose a time in which it was recorded"
        )
    steps = round(timeline.step_s / STEP_S) if timeline.step_s % STEP_S == 0 else 0
    full = bridged(rate)
    if steps:
        return np.repeat(full, steps)
    at_s = np.arange(timeline.at_s[0], timeline.at_s[-1], STEP_S)
    return np.interp(at_s, timeline.at_s, full)


def _outages(timeline: Timeline) -> tuple[Estimate, ...]:
    """For source long the input was not recorded, but for short gaps; none where there was no outage."""
    found = gaps(timeline.input_rate_records_per_s, timeline.step_s)
    if not found:
        return ()
    hours = sum(outage.stop - outage.start for outage in found) * timeline.step_s / 3600
    source = "outages in which the input is unknown: a straight line stands in for it"
    return (Estimate(name="input not recorded", value=hours, unit="h", observations=len(found), source=source),)


def _start(found: tuple[Rescale, ...], rules: Rules) -> Estimate:
    seen = np.array([rescale.start_s for rescale in found if rescale.up and np.isfinite(rescale.start_s)])
    if not len(seen):
        source = "worker_start_s of the configuration: no change from workers asked for to workers ready was seen"
        return _given("worker start", rules.worker_start_s, "s", source)
    return _measured("worker start", "s", seen, "from workers asked for to workers ready")


def _pause(found: tuple[Rescale, ...], rules: Rules, *, up: bool) -> Estimate:
    name = "pause of an up" if up else "pause of a down"
    both = np.array([rescale.pause_s for rescale in found if np.isfinite(rescale.pause_s)])
    seen = np.array([rescale.pause_s for rescale in found if rescale.up is up and np.isfinite(rescale.pause_s)])
    if len(seen):
        return _measured(name, "s", seen, "throughput missing at changes of the workers")
    if len(both):
        return _measured(name, "s", both, "as in the other direction: none of this one was seen")
    return _given(name, rules.rescale_pause_s, "s", "rescale_pause_s of the configuration: no change of the workers")


def _warm_up(found: tuple[Rescale, ...]) -> Estimate:
    seen = np.array([rescale.warm_up_s for rescale in found if np.isfinite(rescale.warm_up_s)])
    if not len(seen):
        source = "none is assumed: after no rescale enough records waited to show source fast the workers became"
        return _given("warm-up", 0.0, "s", source)
    return _measured("warm-up", "s", seen, "until a worker with records waiting did 95 % of its capacity")


def _warm_up_ratio(found: tuple[Rescale, ...]) -> Estimate:
    seen = np.array([rescale.first_ratio for rescale in found if np.isfinite(rescale.first_ratio)])
    if not len(seen):
        return _given("speed at first", 1.0, "of the capacity", "none is assumed, as for the warm-up")
    return _measured("speed at first", "of the capacity", seen, "throughput of a worker right after the pause")


def _partitions(timeline: Timeline) -> Estimate:
    known = timeline.partitions[np.isfinite(timeline.partitions)]
    if not len(known):
        return _given("partitions", 0.0, "", "nobody told: taken as work that any worker can do")
    last = float(known[-1])
    source = (
        "as last told"
        if (known == last).all()
        else f"as last told; they were between {known.min():.0f} and {known.max():.0f}"
    )
    return Estimate(name="partitions", value=last, unit="", observations=len(known), source=source)


def _profile(timeline: Timeline, rules: Rules, load_workers: Array, found: tuple[Rescale, ...]) -> Profile:
    """All but what is estimated. load_workers: the input in workers that carry it fully busy, shape (steps,)."""
    peak = float(np.quantile(_means(load_workers, round(300 / STEP_S)), 0.999))
    workers = max(int(np.ceil(peak / _UTILIZATION_AT_PEAK_RATIO)), 1)
    return Profile(
        name=timeline.workload,
        workers=workers,
        peak_utilization_ratio=max(peak / workers, 1e-6),
        scaling_exponent=rules.scaling_exponent,
        checkpoint_s=rules.replay_s,
        missing_ratio=_missing(timeline),
        blackout_s=0.0,
        shows_while_down=any(rescale.shown_ratio > 0 for rescale in found),
        shows_busy=bool(np.isfinite(timeline.utilization_ratio).any()),
    )


def _missing(timeline: Timeline) -> float:
    """Share of ticks without a sample, but for outages: the simulated job sees through these."""
    lost = np.isnan(timeline.backlog_records)
    for outage in gaps(np.where(lost, np.nan, 0.0), timeline.step_s):
        lost[outage] = False
    return float(np.minimum(lost.mean(), 0.5))


def _means(values: Array, count: int) -> Array:
    """Means over so many values, each with the next; of all where there are fewer."""
    if len(values) <= count:
        return np.array([values.mean()])
    total = np.concatenate([[0.0], np.cumsum(values)])
    means: Array = (total[count:] - total[:-count]) / count
    return means


def _measured(name: str, unit: str, seen: Array, source: str) -> Estimate:
    low, high = np.quantile(seen, (0.1, 0.9))
    spread = float(high - low) / 2 if len(seen) >= 3 else np.nan
    return Estimate(
        name=name,
        value=float(np.median(seen)),
        unit=unit,
        observations=len(seen),
        source=f"median: {source}",
        spread=spread,
    )


def _given(name: str, value: float, unit: str, source: str) -> Estimate:
    return Estimate(name=name, value=value, unit=unit, observations=0, source=source)
