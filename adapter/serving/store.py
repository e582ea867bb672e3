"""The snapshot that is held: swapped whole, never changed, quick to look up."""

import gzip
import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import structlog

from adapter.core.decisions import Decision, StageSignals
from adapter.serving.snapshot import Entry, Snapshot, decode, encode

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing a selector may pick: a workload, or a stage of it. labels: what the selector sees."""

    labels: Mapping[str, str]
    entry: Entry
    stage: StageSignals | None = None

    @property
    def workload(self) -> str:
        """Its namespace/name."""
        return self.entry.decision.workload

    @property
    def decision(self) -> Decision:
        """Of the whole workload."""
        return self.entry.decision


@dataclass(frozen=True, slots=True)
class Namespace:
    """The workloads of one namespace by name, sorted."""

    workloads: Mapping[str, Candidate] = field(default_factory=dict)
    stages: Mapping[str, tuple[Candidate, ...]] = field(default_factory=dict)

    def candidates(self, names: tuple[str, ...] | None, *, stages: bool) -> list[Candidate]:
        """The workloads of these names (None: all), with their stages when asked for."""
        found = self.workloads.values() if names is None else (self.workloads[n] for n in names if n in self.workloads)
        if not stages:
            return list(found)
        return [picked for whole in found for picked in (whole, *self.stages[whole.labels["workload"]])]


@dataclass(frozen=True)  # no slots: the bytes are made once, by who publishes them, and never where they are not
class Held:
    """A snapshot with its index by namespace, and the bytes that are published."""

    snapshot: Snapshot
    namespaces: Mapping[str, Namespace]

    @cached_property
    def body(self) -> bytes:
        """The snapshot as JSON."""
        return encode(self.snapshot)

    @cached_property
    def compressed(self) -> bytes:
        """The JSON, gzipped. Level 1: it shrinks about tenfold already, and more would cost the tick."""
        return gzip.compress(self.body, compresslevel=1, mtime=0)

    @cached_property
    def etag(self) -> str:
        """A strong validator of the JSON."""
        return f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'


class SnapshotStore:
    """Holds the newest snapshot. Readers take `current` and keep it; writers swap it. clock: Unix seconds."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._ahead = False
        self._lock = threading.Lock()
        self._held: Held | None = None

    @property
    def current(self) -> Held | None:
        """The newest snapshot with its index, or None before the first."""
        return self._held

    def put(self, snapshot: Snapshot | bytes) -> bool:
        """Hold a snapshot (or the JSON of one). A tick of the future, or not newer than the held one, changes nothing.

        Returns whether it was taken. Raises ValueError when bytes are no snapshot of this version.
        """
        parsed = decode(snapshot) if isinstance(snapshot, bytes) else snapshot
        with self._lock:
            if self._is_ahead(parsed) or not self._is_newer(parsed):
                return False
            self._held = Held(parsed, _index(parsed.entries))
            return True

    def _is_ahead(self, snapshot: Snapshot) -> bool:
        """It would keep out every right one until its time has come."""
        now_s = self._clock()
        ahead = snapshot.is_ahead(now_s)
        if ahead and not self._ahead:
            _log.warning("a snapshot of the future is refused: compare the clocks", ahead_s=snapshot.at_s - now_s)
        self._ahead = ahead
        return ahead

    def _is_newer(self, snapshot: Snapshot) -> bool:
        held = None if self._held is None else self._held.snapshot
        # What is held may have been put by a clock that was wrong then: this one's.
        return held is None or held.is_ahead(self._clock()) or snapshot.at_s > held.at_s


def _index(entries: tuple[Entry, ...]) -> dict[str, Namespace]:
    workloads: dict[str, dict[str, Candidate]] = {}
    stages: dict[str, dict[str, tuple[Candidate, ...]]] = {}
    for entry in entries:
        namespace, _, name = entry.decision.workload.partition("/")
        workloads.setdefault(namespace, {})[name] = _whole(entry, name)
        stages.setdefault(namespace, {})[name] = _stages(entry, name)
    return {namespace: Namespace(found, stages[namespace]) for namespace, found in workloads.items()}


def _whole(entry: Entry, name: str) -> Candidate:
    # `stage` would be a label only stages have, whatever the configuration says.
    own = {key: value for key, value in entry.labels.items() if key != "stage"}
    return Candidate(dict(sorted((own | {"workload": name}).items())), entry)


def _stages(entry: Entry, name: str) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(dict(sorted((entry.labels | {"workload": name, "stage": stage.stage}).items())), entry, stage)
        for stage in entry.stages
    )
