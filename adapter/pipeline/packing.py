"""Samples and decisions of a shard <-> Arrow bytes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from adapter.core.decisions import Decisions
from adapter.core.rates import Mask
from adapter.core.samples import EVERY, Array, IntArray, Names, Samples
from adapter.pipeline.shards import SHARD_KEYS, shard_of
from adapter.sources.sample_table import TEXTS, names_in, samples_of

_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


def pack(table: pa.Table, ticks: range, all_shards: bool) -> Iterator[tuple[int, int, bytes]]:
    """Split a table from `with_source`: (shard key, tick, Arrow stream) for each shard and tick with rows.

    all_shards: yield every shard and tick, so that missing samples are noticed. A fault of EVERY workload goes to every
    shard. Rows outside the ticks and values that are not finite are left out, so they are unknown.
    """
    if not len(table) and not all_shards:
        return
    texts = {name: names_in(table, name) for name in (*TEXTS, "source")}
    at_s, value, rank = (table.column(name).to_numpy() for name in ("at_s", "value", "rank"))
    own, shared = _row_indices(at_s, texts["workload"], np.isfinite(value), ticks)
    for number, (at, shard) in enumerate(product(ticks, SHARD_KEYS)):
        rows = np.concatenate([own[number], shared[number // len(SHARD_KEYS)]])
        if all_shards or len(rows):
            columns: dict[str, Any] = {name: _part(column, rows) for name, column in texts.items()}
            yield shard, at, _stream(pa.table(columns | {"value": value[rows], "rank": rank[rows]}))


def unpack(chunks: Iterable[tuple[int, bytes]]) -> Iterator[Samples]:
    """The samples of one shard from (tick, Arrow stream) in any order; oldest tick first.

    `samples_of` does not depend on the order of rows, so the order in which Spark's partitions arrive does not matter.
    """
    by_tick: dict[int, list[pa.Table]] = defaultdict(list)
    for at_s, stream in chunks:
        by_tick[at_s].append(pa.ipc.open_stream(stream).read_all())
    for at_s in sorted(by_tick):
        yield samples_of(at_s, pa.concat_tables(by_tick[at_s]))


def pack_decisions(decisions: Decisions) -> bytes:
    """Concatenate three Arrow streams: the workloads, their stages, and their records.

    The records are compressed, because most of their columns have the same value for all workloads.
    """
    stages = {
        "workload": pa.array([workload for workload, _ in decisions.stages], pa.string()),
        "stage": pa.array([stage for _, stage in decisions.stages], pa.string()),
    }
    whole = {name: pa.array(list(column), pa.string()) for name, column in decisions.text.items()}
    return b"".join(
        (
            _stream(pa.table(whole | _floats(decisions.numbers))),
            _stream(pa.table(stages | _floats(decisions.stage_numbers))),
            _stream(pa.table(_floats(decisions.record)), _COMPRESSED),
        )
    )


@dataclass(frozen=True, slots=True)
class DecisionTables:
    """The decisions of all shards in one tick: a table sorted by workload, and one sorted by workload and stage."""

    workloads: pa.Table
    stages: pa.Table


def number_columns(table: pa.Table) -> dict[str, Array]:
    """The columns of numbers of a table of decisions."""
    return {name: table.column(name).to_numpy() for name in table.column_names if _is_number(table, name)}


def unpack_decisions(streams: Iterable[bytes]) -> DecisionTables:
    """Join the results of pack_decisions of several shards, without the records."""
    tables = [_tables(stream, 2) for stream in streams]
    whole, stages = (pa.concat_tables([each[index] for each in tables]) for index in range(2))
    by_name: Any = [("workload", "ascending")]
    return DecisionTables(whole.sort_by(by_name), stages.sort_by([*by_name, ("stage", "ascending")]))


def unpack_shard(at_s: float, stream: bytes) -> Decisions:
    """Reverse pack_decisions for one shard, with the records."""
    whole, stages, records = _tables(stream, 3)
    return Decisions(
        at_s=at_s,
        text={name: tuple(_list(whole, name)) for name in whole.column_names if not _is_number(whole, name)},
        numbers=number_columns(whole),
        stages=tuple(zip(_list(stages, "workload"), _list(stages, "stage"), strict=True)),
        stage_numbers=number_columns(stages),
        record={name: records.column(name).to_numpy() for name in records.column_names},
    )


def _part(column: Names, rows: IntArray) -> "pa.DictionaryArray[Any, Any]":
    """Some rows of a column, with only the names that they use."""
    used, codes = np.unique(column.codes[rows], return_inverse=True)
    return pa.DictionaryArray.from_arrays(
        codes.astype(np.int32), pa.array([column.names[code] for code in used], pa.string())
    )


def _row_indices(at_s: IntArray, workload: Names, finite: Mask, ticks: range) -> tuple[list[IntArray], list[IntArray]]:
    """Row indices: the rows of each (tick, shard), and the rows of each tick that every shard gets."""
    count, last = len(SHARD_KEYS), len(SHARD_KEYS) * len(ticks)
    index = {key: number for number, key in enumerate(SHARD_KEYS)}
    of_name = [last if name == EVERY else index[shard_of(name)] for name in workload.names]
    shard = np.array(of_name, dtype=np.int64)[workload.codes]
    tick = (at_s - ticks.start) // ticks.step
    # After the groups of the shards: one group a tick for rows of every shard, then one for rows to leave out.
    group = np.where(shard == last, last + tick, tick * count + shard)
    group[~(np.isin(at_s, list(ticks)) & finite)] = last + len(ticks)
    order = np.argsort(group, kind="stable")
    ends = np.searchsorted(group[order], np.arange(last + len(ticks)), side="right")
    parts = np.split(order, ends)
    return parts[:last], parts[last:]


def _stream(table: pa.Table, options: pa.ipc.IpcWriteOptions | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _tables(streams: bytes, count: int) -> list[pa.Table]:
    source = pa.BufferReader(streams)
    return [pa.ipc.open_stream(source).read_all() for _ in range(count)]


def _floats(numbers: Mapping[str, Array]) -> "dict[str, pa.Array[Any]]":  # the stubs alone have this type
    return {name: pa.array(column, pa.float64()) for name, column in numbers.items()}


def _list(table: pa.Table, name: str) -> list[Any]:
    return table.column(name).to_pylist()


def _is_number(table: pa.Table, name: str) -> bool:
    return pa.types.is_floating(table.schema.field(name).type)
