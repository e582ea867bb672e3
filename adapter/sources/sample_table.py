"""Samples as a table with one value a row. Each source returns such a table, and the pipeline splits it into shards."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from adapter.core.samples import Dispute, Names, SampleColumns, Samples, assemble_columns
from adapter.errors import plain
from adapter.sources.merge import chosen_rows, disputes, with_counter_sources

FAULT = "fault"  # the signal of a row that states why a number is missing
NOTE = 1.0  # the value of a FAULT that states an assumption: the source has answered
_TYPES: dict[str, pa.DataType] = {
    "at_s": pa.int64(),  # Unix seconds of the tick
    "workload": pa.string(),  # "namespace/name", or EVERY for a fault of all workloads
    "stage": pa.string(),  # an operator of the workload, "" for the whole workload
    "signal": pa.string(),  # of core.samples.STAGE_SIGNALS, WORKLOAD_SIGNALS or OVERRIDES, or FAULT
    "value": pa.float64(),  # finite; with FAULT 0.0, or NOTE
    "text": pa.string(),  # the message of a FAULT, else ""
}
SCHEMA = pa.schema(_TYPES)
TEXTS = ("workload", "stage", "signal", "text")


class SampleTable:
    """Collects the samples of one read, column by column."""

    def __init__(self) -> None:
        self._columns: dict[str, Any] = {"at_s": array("q"), "value": array("d"), **{name: [] for name in TEXTS}}

    def add(self, at_s: int, workload: str, values: Mapping[str, float], stage: str = "") -> None:
        """Add the values of a workload or of one of its stages. values: signal -> value."""
        self._extend(len(values), at_s=at_s, workload=workload, stage=stage, text="")
        self._columns["signal"].extend(values)
        self._columns["value"].extend(values.values())

    def add_series(self, workload: str, stage: str, signal: str, at_s: Sequence[int], values: Sequence[float]) -> None:
        """Add the values of one signal at several ticks."""
        self._extend(len(at_s), workload=workload, stage=stage, signal=signal, text="")
        self._columns["at_s"].extend(at_s)
        self._columns["value"].extend(values)

    def add_fault(self, at_s: int, workload: str, message: str) -> None:
        """Add the reason why a workload, or EVERY workload, has no number. message: may quote other systems."""
        self._extend(1, at_s=at_s, workload=workload, stage="", text=plain(message), signal=FAULT, value=0.0)

    def add_note(self, at_s: int, workload: str, message: str) -> None:
        """Add an assumption behind the numbers of a workload. message: as of a fault."""
        self._extend(1, at_s=at_s, workload=workload, stage="", text=plain(message), signal=FAULT, value=NOTE)

    def finish(self) -> pa.Table:
        """All samples as a table of SCHEMA."""
        numbers = {name: np.asarray(self._columns[name]) for name in ("at_s", "value")}
        return pa.table({**self._columns, **numbers}, schema=SCHEMA)

    def _extend(self, count: int, **cells: float | str) -> None:
        for name, cell in cells.items():
            self._columns[name].extend([cell] * count)


def samples_of(at_s: int, table: pa.Table) -> Samples:
    """The rows of one tick as aligned arrays. With the columns of with_source, sources have a precedence."""
    texts = {name: names_in(table, name) for name in TEXTS}
    workload, signal, text = texts["workload"], texts["signal"], texts["text"]
    is_fault = np.array([name == FAULT for name in signal.names], dtype=bool)[signal.codes]
    faults = {
        (workload.names[one], text.names[other])
        for one, other in zip(workload.codes[is_fault].tolist(), text.codes[is_fault].tolist(), strict=True)
    }
    value = table.column("value").to_numpy()
    failed = {workload.names[code] for code in workload.codes[is_fault & (value != NOTE)].tolist()}
    # assemble_columns ignores the values of FAULT rows: FAULT is not the name of a signal.
    columns = SampleColumns(workload=workload, stage=texts["stage"], signal=signal, value=value)
    contradictions: dict[str, Dispute] = {}
    if "rank" in table.column_names:
        rank, texts["source"] = table.column("rank").to_numpy(), names_in(table, "source")
        contradictions = disputes(texts, rank, value)
        chosen = np.where(chosen_rows(texts, rank, value), value, np.nan)
        columns = with_counter_sources(replace(columns, value=chosen), rank)
    assumed = frozenset(name for name, _ in faults if name not in failed)
    return replace(assemble_columns(at_s, columns, faults), disputes=contradictions, assumed=assumed)


def samples_by_tick(table: pa.Table, ticks: range) -> Iterator[Samples]:
    """The samples of each tick, oldest first; a tick without rows is empty."""
    ordered = table.sort_by("at_s")
    at_s = ordered.column("at_s").to_numpy()
    for tick_s in ticks:
        first, end = np.searchsorted(at_s, (tick_s, tick_s + 1)).tolist()
        yield samples_of(tick_s, ordered.slice(first, end - first))


def names_in(table: pa.Table, name: str) -> Names:
    """A text column as its distinct texts and a code for each row."""
    column: Any = table.column(name)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    column = column.unify_dictionaries().combine_chunks()
    return Names(column.dictionary.to_pylist(), column.indices.to_numpy().astype(np.int64))
