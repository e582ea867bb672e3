"""An answered request -> counters, and a line in the log where it is worth one."""

import time
from collections.abc import Callable
from math import inf
from typing import Any, Literal

from adapter.serving.api.metrics_api import Answered
from adapter.serving.api.routes import ExternalRoute
from adapter.serving.telemetry import Telemetry

LONGEST_SHOWN = 256  # characters of what a caller chose: name, program, path
Wanted = Literal["all", "refusals", "none"]

SAID_AGAIN_S = 300.0

_UNCHANGED = 304
_MOST_TOLD = 4096


class Accounting:
    """Counts every answer, and logs those that are wanted. log: of structlog, and one that nobody waits for.

    wanted: `refusals` are all but 2xx and 304, the same one of a caller once in SAID_AGAIN_S. An HPA's reads come by
    the thousand a minute, and say nothing. clock: monotonic seconds.
    """

    def __init__(
        self,
        telemetry: Telemetry,
        log: Any,
        wanted: Wanted = "refusals",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._telemetry = telemetry
        self._log = log
        self._wanted = wanted
        self._clock = clock
        self._told_s: dict[int, float] = {}

    def answered(self, answered: Answered, took_s: float) -> None:
        """Account for one answer. took_s: how long its caller waited."""
        code = answered.response.code
        metric = "" if answered.route is None else answered.route.metric
        self._telemetry.answered(metric, code, took_s, _group(answered))
        is_refusal = not 200 <= code < 300 and code != _UNCHANGED
        if self._wanted == "all" or (is_refusal and self._wanted == "refusals" and self._is_news(answered)):
            tell = self._log.warning if code >= 500 else self._log.info
            tell("request", **_line(answered, took_s))

    def _is_news(self, answered: Answered) -> bool:
        """Whether the same was not refused to the same caller lately: an HPA without a number asks every 15 s."""
        caller = "" if answered.identity is None else answered.identity.user
        refused, now_s = hash((caller, answered.request.uri, answered.response.code)), self._clock()
        if now_s - self._told_s.get(refused, -inf) < SAID_AGAIN_S:
            return False
        if len(self._told_s) >= _MOST_TOLD:
            self._told_s.clear()
        self._told_s[refused] = now_s
        return True


def _group(answered: Answered) -> str:
    """What is asked for: `external`, `custom`, `discovery` or `other`."""
    if answered.route is not None:
        return "external" if isinstance(answered.route, ExternalRoute) else "custom"
    return "discovery" if answered.request.path.startswith(("/apis", "/openapi")) else "other"


def _line(answered: Answered, took_s: float) -> dict[str, object]:
    request, identity = answered.request, answered.identity
    line: dict[str, object] = {
        "caller": None if identity is None else shown(identity.user),
        "agent": shown(request.header("user-agent")),
        "method": shown(request.method),
        "uri": shown(request.uri),
        "code": answered.response.code,
        "took_ms": round(took_s * 1000, 1),
    }
    audit_id = request.header("audit-id")
    return line | {"audit_id": shown(audit_id)} if audit_id else line


def shown(text: str) -> str:
    """What a caller chose, as one line of a log can carry it: short, its control characters escaped."""
    cut = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
    return cut if cut.isprintable() else cut.encode("unicode_escape").decode("ascii")
