"""Counters and the access log."""

import time
from collections.abc import Callable
from math import inf
from typing import Any, Literal

from adapter.apiserver.app import RequestOutcome
from adapter.errors import printable
from adapter.serving.telemetry import Telemetry

LONGEST_SHOWN = 256  # characters of a client's text: user name, program, path
REPEAT_S = 300.0
Level = Literal["all", "refusals", "none"]

_UNCHANGED = 304
_MOST_LOGGED = 4096
_DISCOVERY_SLASHES = 4  # `/apis/<group>/<version>/`


class Accounting:
    """Counts every response, and logs those of a level. log: of structlog.

    level: `refusals` are all but 2xx and 304; the same one of a client is logged once in REPEAT_S. HPAs send
    thousands of reads a minute, which say nothing new. clock: monotonic seconds.
    """

    def __init__(
        self, telemetry: Telemetry, log: Any, level: Level = "refusals", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._telemetry = telemetry
        self._log = log
        self._level = level
        self._clock = clock
        self._logged_s: dict[int, float] = {}

    def record(self, outcome: RequestOutcome) -> None:
        """Account for one request."""
        code = outcome.code
        self._telemetry.count_response(outcome.metric, code, outcome.took_s, _group(outcome.request.path))
        is_refusal = not 200 <= code < 300 and code != _UNCHANGED
        if self._level == "all" or (is_refusal and self._level == "refusals" and self._is_first_in_period(outcome)):
            write = self._log.warning if code >= 500 else self._log.info
            write("request", **_line(outcome))

    def _is_first_in_period(self, outcome: RequestOutcome) -> bool:
        """Whether this was not logged lately: an HPA repeats a failed request every 15 s."""
        user = "" if outcome.identity is None else outcome.identity.user
        key, now_s = hash((user, outcome.request.uri, outcome.code)), self._clock()
        if now_s - self._logged_s.get(key, -inf) < REPEAT_S:
            return False
        if len(self._logged_s) >= _MOST_LOGGED:
            self._logged_s.clear()
        self._logged_s[key] = now_s
        return True


def _group(path: str) -> str:
    """`external`, `custom`, `discovery` or `other`."""
    for group in ("external", "custom"):
        if path.startswith(f"/apis/{group}.metrics.k8s.io/") and path.count("/") > _DISCOVERY_SLASHES:
            return group
    return "discovery" if path.startswith(("/apis", "/openapi")) else "other"


def _line(outcome: RequestOutcome) -> dict[str, object]:
    request, identity = outcome.request, outcome.identity
    line: dict[str, object] = {
        "caller": None if identity is None else log_text(identity.user),
        "agent": log_text(request.header(b"user-agent")),
        "method": log_text(request.method),
        "uri": log_text(request.uri),
        "code": outcome.code,
        "took_ms": round(outcome.took_s * 1000, 1),
    }
    audit_id = request.header(b"audit-id")
    return line | {"audit_id": log_text(audit_id)} if audit_id else line


def log_text(text: str) -> str:
    """Text of a client in a form that is safe in a log line: short, with control characters escaped."""
    return printable(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…")
