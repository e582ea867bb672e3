"""Decisions by column, the format between the pipeline and `serve`, and the objects for single workloads.

The bytes of a column are numbers in the byte order of the processor; `serve` reads them without numpy.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isnan, nan
from typing import Any, Literal

import msgspec

from adapter.core.decisions import NUMBERS, STAGE_NUMBERS, TEXTS, Bound, Decision, Reason, StageSignals

_KINDS: Mapping[str, type[Reason | Bound]] = {"reason": Reason, "bound": Bound}
_CODE: Literal["I"] = "I"  # unsigned 32-bit integer
_NUMBER: Literal["d"] = "d"  # a 64-bit float


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One workload: its decision, its labels and its visible stages."""

    decision: Decision
    error_after_s: float  # the largest age of the samples of a served number
    window_s: float  # of its rates
    labels: dict[str, str] = field(default_factory=dict)
    stages: tuple[StageSignals, ...] = ()


class TextColumn(msgspec.Struct, frozen=True):
    """A column of texts."""

    names: list[str]  # the distinct texts
    codes: memoryview  # index of the text of each row, 32-bit

    def at(self, row: int) -> str:
        """The text of a row."""
        return self.names[_codes(self.codes)[row]]

    def __iter__(self) -> Iterator[str]:
        return map(self.names.__getitem__, _codes(self.codes))


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """All columns. Numbers are 64-bit floats, NaN if unknown; a column with only unknown numbers is left out."""

    workloads: list[str]  # "namespace/name", sorted
    texts: dict[str, TextColumn]  # field of Decision (TEXTS)
    numbers: dict[str, memoryview]  # field of Decision (NUMBERS)
    error_after_s: memoryview
    window_s: memoryview
    label_sets: list[dict[str, str]]
    label_codes: memoryview  # index of the label set of each workload
    stage_workloads: memoryview = memoryview(b"")  # index of the workload of each visible stage, sorted
    stages: TextColumn = TextColumn([], memoryview(b""))
    stage_numbers: dict[str, memoryview] = {}  # field of StageSignals (STAGE_NUMBERS)


