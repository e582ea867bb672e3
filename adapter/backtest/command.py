"""What was asked for -> units, run where they have no result yet -> scores in files and as tables."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from rich.console import Console

from adapter.backtest import job, results, summary, table
from adapter.backtest.trace import Trace, TraceError, read
from adapter.backtest.units import ORACLE, Grid, Unit, units
from adapter.config.faults import nearest
from adapter.core.rules import POLICIES
from adapter.errors import ConfigError
from adapter.simulator.baselines.named import PEERS
from adapter.simulator.policies import rules_of
from adapter.simulator.profiles import PROFILES

RUNNABLE = (*POLICIES, *PEERS)
MOST_SEEDS = 1000
PLAIN_WIDTH = 120  # of a table that goes into a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """traces, units: what is simulated. out: the folder of the results. policies: in the order of the tables."""

    traces: tuple[Trace, ...]
    units: tuple[Unit, ...]
    policies: tuple[str, ...]
    out: Path


def grid(policies: str, profiles: str, delays: str | None, seeds: int) -> Grid:
    """The grid that comma-separated names and seconds ask for; seeds 1 to `seeds`. Raises ConfigError, every fault."""
    faults = [*_wrong_policies(policies), *_unknown("--profile", profiles, PROFILES)]
    delays_s = [] if delays is None else [_delay_s(text, faults) for text in _words(delays)]
    if not 1 <= seeds <= MOST_SEEDS:
        faults.append(f"--seeds: expected 1 to {MOST_SEEDS}, got {seeds}")
    if faults:
        raise ConfigError(faults)
    return Grid(
        policies=_words(policies),
        profiles=tuple(PROFILES[name] for name in _words(profiles)),
        delays_s=tuple(delays_s) or (None,),
        seeds=tuple(range(1, seeds + 1)),
    )


def question(paths: Iterable[Path], named: Callable[[], Grid]) -> tuple[tuple[Trace, ...], Grid]:
    """The traces in files and a grid for them. Raises ConfigError, every fault of both."""
    faults: list[str] = []
    with _noted(faults):
        asked = named()
    with _noted(faults):
        found = traces(paths)
    if faults:
        raise ConfigError(faults)
    return found, asked


def policies(text: str) -> tuple[str, ...]:
    """The comma-separated policies and rivals, none for an empty text. Raises ConfigError, every fault."""
    if faults := _wrong_policies(text) if _words(text) else []:
        raise ConfigError(faults)
    return _words(text)


def asked(traces: tuple[Trace, ...], grid: Grid, out: Path) -> Asked:
    """What a grid asks of traces."""
    wanted = tuple(unit for trace in traces for unit in units(trace, grid))
    return Asked(traces=traces, units=wanted, policies=grid.policies, out=out)


def traces(paths: Iterable[Path]) -> tuple[Trace, ...]:
    """The traces in these files. Raises ConfigError with a fault for each file that is none, or named as another."""
    found: dict[str, Trace] = {}
    faults = []
    files: dict[Path, Path] = {}
    for path in paths:
        file = path.resolve()
        if file in files:
            faults.append(f"{path}: is the same file as {files[file]}; name it once")
            continue
        files[file] = path
        try:
            trace = read(path)
        except TraceError as error:
            faults.append(str(error))
            continue
        if trace.name in found:
            faults.append(f"{path}: there is another trace named {trace.name}; rename one of the files")
        found[trace.name] = trace
    if faults:
        raise ConfigError(faults)
    return tuple(found.values())


def run(asked: Asked, opened: job.Opened, stop: Event) -> None:
    """Run what is missing, write the scores and print them. Spark is started only when something is missing.

    stop: when it is set, the run ends early. Raises BacktestError, ResultsError, and what `opened` raises.
    """
    folder = results.opened(asked.out / "units")
    if results.missing(folder, asked.units):
        work = job.Work(units=asked.units, traces={trace.name: trace for trace in asked.traces})
        with table.progress(Console(stderr=True)) as progress, opened() as spark:
            job.run(spark, work, folder, job.Watch(progress=progress, stop=stop))
    oracles = [unit for unit in asked.units if unit.policy == ORACLE]
    others = [unit for unit in asked.units if unit.policy != ORACLE]
    rows = summary.by_seed(results.load(folder, others), results.load(folder, oracles))
    found = summary.standings(rows)
    summary.write(asked.out, rows, found)
    console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH)
    for made in table.tables(found, asked.policies):
        console.print(made)
        console.print()
    console.print(f"written: {asked.out}/scores.csv, {asked.out}/scores.parquet", highlight=False, soft_wrap=True)


@contextmanager
def _noted(faults: list[str]) -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        faults += error.faults


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _wrong_policies(text: str) -> list[str]:
    """Policies that do not exist, and parameters of ours that do not or are out of bounds."""
    faults = _unknown("--policy", ",".join(word.partition(":")[0] for word in _words(text)), RUNNABLE)
    for word in _words(text):
        name, varied, _ = word.partition(":")
        if varied and name in PEERS:
            faults.append(f"--policy: {name} takes no parameters, got {word!r}")
        elif varied and name in POLICIES:
            try:
                rules_of(word, next(iter(PROFILES.values())))
            except ConfigError as error:
                faults += [f"--policy: {fault}" for fault in error.faults]
    return faults


def _unknown(option: str, text: str, names: Iterable[str]) -> list[str]:
    known: Sequence[str] = tuple(names)
    if not _words(text):
        return [f"{option}: expected at least one of {', '.join(known)}"]
    listed = f"there are {', '.join(known)}"
    return [
        f"{option}: there is no {word!r}{nearest(word, known) or ';'} {listed}"
        for word in _words(text)
        if word not in known
    ]


def _delay_s(text: str, faults: list[str]) -> float:
    try:
        delay_s = float(text)
    except ValueError:
        delay_s = -1.0
    if not 0 <= delay_s <= 3600:
        faults.append(f"--delay: expected seconds from 0 to 3600, got {text!r}")
    return delay_s
