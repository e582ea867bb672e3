"""Samples -> the timeline of each workload: input, throughput, backlog and workers at each tick, as arrays."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from adapter.core.samples import WHOLE, Array, Samples, first_known

_STAGED = (
    "utilization_ratio",
    "processed_records",
    "appended_records",
    "backlog_records",
    "throughput_records_per_s",
    "input_rate_records_per_s",
)
_WHOLE = ("partitions", "spec_workers", "workers", "ready_workers")
_Key = str | tuple[str, str]  # a workload, or one of its stages
_LONGEST_GAP_S = 900.0  # a longer one is not bridged
_ANEW_RATIO = 0.01  # of what it was before: a smaller counter began anew, a larger one was set back


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """One workload over T ticks; every array has the shape (T,), NaN where a value is unknown.

    Stages that ever report a backlog are summed: records are counted where they wait. utilization_ratio is that of the
    busiest stage. pace_s: so far apart are the moments at which counters move (ticks, scrapes or commits), of the stage
    that does most; rates are means over it, ending at the tick. backlog_time_s: age of the oldest waiting record, by
    the input's own curve.
    """

    workload: str
    at_s: Array
    step_s: float
    pace_s: float
    input_rate_records_per_s: Array
    throughput_records_per_s: Array
    backlog_records: Array
    backlog_time_s: Array
    utilization_ratio: Array
    partitions: Array
    spec_workers: Array
    ready_workers: Array

    @property
    def workers(self) -> Array:
        """The ready workers, or where these are unknown the desired ones."""
        return first_known(self.ready_workers, self.spec_workers)


def timelines(samples: Sequence[Samples], step_s: float) -> dict[str, Timeline]:
    """Workload -> its timeline over equally spaced ticks."""
    names = sorted({workload for sample in samples for workload in sample.workloads})
    stages = sorted({stage for sample in samples for stage in sample.stages} | {(name, WHOLE) for name in names})
    whole = {
        signal: _stack([(sample.workloads, sample.whole(signal)) for sample in samples], names) for signal in _WHOLE
    }
    staged = {
        signal: _stack([(sample.stages, sample.stage(signal)) for sample in samples], stages) for signal in _STAGED
    }
    at_s, owners = np.array([sample.at_s for sample in samples]), np.array([name for name, _ in stages])
    return {
        name: _timeline(
            name,
            at_s,
            step_s,
            {signal: stacked[place] for signal, stacked in whole.items()}
            | {signal: stacked[owners == name] for signal, stacked in staged.items()},
        )
        for place, name in enumerate(names)
    }


def bridged(values: Array) -> Array:
    """The values with NaN replaced by a straight line between its neighbours; the first and last known one go on."""
    known = np.isfinite(values)
    if not known.any():
        return values
    place = np.arange(len(values))
    return np.interp(place, place[known], values[known])


def gaps(values: Array, step_s: float) -> list[slice]:
    """The stretches without a value that are longer than may be bridged."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.isnan(values).astype(np.int8), [0]])))
    stretches = [slice(int(first), int(last)) for first, last in edges.reshape(-1, 2)]
    return [stretch for stretch in stretches if (stretch.stop - stretch.start) * step_s > _LONGEST_GAP_S]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flow:
    """What came, waited and went in one stage; arrays (T,). pace: ticks between moments at which its counters move."""

    pace: int
    input_rate_records_per_s: Array
    throughput_records_per_s: Array
    backlog_records: Array


def _stack(ticks: Sequence[tuple[Sequence[_Key], Array]], keys: Sequence[_Key]) -> Array:
    """One row per key and one column per tick, NaN where a value is unknown."""
    row = {key: place for place, key in enumerate(keys)}
    stacked = np.full((len(keys), len(ticks)), np.nan)
    for tick, (some, values) in enumerate(ticks):
        stacked[[row[key] for key in some], tick] = values
    return stacked


def _timeline(name: str, at_s: Array, step_s: float, signals: Mapping[str, Array]) -> Timeline:
    """signals: signal -> its values for the workload, (T,), or for its stages, (S, T)."""
    flows = [_flow({signal: signals[signal][stage] for signal in _STAGED}, step_s) for stage in _counted(signals)]
    input_rate = _together([flow.input_rate_records_per_s for flow in flows], step_s)
    backlog = _together([flow.backlog_records for flow in flows], step_s)
    busiest = max(flows, key=lambda flow: float(np.nansum(flow.throughput_records_per_s)))
    return Timeline(
        workload=name,
        at_s=at_s,
        step_s=step_s,
        pace_s=busiest.pace * step_s,
        input_rate_records_per_s=input_rate,
        throughput_records_per_s=_together([flow.throughput_records_per_s for flow in flows], step_s),
        backlog_records=backlog,
        backlog_time_s=_age(at_s, step_s, input_rate, backlog),
        utilization_ratio=_together(signals["utilization_ratio"], step_s, np.max),
        partitions=signals["partitions"],
        spec_workers=first_known(signals["spec_workers"], signals["workers"]),
        ready_workers=first_known(signals["ready_workers"], signals["workers"]),
    )


