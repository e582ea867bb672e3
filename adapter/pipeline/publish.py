"""A batch of packed decisions -> the snapshot of its newest tick."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isfinite, isnan
from typing import Any

import numpy as np
import pyarrow as pa
import structlog
from pyspark.sql import DataFrame

from adapter.config import Config
from adapter.core.decisions import TEXTS, Decision, Decisions
from adapter.core.report import NO_DECISIONS, rows
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.core.samples import Array
from adapter.pipeline.checkpoint import log_of
from adapter.pipeline.packing import DecisionTables, number_columns, unpack_decisions, unpack_shard
from adapter.pipeline.shards import shard_of
from adapter.serving.snapshots.columns import Columns, Entries, TextColumn, entries_of, label_sets_of
from adapter.serving.snapshots.snapshot import Snapshot

Publish = Callable[[Snapshot], None]

BATCH_ENDS_WITHIN_S = 10.0  # most take one or two seconds; a longer one is interrupted and repeated

log = structlog.get_logger(__name__)


class ClosedError(Exception):
    """A batch began or ended after the publisher was closed."""


class Publisher:
    """Publishes each batch of the streaming query. Its attributes are metrics of the last tick."""

    def __init__(self, config: Config, rules: RuleBook, publish: Publish) -> None:
        self._builder = SnapshotBuilder(config, rules)
        self._publish = publish
        # The newest tick and the packed decisions of each shard: one tuple, so that readers need no lock.
        self._packed: tuple[int, dict[int, bytes]] = 0, {}
        self._spark_log = log_of(config)
        self._lock = threading.Lock()  # not held while Spark computes, which may hang
        self._open = True
        self._idle = threading.Event()
        self._idle.set()
        self.has_batch = False  # since open()
        self.tick_at_s: int | None = None
        self.published_s: float | None = None  # monotonic time of its publication
        self.lateness_s: float | None = None  # from the tick to its publication
        self.failed_shards = 0  # shards with a tick that raised an error

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Publish a batch. Spark calls this by foreachBatch. Raises ClosedError, so that Spark repeats the batch."""
        self._require_open()
        self.has_batch = True
        self._idle.clear()
        try:
            # The only action on the batch: a second one would repeat the computation, a partial one fail the commit.
            # Without one, Spark (4.3) commits the batch without its state, and no later start can continue the stream.
            shards = batch.toArrow().to_pylist()
            with self._lock:
                self._require_open()
                self._take(shards)
        finally:
            self._idle.set()

    def _require_open(self) -> None:
        if not self._open:
            raise ClosedError("the publisher is closed; the batch is repeated")

    def close(self, batch_ends_within_s: float = BATCH_ENDS_WITHIN_S) -> None:
        """Stop publishing, after a batch that is in progress, unless it hangs."""
        self._idle.wait(batch_ends_within_s)
        with self._lock:
            self._open = False

    def open(self) -> None:
        """Publish again."""
        with self._lock:
            self._open, self.has_batch = True, False

    def forget_tick(self) -> None:
        """Publish ticks before the newest one again: a new stream may begin before the end of the last one."""
        self.tick_at_s = None

    def record(self, workload: str) -> tuple[Decision, dict[str, float | None]] | None:
        """The newest decision of a workload and its inputs, None if unknown; None without a decision."""
        at_s, streams = self._packed
        stream = streams.get(shard_of(workload))
        decisions = NO_DECISIONS if stream is None else unpack_shard(at_s, stream)
        names = decisions.text.get("workload", ())
        if workload not in names:
            return None
        place = names.index(workload)
        (decision,) = rows(_row(decisions, place))
        numbers = {name: float(column[place]) for name, column in decisions.record.items()}
        return decision, {name: number if isfinite(number) else None for name, number in numbers.items()}

    def _take(self, shards: Sequence[Mapping[str, Any]]) -> None:
        at_s: int = max(shard["at"] for shard in shards)
        if self.tick_at_s is not None and at_s <= self.tick_at_s:
            return  # after a restart, Spark repeats a batch that was not committed
        newest = [shard for shard in shards if shard["at"] == at_s]
        self._note_faults(sum(shard["faults"] > 0 for shard in newest))
        streams = {shard["shard"]: shard["decisions"] for shard in newest if shard["decisions"]}
        self._packed = at_s, streams
        self._publish(self._builder.snapshot(at_s, list(streams.values())))
        self.tick_at_s, self.published_s = at_s, time.monotonic()
        self.lateness_s = time.time() - at_s

    def _note_faults(self, shards: int) -> None:
        """Log the first of consecutive faulty ticks, and their end. Spark's workers log the cause to their own file."""
        if shards and not self.failed_shards:
            log.error("the samples of some shards could not be used", shards=shards, cause_in=self._spark_log)
        elif self.failed_shards and not shards:
            log.info("samples of all shards are folded again")
        self.failed_shards = shards


