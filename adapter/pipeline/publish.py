"""A batch of packed decisions -> the Snapshot of its newest tick."""

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

import structlog
from pyspark.sql import DataFrame

from adapter.config import Config
from adapter.core.decisions import Decision, Decisions, StageSignals
from adapter.core.report import NO_DECISIONS, rows, stage_rows
from adapter.core.rules import RuleBook, Rules
from adapter.pipeline.checkpoint import log_of
from adapter.pipeline.packing import unpack_decisions
from adapter.serving.snapshots.snapshot import Entry, Snapshot

Publish = Callable[[Snapshot], None]

BATCH_ENDS_WITHIN_S = 10.0  # most take a second or two; one that takes longer is cut, and comes again

log = structlog.get_logger(__name__)


class Publisher:
    """What `foreachBatch` calls. Numbers of the last tick are plain attributes, for /metrics.

    tick_at_s: the newest published tick. published_s: monotonic time of that publication.
    lateness_s: from the tick to its publication. shards_at_fault: shards whose fold could not take that batch's ticks.
    """

    def __init__(self, config: Config, rules: RuleBook, publish: Publish) -> None:
        self._snapshot = Labelled(config, rules)
        self._publish = publish
        self._decisions = NO_DECISIONS  # swapped whole, so that whoever asks for a record needs no lock
        self._spark_log = log_of(config)
        self._lock = threading.Lock()  # never held while Spark computes: that may hang
        self._open = True
        self._idle = threading.Event()
        self._idle.set()
        self.tick_at_s: int | None = None
        self.published_s: float | None = None
        self.lateness_s: float | None = None
        self.shards_at_fault = 0

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Publish a batch once; nothing, when closed in the meantime."""
        if not self._open:
            return
        self._idle.clear()
        try:
            # The only action on the batch: a second one would compute it again, a partial one fails the commit.
            shards = batch.toArrow().to_pylist()
            with self._lock:
                if self._open and shards:  # the first batch may be empty, and says nothing
                    self._take(shards)
        finally:
            self._idle.set()

    def close(self, batch_ends_within_s: float = BATCH_ENDS_WITHIN_S) -> None:
        """Publish nothing any more. A batch under way is waited for, so that it is not cut, but it may hang."""
        self._idle.wait(batch_ends_within_s)
        with self._lock:
            self._open = False

    def open(self) -> None:
        """Publish again."""
        with self._lock:
            self._open = True

    def record(self, workload: str) -> tuple[Decision, dict[str, float | None]] | None:
        """The newest decision of a workload and all it was made from, unknown as None; None where there is none."""
        decisions = self._decisions
        names = decisions.text.get("workload", ())
        place = bisect_left(names, workload)
        if place == len(names) or names[place] != workload:
            return None
        (decision,) = rows(_alone(decisions, place))
        numbers = {name: float(column[place]) for name, column in decisions.record.items()}
        return decision, {name: number if isfinite(number) else None for name, number in numbers.items()}

    def _take(self, shards: Sequence[Mapping[str, Any]]) -> None:
        at_s: int = max(shard["at"] for shard in shards)
        if self.tick_at_s is not None and at_s <= self.tick_at_s:
            return  # a batch that was computed but not committed comes again after a restart
        newest = [shard for shard in shards if shard["at"] == at_s]
        self._note_faults(sum(shard["faults"] > 0 for shard in newest))
        streams = [shard["decisions"] for shard in newest if shard["decisions"]]
        self._decisions = unpack_decisions(at_s, streams) if streams else NO_DECISIONS
        self._publish(self._snapshot.of(at_s, self._decisions))
        self.tick_at_s, self.published_s = at_s, time.monotonic()
        self.lateness_s = time.time() - at_s

    def _note_faults(self, shards: int) -> None:
        """Tell the first of a row of faulty ticks, and its end: Spark's workers log the cause in a file of its own."""
        if shards and not self.shards_at_fault:
            log.error("samples could not be folded", shards=shards, cause_in=self._spark_log)
        elif self.shards_at_fault and not shards:
            log.info("samples of all shards are folded again")
        self.shards_at_fault = shards


class Labelled:
    """Decisions -> a Snapshot with the labels of the configuration."""

    def __init__(self, config: Config, rules: RuleBook) -> None:
        every = [*rules.by_workload.values(), *rules.by_fleet] or [Rules()]
        self._tick_s = float(config.timing.tick_s)
        self._window_s = max(each.rate_window_s for each in every)
        self._rules = rules
        self._error_after_s = max(each.error_after_s for each in every)
        self._by_workload = {f"{each.namespace}/{each.name}": each.labels for each in config.workloads}
        self._by_fleet = [fleet.labels for fleet in config.fleets]

    def of(self, at_s: int, decisions: Decisions) -> Snapshot:
        """The snapshot of one tick from the decisions of its shards."""
        entries = self._entries(decisions) if decisions.text else ()
        return Snapshot(
            at_s=float(at_s),
            tick_s=self._tick_s,
            window_s=self._window_s,
            error_after_s=max((entry.error_after_s for entry in entries), default=self._error_after_s),
            entries=entries,
        )

    def _entries(self, decisions: Decisions) -> tuple[Entry, ...]:
        stages: dict[str, list[StageSignals]] = {}
        for stage in stage_rows(decisions):
            stages.setdefault(stage.workload, []).append(stage)
        return tuple(
            Entry(
                decision=decision,
                error_after_s=self._rules.of(decision.workload, _fleet(decision)).error_after_s,
                labels=self._labels(decision),
                stages=tuple(stages.get(decision.workload, ())),
            )
            for decision in rows(decisions)
        )

    def _labels(self, decision: Decision) -> dict[str, str]:
        labels = self._by_workload.get(decision.workload)
        # A fleet that the state still knows may be gone from the configuration.
        fleet = _fleet(decision)
        if labels is None and fleet is not None and fleet < len(self._by_fleet):
            labels = self._by_fleet[fleet]
        return (labels or {}) | {"workload": decision.workload.partition("/")[2]}


def _fleet(decision: Decision) -> int | None:
    return None if decision.fleet is None else int(decision.fleet)


def _alone(decisions: Decisions, place: int) -> Decisions:
    """The decision at one place, without its stages."""
    return replace(
        decisions,
        text={name: column[place : place + 1] for name, column in decisions.text.items()},
        numbers={name: column[place : place + 1] for name, column in decisions.numbers.items()},
        stages=(),
        stage_numbers={},
        record={},
    )
