"""Run the oracle with the policies of a benchmark, and compare each policy with it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from adapter.backtest import table
from adapter.backtest.results import Columns
from adapter.backtest.summary import Summary
from adapter.backtest.trace import Trace, windows
from adapter.backtest.unit_simulation import input_rates
from adapter.backtest.units import Grid, Unit
from adapter.core.samples import Array
from adapter.simulator.profiles import STEP_S, Profile
from bench import oracle

ORACLE = "oracle"
RHO = 4.0  # worker-hours that one rescale costs the oracle
SUMS = ("worker_hours", "rescales", "late_slots", "objective", "lower_objective")
COLUMNS = (table.COLUMNS[0], ("× oracle", "oracle_ratio", "{:.3f}"), *table.COLUMNS[1:])
_FUNCTION = "bench.oracle_comparison:plan_units"


def oracle_units(trace: Trace, grid: Grid) -> Iterator[Unit]:
    """One unit for each window and profile: metric delay and seed do not change what the oracle sees."""
    for window, profile in product(windows(trace), grid.profiles):
        yield Unit(
            trace=trace.name,
            digest=trace.digest,
            window=window,
            policy=ORACLE,
            profile=replace(grid.profile(trace, profile), metric_delay_s=0.0),
            seed=0,
            normalised=grid.normalised,
            function=_FUNCTION,
        )


def plan_units(units: Sequence[Unit], traces: Mapping[str, Trace]) -> Mapping[str, Array]:
    """The oracle's upper and lower plan for the scored part of each unit, one row per unit."""
    rows = [
        _plans(rate[unit.window.lead_steps :], unit.profile)
        for unit, rate in zip(units, input_rates(units, traces), strict=True)
    ]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def add_oracle(rows: Columns, oracles: Columns) -> Columns:
    """Add to each row of scores_by_seed the oracle's totals on its trace and profile, and the ratio of worker-hours."""
    places = list(zip(rows["trace"], rows["profile"], strict=True))
    added = {}
    for name in SUMS:
        totals = _totals(oracles, f"oracle_{name}")
        added[f"oracle_{name}"] = np.array([totals[place] for place in places])
    return {**rows, **added, "oracle_ratio": rows["worker_hours"] / added["oracle_worker_hours"]}


def caption(row: Summary) -> str:
    """The plan of the oracle for the trace and profile of a table."""
    hours, rescales, late = (row.scores[f"oracle_{name}"].median for name in ("worker_hours", "rescales", "late_slots"))
    misses = f"; {_count(late, 'minute')} late even with all workers" if late else ""
    return f"oracle: {hours:,.1f} worker-hours, {_count(rescales, 'rescale')}{misses}"


def _plans(rate: Array, profile: Profile) -> Mapping[str, float]:
    arrivals = _records_by_slot(rate)
    pause_s = max(profile.pause_up_s, profile.pause_down_s)
    task = oracle.SizingTask(arrival_records=arrivals, capacity_records=oracle.capacity_records(profile))
    even = oracle.SizingTask(arrival_records=arrivals, capacity_records=oracle.capacity_records(profile, even=True))
    upper, lower = oracle.upper(task, pause_s, RHO), oracle.lower(even, RHO)
    return {
        "oracle_worker_hours": upper.worker_hours,
        "oracle_rescales": float(upper.rescales),
        "oracle_late_slots": float(upper.infeasible_slots),
        "oracle_objective": upper.objective,
        "oracle_lower_objective": lower.objective,
    }


def _records_by_slot(rate: Array) -> Array:
    """Records that arrive in each slot; the last slot may be shorter."""
    steps = round(oracle.SLOT_S / STEP_S)
    records: Array = np.add.reduceat(rate, np.arange(0, len(rate), steps)) * STEP_S
    return records


def _totals(oracles: Columns, name: str) -> Mapping[tuple[str, str], float]:
    totals: dict[tuple[str, str], float] = {}
    for trace, profile, value in zip(oracles["trace"], oracles["profile"], oracles[name].tolist(), strict=True):
        totals[trace, profile] = totals.get((trace, profile), 0.0) + value
    return totals


def _count(number: float, noun: str) -> str:
    return f"{number:.0f} {noun}{'s' * (round(number) != 1)}"
