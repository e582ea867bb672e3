"""Rows by column, as they travel from a source to the core."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Protocol

import pyarrow as pa

from adapter.sources import Row, Source

_TYPES: dict[str, pa.DataType] = {
    "at_s": pa.int64(),
    "workload": pa.string(),
    "stage": pa.string(),
    "signal": pa.string(),
    "value": pa.float64(),
    "text": pa.string(),
}
SCHEMA = pa.schema(_TYPES)


class ColumnSource(Source, Protocol):
    """A source that reads its system without an object for each value."""

    def table(self, start_s: int, end_s: int, step_s: int) -> pa.Table:
        """What `samples` returns, as a table of SCHEMA."""


def read(source: Source | ColumnSource, ticks: range) -> pa.Table:
    """The rows of the ticks, as a table of SCHEMA. Raises SourceError."""
    start_s, end_s = ticks[0], ticks[-1]
    if (table := getattr(source, "table", None)) is not None:
        found: pa.Table = table(start_s, end_s, ticks.step)
        return found
    return table_of(source.samples(start_s, end_s, ticks.step))


def table_of(rows: Sequence[Row]) -> pa.Table:
    """Rows as a table."""
    columns = [pa.array(list(map(attrgetter(field.name), rows)), field.type) for field in SCHEMA]
    return pa.table(columns, schema=SCHEMA)


def rows_of(table: pa.Table) -> list[Row]:
    """A table as rows, for what looks at them one by one."""
    columns: list[list[Any]] = [table.column(name).to_pylist() for name in SCHEMA.names]
    return [Row(*values) for values in zip(*columns, strict=True)]
