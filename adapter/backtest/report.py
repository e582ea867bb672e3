"""Write a Report as one self-contained HTML page, with the same numbers in CSV files beside it."""

import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from errno import EISDIR
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from adapter.backtest.report_content import Report, Section, Track
from adapter.backtest.report_page import costs, page
from adapter.errors import AdapterError

_SCORES = (
    "workload",
    "name",
    "kind",
    "worker_hours",
    "cost",
    "lateness_cost",
    "currency",
    "over_target_ratio",
    "p99_backlog_time_s",
    "rescales",
    "pause_s",
    "known_ratio",
)
_CHANGES = ("workload", "loop", "policy", "at_s", "before_workers", "after_workers", "why")
_SERIES = ("workload", "loop", "name", "at_s", "rate_records_per_s", "workers", "backlog_time_s")
_CsvRow = tuple[object, ...]


class ReportError(AdapterError):
    """The report cannot be written. No partial file remains."""


def probe(path: Path) -> None:
    """Check, before any work, that a report can be written. Raises ReportError."""
    with _temporary_files(path) as parts:
        for part in parts:
            part.touch()


def write(path: Path, report: Report) -> tuple[Path, ...]:
    """Write the page and its tables; returns the files, the page first. Raises ReportError."""
    tables = ((_SCORES, _scores(report)), (_CHANGES, _changes(report)), (_SERIES, _series(report)))
    with _temporary_files(path) as parts:
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
def _temporary_files(path: Path) -> Iterator[tuple[Path, ...]]:
    """Paths in a temporary folder from which the files are moved into place. Raises ReportError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for file in _files(path):
            if file.is_dir():
                raise IsADirectoryError(EISDIR, f"{file} is a directory")
        with TemporaryDirectory(dir=path.parent, prefix=".report-") as folder:
            yield tuple(Path(folder) / file.name for file in _files(path))
    except OSError as error:
        cause = error.strerror or str(error)
        raise ReportError(f"{path}: cannot write the report ({cause}); choose another file") from error


def _table(path: Path, header: _CsvRow, rows: Iterable[_CsvRow]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(header)
        table.writerows(rows)


def _scores(report: Report) -> Iterator[_CsvRow]:
    for section in report.sections:
        for score in section.scores:
            money = costs(section, score)
            yield (
                section.title,
                score.name,
                score.kind,
                _field(score.worker_hours),
                *map(_field, money),
                "" if money == (None, None) else report.currency,
                _field(score.late_ratio),
                _field(score.p99_s),
                _field(score.rescales),
                _field(score.pause_s),
                _field(score.known_ratio),
            )


def _tracks(report: Report) -> Iterator[tuple[Section, str, Track]]:
    """Every curve of workers, with its section and its loop."""
    for section in report.sections:
        for loop, tracks in (("closed", section.simulated), ("open", section.recommended)):
            for track in tracks:
                yield section, loop, track


def _changes(report: Report) -> Iterator[_CsvRow]:
    for section, loop, track in _tracks(report):
        for change in track.changes:
            workers = _field(change.before), _field(change.after)
            yield section.title, loop, track.name, _field(change.at_s), *workers, change.why


def _series(report: Report) -> Iterator[_CsvRow]:
    for section, loop, track in _tracks(report):
        rate = np.interp(track.at_s, section.at_s, section.rate_records_per_s)
        waits = track.backlog_time_s if len(track.backlog_time_s) else np.full(len(track.at_s), np.nan)
        for moment in zip(track.at_s.tolist(), rate.tolist(), track.workers.tolist(), waits.tolist(), strict=True):
            yield section.title, loop, track.name, *map(_field, moment)


def _field(value: float | None) -> str:
    """A number as a CSV field; unknown is empty."""
    return "" if value is None or np.isnan(value) else f"{value:.10g}"
