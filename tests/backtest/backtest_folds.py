"""Functions that Spark's workers import in the tests of the job, and the units that they run on."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from adapter.backtest.trace import Trace, resample
from adapter.backtest.units import Grid, Unit, units
from adapter.core.samples import Array
from adapter.simulator.profiles import PROFILES

FOLDER = "BACKTEST_FOLDS"  # environment variable: the folder in which a function marks the units it ran
PROFILE = PROFILES["consumer-group"]
TRACES = {
    trace.name: trace
    for trace in (
        Trace(name="hour", step_s=60.0, rate=20 + np.arange(60.0)),
        Trace(name="minutes", step_s=5.0, rate=5 + np.sin(np.arange(240.0))),
    )
}
GRID = Grid(policies=("drain", "static-peak"), profiles=(PROFILE,), delays_s=(0.0, 120.0), seeds=(1, 2, 3))
CROWD = {  # more groups than threads, since no two are equally long
    f"crowd-{rows}": Trace(name=f"crowd-{rows}", step_s=60.0, rate=20 + np.arange(float(rows))) for rows in range(6, 14)
}


def units_of(traces: Mapping[str, Trace], function: str = "summed") -> tuple[Unit, ...]:
    return tuple(
        replace(unit, function=f"backtest_folds:{function}") for trace in traces.values() for unit in units(trace, GRID)
    )


UNITS = units_of(TRACES)


def summed(wanted: Sequence[Unit], traces: Mapping[str, Trace]) -> Mapping[str, Array]:
    """The cost of a policy with as many workers as its name has letters, and a row of random numbers."""
    for unit in wanted:
        with (_marks() / unit.id).open("a") as mark:
            mark.write("x")
    rates = [resample(traces[unit.trace])[unit.window.begin : unit.window.end] for unit in wanted]
    return {
        "cost": np.array([rate.sum() * len(unit.policy) for unit, rate in zip(wanted, rates, strict=True)]),
        "random": np.stack([np.random.default_rng(unit.random_seed).normal(size=4) for unit in wanted]),
    }


def dies_once(wanted: Sequence[Unit], traces: Mapping[str, Trace]) -> Mapping[str, Array]:
    """As `summed`, but the first worker that runs a baseline exits."""
    died = _marks() / "died"
    if wanted[0].policy == "static-peak" and not died.exists():
        died.touch()
        os._exit(1)
    return summed(wanted, traces)


def dies_always(wanted: Sequence[Unit], traces: Mapping[str, Trace]) -> Mapping[str, Array]:
    """As `summed`, but every worker that runs a baseline exits."""
    if wanted[0].policy == "static-peak":
        os._exit(1)
    return summed(wanted, traces)


def _marks() -> Path:
    return Path(os.environ[FOLDER])
