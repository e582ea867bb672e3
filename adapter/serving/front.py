"""The metrics API before a Flask application: what is in memory is answered at once, in the event loop; what has to be
waited for goes to a thread of Flask's, and not for ever."""

import asyncio
from collections.abc import Mapping, MutableMapping
from typing import Any

from adapter.serving.api import parameters
from adapter.serving.api.metrics_api import MetricsApi
from adapter.serving.api.request import MustWait, Request
from adapter.serving.api.status import Refusal
from adapter.serving.sockets.at_once import Reply
from adapter.serving.sockets.bridge import Asgi, Receive, Scope, Send

# How long an answer may take that has no `timeout` of its own: everything that is waited for has a shorter deadline.
DEADLINE_S = 10.0
# Never for a thread, however many are busy: discovery and probes keep the API available.
AT_ONCE = ("/apis", "/healthz", "/livez", "/readyz", "/version", "/openapi")

_TIMED_OUT = (
    b'{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout",'
    b'"reason":"Timeout","details":{},"code":504}\n'
)
_TIMED_OUT_HEADERS = ((b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-cache, private"))


def request_of(scope: Mapping[str, Any], *, patient: bool) -> Request:
    """The request that an ASGI scope describes."""
    query = scope["query_string"]
    target = scope.get("raw_path") or scope["path"].encode()
    uri = (target + b"?" + query if query else target).decode("utf-8", "replace")
    headers = [(name.decode("latin-1"), value.strip().decode("latin-1")) for name, value in scope["headers"]]
    return Request.of(scope["method"], uri, headers, scope.get("peer_certificate"), patient=patient)


class Front:
    """An ASGI application. behind: the Flask one, in which the same API answers patiently."""

    def __init__(self, api: MetricsApi, behind: Asgi, deadline_s: float = DEADLINE_S) -> None:
        self._api = api
        self._behind = behind
        self._deadline_s = deadline_s

    def at_once(self, scope: Mapping[str, Any]) -> Reply | None:
        """The answer from memory; None where there is none, or where it has to be waited for."""
        if not scope["path"].startswith(AT_ONCE):
            return None
        try:
            response = self._api.respond(request_of(scope, patient=False))
        except MustWait:
            return None
        return Reply(response.code, response.headers, response.body)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The answer from a thread, or 504 when it takes too long."""
        if scope["type"] != "http":
            await self._behind(scope, receive, send)
            return
        started = False

        async def sending(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await asyncio.wait_for(self._behind(scope, receive, sending), self._allowed_s(scope))
        except TimeoutError:
            if started:
                raise
            await send({"type": "http.response.start", "status": 504, "headers": _TIMED_OUT_HEADERS})
            await send({"type": "http.response.body", "body": _TIMED_OUT})

    def _allowed_s(self, scope: Scope) -> float:
        try:
            asked_s = parameters.check_timeout(request_of(scope, patient=True).query)
        except Refusal:
            asked_s = None  # it is answered so at once
        return self._deadline_s if asked_s is None else min(asked_s, self._deadline_s)
