"""Snapshots -> the decisions that are news: one line a change, nothing a tick."""

from adapter.core.decisions import Decision
from adapter.serving.snapshots.snapshot import Snapshot


class Changes:
    """Remembers what was said last of each workload."""

    def __init__(self) -> None:
        self._said: dict[str, tuple[object, ...]] = {}

    def of(self, snapshot: Snapshot) -> list[Decision]:
        """The decisions with another reason or number than before, or with a fault where there was none."""
        found = {entry.decision.workload: entry.decision for entry in snapshot.entries}
        now: dict[str, tuple[object, ...]] = {
            name: (made.reason, made.required_workers, bool(made.fault)) for name, made in found.items()
        }
        news = [made for name, made in found.items() if self._said.get(name) != now[name]]
        self._said = now
        return news
