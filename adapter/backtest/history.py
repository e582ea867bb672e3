"""Read the history of the configured workloads through the range reads of the sources, as samples per tick.

One process reads: a Prometheus answers one query for many workloads and is the bottleneck, so executors would not help.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyarrow import compute

from adapter.config import Config
from adapter.config.sources import KINDS_WITH_PAST
from adapter.core.samples import EVERY, Samples
from adapter.errors import AdapterError, SourceError
from adapter.options import UNITS_S
from adapter.sources import Source
from adapter.sources.factory import open_source
from adapter.sources.precedence import read_sources, with_source
from adapter.sources.sample_table import FAULT, samples_by_tick

MOST_TICKS = 200_000  # about five weeks of 15 s
MOST_VALUES = 5_000_000  # of all workloads together; about 1 GB while they are read
CHUNK_TICKS = 1_440  # six hours of 15 s in one call; Prometheus refuses more than 11 000
LEAST_TICKS = 90  # the smallest piece: a source that refuses it does so for another reason than its size
DEADLINE_S = 60.0  # of one call: a range read takes longer than the instant read that deadline_s is meant for

_ADVICE = (
    "add a Prometheus with the series of a Kafka exporter or of Flink and those of kube-state-metrics, and name it in "
    "the workload's `read` (docs/backtest.md)"
)
_AGO = re.compile(r"-(\d+(?:\.\d+)?)([smhdw])")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

_YEAR_10000_S = 253_402_300_800.0

Opener = Callable[[Config, str], Source]


class HistoryError(AdapterError):
    """A history cannot be read or used. The message states the cause and an alternative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedHistory:
    """The samples that the sources still have."""

    ticks: range  # the ticks that were read
    samples: tuple[Samples, ...]  # one per tick
    notes: tuple[str, ...] = ()  # messages of the sources
    cut: str = ""  # why the reading ended early; "" if it did not

    @property
    def messages(self) -> tuple[str, ...]:
        """Why it was cut, if it was, then the notes."""
        return (self.cut, *self.notes) if self.cut else self.notes

    @property
    def workloads(self) -> tuple[str, ...]:
        """The workloads with at least one sample, sorted."""
        return tuple(sorted({workload for seen in self.samples for workload in seen.workloads}))


def instant(option: str, text: str, now_s: float) -> float:
    """A time as Unix seconds: RFC 3339 with its zone, a date (midnight UTC), "-7d" (s, m, h, d, w), or "now".

    Raises HistoryError, which names the option.
    """
    at_s = _instant(text, now_s)
    if at_s is None:
        known = "a date, a time with its zone such as 2026-11-14T08:00:00Z, -7d or now"
        raise HistoryError(f"{option}: expected {known}, got {text!r}")
    if not 0 <= at_s < _YEAR_10000_S:
        raise HistoryError(f"{option}: expected a time in the years 1970 to 9999, got {text!r}")
    return at_s


