"""Health checks -> what the kubelet and an API server read of them, and what Prometheus does."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Self
from urllib.parse import parse_qs

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.exposition import generate_latest

from adapter.serving.api.quoting import quoted
from adapter.serving.api.request import Request
from adapter.serving.api.status import SAFE_TEXT, TEXT_CONTENT, Answer

# A server without a snapshot waits so long to become ready: time for the first pull. Then it is ready without one,
# for discovery has to answer even while the pipeline is down, or namespaces cannot be deleted.
FIRST_SNAPSHOT_S = 10.0

Checks = Mapping[str, Callable[[], bool]]

NO_CHECKS: Checks = MappingProxyType({})


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

    def checks(self) -> Checks:
        """Every check by its name, in the order they are shown in."""
        return {
            "ping": _ping,
            "first-snapshot": lambda: self._has_snapshot() or self._clock() >= self._patience_ends,
            "shutdown": lambda: not self._stopping.is_set(),
        }


class Findings:
    """What the probes found, as `/metrics/slis` shows it; the names are Kubernetes' own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        text = "result of a health check when it was last asked for: 1 it passed, 0 it failed"
        self._last = Gauge("kubernetes_healthcheck", text, ["name", "type"], registry=self._registry)
        text = "results of health checks"
        labels = ["name", "type", "status"]
        self._total = Counter("kubernetes_healthchecks", text, labels, registry=self._registry)

    def found(self, probe: str, check: str, *, passed: bool) -> None:
        """Count one result."""
        self._last.labels(check, probe).set(int(passed))
        self._total.labels(check, probe, "success" if passed else "error").inc()

    def exposition(self) -> bytes:
        """The text of `/metrics/slis`, in Prometheus' format."""
        return generate_latest(self._registry)


@dataclass(frozen=True, slots=True)
class Probes:
    """`/healthz`, `/livez`, `/readyz` and a path for each of their checks. A check is called when it is asked for."""

    healthz: Checks
    livez: Checks
    readyz: Checks
    findings: Findings = field(default_factory=Findings)

    @classmethod
    def of(cls, readiness: Readiness, alive: Checks = NO_CHECKS) -> Self:
        """The probes of a server. alive: what liveness asks besides whether anybody answers."""
        living = {"ping": _ping, **alive}
        return cls(living, living, readiness.checks())

    def paths(self) -> Sequence[str]:
        """Every path that answers."""
        probes = ("healthz", "livez", "readyz")
        return [f"/{name}{tail}" for name in probes for tail in ("", *(f"/{check}" for check in self._checks(name)))]

    def answer(self, request: Request) -> Answer | None:
        """The result of a probe or of one check, whatever the method; None when the path is neither.

        `verbose`: a line a check. `exclude=<check>`, as often as wanted: the check is not called.
        """
        name, slash, check = request.path.removeprefix("/").partition("/")
        checks = self._checks(name)
        if not slash:
            return self._probe(name, checks, request) if checks else None
        return _single(check, passed=checks[check]()) if check in checks else None

    def _checks(self, name: str) -> Checks:
        return {"healthz": self.healthz, "livez": self.livez, "readyz": self.readyz}.get(name, NO_CHECKS)

    def _probe(self, name: str, checks: Checks, request: Request) -> Answer:
        excluded = _excluded(request)
        results = {check: None if check in excluded else self._result(name, check, checks) for check in checks}
        lines = [*map(_line, results, results.values()), *_warning(excluded - checks.keys())]
        if False in results.values():
            return _text(500, "\n".join([*lines, f"{name} check failed\n"]))
        if "verbose" not in request.query:
            return _text(200, "ok")
        return _text(200, "\n".join([*lines, f"{name} check passed\n"]))

    def _result(self, name: str, check: str, checks: Checks) -> bool:
        passed = checks[check]()
        self.findings.found(name, check, passed=passed)
        return passed


def _ping() -> bool:
    return True


def _excluded(request: Request) -> set[str]:
    """Every value of `exclude`; the request itself keeps only the first."""
    return set(parse_qs(request.uri.partition("?")[2], keep_blank_values=True).get("exclude", ()))


def _line(check: str, result: bool | None) -> str:
    if result is None:
        return f"[+]{check} excluded: ok"
    # Anybody may read a probe, so it does not say why.
    return f"[+]{check} ok" if result else f"[-]{check} failed: reason withheld"


def _warning(unknown: set[str]) -> Iterator[str]:
    if unknown:
        names = ",".join(map(quoted, sorted(unknown)))
        yield f"warn: some health checks cannot be excluded: no matches for {names}"


def _single(check: str, *, passed: bool) -> Answer:
    if passed:
        return Answer(200, body=b"ok", headers=TEXT_CONTENT)
    return _text(500, f"internal server error: {check} does not pass\n")


def _text(code: int, text: str) -> Answer:
    return Answer(code, body=text.encode(), headers=SAFE_TEXT)
