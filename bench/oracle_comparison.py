"""Run the oracle with the policies of a benchmark, and compare each policy with it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from adapter.backtest import table
from adapter.backtest.results import Columns
from adapter.backtest.summary import Summary, scores_by_seed
from adapter.backtest.trace import Trace, windows
from adapter.backtest.unit_simulation import input_rates
from adapter.backtest.units import Grid, Unit
from adapter.core.formatting import counted
from adapter.core.samples import Array
from adapter.simulator.profiles import Profile
from adapter.simulator.score import RESCALE_PRICES_S
from bench import oracle, played_plan
from bench.played_plan import PRICE_S

ORACLE = "oracle"
BRACKETS = ("oracle_bound", "oracle_plan", "oracle_late_slots", "oracle_margin_pct", "oracle_played")
COSTS = {f"{price_s:.0f} s": f"cost_{price_s:.0f}s_worker_hours" for price_s in RESCALE_PRICES_S}
COLUMNS: tuple[table.Column, ...] = (
    ("worker-\nhours", "worker_hours", "{:,.1f}"),
    ("× oracle", "worker_hours_ratio", "{:.2f}"),
    ("rescales\n/day", "rescales_per_day", "{:.1f}"),
    ("late %", "late_pct", "{:.3f}"),
    ("time\n>60 s %", "over_60s_pct", "{:.2f}"),
    *((f"cost at\n{price}", f"{name}_ratio", "{:.2f}") for price, name in COSTS.items()),
)
_PLAN = ("trace", "profile", "seed")
_FUNCTION = "bench.oracle_comparison:plan_units"


def oracle_units(trace: Trace, grid: Grid) -> Iterator[Unit]:
    """One unit for each window, profile and seed: the metric delay does not change what the oracle sees."""
    for window, profile, seed in product(windows(trace), grid.profiles, grid.seeds):
        yield Unit(
            trace=trace.name,
            digest=trace.digest,
            window=window,
            policy=ORACLE,
            profile=replace(grid.profile(trace, profile), metric_delay_s=0.0),
            seed=seed,
            normalised=grid.normalised,
            function=_FUNCTION,
        )


def plan_units(units: Sequence[Unit], traces: Mapping[str, Trace]) -> Mapping[str, Array]:
    """The played plan of each unit, and the objectives of its bound and of the plan without a margin; one row each."""
    rates = input_rates(units, traces)
    rows = [
        {
            **plan.sums,
            **_brackets(rate[unit.window.lead_steps :], unit.profile),
            "oracle_margin_pct": 100 * plan.margin_ratio,
        }
        for unit, rate, plan in zip(units, rates, played_plan.play(units, rates), strict=True)
    ]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def add_oracle(rows: Columns, oracles: Columns) -> Columns:
    """Add the oracle as a policy to the rows of scores_by_seed, its brackets, and the ratio of each cost to its own."""
    plans = scores_by_seed(oracles)
    place = {key: row for row, key in enumerate(zip(*(plans[name] for name in _PLAN), strict=True))}
    plan = np.array([place[key] for key in zip(*(rows[name] for name in _PLAN), strict=True)])
    lanes = list(zip(*(rows[name].tolist() for name in ("trace", "profile", "delay_s", "seed")), strict=True))
    firsts = np.array([lanes.index(lane) for lane in dict.fromkeys(lanes)])
    copies = {name: values[plan[firsts]] for name, values in plans.items()}
    copies |= {"delay_s": rows["delay_s"][firsts]}
    joined = {name: np.concatenate((values, copies[name])) for name, values in rows.items()}
    plan = np.concatenate((plan, plan[firsts]))
    plans = {**plans, **_brackets_of(plans, oracles)}
    ratios = {f"{name}_ratio": joined[name] / plans[name][plan] for name in ("worker_hours", *COSTS.values())}
    return {**joined, **ratios, **{name: plans[name][plan] for name in BRACKETS}}


def caption(row: Summary) -> str:
    """The brackets of the oracle for the trace and profile of a table."""
    score = {name: found.median for name, found in row.scores.items()}
    late = score["oracle_late_slots"]
    misses = f"; {counted(late, 'minute')} late even with all workers" if late else ""
    return (
        f"oracle, a rescale at {PRICE_S:.0f} s: bound {score['oracle_bound']:,.1f} worker-hours, "
        f"plan without margin {score['oracle_plan']:,.1f}, played with {score['oracle_margin_pct']:.0f} % margin "
        f"{score['oracle_played']:,.1f}{misses}"
    )


def _brackets_of(plans: Columns, oracles: Columns) -> Columns:
    """The columns of BRACKETS for each row of plans: of all windows of a trace together."""
    owned = [
        np.logical_and.reduce([oracles[name] == value for name, value in zip(_PLAN, key, strict=True)])
        for key in zip(*(plans[name] for name in _PLAN), strict=True)
    ]
    sums = {name: np.array([oracles[name][own].sum() for own in owned]) for name in BRACKETS if name in oracles}
    played = plans["worker_hours"] + PRICE_S / 3600 * plans["rescaled_workers"]
    margin = np.array([oracles["oracle_margin_pct"][own].max() for own in owned])
    return {**sums, "oracle_margin_pct": margin, "oracle_played": played}


def _brackets(rate: Array, profile: Profile) -> Mapping[str, float]:
    arrivals = played_plan.records_by_slot(rate)
    task, even = (
        oracle.SizingTask(arrival_records=arrivals, capacity_records=oracle.capacity_records(profile, even=even))
        for even in (False, True)
    )
    plan = oracle.upper(task, played_plan.lost_s(profile), PRICE_S)
    return {
        "oracle_bound": oracle.lower(even, PRICE_S).objective,
        "oracle_plan": plan.objective,
        "oracle_late_slots": float(plan.infeasible_slots),
    }
