"""Compare a `drain` that has to measure the cost of a rescale with one that is configured with that cost.

`drain:defaults` measures on the first day, so only the time after it is scored. The table has a row for each profile
and metric delay. Its first figures are the worker-hours of `drain:defaults` over those of `drain`, as a mean over the
traces of a day and a half and more, and of the trace with the highest ratio. The other figures come in pairs, first
`drain` and then `drain:defaults`: the mean rescales, the mean time over 60 s, and the late records of the worst trace.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path

import numpy as np

from adapter.backtest import command
from adapter.backtest.trace import Trace, TraceError
from adapter.backtest.unit_simulation import simulate_units
from adapter.backtest.units import Unit, groups, units
from adapter.core.samples import Array
from adapter.errors import AdapterError
from adapter.simulator.profiles import STEP_S, Profile
from adapter.simulator.score import Tally, scores
from bench import policies
from bench.machine import description
from bench.overview import markdown

POLICIES = CONFIGURED, MEASURING = ("drain", "drain:defaults")
LEARNING_DAYS, LEAST_DAYS, MOST_DAYS = 1.0, 1.5, 4.0
DELAYS = "0,120"  # seconds
_HEADS = (
    "profile",
    "metrics late, s",
    "worker-hours, measured / configured",
    "highest of a trace",
    "rescales a day",
    "time over 60 s %",
    "late %, worst trace",
)
_SCORES = ("worker_hours", "rescales_per_day", "over_60s_pct", "late_pct")


def main(words: Sequence[str] | None = None) -> None:
    """Simulate both on every trace, and print the means."""
    arguments = _parse_arguments(words)
    try:
        sys.stdout.write(f"{description()}\n")
        grid = replace(command.parse_grid(_grid_options(arguments)), normalised=True)
        traces = _long_enough(policies.traces_of(arguments.traces, arguments.days))
    except AdapterError as error:
        sys.exit(f"default_settings: {error}")
    wanted = groups(unit for trace in traces.values() for unit in units(trace, grid))
    with ProcessPoolExecutor() as pool:
        found = dict(chain.from_iterable(pool.map(simulate, wanted, repeat(traces))))
    sys.stdout.write(f"{markdown(_HEADS, rows(found))}\n")


def _grid_options(arguments: argparse.Namespace) -> command.GridOptions:
    return command.GridOptions(
        policies=",".join(POLICIES), profiles=arguments.profiles, delays=DELAYS, seeds=arguments.seeds
    )


def _long_enough(traces: Iterable[Trace]) -> dict[str, Trace]:
    """The traces with a part to score, by name. Raises TraceError without any."""
    found = {each.name: each for each in traces if LEAST_DAYS <= policies.days_of(each) <= MOST_DAYS}
    if not found:
        raise TraceError(f"expected a trace of {LEAST_DAYS:g} to {MOST_DAYS:g} days, got none")
    return found


def simulate(group: Sequence[Unit], traces: Mapping[str, Trace]) -> list[tuple[Unit, list[float]]]:
    """The scores of units of equal length after the first day."""
    learning_steps = round(LEARNING_DAYS * policies.DAY_S / STEP_S)
    scored = [replace(unit, window=replace(unit.window, lead_steps=learning_steps)) for unit in group]
    score = scores(Tally(simulate_units(scored, traces)))
    return [(unit, [float(score[name][lane]) for name in _SCORES]) for lane, unit in enumerate(group)]


def rows(found: Mapping[Unit, list[float]]) -> list[list[str]]:
    """The rows of the table. found: as from `simulate`, of both policies."""
    each: dict[Profile, dict[str, list[tuple[list[float], list[float]]]]] = {}
    for unit, score in found.items():
        if unit.policy == CONFIGURED:
            pair = (score, found[replace(unit, policy=MEASURING)])
            each.setdefault(unit.profile, {}).setdefault(unit.trace, []).append(pair)
    return [_row(profile, np.array(list(by_trace.values()))) for profile, by_trace in each.items()]


def _row(profile: Profile, pairs: Array) -> list[str]:
    """A row. pairs: shape (traces, seeds, policies, scores)."""
    ratios = (pairs[:, :, 1, 0] / pairs[:, :, 0, 0]).mean(axis=1)
    by_trace = pairs.mean(axis=1)
    rescales, over = by_trace[:, :, 1].mean(axis=0), by_trace[:, :, 2].mean(axis=0)
    late = by_trace[:, :, 3].max(axis=0)
    cells = [
        f"{one:{text}}, {other:{text}}" for (one, other), text in ((rescales, ".0f"), (over, ".1f"), (late, ".2f"))
    ]
    return [profile.name, f"{profile.metric_delay_s:g}", f"{ratios.mean():.3f}", f"{ratios.max():.3f}", *cells]


def _parse_arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.default_settings", description=__doc__)
    parser.add_argument("--traces", type=Path, default=policies.TRACES, help="folder of `seconds,rate` files")
    parser.add_argument("--profiles", default=policies.PROFILES)
    parser.add_argument("--days", type=float, default=2.0, help="simulate at most the first days of a trace")
    parser.add_argument("--seeds", type=int, default=1)
    return parser.parse_args(words)


if __name__ == "__main__":
    main()
