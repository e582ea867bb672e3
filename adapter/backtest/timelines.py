"""Build the timeline of each workload from samples: input, throughput, backlog and workers at each tick."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from adapter.core.rates import Mask
from adapter.core.samples import WHOLE, Array, Samples, first_known

_STAGED = (
    "utilization_ratio",
    "processed_records",
    "appended_records",
    "backlog_records",
    "throughput_records_per_s",
    "input_rate_records_per_s",
)
_WHOLE = ("partitions", "spec_workers", "workers", "ready_workers", "min_workers", "max_workers")
_Key = str | tuple[str, str]  # a workload, or one of its stages
_LONGEST_GAP_S = 900.0  # a longer one is not bridged
_RESTART_RATIO = 0.01  # of the value before: a counter that falls below it was restarted, otherwise it was set back


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """One workload over T ticks; every array has the shape (T,), NaN where a value is unknown.

    Counts are sums over the stages that ever report a backlog. Rates are means over pace_s, ending at the tick.
    """

    workload: str
    at_s: Array
    step_s: float
    pace_s: float  # time between two changes of a counter (ticks, scrapes or commits), of the largest stage
    input_rate_records_per_s: Array
    throughput_records_per_s: Array
    backlog_records: Array
    backlog_time_s: Array  # age of the oldest waiting record
    utilization_ratio: Array  # of the busiest stage
    partitions: Array
    spec_workers: Array
    ready_workers: Array
    min_workers: Array  # of the HPA
    max_workers: Array  # of the HPA

    @property
    def workers(self) -> Array:
        """The ready workers; where they are unknown, the desired ones."""
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
            {signal: stacked[index] for signal, stacked in whole.items()}
            | {signal: stacked[owners == name] for signal, stacked in staged.items()},
        )
        for index, name in enumerate(names)
    }


def interpolate(values: Array) -> Array:
    """Interpolate NaN linearly; before the first and after the last known value, repeat that value."""
    known = np.isfinite(values)
    if not known.any():
        return values
    ticks = np.arange(len(values))
    return np.interp(ticks, ticks[known], values[known])


def gaps(values: Array, step_s: float) -> list[slice]:
    """The gaps that are too long to be bridged."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.isnan(values).astype(np.int8), [0]])))
    stretches = [slice(int(first), int(last)) for first, last in edges.reshape(-1, 2)]
    return [stretch for stretch in stretches if (stretch.stop - stretch.start) * step_s > _LONGEST_GAP_S]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flow:
    """Input, backlog and output of one stage; arrays (T,)."""

    pace: int  # ticks between two changes of its counters
    input_rate_records_per_s: Array
    throughput_records_per_s: Array
    backlog_records: Array


def _stack(ticks: Sequence[tuple[Sequence[_Key], Array]], keys: Sequence[_Key]) -> Array:
    """One row per key and one column per tick, NaN where a value is unknown."""
    row = {key: index for index, key in enumerate(keys)}
    stacked = np.full((len(keys), len(ticks)), np.nan)
    for tick, (some, values) in enumerate(ticks):
        stacked[[row[key] for key in some], tick] = values
    return stacked


def _timeline(name: str, at_s: Array, step_s: float, signals: Mapping[str, Array]) -> Timeline:
    """signals: signal -> its values for the workload, (T,), or for its stages, (S, T)."""
    partition_changes = _partition_changes(bridge_gaps(signals["partitions"], step_s))
    flows = [
        _flow({signal: signals[signal][stage] for signal in _STAGED}, step_s, partition_changes)
        for stage in _summed_stages(signals)
    ]
    input_rate = _combine([flow.input_rate_records_per_s for flow in flows], step_s)
    backlog = _combine([flow.backlog_records for flow in flows], step_s)
    largest_flow = max(flows, key=lambda flow: float(np.nansum(flow.throughput_records_per_s)))
    return Timeline(
        workload=name,
        at_s=at_s,
        step_s=step_s,
        pace_s=largest_flow.pace * step_s,
        input_rate_records_per_s=input_rate,
        throughput_records_per_s=_combine([flow.throughput_records_per_s for flow in flows], step_s),
        backlog_records=backlog,
        backlog_time_s=_age(at_s, step_s, input_rate, backlog),
        utilization_ratio=_combine(signals["utilization_ratio"], step_s, np.max),
        partitions=signals["partitions"],
        spec_workers=first_known(signals["spec_workers"], signals["workers"]),
        ready_workers=first_known(signals["ready_workers"], signals["workers"]),
        min_workers=signals["min_workers"],
        max_workers=signals["max_workers"],
    )


