"""The cost of each phase of a tick and of a scrape after it, in one process without Spark."""

import time
from collections.abc import Iterator
from itertools import pairwise

from adapter import config as configuration
from adapter.config import Config, TraceSource
from adapter.core.state import EMPTY
from adapter.pipeline.fold import by_shard, fold_ticks
from adapter.pipeline.packing import pack, pack_decisions, unpack
from adapter.pipeline.publish import SnapshotBuilder
from adapter.serving.snapshots.snapshot import encode
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.telemetry import Telemetry
from adapter.sources.precedence import with_source
from adapter.sources.trace import TraceReader
from bench.figures import Figure
from bench.loopback import serve
from bench.workloads import Workloads

PHASES = ("read", "pack", "fold", "report", "encode", "publish", "metrics")
START_S, TICK_S = 1_000_000, 15
WARM_UP_TICKS, TICKS = 4, 8
END_S = START_S + TICK_S * (WARM_UP_TICKS + TICKS)


def figures(count: int, config: Config) -> Iterator[Figure]:
    """Seconds of each phase of a tick of that many workloads."""
    workloads = Workloads(count)
    with serve(workloads.answer) as url:
        reader = TraceReader("fleet", TraceSource(kind="trace", url=url, deadline_s=60))
        found = list(_ticks(reader, config))[WARM_UP_TICKS:]
        reader.close()
    for phase, seconds in zip(PHASES, zip(*found, strict=True), strict=True):
        yield Figure(f"{count} workloads: {phase}", seconds, "s")


def _ticks(reader: TraceReader, config: Config) -> Iterator[list[float]]:
    rules = configuration.rule_book(config)
    books, builder, store = by_shard(rules), SnapshotBuilder(config, rules), SnapshotStore(lambda: END_S)
    telemetry = Telemetry(store, workloads=True)
    states = dict.fromkeys(books, EMPTY)
    for at_s in range(START_S, END_S, TICK_S):
        tick = range(at_s, at_s + 1, TICK_S)
        marks = [time.perf_counter()]
        table = with_source(reader.samples(at_s, at_s, TICK_S), config, "fleet")
        marks.append(time.perf_counter())
        packed = list(pack(table, tick, all_shards=True))
        marks.append(time.perf_counter())
        after = {key: fold_ticks(states[key], unpack([(at, stream)]), books[key]) for key, at, stream in packed}
        states = {key: each.state for key, each in after.items()}
        marks.append(time.perf_counter())
        streams = [pack_decisions(each.decisions) for each in after.values() if each.decisions is not None]
        marks.append(time.perf_counter())
        snapshot = builder.snapshot(at_s, streams)
        encode(snapshot)
        marks.append(time.perf_counter())
        store.put(snapshot)
        marks.append(time.perf_counter())
        telemetry.exposition()
        marks.append(time.perf_counter())
        yield [end - begin for begin, end in pairwise(marks)]
