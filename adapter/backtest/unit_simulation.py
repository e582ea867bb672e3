"""Simulate the units of one Spark task: the function that Spark's workers import by name."""

from collections.abc import Mapping, Sequence

from adapter.backtest.trace import Trace, normalisation_ratio, resample
from adapter.backtest.units import Unit
from adapter.core.samples import Array
from adapter.simulator import closed_loop
from adapter.simulator.world import SimulatedJob

# The series for a report, and their names in closed_loop.
SERIES = {
    "rate_records_per_s": "rate_records_per_s",
    "workers": "paid_workers",
    "capacity_records_per_s": "capacity_records_per_s",
    "backlog_time_s": "delay_s",
}


def simulate_units(units: Sequence[Unit], traces: Mapping[str, Trace]) -> Mapping[str, Array]:
    """The sums of score.Tally of units of equal length, one row per unit; also the series, if they are recorded."""
    jobs = [
        SimulatedJob(
            rate_records_per_s=rate,
            lead_steps=unit.window.lead_steps,
            policy=unit.policy,
            profile=unit.profile,
            seed=unit.random_seed,
        )
        for unit, rate in zip(units, input_rates(units, traces), strict=True)
    ]
    outcome = closed_loop.run(jobs, record=units[0].records_series)
    series = {name: outcome.series[own].T for name, own in SERIES.items()} if outcome.series else {}
    return {**outcome.tally.sums, **series}


def input_rates(units: Sequence[Unit], traces: Mapping[str, Trace]) -> list[Array]:
    """The input rate of each unit; units with the same input share one array."""
    whole = {name: resample(traces[name]) for name in dict.fromkeys(unit.trace for unit in units)}
    shared: dict[tuple[object, ...], Array] = {}
    rates = []
    for unit in units:
        ratio = normalisation_ratio(traces[unit.trace], unit.profile) if unit.normalised else 1.0
        key = (unit.trace, unit.window, ratio)
        if key not in shared:
            shared[key] = whole[unit.trace][unit.window.begin : unit.window.end] * ratio
        rates.append(shared[key])
    return rates
