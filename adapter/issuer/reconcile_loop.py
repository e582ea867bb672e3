"""A thread that issues certificates and the token while this replica leads, and copies them to files."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import structlog

from adapter.apiserver.cluster_api import DEADLINE_S
from adapter.errors import SourceError
from adapter.failure_logger import FailureLogger
from adapter.issuer.lease import Lease

_log = structlog.get_logger(__name__)


class LeaderTask(Protocol):
    """A task of the leader, whose result every replica reads."""

    def reconcile(self) -> None:
        """Create what is missing and renew what is due. Raises SourceError."""

    def on_lost_lease(self) -> None:
        """Another replica leads."""

    def sync_files(self) -> None:
        """Copy the present objects to the files. Raises SourceError."""


class ReconcileLoop:
    """Every `period_s`: take or renew the Lease, reconcile if this replica holds it, and update the files.

    A task that fails does not keep the others from working.
    """

    def __init__(
        self, lease: Lease, tasks: Sequence[LeaderTask], period_s: float, stops_within_s: float = DEADLINE_S + 1.0
    ) -> None:
        self._lease = lease
        self._period_s = period_s
        self._stops_within_s = stops_within_s
        self._election = FailureLogger(_log, "cannot renew the Lease; not issuing", "renewing the Lease again")
        self._tasks = [(task, *_failure_loggers(type(task).__name__)) for task in tasks]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="issuer", daemon=True)

    def start(self) -> None:
        """Do one round now, and the others in the background."""
        self.run_once()
        self._thread.start()

    def stop(self) -> None:
        """Stop, and let another replica lead at once.

        If a round takes longer than `stops_within_s`, the Lease is not released, and expires.
        """
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(self._stops_within_s)
        if not self._thread.is_alive():
            with suppress(SourceError):  # the Lease expires by itself
                self._lease.release()

    def run_once(self) -> None:
        """Do one round. After stop(), no further task begins."""
        self._election.attempt(self._lease.hold)
        for task, leading, following in self._tasks:
            if self._stop.is_set():
                return
            leading.attempt(task.reconcile if self._lease.is_held else task.on_lost_lease)
            following.attempt(task.sync_files)

    def _run(self) -> None:
        while not self._stop.wait(self._period_s):
            self.run_once()


def _failure_loggers(what: str) -> tuple[FailureLogger, FailureLogger]:
    """For a task of the leader, and for reading its result."""
    leading = FailureLogger(_log, "cannot be issued; retrying", "is issued again", what=what)
    return leading, FailureLogger(_log, "cannot be read; the last one stays", "is read again", what=what)
