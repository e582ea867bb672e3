"""Every policy and every rival on every trace of a folder: what each costs, how late it is, how often it rescales.

Interrupted and started again it continues: results are kept in the folder named by --out.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from adapter.apiserver.stop_signals import stop_event
from adapter.backtest import command
from adapter.backtest.trace import Trace, TraceError, read
from adapter.backtest.units import Grid, Unit, units
from adapter.errors import AdapterError
from adapter.wiring import spark
from bench.machine import described

TRACES = Path(__file__).parents[1] / "tests" / "data" / "traces"
PROFILES = "consumer-group,flink-reactive,flink-operator,netflix"
# The published comparison is of 18 hours; its own metric delay belongs to it.
SHORT_PROFILES = "pause-0-0,pause-10-15,pause-30-60,pause-57-57,pause-120-180"
DAY_S = 86_400.0


def main(words: Sequence[str] | None = None) -> None:
    """Print the machine, run what is missing, print the tables and how long it took.

    words: the command line, that of the process by default.
    """
    arguments = _arguments(words)
    began_s = time.monotonic()
    _say(described())
    try:
        what = asked(arguments)
        with stop_event() as stop:
            command.run(what, spark(arguments.master, arguments.out), stop)
    except AdapterError as error:
        sys.exit(f"bench-policies: {error}")
    _say(f"{len(what.units)} units; this run took {time.monotonic() - began_s:.0f} s")


def asked(arguments: argparse.Namespace) -> command.Asked:
    """Every unit of every trace of the folder, with policies in the order they were named in. Raises AdapterError."""
    grids = _grids(arguments)
    traces = tuple(_shortened(trace, arguments.days) for trace in _traces(arguments.traces))
    wanted = tuple(unit for trace in traces for unit in _units(trace, grids))
    return command.Asked(traces=traces, units=wanted, policies=grids[0].policies, out=arguments.out)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.policies", description=__doc__)
    parser.add_argument("--traces", type=Path, default=TRACES, help="folder of `seconds,rate` files")
    parser.add_argument("--profiles", default="", help=f"default: {PROFILES}; and of less than a day {SHORT_PROFILES}")
    parser.add_argument("--policies", default=",".join(command.RUNNABLE), help="default: all")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--delays", default="0,120", help="how old metrics are, in seconds")
    parser.add_argument("--days", type=float, default=28.0, help="of a trace at most its first so many; 0 is all")
    parser.add_argument("--master", help="Spark's master; default: this machine")
    parser.add_argument("--out", type=Path, default=Path("build/bench-policies"))
    return parser.parse_args(words)


def _grids(arguments: argparse.Namespace) -> tuple[Grid, Grid | None]:
    """What every trace is run with, and what short ones are run with besides; named profiles are run with all."""
    policies, seeds = arguments.policies, arguments.seeds
    every = command.grid(policies, arguments.profiles or PROFILES, arguments.delays, seeds)
    if arguments.profiles:
        return every, None
    return every, command.grid(policies, SHORT_PROFILES, None, seeds)


def _units(trace: Trace, grids: tuple[Grid, Grid | None]) -> Iterator[Unit]:
    every, short = grids
    yield from units(trace, every)
    if short is not None and len(trace.rate) * trace.step_s < DAY_S:
        yield from units(trace, short)


def _traces(folder: Path) -> Iterator[Trace]:
    """The traces of a folder; a file that is none is told and left out. Raises TraceError when there is none at all."""
    if not folder.is_dir():
        raise TraceError(f"{folder}: there is no such folder; name one of files `seconds,rate` with --traces")
    files = sorted(folder.glob("*.csv"))
    found = list(_readable(files))
    if not found:
        raise TraceError(f"{folder}: expected files `seconds,rate` named *.csv, got {len(files)} that are none")
    yield from found


def _shortened(trace: Trace, days: float) -> Trace:
    """A year of half-hours would cost more than all other traces together and tell the same."""
    rows = round(days * DAY_S / trace.step_s)
    if not rows or rows >= len(trace.rate):
        return trace
    _say(f"{trace.name}: its first {days:g} of {len(trace.rate) * trace.step_s / DAY_S:.0f} days; --days 0 takes all")
    return replace(trace, rate=trace.rate[:rows])


def _readable(files: Iterable[Path]) -> Iterator[Trace]:
    for path in files:
        try:
            yield read(path)
        except TraceError as error:
            _say(f"left out: {error}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
