"""Scores as tables for the terminal, and the progress of a run."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from math import inf, isnan
from typing import TypeAlias

from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from adapter.backtest.report_content import Report, Score
from adapter.backtest.summary import Summary

Column: TypeAlias = tuple[str, str, str]  # heading, name of the score, format
ProgressReport: TypeAlias = Callable[[int, int], None]  # units done, units in all
# A number on the page: its line here, and its formula in simulator/score.py.
COLUMNS: tuple[Column, ...] = (
    ("worker-\nhours", "worker_hours", "{:,.1f}"),
    ("late %", "late_pct", "{:.3f}"),
    ("time\n>60 s %", "over_60s_pct", "{:.3f}"),
    ("rescales\n/day", "rescales_per_day", "{:.1f}"),
    ("reversals", "reversals", "{:.0f}"),
    ("p99\ndelay s", "p99_delay_s", "{:,.0f}"),
)
UNKNOWN = "–"
_MIN_WIDTH = 12  # of the first column, in a terminal of 80 characters
_REPORT_EVERY_S = 15.0


def tables(
    summaries: Sequence[Summary],
    policies: Sequence[str],
    columns: Sequence[Column] = COLUMNS,
    caption: Callable[[Summary], str] = lambda summary: "",
) -> Iterator[Table]:
    """One table per trace, profile and delay, with the policies in the given order. caption: of the first row."""
    for (trace, profile, delay_s), group in groupby(sorted(summaries, key=_place), key=_place):
        rows = sorted(group, key=lambda row: policies.index(row.policy))
        title = f"{trace} · {profile} · metrics {delay_s:g} s late"
        seeds = max(row.seeds for row in rows)
        full_title = title if seeds == 1 else f"{title} · medians of {seeds} seeds"
        table = _empty_table(full_title, [heading for heading, _, _ in columns], caption(rows[0]))
        for row in rows:
            table.add_row(row.policy, *(_cell(row, name, form) for _, name, form in columns))
        yield table


def report_tables(report: Report) -> Iterator[Table]:
    """One table per workload: the recorded run and the simulated policies."""
    for section in report.sections:
        late = f"time\n>{section.target_s:g} s"
        table = _empty_table(section.title, ["worker-\nhours", late, "rescales", "p99 backlog\ntime s"])
        for score in section.scores:
            table.add_row(score.name, *_report_cells(score))
        yield table


def _report_cells(score: Score) -> Iterator[str]:
    numbers = (score.worker_hours, score.late_ratio, score.rescales, score.p99_s)
    for number, form in zip(numbers, ("{:,.1f}", "{:.3%}", "{:,}", "{:,.0f}"), strict=True):
        yield UNKNOWN if number is None else form.format(number)


def _empty_table(title: str, headings: Iterable[str], caption: str = "") -> Table:
    table = Table(
        title=Text(title, "table.title"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
        caption=caption,
        caption_justify="left",
    )
    table.add_column("policy", overflow="fold", min_width=_MIN_WIDTH)  # parameters make names long
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


@contextmanager
def progress(console: Console, clock: Callable[[], float] = time.monotonic) -> Iterator[ProgressReport]:
    """Show progress: a bar on a terminal, otherwise a line every 15 seconds."""
    if not console.is_terminal:
        yield _line_progress(console, clock)
        return
    times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    columns = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), *times)
    with Progress(*columns, console=console, speed_estimate_period=inf) as bar:  # a group of units takes minutes
        task = bar.add_task("runs", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _line_progress(console: Console, clock: Callable[[], float]) -> ProgressReport:
    started_s = clock()
    last_s, last_done = -inf, -1
    rose_s, risen = started_s, -1  # when the number of finished units last rose, and to what
    stored: int | None = None  # units done before this run

    def report(done: int, total: int) -> None:
        nonlocal last_s, last_done, rose_s, risen, stored
        now_s = clock()
        stored = done if stored is None else stored
        rose_s, risen = (now_s, done) if done > risen else (rose_s, risen)
        interval_s = 0.0 if last_done < done == total else _REPORT_EVERY_S
        if now_s - last_s >= interval_s:
            last_s, last_done = now_s, done
            left = ""
            if stored < done < total:
                left_s = (rose_s - started_s) * (total - done) / (done - stored) - (now_s - rose_s)
                is_usual = now_s - rose_s <= rose_s - started_s  # units that take longer than earlier ones show no time
                left = f", about {left_s:.0f} s left" if left_s > 0 and is_usual else ""
            console.print(f"{done} of {total} runs done after {now_s - started_s:.0f} s{left}", highlight=False)

    return report


def _cell(row: Summary, name: str, form: str) -> str:
    number = row.scores[name].median if name in row.scores else float("nan")
    return UNKNOWN if isnan(number) else form.format(number)


def _place(row: Summary) -> tuple[str, str, float]:
    return row.trace, row.profile, row.delay_s
