"""`backtest --config`: the user's own history -> what each policy would have asked for, done and cost, as a report."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import numpy as np

from adapter import config as configuration
from adapter.backtest import history, open_loop, report, sections
from adapter.backtest.history import HistoryError, Past
from adapter.backtest.report_content import Report
from adapter.backtest.timelines import courses
from adapter.backtest.trace import Trace
from adapter.backtest.units import Grid
from adapter.config import Config
from adapter.core.rules import RuleBook
from adapter.simulator.profiles import Profile

_OTHER_LATE = (
    "Lateness is measured here in time, against the backlog-time target; the command's own table measures it in "
    "records that waited for more than 300 s."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """start, end: RFC 3339, "-7d" or "now". workloads: "namespace/name", all if empty.

    policies: what the configuration sets if empty. price: of a worker-hour, None shows no money. report: the page.
    """

    start: str
    end: str = "now"
    workloads: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    price: float | None = None
    currency: str = "EUR"
    report: Path = Path("backtest.html")
    seed: int = 0


def run(config: Config, options: Options, say: Callable[[str], None]) -> tuple[Path, ...]:
    """Read, replay, calibrate, simulate, and write the report; the files written.

    say: called with a line about what is going on. Raises HistoryError or ReportError. Where a source failed midway the
    report of what was read is written first.
    """
    now_s, step_s = time.time(), config.timing.tick_s
    times = (("--from", options.start), ("--to", options.end))
    begin_s, end_s = (history.instant(option, text, now_s) for option, text in times)
    ticks = history.ticks_of(begin_s, end_s, step_s, now_s)
    report.probe(options.report)
    past = history.read(config, ticks, options.workloads, progress=_Progress("reading the history", say))
    for told in (*past.told, *((past.cut,) if past.cut else ())):
        say(told)
    return written(past, configuration.rule_book(config), options, say)


def written(past: Past, book: RuleBook, options: Options, say: Callable[[str], None]) -> tuple[Path, ...]:
    """Write the report of a past; the files. Raises ReportError, and then HistoryError for a past that was cut."""
    files = report.write(options.report, reported(past, book, options, say))
    if past.cut:
        raise HistoryError(f"{past.cut}; {files[0]} holds what was read until then")
    return files


def reported(past: Past, book: RuleBook, options: Options, say: Callable[[str], None]) -> Report:
    """The report of a past."""
    found = courses(past.samples, float(past.ticks.step))
    policies = options.policies or open_loop.policies_of(book, tuple(found))
    ours = open_loop.ours(policies)
    asked = open_loop.asked(past.samples, book, ours, progress=_Progress("looking on", say)) if ours else {}
    told = []
    for name, course in found.items():
        say(f"simulating {name}")
        looked_on = [one for (workload, _), one in asked.items() if workload == name]
        rules = book.of(name, _fleet(past, name))
        told.append(sections.of_history(course, looked_on, rules, policies=policies, seed=options.seed))
    begin, end = (
        datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M") for at_s in (past.ticks[0], past.ticks[-1])
    )
    return Report(
        title=f"Backtest of {begin} to {end} UTC",
        chapters=tuple(told),
        price=options.price,
        currency=options.currency,
        notes=tuple(note for note in (past.cut, *past.told) if note),
    )


def drawn(traces: Sequence[Trace], grid: Grid, options: Options) -> tuple[Path, ...]:
    """Write the report of recorded loads: each with each profile and delay, for the grid's first seed; the files.

    Raises ReportError. The loads are simulated once more, since results hold no series.
    """
    report.probe(options.report)
    told = [
        sections.of_trace(trace, _delayed(profile, delay_s), grid.policies, grid.seeds[0])
        for trace, profile, delay_s in product(traces, grid.profiles, grid.delays_s)
    ]
    page = Report(
        title="Backtest", chapters=tuple(told), price=options.price, currency=options.currency, notes=(_OTHER_LATE,)
    )
    return report.write(options.report, page)


def _delayed(profile: Profile, delay_s: float | None) -> Profile:
    return profile if delay_s is None else replace(profile, metric_delay_s=delay_s)


def _fleet(past: Past, workload: str) -> int | None:
    for seen in past.samples:
        if workload in seen.workloads:
            fleet = seen.whole("fleet")[seen.workloads.index(workload)]
            return None if np.isnan(fleet) else int(fleet)
    return None


class _Progress:
    """Says every tenth that is done."""

    def __init__(self, what: str, say: Callable[[str], None]) -> None:
        self._what, self._say, self._told = what, say, 0

    def __call__(self, share: float) -> None:
        tenth = int(share * 10)
        if tenth > self._told:
            self._told = tenth
            self._say(f"{self._what}: {tenth * 10} %")
