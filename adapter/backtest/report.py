"""A Report -> one self-contained HTML page, and the same numbers as CSV files beside it."""

import csv
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np

from adapter.backtest.report_page import cost, page
from adapter.backtest.reported import (
    MEASURED,
    SIMULATED,
    Chapter,
    Fact,
    Mark,
    Report,
    Score,
    Target,
    Track,
)
from adapter.errors import AdapterError

__all__ = [
    "MEASURED",
    "SIMULATED",
    "Chapter",
    "Fact",
    "Mark",
    "Report",
    "ReportError",
    "Score",
    "Target",
    "Track",
    "write",
]

_SCORES = (
    "workload",
    "name",
    "kind",
    "worker_hours",
    "cost",
    "currency",
    "late_ratio",
    "p99_backlog_time_s",
    "rescales",
    "pause_s",
)
_CHANGES = ("workload", "policy", "at_s", "before_workers", "after_workers", "why")
_SERIES = ("workload", "loop", "name", "at_s", "rate_records_per_s", "workers", "backlog_time_s")
_Row = tuple[object, ...]


class ReportError(AdapterError):
    """The report cannot be written; the message says where and why, and nothing is half written."""


def write(path: Path, report: Report) -> tuple[Path, ...]:
    """Write the page, and its tables beside it; all files written, the page first. Raises ReportError."""
    tables = {
        "scores": (_SCORES, _scores(report)),
        "changes": (_CHANGES, _changes(report)),
        "series": (_SERIES, _series(report)),
    }
    written = [path]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for name, (header, rows) in tables.items():
            written.append(path.with_name(f"{path.stem}-{name}.csv"))
            _whole(written[-1], partial(_table, header=header, rows=rows))
        _whole(path, lambda part: part.write_text(page(report), encoding="utf-8"))
    except OSError as error:
        told = error.strerror or str(error)
        raise ReportError(f"{path}: the report cannot be written ({told}); name another file") from error
    return tuple(written)


def _whole(path: Path, make: Callable[[Path], object]) -> None:
    """A file is there whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    try:
        make(part)
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _table(path: Path, header: _Row, rows: Iterable[_Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(header)
        table.writerows(rows)


def _scores(report: Report) -> Iterator[_Row]:
    for chapter in report.chapters:
        for score in chapter.scores:
            money = cost(report, score)
            yield (
                chapter.title,
                score.name,
                score.kind,
                _told(score.worker_hours),
                _told(money),
                report.currency if money is not None else "",
                _told(score.late_ratio),
                _told(score.p99_s),
                _told(score.rescales),
                _told(score.pause_s),
            )


def _changes(report: Report) -> Iterator[_Row]:
    for chapter in report.chapters:
        for track in (*chapter.simulated, *chapter.asked):
            for mark in track.marks:
                yield chapter.title, track.name, _told(mark.at_s), _told(mark.before), _told(mark.after), mark.why


def _series(report: Report) -> Iterator[_Row]:
    for chapter in report.chapters:
        for loop, tracks in (("closed", chapter.simulated), ("open", chapter.asked)):
            for track in tracks:
                yield from _of_track(chapter, loop, track)


def _of_track(chapter: Chapter, loop: str, track: Track) -> Iterator[_Row]:
    rate = np.interp(track.at_s, chapter.at_s, chapter.rate_records_per_s)
    waits = track.backlog_time_s if len(track.backlog_time_s) else np.full(len(track.at_s), np.nan)
    for moment in zip(track.at_s.tolist(), rate.tolist(), track.workers.tolist(), waits.tolist(), strict=True):
        yield chapter.title, loop, track.name, *(_told(value) for value in moment)


def _told(value: float | None) -> str:
    """A number as a field; unknown is empty."""
    return "" if value is None or np.isnan(value) else f"{value:.10g}"