class SnapshotBuilder:
    """Builds snapshots from packed decisions, with the labels and age limits of the configuration."""

    def __init__(self, config: Config, rules: RuleBook) -> None:
        every = tuple(rules.every()) or (Rules(),)
        self._tick_s = float(config.timing.tick_s)
        self._rules = rules
        self._error_after_s = max(each.error_after_s for each in every)
        own, of_fleets = [each.labels for each in config.workloads], [fleet.labels for fleet in config.fleets]
        self._label_sets, codes = label_sets_of([{}, *own, *of_fleets])
        names = [each.id for each in config.workloads]
        self._code = dict(zip(names, codes[1:], strict=False))
        self._fleet_codes = codes[1 + len(names) :]
        self._cache_key: tuple[list[str], bytes] = [], b""
        self._label_codes = self._limits = self._windows = memoryview(b"")

    def snapshot(self, at_s: int, streams: Sequence[bytes]) -> Snapshot:
        """The snapshot of one tick from the packed decisions of its shards."""
        columns = self._columns(unpack_decisions(streams)) if streams else None
        limits = None if columns is None else np.frombuffer(columns.error_after_s)
        return Snapshot(
            at_s=float(at_s),
            tick_s=self._tick_s,
            error_after_s=self._error_after_s if limits is None or not len(limits) else float(limits.max()),
            entries=entries_of(at_s, ()) if columns is None else Entries(float(at_s), columns),
        )

    def _columns(self, tables: DecisionTables) -> Columns:
        numbers = number_columns(tables.workloads)
        workloads: list[Any] = tables.workloads.column("workload").to_pylist()
        row = {workload: number for number, workload in enumerate(workloads)} if len(tables.stages) else {}
        of_stage = [row[workload] for workload in tables.stages.column("workload").to_pylist()]
        label_codes, error_after_s, window_s = self._cached_columns(workloads, numbers["fleet"])
        return Columns(
            workloads=workloads,
            texts={name: _names(tables.workloads, name) for name in TEXTS},
            numbers=_known_columns(numbers),
            error_after_s=error_after_s,
            window_s=window_s,
            label_sets=self._label_sets,
            label_codes=label_codes,
            stage_workloads=memoryview(np.array(of_stage, dtype=np.uint32).tobytes()),
            stages=_names(tables.stages, "stage"),
            stage_numbers=_known_columns(number_columns(tables.stages)),
        )

    def _cached_columns(self, workloads: list[str], fleet: Array) -> tuple[memoryview, memoryview, memoryview]:
        """Label sets, age limits and windows, cached until a workload is added, removed or moves to another fleet."""
        if self._cache_key != (workloads, fleet.tobytes()):
            fleets = [None if isnan(index) else int(index) for index in fleet.tolist()]
            codes = [self._label_code(*each) for each in zip(workloads, fleets, strict=True)]
            rules = [self._rules.of(*each) for each in zip(workloads, fleets, strict=True)]
            self._label_codes = memoryview(np.array(codes, np.uint32).tobytes())
            self._limits = memoryview(np.array([each.error_after_s for each in rules], np.float64).tobytes())
            self._windows = memoryview(np.array([each.rate_window_s for each in rules], np.float64).tobytes())
            self._cache_key = workloads, fleet.tobytes()
        return self._label_codes, self._limits, self._windows

    def _label_code(self, workload: str, fleet: int | None) -> int:
        if workload in self._code:
            return self._code[workload]
        # A fleet in the state may have been removed from the configuration.
        return self._fleet_codes[fleet] if fleet is not None and fleet < len(self._fleet_codes) else 0


def _names(table: pa.Table, name: str) -> TextColumn:
    column = table.column(name).combine_chunks().dictionary_encode()
    names: list[Any] = column.dictionary.to_pylist()
    return TextColumn(names, memoryview(column.indices.to_numpy().astype(np.uint32).tobytes()))


def _known_columns(numbers: Mapping[str, Array]) -> dict[str, memoryview]:
    return {name: memoryview(column.tobytes()) for name, column in numbers.items() if not np.isnan(column).all()}


def _row(decisions: Decisions, place: int) -> Decisions:
    """One row of the decisions, without its stages."""
    return replace(
        decisions,
        text={name: column[place : place + 1] for name, column in decisions.text.items()},
        numbers={name: column[place : place + 1] for name, column in decisions.numbers.items()},
        stages=(),
        stage_numbers={},
        record={},
    )