def _counted(signals: Mapping[str, Array]) -> list[int]:
    """The stages that count: those that ever tell a backlog, or all where none does."""
    waits = np.isfinite(signals["backlog_records"]).any(axis=1)
    return np.flatnonzero(waits | ~waits.any()).tolist()


def _flow(signals: Mapping[str, Array], step_s: float) -> _Flow:
    """signals: signal -> (T,)."""
    processed, appended, backlog = signals["processed_records"], signals["appended_records"], signals["backlog_records"]
    pace = max(_pace(processed), _pace(appended))
    throughput = first_known(signals["throughput_records_per_s"], _rate(processed, step_s, pace))
    input_rate = first_known(
        signals["input_rate_records_per_s"],
        _rate(appended, step_s, pace),
        np.maximum(throughput + _change(backlog, pace) / (pace * step_s), 0.0),
    )
    return _Flow(
        pace=pace, input_rate_records_per_s=input_rate, throughput_records_per_s=throughput, backlog_records=backlog
    )


def _together(stages: Sequence[Array] | Array, step_s: float, how: Callable[..., Array] = np.sum) -> Array:
    """Stages (S, T) as one, (T,). One that is missing shortly is bridged; one that came later or went counts as 0.

    Where one is missing for long, or all are, nothing is known.
    """
    filled = np.stack([_filled(stage, step_s) for stage in stages])
    known = np.isfinite(filled)
    begun, ends = np.logical_or.accumulate(known, axis=1), np.logical_or.accumulate(known[:, ::-1], axis=1)[:, ::-1]
    unknown = (begun & ends & ~known).any(axis=0) | np.isnan(stages).all(axis=0)
    return np.where(unknown, np.nan, how(np.nan_to_num(filled), axis=0))


def _filled(values: Array, step_s: float) -> Array:
    """The values with short gaps bridged; NaN in longer ones, before the first and after the last."""
    known = np.flatnonzero(np.isfinite(values))
    if not len(known):
        return values
    filled = np.interp(np.arange(len(values)), known, values[known], left=np.nan, right=np.nan)
    for gap in gaps(values, step_s):
        filled[gap] = np.nan
    return filled


def _pace(counter: Array) -> int:
    """Ticks between two moments at which a counter rises, as a rule; 1 for one that rises at every tick."""
    rises = np.flatnonzero(np.diff(counter[np.isfinite(counter)]) > 0)
    return max(int(np.median(np.diff(rises))), 1) if len(rises) > 1 else 1


def _change(values: Array, ticks: int) -> Array:
    """What changed over so many ticks, at their end; NaN at the beginning."""
    changed = np.full_like(values, np.nan)
    changed[ticks:] = values[ticks:] - values[:-ticks]
    return changed


def _rate(counter: Array, step_s: float, ticks: int) -> Array:
    """Records a second over so many ticks; over a short gap their mean. NaN where the counter was set back.

    A counter that begins anew near 0, as that of a restarted process does, goes on counting.
    """
    whole = _filled(counter, step_s)
    risen = np.diff(whole, prepend=np.nan)
    anew = (risen < 0) & (whole < _ANEW_RATIO * (whole - risen))
    risen = np.where(anew, whole, np.where(risen >= 0, risen, np.nan))
    rate = np.full_like(risen, np.nan)
    if len(risen) >= ticks:
        rate[ticks - 1 :] = np.lib.stride_tricks.sliding_window_view(risen, ticks).mean(axis=1) / step_s
    return rate


def _age(at_s: Array, step_s: float, input_rate: Array, backlog: Array) -> Array:
    """For how long the oldest waiting record has waited: since the input had brought all but what waits now.

    What waited before the first tick is no older than that tick.
    """
    if not np.isfinite(input_rate).any():
        return np.full_like(at_s, np.nan)
    brought = np.cumsum(bridged(input_rate)) * step_s
    age = at_s - np.interp(brought - backlog, brought, at_s)
    return np.where(backlog > 0, age, np.where(np.isnan(backlog), np.nan, 0.0))
