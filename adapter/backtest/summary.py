"""Scores of each policy on each trace, as medians and intervals over the seeds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from adapter.backtest.results import Columns, ResultsError
from adapter.core.rates import Mask
from adapter.core.samples import Array, IntArray
from adapter.file_replacement import replace_file
from adapter.simulator.score import SUMS, Tally, scores

KEY = ("trace", "profile", "delay_s", "policy")
_LANE = (*KEY, "seed")
COLUMNS = (*_LANE, "window", *SUMS)  # of the results
_RESAMPLES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A median and the 95 % bootstrap interval around it."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One policy on one trace."""

    trace: str
    profile: str
    delay_s: float
    policy: str
    seeds: int
    scores: Mapping[str, Interval]  # by the names of scores_by_seed


def scores_by_seed(results: Columns) -> Columns:
    """The scores of all windows of a trace together: a row for each trace, profile, delay, policy and seed, sorted."""
    parts = [_trace_scores(results, results["trace"] == trace) for trace in np.unique(results["trace"])]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def summarize(rows: Columns) -> list[Summary]:
    """Medians over the seeds of scores_by_seed, in the order of its rows."""
    by_key: dict[tuple[str, str, float, str], list[int]] = {}
    for row, key in enumerate(zip(*(rows[name].tolist() for name in KEY), strict=True)):
        by_key.setdefault(key, []).append(row)
    columns = {name: values for name, values in rows.items() if name not in _LANE}
    return [
        Summary(
            trace=trace,
            profile=profile,
            delay_s=delay_s,
            policy=policy,
            seeds=len(places),
            scores={name: interval(values[places]) for name, values in columns.items()},
        )
        for (trace, profile, delay_s, policy), places in by_key.items()
    ]


def interval(values: Array) -> Interval:
    """The median of runs, shape (runs,), with its percentile bootstrap interval; NaN if a run is unknown."""
    if np.isnan(values).any():
        return Interval(median=math.nan, low=math.nan, high=math.nan)
    if len(values) == 1:
        return Interval(median=values[0], low=values[0], high=values[0])
    picks = np.random.default_rng((0, len(values))).integers(len(values), size=(_RESAMPLES, len(values)))
    low, high = np.quantile(np.median(values[picks], axis=1), (0.025, 0.975))
    return Interval(median=float(np.median(values)), low=float(low), high=float(high))


def write(folder: Path, rows: Columns, summaries: Sequence[Summary]) -> None:
    """Write scores.parquet with a row per seed, and scores.csv with medians and intervals. Raises ResultsError."""
    medians = pa.Table.from_pylist([dict(_csv_row(summary)) for summary in summaries])
    parquet, text = BytesIO(), BytesIO()
    pq.write_table(pa.table(dict(rows)), parquet)
    csv.write_csv(medians, text)
    try:
        replace_file(folder / "scores.parquet", parquet.getvalue())
        replace_file(folder / "scores.csv", text.getvalue())
    except OSError as error:
        cause = error.strerror or str(error)
        raise ResultsError(
            f"{folder}: cannot write the scores ({cause}); free some space and repeat the command"
        ) from None


def _trace_scores(results: Columns, is_of_trace: Mask) -> Columns:
    """The scores of one trace over all windows; each lane has a result in every window."""
    rows = {name: values[is_of_trace] for name, values in results.items()}
    order = np.lexsort([rows[name] for name in ("window", *reversed(_LANE))])
    rows = {name: values[order] for name, values in rows.items()}
    windows = [np.flatnonzero(rows["window"] == window) for window in np.unique(rows["window"])]
    return {name: rows[name][windows[0]] for name in _LANE} | dict(scores(_tally(rows, windows)))


def _tally(rows: Columns, windows: Sequence[IntArray]) -> Tally:
    tally = Tally({name: rows[name] for name in SUMS})
    return reduce(Tally.plus, [tally.take(places) for places in windows])


def _csv_row(summary: Summary) -> Mapping[str, object]:
    row: dict[str, object] = {name: getattr(summary, name) for name in (*KEY, "seeds")}
    for name, found in summary.scores.items():
        row |= {name: found.median, f"{name}_low": found.low, f"{name}_high": found.high}
    return row
