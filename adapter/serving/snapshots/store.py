"""The store of the newest snapshot. Writers replace the snapshot; no thread modifies it."""

import gzip
import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import structlog

from adapter.serving.snapshots.snapshot import Snapshot, decode, encode
from adapter.serving.snapshots.workloads import Namespace, by_namespace

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)  # no slots: the publisher encodes the body once, other processes never do
class StoredSnapshot:
    """A stored snapshot with its index by namespace, and the bytes to publish."""

    snapshot: Snapshot
    namespaces: Mapping[str, Namespace] = field(compare=False)
    since_s: float = field(default=0.0, compare=False)  # when it was stored, by the monotonic clock

    @cached_property
    def body(self) -> bytes:
        """The snapshot as MessagePack."""
        return encode(self.snapshot)

    @cached_property
    def compressed(self) -> bytes:
        """The body, gzipped. A higher level than 1 would delay the tick."""
        return gzip.compress(self.body, compresslevel=1, mtime=0)

    @cached_property
    def etag(self) -> str:
        """A strong validator of the body."""
        return f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'


class SnapshotStore:
    """Stores the newest snapshot. A reader takes `current` once for all of its lookups.

    current: the newest snapshot with its index; None before the first one. fault: why the last snapshot that came was
    refused, or is suspicious; None if it was neither.
    """

    def __init__(self, clock: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self.current: StoredSnapshot | None = None
        self.fault: str | None = None

    def now_s(self) -> float:
        """The time for ages, in Unix seconds.

        It is never before the stored tick plus the time since it was stored, so that old numbers stay old if the clock
        is set back.
        """
        stored, now_s = self.current, self._clock()
        return now_s if stored is None else max(now_s, stored.snapshot.at_s + self._monotonic() - stored.since_s)

    def put(self, snapshot: Snapshot | bytes | memoryview) -> bool:
        """Store a snapshot, or the bytes of one, if its tick is newer than the stored one and not in the future.

        Returns whether it was stored. Logs a suspicious snapshot. Raises ValueError if the bytes are not a snapshot of
        this version.
        """
        parsed = snapshot if isinstance(snapshot, Snapshot) else decode(snapshot)
        with self._lock:
            now_s = self._clock()
            is_first = self.current is None
            is_stored = self._is_newer(parsed, now_s)
            if is_stored:
                self.current = StoredSnapshot(parsed, by_namespace(parsed.entries), self._monotonic())
            self._log_clock_fault(*self._clock_fault(parsed, now_s, is_first))
            return is_stored

    def _is_newer(self, snapshot: Snapshot, now_s: float) -> bool:
        # A tick in the future would block every later snapshot until its time has come.
        if snapshot.is_ahead(now_s):
            return False
        stored = None if self.current is None else self.current.snapshot
        # The stored snapshot may be ahead because this server's clock was wrong when it came.
        return stored is None or stored.is_ahead(now_s) or snapshot.at_s > stored.at_s

    def _clock_fault(self, snapshot: Snapshot, now_s: float, is_first: bool) -> tuple[str | None, float]:
        """Why a snapshot is suspicious, and by how many seconds; None if it is not."""
        ahead_s = snapshot.at_s - now_s
        if snapshot.is_ahead(now_s):
            return "a snapshot in the future is refused: compare the clocks of the pipeline and this server", ahead_s
        if self.current is not None and snapshot.at_s < self.current.snapshot.at_s:
            older_s = self.current.snapshot.at_s - snapshot.at_s
            return "a snapshot older than the current one is refused: do two pipelines publish here?", older_s
        # A pipeline that starts replays its history or its last batch, and its first tick replaces that.
        if -ahead_s > snapshot.error_after_s and not is_first:
            return "the newest snapshot is too old to serve: compare the clocks, or the pipeline is late", -ahead_s
        return None, 0.0

    def _log_clock_fault(self, fault: str | None, off_s: float) -> None:
        if fault is not None and fault != self.fault:
            _log.warning(fault, off_s=float(f"{off_s:.3g}"))  # also a small one
        self.fault = fault
