"""The metrics API before a Flask application: what is in memory is answered at once, in the event loop; what has to be
waited for goes to a thread of Flask's, and not for ever."""

import asyncio
from collections.abc import Mapping, MutableMapping
from time import perf_counter
from typing import Any

from adapter.serving.api import parameters, rendering
from adapter.serving.api.metrics_api import Answered, MetricsApi
from adapter.serving.api.rendering import Response
from adapter.serving.api.request import MustWait, Request
from adapter.serving.api.routes import route
from adapter.serving.api.status import Refusal, timed_out
from adapter.serving.sockets.bridge import Asgi, Receive, Scope, Send, say

# How long an answer may take that has no `timeout` of its own: everything that is waited for has a shorter deadline.
DEADLINE_S = 10.0
# Where the paths begin that are tried at once; all others go to the application behind. What an API server asks to see
# whether this one is available never needs more, however many threads are busy. What is asked in YAML may, and so may
# metrics, and whoever has to be reviewed first.
AT_ONCE = ("/apis", "/healthz", "/livez", "/readyz", "/version", "/openapi")

_ANSWERED = "answered"  # of the scope: what the application behind leaves there of its answer


def request_of(scope: Mapping[str, Any], *, patient: bool) -> Request:
    """The request that an ASGI scope describes."""
    query = scope["query_string"]
    target = scope.get("raw_path") or scope["path"].encode()
    uri = (target + b"?" + query if query else target).decode("utf-8", "replace")
    headers = [(name.decode("latin-1"), value.strip().decode("latin-1")) for name, value in scope["headers"]]
    return Request.of(scope["method"], uri, headers, scope.get("peer_certificate"), patient=patient)


def leave(scope: Scope, answered: Answered) -> None:
    """For the application behind: this is what it answers. It is accounted for where it is sent."""
    scope[_ANSWERED] = answered


class Front:
    """An ASGI application. behind: the Flask one, in which the same API answers patiently.

    Every answer of the API is accounted for once, when it is sent: an answer that comes after its 504 never is. A
    caller who has gone meanwhile changes nothing: what he did not wait for counts as it is, with the time it took.
    """

    def __init__(self, api: MetricsApi, behind: Asgi, deadline_s: float = DEADLINE_S) -> None:
        self._api = api
        self._behind = behind
        self._deadline_s = deadline_s

    def at_once(self, scope: Mapping[str, Any]) -> Response | None:
        """The answer from memory; None where there is none, or where it has to be waited for."""
        if not scope["path"].startswith(AT_ONCE):
            return None
        try:
            return self._api.respond(request_of(scope, patient=False))
        except MustWait:
            return None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The answer from a thread, or 504 when it takes too long."""
        if scope["type"] == "http":
            await self._in_time(scope, receive, send)
        else:
            await self._behind(scope, receive, send)

    async def _in_time(self, scope: Scope, receive: Receive, send: Send) -> None:
        began_s, request, has_begun = perf_counter(), request_of(scope, patient=True), False

        async def sending(message: MutableMapping[str, Any]) -> None:
            nonlocal has_begun
            if not has_begun:
                has_begun = True
                self._account(scope.get(_ANSWERED), began_s)
            await send(message)

        try:
            await asyncio.wait_for(self._behind(scope, receive, sending), self._allowed_s(request))
        except TimeoutError:
            if has_begun:
                raise
            given_up = _given_up(request)
            self._account(given_up, began_s)
            await say(given_up.response, send)

    def _account(self, answered: Answered | None, began_s: float) -> None:
        if answered is not None:  # else it is a page of the application's own
            self._api.account(answered, perf_counter() - began_s)

    def _allowed_s(self, request: Request) -> float:
        try:
            asked_s = parameters.check_timeout(request.query)
        except Refusal:
            asked_s = None  # it is answered so at once
        return self._deadline_s if asked_s is None else min(asked_s, self._deadline_s)


def _given_up(request: Request) -> Answered:
    return Answered(request, None, route(request.path), rendering.respond(request, timed_out()))
