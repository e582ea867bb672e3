"""`/healthz`, `/livez`, `/readyz`: the health checks that the kubelet and an API server read."""

from collections.abc import Callable, Mapping
from functools import partial

from adapter.apiserver.answer import Answer, Routes, text
from adapter.apiserver.request import Request
from adapter.apiserver.status import no_such_resource

# Name -> whether the check passes at the moment.
Checks = Mapping[str, Callable[[], bool]]

PATHS = ("/healthz", "/livez", "/readyz")
PING: Checks = {"ping": lambda: True}


def routes(*, alive: Checks, ready: Checks) -> Routes:
    """A route for each probe, and for each of its checks, such as `/livez/ping`."""
    found = {}
    for path, checks in zip(PATHS, (alive, alive, ready), strict=True):
        found[path] = partial(_probe, path.removeprefix("/"), checks)
        found[f"{path}/<path:check>"] = partial(_single, checks)
    return found


def _probe(name: str, checks: Checks, request: Request) -> Answer:
    """`?verbose` lists every check. Anybody may read a probe, so it does not say why a check fails."""
    results = {check: passes() for check, passes in checks.items()}
    lines = [f"[+]{check} ok" if passed else f"[-]{check} failed: reason withheld" for check, passed in results.items()]
    if not all(results.values()):
        return text("\n".join([*lines, f"{name} check failed\n"]), 500)
    return text("\n".join([*lines, f"{name} check passed\n"]) if "verbose" in request.query else "ok")


def _single(checks: Checks, request: Request, check: str) -> Answer:
    if check not in checks:
        raise no_such_resource()
    return text("ok") if checks[check]() else text(f"internal server error: {check} does not pass\n", 500)
