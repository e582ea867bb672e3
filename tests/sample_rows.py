"""Tables of samples as rows, which tests compare."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa

from adapter.sources.sample_table import SCHEMA


class Row(NamedTuple):
    at_s: int
    workload: str
    stage: str
    signal: str
    value: float
    text: str = ""


def rows_of(table: pa.Table) -> list[Row]:
    columns: list[list[Any]] = [table.column(name).to_pylist() for name in SCHEMA.names]
    return [Row(*cells) for cells in zip(*columns, strict=True)]


def table_of(rows: Iterable[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    return pa.table(dict(zip(SCHEMA.names, columns, strict=True)), schema=SCHEMA)


def lines_of(rows: Iterable[Row]) -> str:
    """The rows as the lines of a recorded file."""
    return "".join(json.dumps(row._asdict()) + "\n" for row in rows)