def _partition_changes(partitions: Array) -> Mask:
    """The ticks at which the number of partitions changes; after a long gap, the tick at which it is known again."""
    known = np.flatnonzero(np.isfinite(partitions))
    changes = np.zeros(len(partitions), dtype=bool)
    changes[known[1:]] = np.diff(partitions[known]) != 0
    return changes


def _summed_stages(signals: Mapping[str, Array]) -> list[int]:
    """The stages whose counts are summed: those that ever report a backlog, or all if none does."""
    waits = np.isfinite(signals["backlog_records"]).any(axis=1)
    return np.flatnonzero(waits | ~waits.any()).tolist()


def _flow(signals: Mapping[str, Array], step_s: float, partition_changes: Mask) -> _Flow:
    """signals: signal -> (T,). partition_changes: the ticks at which the sum begins to count other partitions, (T,)."""
    processed, appended, backlog = signals["processed_records"], signals["appended_records"], signals["backlog_records"]
    pace = max(_pace(processed), _pace(appended))
    throughput = first_known(signals["throughput_records_per_s"], _rate(processed, step_s, pace, partition_changes))
    input_rate = first_known(
        signals["input_rate_records_per_s"],
        _rate(appended, step_s, pace, partition_changes),
        np.maximum(throughput + _change(backlog, pace, partition_changes) / (pace * step_s), 0.0),
    )
    return _Flow(
        pace=pace, input_rate_records_per_s=input_rate, throughput_records_per_s=throughput, backlog_records=backlog
    )


def _combine(stages: Sequence[Array] | Array, step_s: float, how: Callable[..., Array] = np.sum) -> Array:
    """Combine stages (sum or max), (S, T) -> (T,). Short gaps are bridged.

    Before its first and after its last value a stage is 0. The result is NaN in a long gap of any stage, or where all
    stages are unknown.
    """
    filled = np.stack([bridge_gaps(stage, step_s) for stage in stages])
    known = np.isfinite(filled)
    begun, ends = np.logical_or.accumulate(known, axis=1), np.logical_or.accumulate(known[:, ::-1], axis=1)[:, ::-1]
    unknown = (begun & ends & ~known).any(axis=0) | np.isnan(stages).all(axis=0)
    return np.where(unknown, np.nan, how(np.nan_to_num(filled), axis=0))


def bridge_gaps(values: Array, step_s: float) -> Array:
    """The values with short gaps bridged; NaN in longer ones, before the first and after the last."""
    known = np.flatnonzero(np.isfinite(values))
    if not len(known):
        return values
    filled = np.interp(np.arange(len(values)), known, values[known], left=np.nan, right=np.nan)
    for gap in gaps(values, step_s):
        filled[gap] = np.nan
    return filled


def _pace(counter: Array) -> int:
    """The usual number of ticks between two increases of a counter; at least 1."""
    rises = np.flatnonzero(np.diff(counter[np.isfinite(counter)]) > 0)
    return max(int(np.median(np.diff(rises))), 1) if len(rises) > 1 else 1


def _change(values: Array, ticks: int, partition_changes: Mask) -> Array:
    """The change over a number of ticks, at their end; NaN for the first ones, and over a change of the partitions."""
    changed = np.full_like(values, np.nan)
    before = np.cumsum(partition_changes)
    changed[ticks:] = np.where(before[ticks:] == before[:-ticks], values[ticks:] - values[:-ticks], np.nan)
    return changed


def _rate(counter: Array, step_s: float, ticks: int, partition_changes: Mask) -> Array:
    """Records/s over a number of ticks; over a short gap their mean. NaN at partition changes and set-backs.

    A counter that restarts near 0, such as that of a restarted process, continues counting.
    """
    whole = bridge_gaps(counter, step_s)
    risen = np.diff(whole, prepend=np.nan)
    restarts = (risen < 0) & (whole < _RESTART_RATIO * (whole - risen))
    risen = np.where(partition_changes, np.nan, np.where(restarts, whole, np.where(risen >= 0, risen, np.nan)))
    rate = np.full_like(risen, np.nan)
    if len(risen) >= ticks:
        rate[ticks - 1 :] = np.lib.stride_tricks.sliding_window_view(risen, ticks).mean(axis=1) / step_s
    return rate


def _age(at_s: Array, step_s: float, input_rate: Array, backlog: Array) -> Array:
    """Age of the oldest waiting record: the time since the total input was the present total minus the backlog.

    Records that waited before the first tick count as old as that tick.
    """
    if not np.isfinite(input_rate).any():
        return np.full(len(at_s), np.nan)
    total_input = np.cumsum(interpolate(input_rate)) * step_s
    age = at_s - np.interp(total_input - backlog, total_input, at_s)
    return np.where(backlog > 0, age, np.where(np.isnan(backlog), np.nan, 0.0))
