"""Compare every policy, every baseline and the oracle on every trace of a folder: cost, lateness and rescales.

Each trace is scaled to the workers of each profile, so that traces of any unit can be compared. An interrupted run
continues: results are stored in the folder --out.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import typer

from adapter.backtest import command, results, summary, table
from adapter.backtest.trace import Trace, TraceError, read
from adapter.backtest.units import Grid, Unit, units
from adapter.errors import AdapterError
from adapter.stop_signals import stop_event
from adapter.wiring import spark
from bench import oracle_comparison
from bench.machine import description
from bench.oracle_comparison import ORACLE, oracle_units
from bench.overview import overview

TRACES = Path(__file__).parents[1] / "tests" / "data" / "traces"
# Fair settings of a published policy, and `drain` without the cost of a rescale.
VARIANTS = ("netflix:sized_utilization_ratio=0.75+safe_utilization_ratio=0.9", "drain:defaults")
POLICIES = (*command.RUNNABLE, *VARIANTS)
PROFILES = "consumer-group,flink-reactive,flink-operator,netflix"
# The published comparison is of 18 hours; its own metric delay belongs to it.
SHORT_PROFILES = "pause-0-0,pause-10-15,pause-30-60,pause-57-57,pause-120-180"
DAY_S = 86_400.0
Report: TypeAlias = Callable[[command.TraceBacktest, Sequence[summary.Summary]], None]


def main(words: Sequence[str] | None = None) -> None:
    """Print the machine, run what is missing, print the tables and how long it took.

    words: the command line, that of the process by default.
    """
    run(parse_arguments(words), show)


def run(arguments: argparse.Namespace, report: Report) -> None:
    """Simulate what is missing, and report the scores of the policies beside the oracle's."""
    began_s = time.monotonic()
    try:
        typer.echo(description())
        what = comparison(arguments)
        with stop_event() as stop:
            folder = command.simulate(what, partial(spark, arguments.master, arguments.out), stop)
        report(what, compare(what, folder))
    except AdapterError as error:
        sys.exit(f"bench-policies: {error}")
    typer.echo(f"{len(what.units)} units; this run took {time.monotonic() - began_s:.0f} s")


def show(backtest: command.TraceBacktest, summaries: Sequence[summary.Summary]) -> None:
    """Print the table of each trace, and the means."""
    names = (ORACLE, *backtest.policies)
    command.show(backtest.out, table.tables(summaries, names, oracle_comparison.COLUMNS, oracle_comparison.caption))
    for means in overview(summaries, names):
        typer.echo(f"\n{means}")


def compare(backtest: command.TraceBacktest, folder: Path) -> list[summary.Summary]:
    """Write and return the scores of the policies beside the oracle's. Raises ResultsError."""
    policies, oracles = (
        results.load(folder, [unit for unit in backtest.units if (unit.policy == ORACLE) is is_oracle])
        for is_oracle in (False, True)
    )
    rows = oracle_comparison.add_oracle(summary.scores_by_seed(policies), oracles)
    summaries = summary.summarize(rows)
    summary.write(backtest.out, rows, summaries)
    return summaries


def comparison(arguments: argparse.Namespace) -> command.TraceBacktest:
    """Every unit of every trace of the folder, with the policies in the given order. Raises AdapterError."""
    grids = _grids(arguments)
    traces = traces_of(arguments.traces, arguments.days, arguments.skip_days)
    wanted = tuple(unit for trace in traces for unit in _units(trace, grids))
    return command.TraceBacktest(traces=traces, units=wanted, policies=grids[0].policies, out=arguments.out)


def parse_arguments(
    words: Sequence[str] | None,
    policies: Sequence[str] = POLICIES,
    prog: str = "python -m bench.policies",
    description: str | None = __doc__,
) -> argparse.Namespace:
    """Parse the command line; by default with the usage of this module."""
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument("--traces", type=Path, default=TRACES, help="folder of `seconds,rate` files")
    parser.add_argument("--profiles", default="", help=f"default: {PROFILES}; and of less than a day {SHORT_PROFILES}")
    parser.add_argument("--policies", default=",".join(policies), help="default: all")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--delays", default="0,120", help="how old metrics are, in seconds")
    parser.add_argument("--days", type=float, default=28.0, help="simulate at most the first days of a trace; 0 is all")
    parser.add_argument("--skip-days", type=float, default=0.0, help="skip these first days, and shorter traces")
    parser.add_argument("--master", help="Spark's master; default: this machine")
    parser.add_argument("--out", type=Path, default=Path("build/bench-policies"))
    return parser.parse_args(words)


def _grids(arguments: argparse.Namespace) -> tuple[Grid, Grid | None]:
    """The grid of every trace, and a second one for short traces; named profiles replace both."""
    options = command.GridOptions(
        policies=arguments.policies,
        profiles=arguments.profiles or PROFILES,
        delays=arguments.delays,
        seeds=arguments.seeds,
    )
    every = replace(command.parse_grid(options), normalised=True)
    if arguments.profiles:
        return every, None
    short = command.parse_grid(replace(options, profiles=SHORT_PROFILES, delays=None))
    return every, replace(short, normalised=True)


def _units(trace: Trace, grids: tuple[Grid, Grid | None]) -> Iterator[Unit]:
    every, short = grids
    for grid in (every, short if days_of(trace) < 1 else None):
        if grid is not None:
            yield from oracle_units(trace, grid)
            yield from units(trace, grid)


def traces_of(folder: Path, days: float, skip_days: float = 0.0) -> tuple[Trace, ...]:
    """Some days of each trace of a folder, all days for 0. Raises TraceError without any.

    skip_days: the first days, which are left out, as are traces that end with them.
    """
    later = (_skip(trace, skip_days) for trace in _traces(folder))
    return tuple(_shorten(trace, days) for trace in later if len(trace.rate))


def days_of(trace: Trace) -> float:
    """The length of a trace in days."""
    return len(trace.rate) * trace.step_s / DAY_S


def _traces(folder: Path) -> Iterator[Trace]:
    """The traces of a folder. Files that are not traces are skipped with a message. Raises TraceError without any."""
    if not folder.is_dir():
        raise TraceError(f"{folder}: there is no such folder; name one of files `seconds,rate` with --traces")
    files = sorted(folder.glob("*.csv"))
    found = list(_readable(files))
    if not found:
        raise TraceError(f"{folder}: expected files `seconds,rate` named *.csv, got {len(files)} that are none")
    yield from found


def _skip(trace: Trace, days: float) -> Trace:
    return replace(trace, rate=trace.rate[max(0, round(days * DAY_S / trace.step_s)) :])


def _shorten(trace: Trace, days: float) -> Trace:
    """The first days of a trace: a year would cost more than all other traces together and add no information."""
    rows = round(days * DAY_S / trace.step_s)
    if not rows or rows >= len(trace.rate):
        return trace
    typer.echo(f"{trace.name}: its first {days:g} of {days_of(trace):.0f} days; --days 0 takes all")
    return replace(trace, rate=trace.rate[:rows])


def _readable(files: Iterable[Path]) -> Iterator[Trace]:
    for path in files:
        try:
            yield read(path)
        except TraceError as error:
            typer.echo(f"skipped: {error}")


if __name__ == "__main__":
    main()
