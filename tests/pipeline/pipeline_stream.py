"""A stream on a shared session, and the plain fold to compare it with."""

import json
import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import recorded_source

from adapter.config import Config
from adapter.core.decisions import Decision
from adapter.core.engine import replay
from adapter.core.report import rows
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.pipeline.publish import Publisher
from adapter.pipeline.query import QueryPlan, start_query
from adapter.pipeline.session import Session
from adapter.serving.snapshots.snapshot import Snapshot
from adapter.sources.sample_table import samples_by_tick

OPENER = "recorded_source:open_source"
RULES = RuleBook(by_workload={}, by_fleet=(Rules(rate_window_s=5.0, stale_after_s=3.0, error_after_s=30.0),))
FIRST_TICK_WITHIN_S = 200.0  # on a busy machine
ANSWERS_WITHIN_S = 30.0  # a source that answers, on a busy machine
DEADLINES_S = {"hanging": 0.5, "late": 0.5}  # of the sources that miss their deadline


@dataclass
class Stream:
    """A stream's folder, its configuration, and what it published."""

    folder: Path
    plan: QueryPlan
    published: list[Snapshot] = field(default_factory=list)
    arrived: "queue.SimpleQueue[Snapshot]" = field(default_factory=queue.SimpleQueue)

    def publish(self, snapshot: Snapshot) -> None:
        self.published.append(snapshot)
        self.arrived.put(snapshot)

    @contextmanager
    def running(self, session: Session) -> Iterator[Callable[[], Snapshot]]:
        """Gives a function that waits for the next snapshot."""
        publisher = Publisher(self.plan.config, self.plan.rules, self.publish)
        query = start_query(session.spark, self.plan, str(self.folder / "stream"), publisher)
        try:
            yield lambda: self.arrived.get(timeout=FIRST_TICK_WITHIN_S)
        finally:
            publisher.close()
            query.stop()


def config_of(
    folder: Path, sources: tuple[str, ...] = ("recorded",), deadline_s: float = ANSWERS_WITHIN_S, **more: Any
) -> Config:
    """Sources of recorded_source by name, a tick of one second, one fleet on the first source."""
    calls = folder / "calls"
    calls.mkdir(exist_ok=True)
    settings = {"kind": "trace", "file": str(calls)}
    return Config.model_validate(
        {
            "sources": {name: settings | {"deadline_s": DEADLINES_S.get(name, deadline_s)} for name in sources},
            "workloads": [
                {"namespace": "shop", "name": f"of-{name}", "read": [{"source": name}]} for name in sources[1:]
            ],
            # A batch on a busy machine takes long; the next one reads all missed ticks.
            "timing": {"tick_s": 1, "history_s": 6, "most_ticks": 300},
            "pipeline": {"checkpoint": str(folder / "checkpoint"), "cores": 1, "memory": "512m"},
            **more,
        }
    )


def spans(folder: Path) -> list[tuple[int, int]]:
    """First and last tick of each call of the recorded source, in order."""
    calls = [json.loads(file.read_text()) for file in sorted((folder / "calls").iterdir())]
    return [(start_s, end_s) for start_s, end_s, _ in calls]


def plain_fold(first_s: int, last_s: int, rules: RuleBook = RULES) -> dict[int, list[Decision]]:
    """Tick -> decisions of the recorded samples, without Spark and without shards."""
    ticks = range(first_s, last_s + 1)
    samples = samples_by_tick(recorded_source.table_of(ticks), ticks)
    return {int(decided.at_s): rows(decided) for _, decided in replay(samples, rules)}


def decisions(snapshot: Snapshot) -> list[Decision]:
    return [entry.decision for entry in snapshot.entries]
