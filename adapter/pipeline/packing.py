"""Rows of sources and decisions of shards <-> Arrow bytes, by column."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from adapter.core.decisions import Decisions
from adapter.core.samples import Array, Samples, assemble
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


def pack(rows: Sequence[Row], ticks: range, heartbeat: bool) -> Iterator[tuple[int, int, bytes]]:
    """(shard key, tick, Arrow stream) for every shard and tick that has rows; with heartbeat for all of them.

    A fault that speaks of EVERY workload reaches every shard. Rows outside the ticks and values that are not finite
    are left out: unseen is unknown.
    """
    kept = [row for row in rows if row.at_s in ticks and np.isfinite(row.value)]
    table = _table(kept)
    places = _places(kept)
    empty = np.empty(0, dtype=np.int64)
    for at_s in ticks:
        for shard in SHARD_KEYS:
            mine = places.get((shard, at_s), empty)
            if heartbeat or len(mine):
                yield shard, at_s, _stream(table.take(pa.array(mine)))


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
    """Two Arrow streams one behind the other: the workloads, then their stages."""
    stages = {
        "workload": pa.array([workload for workload, _ in decisions.stages], pa.string()),
        "stage": pa.array([stage for _, stage in decisions.stages], pa.string()),
    }
    whole = {name: pa.array(list(column), pa.string()) for name, column in decisions.text.items()}
    return _stream(pa.table(whole | _floats(decisions.numbers))) + _stream(
        pa.table(stages | _floats(decisions.stage_numbers))
    )


def unpack_decisions(at_s: float, streams: Iterable[bytes]) -> Decisions:
    """What pack_decisions made, of one or more shards of a tick as one, sorted by workload and stage."""
    pairs = [_pair(stream) for stream in streams]
    whole = pa.concat_tables([first for first, _ in pairs]).sort_by("workload")
    by_name: Any = [("workload", "ascending"), ("stage", "ascending")]
    stages = pa.concat_tables([second for _, second in pairs]).sort_by(by_name)
    return Decisions(
        at_s=at_s,
        text={name: tuple(_list(whole, name)) for name in whole.column_names if not _is_number(whole, name)},
        numbers={name: whole.column(name).to_numpy() for name in whole.column_names if _is_number(whole, name)},
        stages=tuple(zip(_list(stages, "workload"), _list(stages, "stage"), strict=True)),
        stage_numbers={
            name: stages.column(name).to_numpy() for name in stages.column_names if _is_number(stages, name)
        },
    )


def _samples(at_s: int, table: pa.Table) -> Samples:
    workloads, stages, signals, values, texts = (_list(table, name) for name in SAMPLES.names)
    faults = [
        (workload, text) for workload, signal, text in zip(workloads, signals, texts, strict=True) if signal == FAULT
    ]
    # Rows of the signal "fault" are unknown to `assemble` as numbers, and left out there.
    return assemble(at_s, zip(workloads, stages, signals, values, strict=True), faults)


def _table(rows: Sequence[Row]) -> pa.Table:
    return pa.table([pa.array([getattr(row, f.name) for row in rows], f.type) for f in SAMPLES], schema=SAMPLES)


def _places(rows: Sequence[Row]) -> dict[tuple[int, int], list[int]]:
    """(shard, tick) -> the indices of its rows."""
    shards: dict[str, tuple[int, ...]] = {
        workload: (shard_of(workload),) for workload in {row.workload for row in rows}
    }
    shards[EVERY] = SHARD_KEYS
    places: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        for shard in shards[row.workload]:
            places[shard, row.at_s].append(index)
    return places


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _pair(streams: bytes) -> tuple[pa.Table, pa.Table]:
    source = pa.BufferReader(streams)
    return pa.ipc.open_stream(source).read_all(), pa.ipc.open_stream(source).read_all()


def _floats(numbers: Mapping[str, Array]) -> "dict[str, pa.Array[Any]]":  # a type of the stubs only
    return {name: pa.array(column, pa.float64()) for name, column in numbers.items()}


def _list(table: pa.Table, name: str) -> list[Any]:
    return table.column(name).to_pylist()


def _is_number(table: pa.Table, name: str) -> bool:
    return pa.types.is_floating(table.schema.field(name).type)
