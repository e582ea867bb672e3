"""Standings as tables for the terminal, and the progress of a run."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from math import inf, isnan
from typing import TypeAlias

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from adapter.backtest.summary import Standing

# Heading, the number of score.scores or of the oracle under it, and how it is written.
COLUMNS = (
    ("worker-\nhours", "worker_hours", "{:,.1f}"),
    ("× oracle", "ratio", "{:.3f}"),
    ("late %", "late_pct", "{:.3f}"),
    (">60 s %", "late_60_pct", "{:.3f}"),
    ("rescales\n/day", "rescales_per_day", "{:.1f}"),
    ("reversals", "reversals", "{:.0f}"),
    ("p99\ndelay s", "p99_delay_s", "{:,.0f}"),
)
Progressed: TypeAlias = Callable[[int, int, int], None]

UNKNOWN = "–"
_NARROWEST = 12  # what seven columns of numbers leave of 80
_TOLD_EVERY_S, _ALIVE_EVERY_S = 10.0, 60.0


def tables(standings: Sequence[Standing], policies: Sequence[str]) -> Iterator[Table]:
    """One table for each trace, profile and delay, with the policies in the order given."""
    for (trace, profile, delay_s), rows in groupby(
        sorted(standings, key=_place), key=lambda row: (row.trace, row.profile, row.delay_s)
    ):
        found = list(rows)
        yield _table(f"{trace} · {profile} · metrics {delay_s:g} s late", sorted(found, key=_rank(policies)))


@contextmanager
def progress(console: Console, clock: Callable[[], float] = time.monotonic) -> Iterator[Progressed]:
    """A function to be told, often, how many units of how many are done, and how many groups of them are left.

    It draws a bar, or without a terminal a line now and then, at least every minute.
    """
    if not console.is_terminal:
        yield _lines(console, clock)
        return
    columns = (TextColumn("units"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("units", total=None)
        yield lambda done, total, _: bar.update(task, completed=done, total=total)


def _lines(console: Console, clock: Callable[[], float]) -> Progressed:
    began_s = clock()
    told_s, told_done = -inf, -1

    def told(done: int, total: int, groups: int) -> None:
        nonlocal told_s, told_done
        now_s = clock()
        waits_s = _ALIVE_EVERY_S if done == told_done else 0.0 if done == total else _TOLD_EVERY_S
        if now_s - told_s >= waits_s:
            told_s, told_done = now_s, done
            left = f", {groups} group{'s'[: groups > 1]} left" if groups else ""
            console.print(f"units {done}/{total} after {now_s - began_s:.0f} s{left}", highlight=False)

    return told


def _table(title: str, rows: Sequence[Standing]) -> Table:
    seeds = max(row.seeds for row in rows)
    made = Table(
        title=title if seeds == 1 else f"{title} · medians of {seeds} seeds",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
        caption=_oracle(rows[0]),
        caption_justify="left",
    )
    made.add_column("policy", overflow="fold", min_width=_NARROWEST)  # parameters make it long; numbers stay whole
    for heading, _, _ in COLUMNS:
        made.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        made.add_row(row.policy, *(_cell(row, name, form) for _, name, form in COLUMNS))
    return made


def _cell(row: Standing, name: str, form: str) -> str:
    number = row.numbers[name].median if name in row.numbers else float("nan")
    return UNKNOWN if isnan(number) else form.format(number)


def _oracle(row: Standing) -> str:
    """What the oracle needs; the ratios in the table are to this."""
    if "oracle_worker_hours" not in row.numbers:
        return ""
    hours, rescales, late = (
        row.numbers[f"oracle_{name}"].median for name in ("worker_hours", "rescales", "late_slots")
    )
    told = f"; {_counted(late, 'minute')} {'is' if round(late) == 1 else 'are'} late even so" if late else ""
    return f"oracle: {hours:,.1f} worker-hours, {_counted(rescales, 'rescale')}{told}"


def _counted(number: float, noun: str) -> str:
    return f"{number:.0f} {noun}{'s' * (round(number) != 1)}"


def _place(row: Standing) -> tuple[str, str, float]:
    return row.trace, row.profile, row.delay_s


def _rank(policies: Sequence[str]) -> Callable[[Standing], int]:
    return lambda row: policies.index(row.policy)
