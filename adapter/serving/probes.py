"""Liveness and readiness, as the kubelet asks for them."""

import threading
import time
from collections.abc import Callable

# A server without a snapshot waits so long to become ready: time for the first pull. Then it is ready without one,
# for discovery has to answer even while the pipeline is down, or namespaces cannot be deleted.
FIRST_SNAPSHOT_S = 10.0


class Readiness:
    """Whether requests should be sent here. Once `stop` was called it is never ready again.

    patience_s: after so long it is ready without a snapshot too.
    """

    def __init__(
        self,
        has_snapshot: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
        patience_s: float = FIRST_SNAPSHOT_S,
    ) -> None:
        self._has_snapshot = has_snapshot
        self._clock = clock
        self._patience_ends = clock() + patience_s
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Not ready from now on; what was asked is still answered."""
        self._stopping.set()

    def checks(self) -> dict[str, bool]:
        """Every check with whether it passes."""
        patient = self._clock() < self._patience_ends
        return {
            "ping": True,
            "first-snapshot": self._has_snapshot() or not patient,
            "shutdown": not self._stopping.is_set(),
        }


def always_alive() -> dict[str, bool]:
    """Liveness of a server that only answers: it does."""
    return {"ping": True}


def probe(name: str, checks: dict[str, bool], *, verbose: bool) -> tuple[int, str]:
    """Code and text of a probe: `ok`, or a line a check when asked for or when one fails."""
    passed = all(checks.values())
    if passed and not verbose:
        return 200, "ok"
    lines = [f"[+]{check} ok" if good else f"[-]{check} failed: reason withheld" for check, good in checks.items()]
    return (200 if passed else 500), "\n".join([*lines, f"{name} check {'passed' if passed else 'failed'}\n"])
