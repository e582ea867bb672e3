"""Read the samples of a simulated fleet or of a recorded file; both have past values."""

import time
from collections.abc import Iterator
from io import BytesIO
from math import isfinite
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
from pyarrow import compute
from pyarrow import json as pa_json

from adapter.config import TraceSource
from adapter.core.samples import EVERY, OVERRIDES, STAGE_SIGNALS, WORKLOAD_SIGNALS
from adapter.errors import SourceError, plain
from adapter.http_body import ACCEPTED, BodyError, read_body
from adapter.sources.names import slug
from adapter.sources.sample_table import FAULT, SCHEMA, names_in
from adapter.sources.source_files import read_bytes

LONGEST_ROW_BYTES = 1 << 20  # the parser reads blocks of this size; a longer row may not fit into two of them
_SIGNALS = (*STAGE_SIGNALS, *WORKLOAD_SIGNALS, FAULT)
_KNOWN = frozenset((*_SIGNALS, *OVERRIDES))


class TraceReader:
    """Reads /samples of a fleet (settings.url) or a recorded file (settings.file).

    A recorded file has one JSON object a line with the columns of sample_table.SCHEMA; `text` is optional. It is read
    once, at the first call. Each tick gets the rows of each workload's newest time, if they are less than one step
    old.
    """

    def __init__(self, name: str, settings: TraceSource) -> None:
        self._name = name
        self._file = settings.file
        self._deadline_s = settings.deadline_s
        # trust_env: a proxy of the environment does not reach a fleet on loopback.
        self._client = httpx.Client(base_url=settings.url or "", timeout=settings.deadline_s, trust_env=False)
        self._recorded: pa.Table | None = None

    def samples(self, start_s: int, end_s: int, step_s: int) -> pa.Table:
        """The samples of the ticks start_s, start_s + step_s, ... end_s. Raises SourceError."""
        if self._file is None:
            return self._fetch(start_s, end_s, step_s)
        if self._recorded is None:
            self._recorded = read(self._name, self._file)
        return at_ticks(self._recorded, range(start_s, end_s + 1, step_s))

    def close(self) -> None:
        """Release the connection."""
        self._client.close()

    def _fetch(self, start_s: int, end_s: int, step_s: int) -> pa.Table:
        query = {"start": start_s, "end": end_s, "step": step_s}
        try:
            # `answer.content` would stay in memory until the next full garbage collection.
            with self._client.stream("GET", "/samples", params=query, headers=ACCEPTED) as answer:
                body = read_body(answer.raise_for_status(), BytesIO(), time.monotonic() + self._deadline_s)
            table = _parse(body) if body.tell() else SCHEMA.empty_table()
        except (httpx.HTTPError, BodyError) as error:
            raise SourceError(self._name, f"the fleet does not answer: {error or type(error).__name__}") from error
        except pa.ArrowInvalid as error:
            raise SourceError(self._name, f"the fleet's answer is not one row a line: {error}") from error
        if fault := _table_fault(table):
            raise SourceError(self._name, f"the fleet's answer: {fault}")
        return table


def read(name: str, file: str) -> pa.Table:
    """The samples of a recorded file; empty lines are skipped. Raises SourceError with the number of a faulty line."""
    body = read_bytes(name, "file", file)
    try:
        table = _parse(BytesIO(body)) if body.strip() else SCHEMA.empty_table()
        if not _table_fault(table):
            return table
        cause = "is invalid"
    except pa.ArrowInvalid as error:
        cause = f"is not one row a line: {error}"
    raise SourceError(name, next(_line_faults(file, body), f"{file} {cause}"))


def at_ticks(table: pa.Table, ticks: range) -> pa.Table:
    """For each tick T and workload the rows of its newest time in (T - step, T], with T as their time."""
    at_s, workload = table.column("at_s").to_numpy(), names_in(table, "workload")
    number = -((ticks.start - at_s) // ticks.step)  # of the first tick at or after a row
    inside = np.flatnonzero((number >= 0) & (number < len(ticks)))
    at_s, number = at_s[inside], number[inside]
    place = number * max(len(workload.names), 1) + workload.codes[inside]
    newest = np.full(len(ticks) * max(len(workload.names), 1), np.iinfo(np.int64).min)
    np.maximum.at(newest, place, at_s)
    is_newest = at_s == newest[place]
    tick_s = pa.array(ticks.start + number[is_newest] * ticks.step, pa.int64())
    return table.take(pa.array(inside[is_newest])).set_column(0, "at_s", tick_s)


def _parse(body: BytesIO) -> pa.Table:
    """Parse one JSON object a line into a table of SCHEMA; a row without text has "". Raises ArrowInvalid."""
    options = pa_json.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="error")
    body.seek(0)
    table = pa_json.read_json(body, pa_json.ReadOptions(block_size=LONGEST_ROW_BYTES), options)
    table.validate(full=True)  # the text is UTF-8
    place = SCHEMA.get_field_index("text")
    text: Any = compute.fill_null(table.column("text"), "")  # type: ignore[type-var]  # the stubs know no columns here
    texts = names_in(table.set_column(place, "text", text), "text")
    safe = pa.array([plain(each) for each in texts.names], pa.string())
    return table.set_column(place, "text", safe.take(pa.array(texts.codes, pa.int64())))


def _line_faults(file: str, body: bytes) -> Iterator[str]:
    """The faults of a file, line by line: the parser does not report the number of a line."""
    lines = ((number, line) for number, line in enumerate(body.splitlines(), start=1) if line.strip())
    for number, line in lines:
        if len(line) > LONGEST_ROW_BYTES:
            yield f"{file}:{number}: a row has at most {LONGEST_ROW_BYTES} bytes, got {len(line)}; shorten its text"
            continue
        try:
            fault = _table_fault(_parse(BytesIO(line)))
        except pa.ArrowInvalid as error:
            fault = f"is not a row: {error}"
        if fault:
            yield f"{file}:{number}: {fault}"


def _table_fault(table: pa.Table) -> str:
    """The fault of the first faulty row, "" without one."""
    missing = [name for name in SCHEMA.names if table.column(name).null_count]
    if missing:
        return f"a row has no {missing[0]}"
    signals: set[Any] = set(compute.unique(table.column("signal")).to_pylist())
    named = all(map(_is_workload, names_in(table, "workload").names)) and all(
        map(_is_stage, names_in(table, "stage").names)
    )
    value = table.column("value").to_numpy()
    if signals <= _KNOWN and named and (np.isfinite(value) & (value >= 0)).all():
        return ""
    return next(fault for row in table.to_pylist() if (fault := _row_fault(row)))


def _is_workload(name: str) -> bool:
    namespace, slash, own = name.partition("/")
    return name == EVERY or bool(namespace and slash and own and slug(namespace) == namespace and slug(own) == own)


def _is_stage(name: str) -> bool:
    return slug(name) == name


def _row_fault(row: dict[str, Any]) -> str:
    if row["signal"] not in _KNOWN:
        return f"signal must be one of {', '.join(sorted(_SIGNALS))}, got {row['signal']!r}"
    if not _is_workload(row["workload"]):
        return f'workload must be "namespace/name", each a Kubernetes label value, got {row["workload"]!r}'
    if not _is_stage(row["stage"]):
        return f"stage must be a Kubernetes label value, got {row['stage']!r}"
    if not (isfinite(row["value"]) and row["value"] >= 0):
        return f"{row['signal']} of {row['workload']} must be finite and not negative, got {row['value']:g}"
    return ""