class Entries:
    """The decisions of a snapshot. A lookup builds one Entry; the first iteration builds and caches all of them.

    Raises ValueError if the columns do not fit each other, or contain an unknown reason.
    """

    def __init__(self, at_s: float, columns: Columns) -> None:
        self._at_s = at_s
        self.columns = columns
        self.workloads: Sequence[str] = columns.workloads
        _check(columns)
        self._numbers = {name: _floats(column) for name, column in columns.numbers.items() if name in NUMBERS}
        self._stage_numbers = {name: _floats(column) for name, column in columns.stage_numbers.items()}
        self._error_after_s, self._window_s = _floats(columns.error_after_s), _floats(columns.window_s)
        self._label_codes = _codes(columns.label_codes)

    def __len__(self) -> int:
        return len(self.workloads)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._all)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entries) and self._all == other._all

    @cached_property
    def _all(self) -> tuple[Entry, ...]:
        return tuple(map(self.entry, range(len(self))))

    def entry(self, row: int) -> Entry:
        """The entry of one workload."""
        return Entry(
            decision=self.decision(row),
            error_after_s=self._error_after_s[row],
            window_s=self._window_s[row],
            labels=self.labels(row),
            stages=tuple(self._stage(row, place) for place in self._stages_of.get(row, ())),
        )

    def decision(self, row: int) -> Decision:
        """The decision of one workload."""
        texts = {name: column.at(row) for name, column in self.columns.texts.items()}
        known = {name: kind(texts[name]) for name, kind in _KINDS.items()}
        numbers = {name: _known(column[row]) for name, column in self._numbers.items()}
        return Decision(workload=self.workloads[row], at_s=self._at_s, **texts | known, **numbers)  # type: ignore[arg-type]  # by name

    def labels(self, row: int) -> dict[str, str]:
        """The configured labels of one workload."""
        return self.columns.label_sets[self._label_codes[row]]

    def stage_names(self, row: int) -> list[str]:
        """The visible stages of one workload."""
        return [self.columns.stages.at(place) for place in self._stages_of.get(row, ())]

    def text(self, name: str) -> Iterable[str]:
        """A field of TEXTS for each workload."""
        return self.columns.texts[name]

    def number(self, name: str) -> Iterable[float]:
        """A field of NUMBERS for each workload; NaN is unknown."""
        return self._numbers.get(name) or array(_NUMBER, [nan]) * len(self)

    @cached_property
    def _stages_of(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for place, row in enumerate(_codes(self.columns.stage_workloads)):
            found.setdefault(row, []).append(place)
        return found

    def _stage(self, row: int, place: int) -> StageSignals:
        numbers = {name: _known(column[place]) for name, column in self._stage_numbers.items()}
        return StageSignals(workload=self.workloads[row], stage=self.columns.stages.at(place), **numbers)


def entries_of(at_s: float, entries: Iterable[Entry]) -> Entries:
    """Convert entries to columns."""
    ordered = sorted(entries, key=lambda entry: entry.decision.workload)
    rows = [(row, stage) for row, entry in enumerate(ordered) for stage in entry.stages]
    label_sets, label_codes = label_sets_of([entry.labels for entry in ordered])
    columns = Columns(
        workloads=[entry.decision.workload for entry in ordered],
        texts={name: names_of([getattr(entry.decision, name) for entry in ordered]) for name in TEXTS},
        numbers=_all_bytes(NUMBERS, [entry.decision for entry in ordered]),
        error_after_s=memoryview(array(_NUMBER, [entry.error_after_s for entry in ordered]).tobytes()),
        window_s=memoryview(array(_NUMBER, [entry.window_s for entry in ordered]).tobytes()),
        label_sets=label_sets,
        label_codes=memoryview(label_codes.tobytes()),
        stage_workloads=memoryview(array(_CODE, [row for row, _ in rows]).tobytes()),
        stages=names_of([stage.stage for _, stage in rows]),
        stage_numbers=_all_bytes(STAGE_NUMBERS, [stage for _, stage in rows]),
    )
    return Entries(at_s, columns)


def label_sets_of(labels: Iterable[Mapping[str, str]]) -> "tuple[list[dict[str, str]], array[int]]":
    """The distinct sets of labels, and the index of each given set."""
    code: dict[tuple[tuple[str, str], ...], int] = {}
    codes = array(_CODE, (code.setdefault(tuple(sorted(each.items())), len(code)) for each in labels))
    return [dict(each) for each in code], codes


def names_of(texts: Sequence[str]) -> TextColumn:
    """Encode texts as a column."""
    code = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    return TextColumn([str(text) for text in code], memoryview(array(_CODE, map(code.__getitem__, texts)).tobytes()))


def _all_bytes(names: Iterable[str], records: Sequence[Any]) -> dict[str, memoryview]:
    values = {name: [getattr(record, name) for record in records] for name in names}
    return {
        name: memoryview(array(_NUMBER, [nan if value is None else value for value in column]).tobytes())
        for name, column in values.items()
        if any(value is not None for value in column)
    }


def _check(columns: Columns) -> None:
    """Raises ValueError if the columns are not decisions of this release."""
    rows, stages = len(columns.workloads), len(_codes(columns.stage_workloads))
    of_texts = all(_fits(column, rows) for column in columns.texts.values())
    if not (columns.texts.keys() == set(TEXTS) and of_texts and _fits(columns.stages, stages)):
        raise ValueError("not a snapshot: a column of texts does not fit its workloads")
    lengths = {len(_floats(each)) for each in (*columns.numbers.values(), columns.error_after_s, columns.window_s)}
    of_stages = {len(_floats(column)) for column in columns.stage_numbers.values()}
    if not (lengths <= {rows} and of_stages <= {stages} and columns.stage_numbers.keys() <= set(STAGE_NUMBERS)):
        raise ValueError("not a snapshot: a column of numbers does not fit its workloads")
    if not _fits(TextColumn([""] * len(columns.label_sets), columns.label_codes), rows):
        raise ValueError("not a snapshot: the labels do not fit the workloads")
    if max(_codes(columns.stage_workloads), default=-1) >= rows:
        raise ValueError("not a snapshot: a stage without a workload")
    for name, kind in _KINDS.items():
        for text in columns.texts[name].names:
            kind(text)


def _fits(column: TextColumn, rows: int) -> bool:
    codes = _codes(column.codes)
    return len(codes) == rows and max(codes, default=-1) < len(column.names)


def _codes(column: memoryview) -> "memoryview[int]":
    return _whole(column, 4).cast(_CODE)


def _floats(column: memoryview) -> "memoryview[float]":
    return _whole(column, 8).cast(_NUMBER)


def _whole(column: memoryview, size: int) -> "memoryview[int]":
    if len(column) % size:
        raise ValueError(f"not a snapshot: a column of {len(column)} bytes is truncated")
    return memoryview(column)


def _known(value: float) -> float | None:
    return None if isnan(value) else value
