"""A thread that issues while this replica leads, and copies what is issued to files."""

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


class Part(Protocol):
    """Something that one replica makes and every replica uses."""

    def lead(self) -> None:
        """Make what is missing or due. Raises SourceError."""

    def stand_by(self) -> None:
        """Another replica leads."""

    def follow(self) -> None:
        """Use what there is. Raises SourceError."""


class Rounds:
    """Every `period_s`: take or renew the Lease, make what is due if this replica holds it, and use what there is.

    A part that fails does not keep the others from working.
    """

    def __init__(self, lease: Lease, parts: Sequence[Part], period_s: float) -> None:
        self._lease = lease
        self._period_s = period_s
        self._leads = False
        self._election = FailureLogger(_log, "cannot renew the Lease; not issuing", "renewing the Lease again")
        self._parts = [(part, *_failure_loggers(type(part).__name__)) for part in parts]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="issuer", daemon=True)

    def start(self) -> None:
        """Do one round now, and the others in the background."""
        self.once()
        self._thread.start()

    def stop(self) -> None:
        """Stop, and let another replica lead at once."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(DEADLINE_S + 1.0)
        with suppress(SourceError):  # the Lease expires by itself
            self._lease.release()

    def once(self) -> None:
        """One round."""
        self._leads = False
        self._election.attempt(self._elect)
        for part, leading, following in self._parts:
            leading.attempt(part.lead if self._leads else part.stand_by)
            following.attempt(part.follow)

    def _elect(self) -> None:
        self._leads = self._lease.hold()

    def _run(self) -> None:
        while not self._stop.wait(self._period_s):
            self.once()


def _failure_loggers(what: str) -> tuple[FailureLogger, FailureLogger]:
    """For making a part and for using it."""
    leading = FailureLogger(_log, "cannot be issued; retrying", "is issued again", what=what)
    return leading, FailureLogger(_log, "cannot be read; the last one stays", "is read again", what=what)