def ticks_of(start_s: float, end_s: float, step_s: int, now_s: float) -> range:
    """The whole ticks within [start_s, end_s], none of them later than now. Raises HistoryError."""
    if start_s > end_s:
        raise HistoryError(f"--from is after --to: {_at(start_s)} is later than {_at(end_s)}")
    end_s = min(end_s, now_s)
    ticks = range(-int(-start_s // step_s) * step_s, int(end_s // step_s) * step_s + 1, step_s)
    if len(ticks) < 2:
        raise HistoryError(
            f"fewer than two ticks of {step_s} s between {_at(start_s)} and {_at(end_s)}; choose a longer period"
        )
    if len(ticks) > MOST_TICKS:
        raise HistoryError(
            f"{len(ticks)} ticks of {step_s} s are more than {MOST_TICKS}: read {MOST_TICKS * step_s // 86_400} days"
        )
    return ticks


def select_workloads(config: Config, only: Collection[str]) -> Config:
    """The configuration with only these workloads ("namespace/name"); no names selects all. Raises HistoryError.

    A name that is not configured may still belong to a fleet with a history.
    """
    if not only:
        return config
    known = {workload.id: workload for workload in config.workloads}
    missing = sorted(set(only) - set(known))
    if missing and not any(config.sources[fleet.source].kind in KINDS_WITH_PAST for fleet in config.fleets):
        fleets = "; its fleets have no history" if config.fleets else ""
        raise HistoryError(f"{missing[0]} is not in the configuration, which has {', '.join(sorted(known))}{fleets}")
    selected = tuple(workload for name, workload in known.items() if name in only)
    return config.model_copy(update={"workloads": selected, "fleets": config.fleets if missing else ()})


def read(
    config: Config,
    ticks: range,
    only: Collection[str] = (),
    opener: Opener = open_source,
    progress: Callable[[float], None] = lambda share: None,
) -> RecordedHistory:
    """Read the ticks of the configured workloads in chunks. progress: receives the ratio of finished ticks.

    Raises HistoryError for no samples, more than MOST_VALUES, or if no workload reads a source that stores past values.
    """
    config = _with_longer_deadlines(select_workloads(config, only))
    names, notes = _sources_with_past(config)
    without_past = _workloads_without_past(config, names)
    if len(without_past) == len(config.workloads) and not any(fleet.source in names for fleet in config.fleets):
        raise HistoryError(_no_past(without_past))
    samples: list[Samples] = []
    faults: Counter[tuple[str, str]] = Counter()
    cut, values = "", 0
    with ExitStack() as opened:
        sources = {name: opened.enter_context(closing(opener(config, name))) for name in names}
        for piece in (ticks[first : first + CHUNK_TICKS] for first in range(0, len(ticks), CHUNK_TICKS)):
            try:
                table = pa.concat_tables(
                    [with_source(_read_piece(source, piece), config, name) for name, source in sources.items()]
                )
            except SourceError as error:
                ends = f"; the history ends at {_at(piece[0] - ticks.step)} instead of {_at(ticks[-1])}"
                cut = f"{error}{ends if samples else ''}"
                break
            if only:
                table = table.filter(compute.is_in(table.column("workload"), pa.array((*only, EVERY))))
            values += len(table)
            if values > MOST_VALUES:
                raise HistoryError(_size_message(piece, ticks))
            faults.update(_faults(table))
            samples += samples_by_tick(table, piece)
            progress(len(samples) / len(ticks))
    past = RecordedHistory(
        ticks=ticks[: len(samples)], samples=tuple(samples), notes=(*notes, *_sentences(faults)), cut=cut
    )
    if not past.workloads:
        raise HistoryError(_empty_message(past, ticks))
    absent = sorted({*(only or (workload.id for workload in config.workloads))} - {*past.workloads})
    return replace(past, notes=(*past.notes, *(_absence_message(past, name, without_past) for name in absent)))


def _instant(text: str, now_s: float) -> float | None:
    """Parse a time into Unix seconds; None if it is invalid, or has a time of the day and no time zone."""
    if text == "now":
        return now_s
    if (ago := _AGO.fullmatch(text)) is not None:
        return now_s - float(ago[1]) * UNITS_S[ago[2]]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if _DATE.fullmatch(text):
        moment = moment.replace(tzinfo=UTC)
    return None if moment.tzinfo is None else moment.timestamp()


def _with_longer_deadlines(config: Config) -> Config:
    """The configuration with deadlines long enough for range reads."""
    longer = {
        name: source.model_copy(update={"deadline_s": max(source.deadline_s, DEADLINE_S)})
        for name, source in config.sources.items()
    }
    return config.model_copy(update={"sources": longer})


def _sources_with_past(config: Config) -> tuple[list[str], list[str]]:
    """The sources of the workloads and fleets that store past values, and a sentence about each of the others."""
    wanted = read_sources(config)
    read = {name: source for name, source in config.sources.items() if name in wanted}
    names = [name for name, source in read.items() if source.kind in KINDS_WITH_PAST]
    notes = [
        f"{name} ({source.kind}) stores no past values: its signals are not in the report"
        for name, source in read.items()
        if name not in names
    ]
    return names, notes


def _workloads_without_past(config: Config, names: Collection[str]) -> list[str]:
    """The workloads that read none of these sources."""
    return [each.id for each in config.workloads if not any(entry.source in names for entry in each.read)]


def _no_past(workloads: Sequence[str]) -> str:
    """Why there is no history of these workloads, or of the fleets if there are none."""
    more = f" and {len(workloads) - 1} more" if len(workloads) > 1 else ""
    who = f"{workloads[0]}{more}" if workloads else "fleets"
    return f"{who}: no source in `read` stores past values; {_ADVICE}"


def _read_piece(source: Source, ticks: range) -> pa.Table:
    """The samples of the ticks. A refused request may be too large, so it is repeated in halves."""
    try:
        return source.samples(ticks[0], ticks[-1], ticks.step)
    except SourceError:
        if len(ticks) <= LEAST_TICKS:
            raise
    middle = len(ticks) // 2
    return pa.concat_tables([_read_piece(source, ticks[:middle]), _read_piece(source, ticks[middle:])])


def _faults(table: pa.Table) -> Iterator[tuple[str, str]]:
    """The workload and the text of each fault."""
    faults = table.filter(compute.equal(table.column("signal"), pa.scalar(FAULT)))
    columns: list[list[Any]] = [faults.column(name).to_pylist() for name in ("workload", "text")]
    return zip(*columns, strict=True)


def _sentences(faults: Counter[tuple[str, str]]) -> Iterator[str]:
    for (workload, text), count in faults.most_common():
        times = f" ({count} times)" if count > 1 else ""
        yield f"{text}{times}" if workload == EVERY else f"{workload}: {text}{times}"


def _size_message(piece: range, ticks: range) -> str:
    done = f"{_at(piece[-1])} of {_at(ticks[-1])}"
    return f"more than {MOST_VALUES} values up to {done}; choose a shorter period, or name one --workload"


def _absence_message(past: RecordedHistory, name: str, without_past: Collection[str]) -> str:
    """Why a workload has no sample."""
    if name in without_past:
        return _no_past([name])
    return (
        f"{name}: no sample from {_at(past.ticks[0])} to {_at(past.ticks[-1])}, so it is not in the report; "
        "did it have another name or other labels then?"
    )


def _empty_message(past: RecordedHistory, ticks: range) -> str:
    cause = f": {'; '.join(past.messages)}" if past.messages else "; did the workloads have other names or labels then?"
    return f"no sample of any workload from {_at(ticks[0])} to {_at(ticks[-1])}{cause}"


def _at(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
