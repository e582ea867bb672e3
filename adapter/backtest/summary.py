"""Results of units -> the published numbers of each policy on each trace, over seeds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from adapter.backtest.compare import Interval, interval
from adapter.backtest.results import Columns, ResultsError
from adapter.core.samples import Array, IntArray
from adapter.simulator.score import SUMS, Tally, scores

KEY = ("trace", "profile", "delay_s", "policy")
_LANE = (*KEY, "seed")
ORACLE_SUMS = ("worker_hours", "rescales", "late_slots", "objective", "lower_objective")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One policy on one trace. numbers: name -> median over the seeds and its 95 % interval; see by_seed."""

    trace: str
    profile: str
    delay_s: float
    policy: str
    seeds: int
    numbers: Mapping[str, Interval]


def by_seed(found: Columns, oracles: Columns) -> Columns:
    """A row for each trace, profile, delay, policy and seed, sorted so: score.scores of all its windows together.

    oracle_*: what the oracle needs on the same trace and profile; ratio: worker-hours over the oracle's.
    """
    parts = [_of_trace(found, found["trace"] == trace) for trace in np.unique(found["trace"])]
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    places = list(zip(rows["trace"], rows["profile"], strict=True))
    for name in ORACLE_SUMS:
        totals = _totals(oracles, f"oracle_{name}")
        rows[f"oracle_{name}"] = np.array([totals[place] for place in places])
    return rows | {"ratio": rows["worker_hours"] / rows["oracle_worker_hours"]}


def standings(rows: Columns) -> list[Standing]:
    """Medians over the seeds of by_seed's rows, in their order."""
    alike: dict[tuple[str, str, float, str], list[int]] = {}
    for place, key in enumerate(zip(*(rows[name].tolist() for name in KEY), strict=True)):
        alike.setdefault(key, []).append(place)
    numbers = {name: values for name, values in rows.items() if name not in _LANE}
    return [
        Standing(
            trace=trace,
            profile=profile,
            delay_s=delay_s,
            policy=policy,
            seeds=len(places),
            numbers={name: _interval(values[places]) for name, values in numbers.items()},
        )
        for (trace, profile, delay_s, policy), places in alike.items()
    ]


def write(folder: Path, rows: Columns, found: Sequence[Standing]) -> None:
    """scores.parquet has by_seed's rows, scores.csv medians and intervals. Raises ResultsError."""
    medians = pa.Table.from_pylist([dict(_flat(standing)) for standing in found])
    try:
        _whole(folder / "scores.parquet", lambda path: pq.write_table(pa.table(dict(rows)), path))
        _whole(folder / "scores.csv", lambda path: csv.write_csv(medians, path))
    except OSError as error:
        told = error.strerror or str(error)
        raise ResultsError(f"{folder}: scores cannot be written ({told}); make room and repeat the command") from None


def _of_trace(found: Columns, here: Array) -> Columns:
    """The lanes of one trace, each of which has a result in every window."""
    rows = {name: values[here] for name, values in found.items()}
    order = np.lexsort([rows[name] for name in ("window", *reversed(_LANE))])
    rows = {name: values[order] for name, values in rows.items()}
    windows = [np.flatnonzero(rows["window"] == window) for window in np.unique(rows["window"])]
    return {name: rows[name][windows[0]] for name in _LANE} | dict(scores(_tally(rows, windows)))


def _tally(rows: Columns, windows: Sequence[IntArray]) -> Tally:
    tally = Tally({name: rows[name] for name in SUMS})
    return reduce(Tally.plus, [tally.take(places) for places in windows])


def _totals(oracles: Columns, name: str) -> Mapping[tuple[str, str], float]:
    totals: dict[tuple[str, str], float] = {}
    for trace, profile, value in zip(oracles["trace"], oracles["profile"], oracles[name].tolist(), strict=True):
        totals[trace, profile] = totals.get((trace, profile), 0.0) + value
    return totals


def _interval(values: Array) -> Interval:
    """Of one seed there is no interval, and nothing to resample."""
    return interval(values) if len(values) > 1 else Interval(median=values[0], low=values[0], high=values[0])


def _flat(standing: Standing) -> Mapping[str, object]:
    row: dict[str, object] = {name: getattr(standing, name) for name in (*KEY, "seeds")}
    for name, found in standing.numbers.items():
        row |= {name: found.median, f"{name}_low": found.low, f"{name}_high": found.high}
    return row


def _whole(path: Path, write_to: Callable[[Path], object]) -> None:
    part = path.with_name(f".{path.name}.part")
    try:
        write_to(part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
