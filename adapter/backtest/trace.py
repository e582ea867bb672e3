"""Read a file `seconds,rate`, resample it to the steps of the model, and cut it into windows."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, isfinite
from pathlib import Path

import numpy as np

from adapter.core.samples import Array
from adapter.errors import AdapterError
from adapter.simulator.profiles import STEP_S, Profile

HEADER = "seconds,rate"
PEAK_QUANTILE, PEAK_MEAN_S = 0.999, 300.0
WINDOW_S, LEAD_S = 4 * 86_400.0, 6 * 3_600.0
_SAME = 1e-3  # of a step: how far a row may lie from its place on the grid, because times are rounded
_ROUNDING = 1e-9
_MOST_RECORDS_PER_S, _LEAST_PEAK_RECORDS_PER_S = 1e15, 1e-9  # beyond them, sums overflow and ratios lose their digits
_LATEST_S = 1e11  # the year 5138 in seconds, 1973 in milliseconds
_LONGEST_S = 366 * 86_400.0  # every 5 s of it are simulated: a year needs 1 GB
_UNITS = ((1_000, "milliseconds"), (1_000_000, "microseconds"), (1_000_000_000, "nanoseconds"))


class TraceError(AdapterError):
    """A file is not a trace. The message names file and line, the expected and the actual text, and the fix."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A recorded load."""

    name: str
    step_s: float
    rate: Array  # shape (rows,), one per step_s; records/s, finite, at least 0, not all 0

    @cached_property
    def digest(self) -> str:
        """A hash of the numbers, independent of the file's name."""
        return hashlib.sha256(np.float64(self.step_s).tobytes() + self.rate.tobytes()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Steps begin to end of a resampled trace. The first lead_steps are simulated but not scored."""

    index: int
    begin: int
    end: int
    lead_steps: int

    @property
    def steps(self) -> int:
        """The number of simulated steps."""
        return self.end - self.begin


def read(path: Path) -> Trace:
    """Read a trace and name it after its file. Raises TraceError."""
    lines = _lines(path)
    if not lines or lines[0].replace(" ", "") != HEADER:
        detail = f"got {lines[0][:60]!r}" if lines else "got an empty file"
        raise TraceError(f"{path}:1: expected the header {HEADER!r}, {detail}; name the two columns so, with a comma")
    rows = np.array([_row(path, number, line) for number, line in enumerate(lines[1:], 2)])
    if len(rows) < 2:
        raise TraceError(f"{path}: expected at least two rows under the header, got {len(rows)}; two are one step")
    if rows[0, 0] > _LATEST_S:
        divisor, unit = next((one for one in _UNITS if rows[0, 0] <= _LATEST_S * one[0]), _UNITS[-1])
        given = f"got {rows[0, 0]:.0f}, which looks like Unix {unit}"
        raise TraceError(f"{path}:2: expected seconds, {given}; divide the column by {divisor}")
    step_s = _step_s(path, rows[:, 0])
    if len(rows) * step_s < PEAK_MEAN_S:  # the peak is a mean over this long
        detail = f"got {len(rows)} rows of {step_s:g} s; record for longer"
        raise TraceError(f"{path}: expected at least {PEAK_MEAN_S:g} s of load, {detail}")
    if len(rows) * step_s > _LONGEST_S:
        given = f"got {len(rows)} rows of {step_s:g} s; write the times in seconds, or cut the file"
        raise TraceError(f"{path}: expected at most a year of load, {given}")
    trace = Trace(name=path.stem, step_s=step_s, rate=np.ascontiguousarray(rows[:, 1]))
    if peak(trace) < _LEAST_PEAK_RECORDS_PER_S:
        raise TraceError(f"{path}: nearly every rate is 0; record while the job has input")
    return trace


def peak(trace: Trace) -> float:
    """The 99.9 % quantile of the 5-minute means, records/s."""
    return float(np.quantile(_means(trace.rate, trace.step_s, PEAK_MEAN_S), PEAK_QUANTILE))


def resample(trace: Trace) -> Array:
    """The rate of each step of 5 s, shape (steps,): means of finer rows, linear between coarser rows."""
    if trace.step_s <= STEP_S:
        return _means(trace.rate, trace.step_s, STEP_S)
    at_s = np.arange(max(1, int(len(trace.rate) * trace.step_s / STEP_S + _ROUNDING))) * STEP_S
    rate: Array = np.interp(at_s, np.arange(len(trace.rate)) * trace.step_s, trace.rate)
    return rate


def fit_profile(trace: Trace, profile: Profile, worker_capacity_records_per_s: float | None) -> Profile:
    """A profile at the size that a trace needs, so that the trace is simulated in its own unit.

    With a worker capacity, the number of workers follows: they carry the peak at the profile's utilization, and
    max_workers and partitions grow with them. With None, the capacity follows from the profile's number of workers.
    """
    if worker_capacity_records_per_s is None:
        inferred = peak(trace) / (profile.workers * profile.peak_utilization_ratio)
        return replace(profile, worker_capacity_records_per_s=inferred)
    linear = peak(trace) / worker_capacity_records_per_s / profile.peak_utilization_ratio
    needed = profile.workers * (linear / profile.workers) ** (1 / profile.scaling_exponent)
    workers = max(1, ceil(needed - _ROUNDING))
    max_workers = ceil(workers * profile.max_workers / profile.workers)
    return replace(
        profile,
        worker_capacity_records_per_s=worker_capacity_records_per_s,
        workers=workers,
        max_workers=max_workers,
        partitions=profile.partitions * ceil(max_workers / profile.max_workers),
    )


def normalisation_ratio(trace: Trace, profile: Profile) -> float:
    """Records/s for a unit of the trace, such that the profile's workers carry the peak at its utilization."""
    return profile.workers * profile.peak_utilization_ratio * profile.worker_capacity_records_per_s / peak(trace)


def windows(trace: Trace) -> tuple[Window, ...]:
    """Cut a trace into windows of at most four days and equal length, so that they are lanes of one run.

    Each window except the first begins at least six hours before the part that it scores.
    """
    steps = len(resample(trace))
    most, lead = int(WINDOW_S / STEP_S), int(LEAD_S / STEP_S)
    if steps <= most:
        return (Window(index=0, begin=0, end=steps, lead_steps=0),)
    found = [Window(index=0, begin=0, end=most, lead_steps=0)]
    for index in range(1, ceil((steps - lead) / (most - lead))):
        scored = found[-1].end
        end = min(scored - lead + most, steps)
        found.append(Window(index=index, begin=end - most, end=end, lead_steps=scored - end + most))
    return tuple(found)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8-sig").rstrip().splitlines()
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise TraceError(f"{path}: expected text in UTF-8, got the byte {error.object[error.start]:#04x}") from None


def _row(path: Path, number: int, line: str) -> tuple[float, float]:
    """Parse the seconds and rate of a line. Raises TraceError."""
    where = f"{path}:{number}"
    parts = line.split(",")
    if len(parts) != 2:
        raise TraceError(f"{where}: expected two numbers, {HEADER}, got {line[:60]!r}; correct or remove the row")
    at_s = _number(where, parts[0], "write seconds, such as 0, 60, 120")
    rate = _number(where, parts[1], "fill the row, by interpolation for example")
    if not 0 <= rate <= _MOST_RECORDS_PER_S:
        expected = f"expected a rate from 0 to {_MOST_RECORDS_PER_S:g} records/s"
        raise TraceError(f"{where}: {expected}, got {parts[1].strip()[:40]}; correct the row")
    return at_s, rate


def _number(where: str, text: str, fix: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        given = repr(text.strip()[:40]) if text.strip() else "nothing"
        raise TraceError(f"{where}: expected a finite number, got {given}; {fix}")
    return value


def _step_s(path: Path, at_s: Array) -> float:
    """The step of equally spaced rows. Raises TraceError if a row is off the grid."""
    gaps_s = np.diff(at_s)
    back = np.flatnonzero(gaps_s <= 0)
    if back.size:
        line, before_s, now_s = int(back[0]) + 3, at_s[back[0]], at_s[back[0] + 1]
        fix = "two rows have this time, remove one" if now_s == before_s else "sort the rows by time"
        raise TraceError(f"{path}:{line}: expected a time after {before_s:.15g} s, got {now_s:.15g} s; {fix}")
    step_s = float(np.median(gaps_s))
    off = np.flatnonzero(np.abs(gaps_s - step_s) > _SAME * step_s)
    if off.size:
        line, expected_s = int(off[0]) + 3, at_s[off[0]] + step_s
        raise TraceError(
            f"{path}:{line}: expected the time {expected_s:.15g} s, a step of {step_s:g} s after the row before, "
            f"got {at_s[off[0] + 1]:.15g} s; resample the file to equal steps, or cut it there"
        )
    return step_s


def _means(rate: Array, step_s: float, over_s: float) -> Array:
    """Means over spans of over_s. Rows that are coarser stay as they are."""
    if step_s >= over_s:
        return rate
    spans = np.floor(np.arange(len(rate)) * step_s / over_s + _ROUNDING).astype(np.int64)
    means = np.bincount(spans, rate) / np.bincount(spans)
    return np.asarray(means[: max(1, int(len(rate) * step_s / over_s + _ROUNDING))])
