"""Estimate the simulated job from a timeline: the capacity of a worker and the cost of a rescale, with evidence.

A value that the timeline does not show comes from the configuration, and its estimate says so.
"""

from dataclasses import dataclass, replace

import numpy as np

from adapter.backtest.history import HistoryError
from adapter.backtest.rescales import Rescale, rescales, worker_changes
from adapter.backtest.timelines import Timeline, gaps, interpolate
from adapter.backtest.trace import PEAK_MEAN_S, Trace, peak, resample
from adapter.core.formatting import rate
from adapter.core.limits import default_maximum
from adapter.core.parameters import number_of
from adapter.core.rates import Mask
from adapter.core.rules import UNTIL_MEASURED, Rules
from adapter.core.samples import Array, first_known
from adapter.simulator.profiles import STEP_S, Profile

_LEAST = 8  # fewest observations for an estimate of the capacity: two minutes of 15 s
_CLEAN_S = 300.0  # after a rescale, in which jobs pause and warm up, throughput does not show the capacity
_BUSY_RATIO = 0.3  # below it, utilization is mostly that of an idle worker
_MOST_MISSING_RATIO = 0.2  # of the input; with more unknown, the known part is not representative
_UTILIZATION_AT_PEAK_RATIO = 0.75  # of the workers that a fixed size would have; the profile's default
_NO_DELAY = "metric_delay_s of the configuration: a history does not show when its values could first be read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """An estimated number about the job."""

    name: str
    value: float
    unit: str
    observations: int  # 0 for a value of the configuration or a default
    source: str  # where the number comes from
    spread: float = np.nan  # half the distance between the 10 % and 90 % quantiles; NaN for fewer than three
    note: str = ""  # what the number means for the scores, as sentences


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedJob:
    """A job to simulate."""

    profile: Profile
    rate_records_per_s: Array  # input in steps of STEP_S
    estimates: tuple[Estimate, ...]
    rules: Rules | None = None  # of the workload; None derives them from the profile


def calibrate(timeline: Timeline, rules: Rules) -> CalibratedJob:
    """Estimate the job of a timeline; a value that the timeline does not show comes from the rules.

    Raises HistoryError if the timeline is short, if more than 20 % of the input is missing, or if nothing shows the
    capacity.
    """
    length_s = len(timeline.at_s) * timeline.step_s
    if length_s < PEAK_MEAN_S:
        raise HistoryError(f"{timeline.workload}: expected at least {PEAK_MEAN_S:g} s of history, got {length_s:g} s")
    least, most = _limits(timeline, rules)
    rules = replace(rules, min_workers=least, max_workers=most)
    capacity = _capacity(timeline, rules)
    input_rate = _input(timeline)
    found = rescales(timeline, capacity.value, rules.scaling_exponent)
    start, warm_up, first = _worker_start(found, rules), _warm_up(found), _warm_up_ratio(found)
    up, down, partitions = _pause(found, rules, up=True), _pause(found, rules, up=False), _partitions(timeline)
    late = _configured_estimate("metric delay", value_or_default(rules, "metric_delay_s"), "s", _NO_DELAY)
    profile = replace(
        _profile(timeline, rules, (input_rate / capacity.value) ** (1 / rules.scaling_exponent), found),
        worker_capacity_records_per_s=capacity.value,
        start_s=start.value,
        pause_up_s=up.value,
        pause_down_s=down.value,
        warm_up_s=warm_up.value,
        warm_up_ratio=first.value,
        metric_delay_s=late.value,
        partitions=int(partitions.value),
        min_workers=least,
        max_workers=max(least, min(most, int(partitions.value) or most)),
    )
    estimates = (capacity, start, up, down, warm_up, first, late, partitions, *_outages(timeline))
    return CalibratedJob(
        profile=profile,
        rate_records_per_s=input_rate,
        estimates=estimates,
        rules=rules,
    )


def _limits(timeline: Timeline, rules: Rules) -> tuple[int, int]:
    """Minimum and maximum of workers with the last known ones of the HPA, as the live decision has them.

    The default maximum allows the largest size of the history.
    """
    largest = np.fmax.reduce(first_known(timeline.spec_workers, timeline.ready_workers))
    known = np.fmin(number_of("max_workers", rules.max_workers), _last(timeline.max_workers))
    most = max(int(first_known(known, default_maximum(rules.min_workers, largest))), 1)
    return min(int(np.fmax(rules.min_workers, _last(timeline.min_workers))), most), most


def _last(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(known[-1]) if len(known) else np.nan


def _capacity(timeline: Timeline, rules: Rules) -> Estimate:
    """The capacity of a single worker in records/s, by the most reliable method that the timeline allows."""
    singles = np.where(timeline.workers > 0, timeline.workers, np.nan) ** rules.scaling_exponent
    each = timeline.throughput_records_per_s / singles
    clean = _clean(timeline) & (each > 0)
    behind = clean & (timeline.backlog_time_s > max(rules.short_backlog_time_s, 2 * timeline.pace_s))
    busy = clean & (timeline.utilization_ratio > _BUSY_RATIO)
    if behind.sum() >= _LEAST:
        return _measured_estimate(
            "worker capacity", "records/s", each[behind], "throughput of a worker while records waited"
        )
    if busy.sum() >= _LEAST:
        full = each[busy] / np.minimum(timeline.utilization_ratio[busy], 1.0)
        return _measured_estimate("worker capacity", "records/s", full, "throughput of a worker / its utilization")
    if rules.worker_capacity_records_per_s is not None:
        source = (
            "worker_capacity_records_per_s of the configuration: the job was hardly ever behind, and reports no "
            "utilization"
        )
        return _configured_estimate("worker capacity", rules.worker_capacity_records_per_s, "records/s", source)
    if clean.sum() >= _LEAST:
        most = float(np.quantile(each[clean], 0.99))
        return Estimate(
            name="worker capacity",
            value=most,
            unit="records/s",
            observations=int(clean.sum()),
            source="highest throughput of a worker: a lower bound",
            note=(
                f"A worker carries at least {rate(most)}. Its capacity is unknown, because the job was hardly "
                "ever behind and reports no utilization. The simulated policies may need fewer workers. Set "
                "worker_capacity_records_per_s if you know the capacity."
            ),
        )
    cause = _unknown_signals(timeline) or _unclean(timeline)
    raise HistoryError(
        f"{timeline.workload}: the capacity of a worker is unknown because {cause}, or set "
        "worker_capacity_records_per_s"
    )


def _unknown_signals(timeline: Timeline) -> str:
    """Which signals that show the capacity have no value at all, and what to do; "" if all have one."""
    both = {
        "throughput": ("processed_records", timeline.throughput_records_per_s),
        "workers": ("ready_workers", timeline.workers),
    }
    lost = {name: signal for name, (signal, values) in both.items() if not np.isfinite(values).any()}
    if not lost:
        return ""
    verb = "are" if "workers" in lost else "is"
    return f"{' and '.join(lost)} {verb} unknown; read {' and '.join(lost.values())} with a `match` that fits"


def _unclean(timeline: Timeline) -> str:
    """Why known throughput and workers do not show the capacity, and what to do."""
    clean = int(_clean(timeline).sum())
    if clean < _LEAST:
        return (
            f"it follows from {_LEAST} ticks with known throughput and workers, more than {_CLEAN_S:g} s after a "
            f"rescale, and the history has {clean}; choose a longer period"
        )
    return "the job has no workers or processes no records; choose a period in which it runs"


def _clean(timeline: Timeline) -> Mask:
    """Where the number of workers has been constant for _CLEAN_S and throughput and workers are known."""
    workers, changed_s = timeline.workers, np.full(len(timeline.at_s), -np.inf)
    changes = worker_changes(workers)
    changed_s[changes] = timeline.at_s[changes]
    since_s = timeline.at_s - np.maximum.accumulate(changed_s)
    known: Mask = (since_s > _CLEAN_S) & np.isfinite(timeline.throughput_records_per_s * workers)
    return known


def _input(timeline: Timeline) -> Array:
    """The input in records/s, in steps of STEP_S as of a trace; gaps are interpolated linearly."""
    rate = timeline.input_rate_records_per_s
    missing = float(np.isnan(rate).mean()) if len(rate) else 1.0
    if missing > _MOST_MISSING_RATIO:
        raise HistoryError(
            f"{timeline.workload}: the input is unknown for {missing:.0%} of the time; read appended_records or "
            "input_rate_records_per_s, or choose a period in which it was recorded"
        )
    return resample(Trace(name=timeline.workload, step_s=timeline.step_s, rate=interpolate(rate)))


def _outages(timeline: Timeline) -> tuple[Estimate, ...]:
    """How long the input was not recorded, without short gaps; empty without an outage."""
    found = gaps(timeline.input_rate_records_per_s, timeline.step_s)
    if not found:
        return ()
    hours = sum(outage.stop - outage.start for outage in found) * timeline.step_s / 3600
    source = "outages in which the input is unknown; it is interpolated linearly"
    return (Estimate(name="input not recorded", value=hours, unit="h", observations=len(found), source=source),)


def _worker_start(found: tuple[Rescale, ...], rules: Rules) -> Estimate:
    seen = np.array([rescale.start_s for rescale in found if rescale.up and np.isfinite(rescale.start_s)])
    if not len(seen):
        source = "worker_start_s of the configuration: the history contains no worker start"
        return _configured_estimate("worker start", value_or_default(rules, "worker_start_s"), "s", source)
    return _measured_estimate("worker start", "s", seen, "from desired to ready workers")


def _pause(found: tuple[Rescale, ...], rules: Rules, *, up: bool) -> Estimate:
    name = "pause of a scale-up" if up else "pause of a scale-down"
    both = np.array([rescale.pause_s for rescale in found if np.isfinite(rescale.pause_s)])
    seen = np.array([rescale.pause_s for rescale in found if rescale.up is up and np.isfinite(rescale.pause_s)])
    if len(seen):
        return _measured_estimate(name, "s", seen, "throughput lost at changes of the workers")
    if len(both):
        return _measured_estimate(name, "s", both, "of the other direction: the history contains none of this one")
    return _configured_estimate(name, rules.rescale_pause_s, "s", "rescale_pause_s of the configuration: no rescale")


def _warm_up(found: tuple[Rescale, ...]) -> Estimate:
    seen = np.array([rescale.warm_up_s for rescale in found if np.isfinite(rescale.warm_up_s)])
    if not len(seen):
        source = "assumed: no rescale left a backlog long enough to measure the warm-up"
        return _configured_estimate("warm-up", 0.0, "s", source)
    return _measured_estimate("warm-up", "s", seen, "until a worker with a backlog reached 95 % of its capacity")


def _warm_up_ratio(found: tuple[Rescale, ...]) -> Estimate:
    seen = np.array([rescale.first_ratio for rescale in found if np.isfinite(rescale.first_ratio)])
    if not len(seen):
        return _configured_estimate("initial speed", 1.0, "of the capacity", "assumed, as for the warm-up")
    return _measured_estimate("initial speed", "of the capacity", seen, "throughput of a worker right after the pause")


def _partitions(timeline: Timeline) -> Estimate:
    known = timeline.partitions[np.isfinite(timeline.partitions)]
    if not len(known):
        return _configured_estimate("partitions", 0.0, "", "unknown: assumes that any worker can process any record")
    last = float(known[-1])
    source = (
        "last reported value"
        if (known == last).all()
        else f"last reported value; between {known.min():.0f} and {known.max():.0f} before"
    )
    return Estimate(name="partitions", value=last, unit="", observations=len(known), source=source)


def _profile(timeline: Timeline, rules: Rules, load_workers: Array, found: tuple[Rescale, ...]) -> Profile:
    """The profile before the estimates are applied. load_workers: those that carry the input, shape (steps,)."""
    at_peak = peak(Trace(name=timeline.workload, step_s=STEP_S, rate=load_workers))
    return Profile(
        name=timeline.workload,
        workers=max(int(np.ceil(at_peak / _UTILIZATION_AT_PEAK_RATIO)), 1),
        scaling_exponent=rules.scaling_exponent,
        checkpoint_s=rules.replay_s,
        missing_ratio=_missing(timeline),
        blackout_s=0.0,
        shows_while_down=any(rescale.shows_while_down for rescale in found),
        shows_busy=bool(np.isfinite(timeline.utilization_ratio).any()),
    )


def _missing(timeline: Timeline) -> float:
    """Share of the ticks without a sample, excluding outages, which are not simulated."""
    lost = np.isnan(timeline.backlog_records)
    if lost.all():  # a backlog that no source reports is not a lost sample
        return 0.0
    for outage in gaps(np.where(lost, np.nan, 0.0), timeline.step_s):
        lost[outage] = False
    return float(np.minimum(lost.mean(), 0.5))


def _measured_estimate(name: str, unit: str, seen: Array, source: str) -> Estimate:
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


def _configured_estimate(name: str, value: float, unit: str, source: str) -> Estimate:
    return Estimate(name=name, value=value, unit=unit, observations=0, source=source)


def value_or_default(rules: Rules, name: str) -> float:
    """The value of a parameter of UNTIL_MEASURED; the default while it is unset."""
    value: float | None = getattr(rules, name)
    return UNTIL_MEASURED[name] if value is None else value
