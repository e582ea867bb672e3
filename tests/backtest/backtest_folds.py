"""Folds for the tests of the job, imported by name in Spark's workers, and what they are asked to fold."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from adapter.backtest.trace import Trace, scaled
from adapter.backtest.units import Grid, Unit, units
from adapter.core.samples import Array
from adapter.simulator.profiles import PROFILES

FOLDER = "BACKTEST_FOLDS"  # of the environment: where the folds leave their marks
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
UNITS = tuple(unit for trace in TRACES.values() for unit in units(trace, GRID))


def summed(wanted: Sequence[Unit], traces: Mapping[str, Trace]) -> Mapping[str, Array]:
    """What a policy would cost that has as many workers as its name has letters, and a row of chance."""
    for unit in wanted:
        with (_marks() / unit.id).open("a") as mark:
            mark.write("x")
    rates = [scaled(traces[unit.trace], unit.profile)[unit.window.begin : unit.window.end] for unit in wanted]
    return {
        "cost": np.array([rate.sum() * len(unit.policy) for unit, rate in zip(wanted, rates, strict=True)]),
        "chance": np.stack([np.random.default_rng(unit.chance).normal(size=4) for unit in wanted]),
    }


def dies_once(wanted: Sequence[Unit], traces: Mapping[str, Trace]) -> Mapping[str, Array]:
    """As `summed`, but the first worker that is asked for a rival dies without a word."""
    died = _marks() / "died"
    if wanted[0].policy == "static-peak" and not died.exists():
        died.touch()
        os._exit(1)
    return summed(wanted, traces)


def dies_always(wanted: Sequence[Unit], traces: Mapping[str, Trace]) -> Mapping[str, Array]:
    """As `summed`, but whoever is asked for a rival dies."""
    if wanted[0].policy == "static-peak":
        os._exit(1)
    return summed(wanted, traces)


def _marks() -> Path:
    return Path(os.environ[FOLDER])
