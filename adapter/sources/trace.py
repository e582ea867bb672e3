"""The embedded fleet, or recorded rows of any fleet, as a source with a past."""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pyarrow as pa
from pyarrow import compute
from pyarrow import json as pa_json

from adapter.config import TraceSource
from adapter.core.samples import OVERRIDES, STAGE_SIGNALS, WORKLOAD_SIGNALS
from adapter.errors import SourceError
from adapter.sources import EVERY, FAULT, Row
from adapter.sources.columns import SCHEMA, rows_of, table_of

_SIGNALS = (*STAGE_SIGNALS, *WORKLOAD_SIGNALS, FAULT)
_KNOWN = frozenset((*_SIGNALS, *OVERRIDES))
_decode_row = msgspec.json.Decoder(Row).decode
_encode = msgspec.json.Encoder().encode


class TraceReader:
    """Rows of a fleet's /samples (settings.url) or of a recorded file (settings.file).

    A recorded file holds one JSON object a line: at_s, workload, stage, signal, value and, with a fault, text. It is
    read once, at the first call. A tick sees the newest moment of each workload that is less than one step old.
    """

    def __init__(self, name: str, settings: TraceSource) -> None:
        self._name = name
        self._file = settings.file
        # trust_env: the fleet is on loopback, which a proxy of the environment does not reach.
        self._client = httpx.Client(base_url=settings.url or "", timeout=settings.deadline_s, trust_env=False)
        self._recorded: list[Row] | None = None

    def samples(self, start_s: int, end_s: int, step_s: int) -> list[Row]:
        """Rows of the ticks start_s, start_s + step_s, ... end_s. Raises SourceError."""
        return rows_of(self.table(start_s, end_s, step_s))

    def table(self, start_s: int, end_s: int, step_s: int) -> pa.Table:
        """The same as a table of columns.SCHEMA."""
        if self._file is None:
            return self._served(start_s, end_s, step_s)
        if self._recorded is None:
            self._recorded = sorted(read(self._name, self._file), key=_moment)
        first = bisect_right(self._recorded, start_s - step_s, key=_moment)
        last = bisect_right(self._recorded, end_s, key=_moment)
        return table_of(at_ticks(self._recorded[first:last], start_s, end_s, step_s))

    def close(self) -> None:
        """Release the connection."""
        self._client.close()

    def _served(self, start_s: int, end_s: int, step_s: int) -> pa.Table:
        query = {"start": start_s, "end": end_s, "step": step_s}
        body = BytesIO()  # `answer.content` would stay in memory until the next full garbage collection
        try:
            with self._client.stream("GET", "/samples", params=query) as answer:
                for chunk in answer.raise_for_status().iter_bytes():
                    body.write(chunk)
            table = _parse(body) if body.tell() else table_of(())
        except httpx.HTTPError as error:
            raise SourceError(self._name, f"the fleet does not answer: {error or type(error).__name__}") from error
        except pa.ArrowInvalid as error:
            raise SourceError(self._name, f"the fleet's answer is not one row a line: {error}") from error
        if (fault := _table_fault(table)) is not None:
            raise SourceError(self._name, f"the fleet's answer: {fault}")
        return table


def record(rows: Iterable[Row]) -> str:
    """Rows as the lines of a recorded file."""
    return "".join(_encode(row).decode() + "\n" for row in rows)


def read(name: str, file: str) -> list[Row]:
    """The rows of a recorded file, in its order; empty lines are skipped. Raises SourceError with the line's number."""
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(name, f"{file} cannot be read: {error}") from error
    return [_parsed(name, f"{file}:{number}", line) for number, line in enumerate(lines, start=1) if line.strip()]


def at_ticks(rows: Iterable[Row], start_s: int, end_s: int, step_s: int) -> list[Row]:
    """For each tick T and workload the rows of its newest moment in (T - step_s, T], dated T."""
    newest: dict[tuple[int, str], int] = {}
    groups: dict[tuple[int, str, int], list[Row]] = defaultdict(list)
    for row in rows:
        tick_s = start_s + math.ceil((row.at_s - start_s) / step_s) * step_s
        if start_s <= tick_s <= end_s:
            key = (tick_s, row.workload)
            newest[key] = max(newest.get(key, row.at_s), row.at_s)
            groups[*key, row.at_s].append(_dated(row, tick_s))
    return [row for key, at_s in newest.items() for row in groups[*key, at_s]]


def _moment(row: Row) -> int:
    return row.at_s


def _dated(row: Row, at_s: int) -> Row:
    return row if row.at_s == at_s else Row(at_s, row.workload, row.stage, row.signal, row.value, row.text)


def _parsed(name: str, where: str, line: str) -> Row:
    try:
        row = _decode_row(line)
    except msgspec.DecodeError as error:
        raise SourceError(name, f"{where} is not a row: {error}") from error
    if (fault := _fault(row)) is not None:
        raise SourceError(name, f"{where}: {fault}")
    return row


def _parse(body: BytesIO) -> pa.Table:
    """One JSON object a line as a table of SCHEMA; a row without text has "". Raises ArrowInvalid."""
    options = pa_json.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="error")
    body.seek(0)
    table = pa_json.read_json(body, parse_options=options)
    text: Any = compute.fill_null(table.column("text"), "")  # type: ignore[type-var]  # the stubs know no columns here
    return table.set_column(SCHEMA.get_field_index("text"), "text", text)


def _table_fault(table: pa.Table) -> str | None:
    """What is wrong with the first wrong row, as a sentence."""
    lacking = [name for name in SCHEMA.names if table.column(name).null_count]
    if lacking:
        return f"a row has no {lacking[0]}"
    signals = set(compute.unique(table.column("signal")).to_pylist()) <= _KNOWN
    names: list[Any] = compute.unique(table.column("workload")).to_pylist()
    workloads = all(name == EVERY or name.count("/") == 1 for name in names)
    least = compute.min(table.column("value")).as_py()
    if signals and workloads and (least is None or least >= 0):
        return None
    return next((fault for row in rows_of(table) if (fault := _fault(row)) is not None), None)


def _fault(row: Row) -> str | None:
    """What is wrong with a row of the right shape, as a sentence."""
    if row.signal not in _KNOWN:
        return f"signal must be one of {', '.join(sorted(_SIGNALS))}, got {row.signal!r}"
    if row.workload != EVERY and row.workload.count("/") != 1:
        return f'workload must be "namespace/name", got {row.workload!r}'
    if row.value < 0:
        return f"{row.signal} of {row.workload} must not be negative, got {row.value:g}"
    return None
