"""Rows of sources and decisions of shards <-> Arrow bytes, by column."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from adapter.core.decisions import Decisions
from adapter.core.rates import Mask
from adapter.core.samples import Array, IntArray, Names, SampleColumns, Samples, assemble_columns
from adapter.pipeline.shards import SHARD_KEYS, shard_of
from adapter.sources import EVERY, FAULT

TEXTS = ("workload", "stage", "signal", "text")
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


def pack(table: pa.Table, ticks: range, heartbeat: bool) -> Iterator[tuple[int, int, bytes]]:
    """(shard key, tick, Arrow stream) for every shard and tick that has rows; with heartbeat for all of them.

    table: of sources.columns.SCHEMA. A fault that speaks of EVERY workload reaches every shard. Rows outside the ticks
    and values that are not finite are left out: unseen is unknown.
    """
    if not len(table) and not heartbeat:
        return
    texts = {name: _coded(table, name) for name in TEXTS}
    value = table.column("value").to_numpy()
    places, everywhere = _places(table.column("at_s").to_numpy(), texts["workload"], np.isfinite(value), ticks)
    for number, (at, shard) in enumerate(product(ticks, SHARD_KEYS)):
        mine = np.concatenate([places[number], everywhere[number // len(SHARD_KEYS)]])
        if heartbeat or len(mine):
            columns = [_part(texts[name], mine) for name in TEXTS]
            yield shard, at, _stream(pa.table([*columns, pa.array(value[mine])], names=[*TEXTS, "value"]))


def unpack(chunks: Iterable[tuple[int, bytes]]) -> Iterator[Samples]:
    """(tick, Arrow stream) of one shard in any order -> its Samples, tick by tick, oldest first.

    `assemble_columns` does not depend on the order of rows, so the order in which partitions arrive changes nothing.
    """
    by_tick: dict[int, list[pa.Table]] = defaultdict(list)
    for at_s, stream in chunks:
        by_tick[at_s].append(pa.ipc.open_stream(stream).read_all())
    for at_s in sorted(by_tick):
        yield _samples(at_s, pa.concat_tables(by_tick[at_s]))


def pack_decisions(decisions: Decisions) -> bytes:
    """Three Arrow streams one behind the other: the workloads, their stages, and their records.

    Records are compressed: most of their columns are the same for all workloads.
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
    """The decisions of a tick, of all shards: sorted by workload, and by workload and stage."""

    workloads: pa.Table
    stages: pa.Table

    def numbers(self, table: pa.Table) -> dict[str, Array]:
        """The columns of numbers of one of the tables."""
        return {name: table.column(name).to_numpy() for name in table.column_names if _is_number(table, name)}


def unpack_decisions(streams: Iterable[bytes]) -> DecisionTables:
    """What pack_decisions made of one or more shards, without the records."""
    tables = [_tables(stream, 2) for stream in streams]
    whole, stages = (pa.concat_tables([each[place] for each in tables]) for place in range(2))
    by_name: Any = [("workload", "ascending")]
    return DecisionTables(whole.sort_by(by_name), stages.sort_by([*by_name, ("stage", "ascending")]))


def unpack_shard(at_s: float, stream: bytes) -> Decisions:
    """What pack_decisions made of one shard, with the records."""
    whole, stages, records = _tables(stream, 3)
    tables = DecisionTables(whole, stages)
    return Decisions(
        at_s=at_s,
        text={name: tuple(_list(whole, name)) for name in whole.column_names if not _is_number(whole, name)},
        numbers=tables.numbers(whole),
        stages=tuple(zip(_list(stages, "workload"), _list(stages, "stage"), strict=True)),
        stage_numbers=tables.numbers(stages),
        record={name: records.column(name).to_numpy() for name in records.column_names},
    )


def _samples(at_s: int, table: pa.Table) -> Samples:
    texts = {name: _coded(table, name) for name in TEXTS}
    workload, signal, text = texts["workload"], texts["signal"], texts["text"]
    is_fault = np.array([name == FAULT for name in signal.names], dtype=bool)[signal.codes]
    faults = {
        (workload.names[one], text.names[other])
        for one, other in zip(workload.codes[is_fault].tolist(), text.codes[is_fault].tolist(), strict=True)
    }
    # A number of the signal "fault" is not of a known signal, and is left out there.
    columns = SampleColumns(
        workload=workload, stage=texts["stage"], signal=signal, value=table.column("value").to_numpy()
    )
    return assemble_columns(at_s, columns, faults)


def _coded(table: pa.Table, name: str) -> Names:
    column: Any = table.column(name)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    column = column.unify_dictionaries().combine_chunks()
    return Names(column.dictionary.to_pylist(), column.indices.to_numpy().astype(np.int64))


def _part(column: Names, rows: IntArray) -> "pa.DictionaryArray[Any, Any]":
    """Some rows of a column, with the names that they need."""
    used, codes = np.unique(column.codes[rows], return_inverse=True)
    return pa.DictionaryArray.from_arrays(
        codes.astype(np.int32), pa.array([column.names[code] for code in used], pa.string())
    )


def _places(at_s: IntArray, workload: Names, finite: Mask, ticks: range) -> tuple[list[IntArray], list[IntArray]]:
    """Indices of rows: for each (tick, shard) its own, for each tick those that every shard gets."""
    count, last = len(SHARD_KEYS), len(SHARD_KEYS) * len(ticks)
    index = {key: number for number, key in enumerate(SHARD_KEYS)}
    of_name = [last if name == EVERY else index[shard_of(name)] for name in workload.names]
    shard = np.array(of_name, dtype=np.int64)[workload.codes]
    tick = (at_s - ticks.start) // ticks.step
    # Behind the places of shards come those of rows for every shard, one a tick, and last the rows to leave out.
    place = np.where(shard == last, last + tick, tick * count + shard)
    place[~(np.isin(at_s, list(ticks)) & finite)] = last + len(ticks)
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(last + len(ticks)), side="right")
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


def _floats(numbers: Mapping[str, Array]) -> "dict[str, pa.Array[Any]]":  # a type of the stubs only
    return {name: pa.array(column, pa.float64()) for name, column in numbers.items()}


def _list(table: pa.Table, name: str) -> list[Any]:
    return table.column(name).to_pylist()


def _is_number(table: pa.Table, name: str) -> bool:
    return pa.types.is_floating(table.schema.field(name).type)
