"""What ticks tell of one workload -> its course as arrays: what arrived, waited and worked at each tick."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adapter.core.samples import Array, Samples, first_known

_SUMMED = (
    "processed_records",
    "appended_records",
    "backlog_records",
    "throughput_records_per_s",
    "input_rate_records_per_s",
)
_WHOLE = ("partitions", "spec_workers", "workers", "ready_workers")
_LONGEST_GAP_S = 900.0  # a longer one is not bridged
_ANEW_RATIO = 0.01  # of what it was before: a smaller counter began anew, a larger one was set back


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """One workload over T ticks; every array has the shape (T,), NaN where nobody told.

    Stages are summed where they tell a backlog: records are counted where they wait. utilization_ratio is that of the
    busiest stage. pace_s: so far apart are the moments at which its counters move (ticks, scrapes or commits); rates
    are means over it, ending at the tick. backlog_time_s: age of the oldest waiting record, by the input's own curve.
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
        """Those that worked: the ready ones, where nobody tells these those asked for."""
        return first_known(self.ready_workers, self.spec_workers)


def courses(samples: Sequence[Samples], step_s: float) -> dict[str, Course]:
    """Workload -> its course over equally spaced ticks."""
    names = sorted({workload for seen in samples for workload in seen.workloads})
    columns = {
        signal: np.full((len(names), len(samples)), np.nan) for signal in (*_SUMMED, "utilization_ratio", *_WHOLE)
    }
    row = {name: place for place, name in enumerate(names)}
    for tick, seen in enumerate(samples):
        _lay(columns, row, tick, seen)
    at_s = np.array([seen.at_s for seen in samples])
    return {name: _course(name, at_s, step_s, {s: c[row[name]] for s, c in columns.items()}) for name in names}


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


def _lay(columns: dict[str, Array], row: dict[str, int], tick: int, seen: Samples) -> None:
    for signal in _WHOLE:
        for name, value in zip(seen.workloads, seen.whole(signal).tolist(), strict=True):
            columns[signal][row[name], tick] = value
    counted = _counted(seen)
    for place, (name, _) in enumerate(seen.stages):
        for signal in (*_SUMMED, "utilization_ratio"):
            value, column = seen.stage(signal)[place], columns[signal]
            if np.isnan(value) or (signal in _SUMMED and not counted[place]):
                continue
            before = column[row[name], tick]
            together = max(before, value) if signal == "utilization_ratio" else before + value
            column[row[name], tick] = value if np.isnan(before) else together


def _counted(seen: Samples) -> list[bool]:
    """Whether a stage counts: it tells a backlog, or no stage of its workload does."""
    waits = np.isfinite(seen.stage("backlog_records")).tolist()
    telling = {name for (name, _), told in zip(seen.stages, waits, strict=True) if told}
    return [told or name not in telling for (name, _), told in zip(seen.stages, waits, strict=True)]


def _course(name: str, at_s: Array, step_s: float, columns: dict[str, Array]) -> Course:
    backlog = columns["backlog_records"]
    counters = (columns["processed_records"], columns["appended_records"])
    pace = max(_pace(counter) for counter in counters)
    throughput = first_known(columns["throughput_records_per_s"], _rate(counters[0], step_s, pace))
    input_rate = first_known(columns["input_rate_records_per_s"], _rate(counters[1], step_s, pace))
    input_rate = first_known(input_rate, np.maximum(throughput + _change(backlog, pace) / (pace * step_s), 0.0))
    return Course(
        workload=name,
        at_s=at_s,
        step_s=step_s,
        pace_s=pace * step_s,
        input_rate_records_per_s=input_rate,
        throughput_records_per_s=throughput,
        backlog_records=backlog,
        backlog_time_s=_age(at_s, step_s, input_rate, backlog),
        utilization_ratio=columns["utilization_ratio"],
        partitions=columns["partitions"],
        spec_workers=first_known(columns["spec_workers"], columns["workers"]),
        ready_workers=first_known(columns["ready_workers"], columns["workers"]),
    )


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
    if not np.isfinite(counter).any():
        return counter
    whole = bridged(counter)
    known = np.flatnonzero(np.isfinite(counter))
    whole[: known[0]], whole[known[-1] + 1 :] = np.nan, np.nan
    for gap in gaps(counter, step_s):
        whole[gap] = np.nan
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
