"""Rows of sources and decisions of shards <-> Arrow bytes, by column."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from adapter.core.decisions import Decisions
from adapter.core.samples import Array, IntArray, Samples, assemble
from adapter.pipeline.shards import SHARD_KEYS, shard_of
from adapter.sources import EVERY, FAULT, Row

_TYPES: dict[str, pa.DataType] = {
    "workload": pa.string(),
    "stage": pa.string(),
    "signal": pa.string(),
    "value": pa.float64(),
    "text": pa.string(),
}
SAMPLES = pa.schema(_TYPES)
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


def pack(rows: Sequence[Row], ticks: range, heartbeat: bool) -> Iterator[tuple[int, int, bytes]]:
    """(shard key, tick, Arrow stream) for every shard and tick that has rows; with heartbeat for all of them.

    A fault that speaks of EVERY workload reaches every shard. Rows outside the ticks and values that are not finite
    are left out: unseen is unknown.
    """
    if not rows and not heartbeat:
        return
    at_s, table = _columns(rows)
    places, everywhere = _places(at_s, table, ticks)
    for number, (at, shard) in enumerate(product(ticks, SHARD_KEYS)):
        mine = np.concatenate([places[number], everywhere[number // len(SHARD_KEYS)]])
        if heartbeat or len(mine):
            yield shard, at, _stream(table.take(pa.array(mine)))


def unpack(chunks: Iterable[tuple[int, bytes]]) -> Iterator[Samples]:
    """(tick, Arrow stream) of one shard in any order -> its Samples, tick by tick, oldest first.

    `assemble` does not depend on the order of rows, so the order in which partitions arrive cannot change a bit.
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
    workloads, stages, signals, values, texts = (_list(table, name) for name in SAMPLES.names)
    faults = [(name, text) for name, signal, text in zip(workloads, signals, texts, strict=True) if signal == FAULT]
    # To `assemble` a number of the signal "fault" is of no known signal, and left out there.
    return assemble(at_s, zip(workloads, stages, signals, values, strict=True), faults)


def _columns(rows: Sequence[Row]) -> tuple[IntArray, pa.Table]:
    """The ticks of the rows, and their other columns."""
    at_s = np.fromiter(map(attrgetter("at_s"), rows), np.int64, len(rows))
    columns = [pa.array(list(map(attrgetter(name), rows)), kind) for name, kind in _TYPES.items()]
    return at_s, pa.table(columns, schema=SAMPLES)


def _places(at_s: IntArray, table: pa.Table, ticks: range) -> tuple[list[IntArray], list[IntArray]]:
    """Indices of rows: for each (tick, shard) its own, for each tick those that every shard gets."""
    count, last = len(SHARD_KEYS), len(SHARD_KEYS) * len(ticks)
    workloads = table.column("workload").combine_chunks().dictionary_encode()
    names: list[Any] = workloads.dictionary.to_pylist()
    of_name = [last if name == EVERY else SHARD_KEYS.index(shard_of(name)) for name in names]
    shard = np.array(of_name, dtype=np.int64)[workloads.indices.to_numpy()]
    tick = (at_s - ticks.start) // ticks.step
    # Behind the places of shards come those of rows for every shard, one a tick, and last the rows to leave out.
    place = np.where(shard == last, last + tick, tick * count + shard)
    kept = np.isin(at_s, list(ticks)) & np.isfinite(table.column("value").to_numpy())
    place[~kept] = last + len(ticks)
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
