"""Reports of `backtest`: of a recorded history (`--config`) or of traces (`--trace`)."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from adapter import config as configuration
from adapter.backtest import history, open_loop, recorded_runs, report, sections
from adapter.backtest.command import TraceBacktest, assumption, print_tables
from adapter.backtest.history import HistoryError, RecordedHistory
from adapter.backtest.prices import Prices
from adapter.backtest.report_content import Report
from adapter.backtest.table import report_tables
from adapter.backtest.timelines import timelines
from adapter.backtest.trace import Trace
from adapter.backtest.units import Grid
from adapter.config import Config
from adapter.core.rule_book import RuleBook
from adapter.simulator.profiles import Profile

_LATENESS = (
    "This page measures lateness in time above the backlog-time target, once a tick. The table in the terminal "
    "measures it in records that waited for more than 300 s, and takes its time over 60 s and p99 from every step of "
    "the simulation."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """The options of `backtest` that concern a report."""

    start: str  # RFC 3339, a date, "-7d" or "now", as `end`
    end: str = "now"
    workloads: tuple[str, ...] = ()  # "namespace/name"; all if empty
    policies: tuple[str, ...] = ()  # those of the configuration if empty
    prices: Prices = field(default_factory=Prices)  # a price that is None comes from the rules
    currency: str = "EUR"
    report: Path = Path("backtest.html")


def run(config: Config, options: ReportOptions, say: Callable[[str], None]) -> tuple[Path, ...]:
    """Read, replay, calibrate, simulate, and write the report; returns the files.

    say: prints a line of progress. Raises HistoryError or ReportError. If a source fails midway or no workload can be
    simulated, the report is written first.
    """
    now_s, step_s = time.time(), config.timing.tick_s
    times = (("--from", options.start), ("--to", options.end))
    begin_s, end_s = (history.instant(option, text, now_s) for option, text in times)
    ticks = history.ticks_of(begin_s, end_s, step_s, now_s)
    report.probe(options.report)
    recorded = history.read(config, ticks, options.workloads, progress=_Progress("reading the history", say))
    for note in recorded.messages:
        say(note)
    return write_history_report(recorded, configuration.rule_book(config), options, say)


def write_history_report(
    recorded: RecordedHistory, book: RuleBook, options: ReportOptions, say: Callable[[str], None]
) -> tuple[Path, ...]:
    """Write the report and print its scores; returns the files.

    Raises ReportError, and afterwards HistoryError if the history was cut or no workload was simulated.
    """
    made = history_report(recorded, book, options, say)
    files = report.write(options.report, made)
    print_tables(report_tables(made))
    if recorded.cut:
        raise HistoryError(f"{recorded.cut}; {files[0]} contains what was read until then")
    if not any(section.simulated for section in made.sections):
        raise HistoryError(f"no workload was simulated; {files[0]} contains the causes, and what was recorded")
    return files


def history_report(
    recorded: RecordedHistory, book: RuleBook, options: ReportOptions, say: Callable[[str], None]
) -> Report:
    """The report of a recorded history."""
    found = timelines(recorded.samples, float(recorded.ticks.step))
    rules = open_loop.rules_by_workload(recorded.samples, book)
    policies = options.policies or tuple(dict.fromkeys(own.policy for own in rules.values()))
    ours = open_loop.metric_policies(policies)
    progress = _Progress("replaying the policies", say)
    recommendations = open_loop.recommend(recorded.samples, rules, ours, progress=progress) if ours else {}
    simulations = sections.simulate_histories(found, rules, policies, _Progress("simulating the workloads", say))
    made = []
    for name, timeline in found.items():
        own = [one for (workload, _), one in recommendations.items() if workload == name]
        section = sections.history_section(timeline, own, rules[name], simulations[name])
        for note in section.notes:
            say(note if name in note else f"{name}: {note}")
        made.append(replace(section, prices=options.prices.or_else(Prices.of(rules[name]))))
    begin, end = (
        datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M") for at_s in (recorded.ticks[0], recorded.ticks[-1])
    )
    return Report(
        title=f"Backtest of {begin} to {end} UTC",
        sections=tuple(made),
        currency=options.currency,
        notes=recorded.messages,
    )


def write_trace_report(backtest: TraceBacktest, grid: Grid, options: ReportOptions) -> tuple[Path, ...]:
    """Write the report of traces, each with each profile and delay, for the first seed; returns the files.

    Raises ReportError and ResultsError.
    """
    made = []
    for trace in backtest.traces:
        named = {own: profile for profile in grid.profiles for own in grid.delayed_profiles(trace, profile)}
        units = [unit for unit in backtest.units if unit.trace == trace.name and unit.records_series]
        for own, runs in recorded_runs.load(backtest.folder, units).items():
            section = sections.trace_section(trace.name, own, runs)
            notes = (_load_note(trace, named[own], grid),)
            made.append(replace(section, prices=options.prices, notes=notes))
    page = Report(title="Backtest", sections=tuple(made), currency=options.currency, notes=(_LATENESS,))
    return report.write(options.report, page)


def _load_note(trace: Trace, profile: Profile, grid: Grid) -> str:
    hours = len(trace.rate) * trace.step_s / 3600
    size = assumption(trace, profile, grid.worker_capacity_records_per_s)
    return f"Length of the load: {hours:.1f} h. Size of the job: {size}."


class _Progress:
    """Prints the progress at every tenth."""

    def __init__(self, what: str, say: Callable[[str], None]) -> None:
        self._what, self._say, self._last = what, say, 0

    def __call__(self, share: float) -> None:
        tenth = int(share * 10)
        if tenth > self._last:
            self._last = tenth
            self._say(f"{self._what}: {tenth * 10} %")
