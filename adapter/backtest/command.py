"""The command `backtest --trace`: options -> units, simulated where no result exists yet -> files and tables."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from threading import Event

import numpy as np
from rich.console import Console
from rich.table import Table

from adapter.backtest import job, results, summary, table
from adapter.backtest.trace import Trace, TraceError, fit_profile, peak, read
from adapter.backtest.units import Grid, Unit, units
from adapter.config.faults import suggestion
from adapter.core.formatting import count, counted, share, workers
from adapter.core.rules import POLICIES, Rules
from adapter.errors import ConfigError, SetupError
from adapter.simulator.baselines.registry import BASELINES
from adapter.simulator.fluid import worker_speed
from adapter.simulator.policies import policy_rules
from adapter.simulator.profiles import PROFILES, TICK_S, Profile
from adapter.stop_signals import is_stopping

DEFAULT_POLICY = Rules().policy
RUNNABLE = (*POLICIES, *BASELINES)
MOST_WORKERS = 10_000  # of a simulated job: the random numbers of four days take 1.4 GB
FILE_WIDTH = 120  # of a table that is written to a file or pipe


@dataclass(frozen=True, slots=True, kw_only=True)
class GridOptions:
    """The options of the command line that span a grid, as text where they are lists."""

    policies: str
    profiles: str
    delays: str | None = None
    seeds: int = 1
    worker_capacity_records_per_s: float | None = None
    records_first_seed: bool = False  # for a report


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceBacktest:
    """Units to simulate, the traces that they name, and the folder of the results."""

    traces: tuple[Trace, ...]
    units: tuple[Unit, ...]
    policies: tuple[str, ...]  # in the order of the tables
    out: Path

    @property
    def folder(self) -> Path:
        """The folder of the results of each unit."""
        return self.out / "units"


def parse_grid(options: GridOptions) -> Grid:
    """Seeds are 1 to `seeds`. Raises ConfigError with every fault."""
    faults = [*_policy_faults(options.policies), *_unknown_names("--profile", options.profiles, PROFILES)]
    delays_s = [] if options.delays is None else [_delay_s(text, faults) for text in _names(options.delays)]
    if faults:
        raise ConfigError(faults)
    return Grid(
        policies=_names(options.policies),
        profiles=tuple(PROFILES[name] for name in _names(options.profiles)),
        delays_s=tuple(delays_s) or (None,),
        seeds=tuple(range(1, options.seeds + 1)),
        worker_capacity_records_per_s=options.worker_capacity_records_per_s,
        records_first_seed=options.records_first_seed,
    )


def read_request(paths: Iterable[Path], options: GridOptions) -> tuple[tuple[Trace, ...], Grid]:
    """The traces in files and the grid of the options. Raises ConfigError with every fault of both."""
    faults: list[str] = []
    with _collect_faults(faults):
        grid = parse_grid(options)
    with _collect_faults(faults):
        traces = read_traces(paths)
    if faults := faults or list(_size_faults(traces, grid)):
        raise ConfigError(faults)
    return traces, grid


def parse_policies(text: str) -> tuple[str, ...]:
    """Comma-separated policies and baselines. Raises ConfigError with every fault."""
    if faults := _policy_faults(text):
        raise ConfigError(faults)
    return _names(text)


def trace_backtest(traces: tuple[Trace, ...], grid: Grid, out: Path) -> TraceBacktest:
    """The units of a grid over traces."""
    wanted = tuple(unit for trace in traces for unit in units(trace, grid))
    return TraceBacktest(traces=traces, units=wanted, policies=grid.policies, out=out)


def read_traces(paths: Iterable[Path]) -> tuple[Trace, ...]:
    """The traces in these files. Raises ConfigError with a fault for each file that is invalid or a duplicate."""
    traces: dict[str, Trace] = {}
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
        if trace.name in traces:
            faults.append(f"{path}: there is another trace named {trace.name}; rename one of the files")
        traces[trace.name] = trace
    if faults:
        raise ConfigError(faults)
    return tuple(traces.values())


def assumptions(traces: Sequence[Trace], grid: Grid) -> Iterator[str]:
    """The size of each simulated job, one sentence per trace and profile."""
    for trace in traces:
        for profile in grid.profiles:
            yield f"{trace.name}, {profile.name}: {assumption(trace, profile, grid.worker_capacity_records_per_s)}"


def describe_runs(backtest: TraceBacktest, grid: Grid) -> str:
    """How many runs a backtest has, and the factors of that number, as a sentence."""
    windows = {(unit.trace, unit.window) for unit in backtest.units}
    factors = {
        "policies": grid.policies,
        "profiles": grid.profiles,
        "delays": grid.delays_s,
        "seeds": grid.seeds,
        "windows of at most four days": windows,
    }
    listed = " x ".join(f"{name} ({len(each)})" for name, each in factors.items())
    return f"{counted(len(backtest.units), 'run')}: {listed}"


def assumption(trace: Trace, profile: Profile, worker_capacity_records_per_s: float | None) -> str:
    """The capacity of a worker, the source of that number, and the workers that the peak needs, as a sentence."""
    fitted = fit_profile(trace, profile, worker_capacity_records_per_s)
    busy_ratio = float(peak(trace) / fitted.workers / worker_speed(fitted, np.asarray(fitted.workers)))
    source = "--worker-capacity"
    if worker_capacity_records_per_s is None:
        source = f"assumed from {fitted.workers} workers at the peak; set --worker-capacity to that of your workers"
    return (
        f"a worker carries {_four_digits(fitted.worker_capacity_records_per_s)} records/s ({source}); the peak of "
        f"{_four_digits(peak(trace))} records/s keeps {workers(fitted.workers)} {share(busy_ratio)} busy; "
        f"the HPA allows {fitted.max_workers}"
    )


def _four_digits(value: float) -> str:
    return f"{value:.4g}" if value < 1000 else count(value)


def run(backtest: TraceBacktest, opened: job.SessionFactory, stop: Event) -> None:
    """Simulate the units without results, write the scores, and print them.

    stop: ends the run early when it is set. Raises BacktestError, ResultsError, and the errors of `opened`.
    """
    folder = simulate(backtest, opened, stop)
    rows = summary.scores_by_seed(results.load(folder, backtest.units, summary.COLUMNS))
    summaries = summary.summarize(rows)
    summary.write(backtest.out, rows, summaries)
    show(backtest.out, table.tables(summaries, backtest.policies))


def simulate(backtest: TraceBacktest, opened: job.SessionFactory, stop: Event) -> Path:
    """Simulate the units without results; the folder of the results. Spark starts only if a result is missing."""
    folder = results.open_folder(backtest.folder)
    if left := results.missing(folder, backtest.units):
        work = job.Work(units=backtest.units, traces={trace.name: trace for trace in backtest.traces})
        try:
            with table.progress(Console(stderr=True)) as progress:
                progress(len(backtest.units) - len(left), len(backtest.units))  # Spark starts for many seconds
                with opened() as spark:
                    job.run(spark, work, folder, progress, stop)
        except SetupError:
            if not is_stopping(stop):  # a signal to the process group, such as of `timeout`, also ends the JVM
                raise
            raise job.stop_error(folder, backtest.units) from None
    return folder


def show(out: Path, tables: Iterable[Table]) -> None:
    """Print the tables, and where the scores are."""
    print_tables(tables)
    sys.stdout.write(f"written: {out}/scores.csv, {out}/scores.parquet\n")


def print_tables(tables: Iterable[Table]) -> None:
    """Print tables, each with an empty line after it."""
    console = Console(width=None if sys.stdout.isatty() else FILE_WIDTH)
    for one in tables:
        console.print(one)
        console.print()


@contextmanager
def _collect_faults(faults: list[str]) -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        faults += error.faults


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _size_faults(traces: Iterable[Trace], grid: Grid) -> Iterator[str]:
    """Jobs that are too large to simulate with the given capacity of a worker."""
    given = grid.worker_capacity_records_per_s
    for trace, profile in product(traces, grid.profiles):
        linear = profile.workers * (MOST_WORKERS / profile.max_workers) ** profile.scaling_exponent
        least = peak(trace) / profile.peak_utilization_ratio / linear
        if given is not None and given < least:
            yield (
                f"--worker-capacity: expected at least {least * 1.001:.4g} records/s, got {given:g}: {trace.name} with "
                f"{profile.name} would need more than {MOST_WORKERS} workers, too many to simulate"
            )


def _policy_faults(text: str) -> list[str]:
    """Unknown policies, and parameters that are unknown or out of bounds."""
    faults = _unknown_names("--policy", ",".join(word.partition(":")[0] for word in _names(text)), RUNNABLE)
    for word in _names(text):
        name, colon, parameters = word.partition(":")
        if colon and name in BASELINES:
            faults.append(f"--policy: {name} takes no parameters, got {word!r}")
        elif colon and name in POLICIES and not parameters.strip("+"):
            faults.append(f"--policy: expected {name}, or {name}:parameter=number, got {word!r}")
        elif colon and name in POLICIES:
            try:
                policy_rules(word, next(iter(PROFILES.values())))
            except ConfigError as error:
                faults += [f"--policy: {fault}" for fault in error.faults]
    return faults


def _unknown_names(option: str, text: str, known: Iterable[str]) -> list[str]:
    names: Sequence[str] = tuple(known)
    if not _names(text):
        return [f"{option}: expected at least one of {', '.join(names)}"]
    return [
        f"{option}: there is no {word!r}{suggestion(word, names) or ';'} there are {', '.join(names)}"
        for word in _names(text)
        if word not in names
    ]


def _delay_s(text: str, faults: list[str]) -> float:
    try:
        delay_s = float(text)
    except ValueError:
        delay_s = -1.0
    if not 0 <= delay_s <= 3600 or delay_s % TICK_S:
        faults.append(f"--delay: expected a multiple of {TICK_S:g} s from 0 to 3600, got {text!r}")
    return delay_s
