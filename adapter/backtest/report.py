"""A Report -> one self-contained HTML page, and the same numbers as CSV files beside it."""

import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from errno import EISDIR
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from adapter.backtest.report_content import (
    Chapter,
    Report,
    Track,
)
from adapter.backtest.report_page import cost, page
from adapter.errors import AdapterError

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


def probe(path: Path) -> None:
    """Raises ReportError where a report could not be written: better said before the work than after it."""
    with _beside(path) as parts:
        for part in parts:
            part.touch()


def write(path: Path, report: Report) -> tuple[Path, ...]:
    """Write the page, and its tables beside it; all files written, the page first. Raises ReportError."""
    tables = ((_SCORES, _scores(report)), (_CHANGES, _changes(report)), (_SERIES, _series(report)))
    with _beside(path) as parts:
        parts[0].write_text(page(report), encoding="utf-8")
        for part, (header, rows) in zip(parts[1:], tables, strict=True):
            _table(part, header, rows)
        for part, file in zip(parts, _files(path), strict=True):
            part.replace(file)
    return tuple(_files(path))


def _files(path: Path) -> Iterator[Path]:
    """The page and its tables."""
    yield path
    for name in ("scores", "changes", "series"):
        yield path.with_name(f"{path.stem}-{name}.csv")


@contextmanager
def _beside(path: Path) -> Iterator[tuple[Path, ...]]:
    """Where the files are made before they are put in place, all or none. Raises ReportError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for file in _files(path):
            if file.is_dir():
                raise IsADirectoryError(EISDIR, f"{file} is a directory")
        with TemporaryDirectory(dir=path.parent, prefix=".report-") as folder:
            yield tuple(Path(folder) / file.name for file in _files(path))
    except OSError as error:
        told = error.strerror or str(error)
        raise ReportError(f"{path}: the report cannot be written ({told}); name another file") from error


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
