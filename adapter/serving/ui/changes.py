"""Snapshots -> the decisions that are news: one line a change, nothing a tick."""

from adapter.core.decisions import Decision
from adapter.serving.snapshots.columns import entries_of
from adapter.serving.snapshots.snapshot import Snapshot


class Changes:
    """Remembers what was said last of each workload."""

    def __init__(self) -> None:
        self._said: dict[str, tuple[object, ...]] = {}

    def of(self, snapshot: Snapshot) -> list[Decision]:
        """The decisions with another reason or number than before, or with a fault where there was none."""
        entries = entries_of(snapshot.at_s, snapshot.entries)
        columns = entries.text("reason"), map(str, entries.number("required_workers")), map(bool, entries.text("fault"))
        now: dict[str, tuple[object, ...]] = dict(zip(entries.workloads, zip(*columns, strict=True), strict=True))
        news = [entries.decision(row) for row, name in enumerate(now) if self._said.get(name) != now[name]]
        self._said = now
        return news
