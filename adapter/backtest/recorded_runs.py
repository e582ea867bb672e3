"""The stored series of units -> the run of each policy, for a report."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from adapter.backtest import results
from adapter.backtest.results import Columns
from adapter.backtest.simulation import TOTALS, Piece, PolicyRun, policy_run, tick_ends_s
from adapter.backtest.unit_simulation import SERIES
from adapter.backtest.units import Unit
from adapter.simulator.closed_loop import STEPS_A_TICK
from adapter.simulator.profiles import Profile

Runs: TypeAlias = dict[Profile, dict[str, PolicyRun]]  # by policy, in the order of the units


def load(folder: Path, units: Sequence[Unit]) -> Runs:
    """The runs of units of one trace, whose series are stored. Raises ResultsError."""
    return runs(units, results.load(folder, units, (*TOTALS, *SERIES)))


def runs(units: Sequence[Unit], columns: Columns) -> Runs:
    """The runs of units of one trace. columns: the result of simulate_units, one row per unit."""
    pieces: dict[Profile, dict[str, list[Piece]]] = {}
    for place, unit in enumerate(units):
        first = unit.window.lead_steps // STEPS_A_TICK
        series = {name: columns[name][place][first:] for name in SERIES}
        totals = {name: float(columns[name][place]) for name in TOTALS}
        pieces.setdefault(unit.profile, {}).setdefault(unit.policy, []).append((totals, series))
    at_s = tick_ends_s(dict.fromkeys(unit.window for unit in units))
    return {
        profile: {policy: policy_run(policy, at_s, own) for policy, own in by_policy.items()}
        for profile, by_policy in pieces.items()
    }
