"""What a worker computes for the units of one task: the closed loop's sums, or the oracle's plans."""

from collections.abc import Mapping, Sequence

import numpy as np

from adapter.backtest import oracle
from adapter.backtest.trace import Trace, resampled, scale
from adapter.backtest.units import ORACLE, Unit
from adapter.core.samples import Array
from adapter.simulator import closed_loop
from adapter.simulator.profiles import STEP_S, Profile
from adapter.simulator.world import Case

RHO = 4.0  # worker-hours that a rescale is worth to the oracle


def folded(units: Sequence[Unit], traces: Mapping[str, Trace]) -> Mapping[str, Array]:
    """Of units of equal length and kind: the sums of score.Tally, or what the oracle needs; a row a unit."""
    rates = _rates(units, traces)
    if units[0].policy == ORACLE:
        return _planned(units, rates)
    cases = [
        Case(
            rate_records_per_s=rate,
            lead_steps=unit.window.lead_steps,
            policy=unit.policy,
            profile=unit.profile,
            seed=unit.chance,
        )
        for unit, rate in zip(units, rates, strict=True)
    ]
    return closed_loop.run(cases).tally.sums


def _rates(units: Sequence[Unit], traces: Mapping[str, Trace]) -> list[Array]:
    """The input of each unit; units with the same input share one array."""
    whole: dict[str, Array] = {}
    made: dict[tuple[object, ...], Array] = {}
    found = []
    for unit in units:
        if unit.trace not in whole:
            whole[unit.trace] = resampled(traces[unit.trace])
        factor = scale(traces[unit.trace], unit.profile)
        key = (unit.trace, unit.window, factor)
        if key not in made:
            made[key] = whole[unit.trace][unit.window.begin : unit.window.end] * factor
        found.append(made[key])
    return found


def _planned(units: Sequence[Unit], rates: Sequence[Array]) -> Mapping[str, Array]:
    """The bracket of each unit's oracle over what is scored of its window."""
    rows = [_bracket(rate[unit.window.lead_steps :], unit.profile) for unit, rate in zip(units, rates, strict=True)]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _bracket(rate: Array, profile: Profile) -> Mapping[str, float]:
    arrivals = _by_slot(rate)
    pause_s = max(profile.pause_up_s, profile.pause_down_s)
    followed = oracle.Task(arrival_records=arrivals, capacity_records=oracle.capacity_records(profile))
    even = oracle.Task(arrival_records=arrivals, capacity_records=oracle.capacity_records(profile, even=True))
    upper, lower = oracle.upper(followed, pause_s, RHO), oracle.lower(even, RHO)
    return {
        "oracle_worker_hours": upper.worker_hours,
        "oracle_rescales": float(upper.rescales),
        "oracle_late_slots": float(upper.infeasible_slots),
        "oracle_objective": upper.objective,
        "oracle_lower_objective": lower.objective,
    }


def _by_slot(rate: Array) -> Array:
    """Records that arrive in each slot; the last may be a short one."""
    a_slot = round(oracle.SLOT_S / STEP_S)
    records: Array = np.add.reduceat(rate, np.arange(0, len(rate), a_slot)) * STEP_S
    return records
