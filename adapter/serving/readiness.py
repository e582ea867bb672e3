"""Whether requests should be sent to this server."""

import threading
import time
from collections.abc import Callable

from adapter.apiserver.probes import PING, Checks

# A server without a snapshot waits this long for the first pull. Then it is ready without one: discovery must answer
# even while the pipeline is down, or namespaces cannot be deleted.
FIRST_SNAPSHOT_S = 10.0


class Readiness:
    """The checks of `/readyz`. patience_s: after that the server is ready without a snapshot too."""

    def __init__(
        self,
        has_snapshot: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
        patience_s: float = FIRST_SNAPSHOT_S,
    ) -> None:
        self._has_snapshot = has_snapshot
        self._clock = clock
        self._patience_ends_s = clock() + patience_s
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Not ready from now on; requests are still answered."""
        self._stopping.set()

    def checks(self) -> Checks:
        """Every check by its name, in the order of `?verbose`."""
        return {
            **PING,
            "first-snapshot": lambda: self._has_snapshot() or self._clock() >= self._patience_ends_s,
            "shutdown": lambda: not self._stopping.is_set(),
        }
