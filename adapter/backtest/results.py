"""A folder of results: one Parquet file per group of units, written atomically."""

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adapter.backtest.units import Unit
from adapter.core.samples import Array
from adapter.errors import AdapterError
from adapter.file_replacement import replace_file

Columns: TypeAlias = Mapping[str, NDArray[Any]]  # by name, one row per unit
PREFIX, SUFFIX = "units-", ".parquet"


class ResultsError(AdapterError):
    """The folder of results cannot be written or read; its files stay unchanged. The message states what to do."""


def encode(units: Sequence[Unit], numbers: Mapping[str, Array]) -> bytes:
    """The results of one group as a Parquet file. numbers: shape (units,), or (units, k) for k in a row."""
    columns: dict[str, object] = {
        "id": [unit.id for unit in units],
        "trace": [unit.trace for unit in units],
        "window": [unit.window.index for unit in units],
        "policy": [unit.policy for unit in units],
        "profile": [unit.profile.name for unit in units],
        "delay_s": [unit.profile.metric_delay_s for unit in units],
        "seed": [unit.seed for unit in units],
    }
    file = BytesIO()
    pq.write_table(pa.table(columns | {name: _column(values) for name, values in numbers.items()}), file)
    return file.getvalue()


def open_folder(folder: Path) -> Path:
    """Create the folder if necessary. Raises ResultsError if it is not writable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.write_bytes(b"written")
        probe.unlink()
    except OSError as error:
        raise ResultsError(f"{folder}: results cannot be written here ({error.strerror}); name another --out") from None
    return folder


def save(folder: Path, units: Sequence[Unit], content: bytes) -> None:
    """Write the encoded results of a group into the folder. Raises ResultsError and leaves no partial file."""
    name = hashlib.sha256(" ".join(unit.id for unit in units).encode()).hexdigest()[:16]
    path = folder / f"{PREFIX}{name}{SUFFIX}"
    try:
        replace_file(path, content)
    except OSError as error:
        raise ResultsError(
            f"{path}: {len(content)} bytes cannot be written ({error.strerror}); free some space and run the same "
            f"command again: it repeats the {len(units)} runs of this file and no others"
        ) from None


def finished_ids(folder: Path) -> frozenset[str]:
    """The ids of the units whose results are in the folder. Raises ResultsError."""
    return frozenset(str(value) for path in _files(folder) for value in _ids(path))


def missing(folder: Path, units: Iterable[Unit]) -> tuple[Unit, ...]:
    """The units whose results are not in the folder yet. Raises ResultsError."""
    here = finished_ids(folder)
    return tuple(unit for unit in units if unit.id not in here)


def load(folder: Path, units: Sequence[Unit], names: Sequence[str] | None = None) -> Columns:
    """The results of units, a row for each of them. Raises ResultsError.

    names: of the columns to read; None for all, where the units are of one kind.
    """
    wanted = {unit.id for unit in units}
    columns = None if names is None else ["id", *names]
    found = [_take_rows(_read(path, columns), wanted) for path in _files(folder) if not wanted.isdisjoint(_ids(path))]
    whole = pa.concat_tables(found)
    row = {name: place for place, name in enumerate(whole["id"].to_pylist())}
    whole = whole.take([row[unit.id] for unit in units])
    return {name: _numbers(whole[name]) for name in whole.column_names}


def _take_rows(table: pa.Table, wanted: set[str]) -> pa.Table:
    """The rows of the wanted ids; removes these ids from `wanted`."""
    places = [place for place, name in enumerate(table["id"].to_pylist()) if name in wanted]
    taken = table.take(pa.array(places, pa.int64()))
    wanted.difference_update(taken["id"].to_pylist())
    return taken


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{PREFIX}*{SUFFIX}"))


def _ids(path: Path) -> list[str]:
    return [str(value) for value in _read(path, ["id"])["id"].to_pylist()]


def _read(path: Path, columns: list[str] | None) -> pa.Table:
    try:
        return pq.read_table(path, columns=columns)
    except (OSError, pa.ArrowException) as error:
        cause = str(error).splitlines()[0]
        raise ResultsError(f"{path} is not a file of results ({cause}); remove it and repeat the command") from None


def _column(values: Array) -> "pa.Array[Any]":
    rows = np.ascontiguousarray(values)
    if rows.ndim == 1:
        return pa.array(rows)
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), int(np.prod(rows.shape[1:])))


def _numbers(column: "pa.ChunkedArray[Any]") -> NDArray[Any]:
    """Shape (rows,), or (rows, k) for a column of lists."""
    whole = column.combine_chunks()
    if isinstance(whole, pa.FixedSizeListArray):
        return np.asarray(whole.flatten().to_numpy(zero_copy_only=False)).reshape(len(whole), -1)
    return np.asarray(whole.to_numpy(zero_copy_only=False))
