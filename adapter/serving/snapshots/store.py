"""The snapshot that is held: swapped whole, never changed, quick to look up."""

import gzip
import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import structlog

from adapter.serving.snapshots.columns import entries_of
from adapter.serving.snapshots.snapshot import Snapshot, decode, encode
from adapter.serving.snapshots.workloads import Namespace, by_namespace

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)  # no slots: the bytes are made once, by who publishes them, and never where they are not
class Held:
    """A snapshot with its index by namespace, and the bytes that are published. since_s: when it came, monotonic."""

    snapshot: Snapshot
    namespaces: Mapping[str, Namespace] = field(compare=False)
    since_s: float = field(default=0.0, compare=False)

    @cached_property
    def body(self) -> bytes:
        """The snapshot as MessagePack."""
        return encode(self.snapshot)

    @cached_property
    def compressed(self) -> bytes:
        """The body, gzipped. Level 1: more would cost the tick."""
        return gzip.compress(self.body, compresslevel=1, mtime=0)

    @cached_property
    def etag(self) -> str:
        """A strong validator of the body."""
        return f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'


class SnapshotStore:
    """Holds the newest snapshot. Readers take `current` and keep it; writers swap it.

    clock: Unix seconds. monotonic: seconds of a clock that is never set.
    """

    def __init__(self, clock: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._monotonic = monotonic
        self._logged_doubt: str | None = None
        self._lock = threading.Lock()
        self._held: Held | None = None

    @property
    def current(self) -> Held | None:
        """The newest snapshot with its index, or None before the first."""
        return self._held

    def now_s(self) -> float:
        """Unix seconds by which the age of what is held is judged.

        It never lies before the held tick and the time it has been held for: a clock that is set back makes no old
        number young.
        """
        held, now_s = self._held, self._clock()
        return now_s if held is None else max(now_s, held.snapshot.at_s + self._monotonic() - held.since_s)

    def put(self, snapshot: Snapshot | bytes | memoryview) -> bool:
        """Hold a snapshot, or the bytes of one. A tick of the future, or not newer than the held one, changes nothing.

        Returns whether it was taken; logs when it begins to look wrong. Raises ValueError when the bytes are not a
        snapshot of this version.
        """
        parsed = snapshot if isinstance(snapshot, Snapshot) else decode(snapshot)
        with self._lock:
            now_s = self._clock()
            is_taken = self._is_newer(parsed, now_s)
            if is_taken:
                entries = entries_of(parsed.at_s, parsed.entries)
                self._held = Held(parsed, by_namespace(entries), self._monotonic())
            self._log_doubt(*self._doubt(parsed, now_s))
            return is_taken

    def _is_newer(self, snapshot: Snapshot, now_s: float) -> bool:
        # A tick of the future would keep out every right one until its time has come.
        if snapshot.is_ahead(now_s):
            return False
        held = None if self._held is None else self._held.snapshot
        # What is held may have been put by a clock that was wrong then: this one's.
        return held is None or held.is_ahead(now_s) or snapshot.at_s > held.at_s

    def _doubt(self, snapshot: Snapshot, now_s: float) -> tuple[str | None, float]:
        """What looks wrong about a snapshot that was taken or refused, and by how many seconds."""
        ahead_s = snapshot.at_s - now_s
        if snapshot.is_ahead(now_s):
            return "a snapshot of the future is refused: compare the clocks of the pipeline and this server", ahead_s
        if self._held is not None and snapshot.at_s < self._held.snapshot.at_s:
            older_s = self._held.snapshot.at_s - snapshot.at_s
            return "a snapshot older than the held one is refused: do two pipelines publish here?", older_s
        if -ahead_s > snapshot.error_after_s:
            return "the newest snapshot is too old to answer: compare the clocks, or the pipeline is behind", -ahead_s
        return None, 0.0

    def _log_doubt(self, doubt: str | None, off_s: float) -> None:
        if doubt is not None and doubt != self._logged_doubt:
            _log.warning(doubt, off_s=float(f"{off_s:.3g}"))  # however little it is
        self._logged_doubt = doubt
