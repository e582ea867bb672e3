"""A WSGI application as an ASGI application: each request runs whole on one worker thread.

a2wsgi streams bodies in both directions through queues, which takes three times the processor time a request
(DESIGN, decisions). Requests and responses of a metrics API are small and complete.
"""

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from queue import Empty, SimpleQueue
from typing import Any

import structlog

from adapter.apiserver import probes
from adapter.apiserver.limits import (
    BODY_TOO_LARGE,
    FAILED,
    TIMED_OUT,
    TOO_MANY_REQUESTS,
    Refusal,
    ServerCounters,
    ServerLimits,
)

HELPERS = 15
_PATIENCE_S = 0.002  # a request that does not wait takes 0.1 ms
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Wsgi = Callable[[dict[str, Any], Any], Iterable[bytes]]
Headers = list[tuple[bytes, bytes]]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Response:
    code: int
    headers: Headers
    body: bytes


class _Workers:
    """Threads for one class of clients.

    One thread runs the requests in turn: several would compete for the interpreter, and a request would take twice the
    processor time. While no request begins for _PATIENCE_S, as during an access review, another thread helps.
    """

    def __init__(self) -> None:
        self.requests = 0  # running and waiting
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()  # None ends the thread
        self._begun = 0  # calls so far
        self._helpers: list[threading.Thread] = []
        self._is_watched = False
        threading.Thread(target=self._run, name="worker", daemon=True).start()

    def submit(self, call: Callable[[], None]) -> None:
        """Run a call on a thread. For the event loop."""
        self._calls.put(call)
        if not self._is_watched:
            self._watch()

    def close(self) -> None:
        """Let the thread end after the submitted calls."""
        self._calls.put(None)

    def _watch(self) -> None:
        self._is_watched = not self._calls.empty()
        if self._is_watched:
            asyncio.get_running_loop().call_later(_PATIENCE_S, self._help, self._begun)

    def _help(self, begun: int) -> None:
        """Start a helper if no call has begun since. begun: their number then."""
        self._helpers = [helper for helper in self._helpers if helper.is_alive()]
        if begun == self._begun and not self._calls.empty() and len(self._helpers) < HELPERS:
            helper = threading.Thread(target=self._run_waiting, name="helper", daemon=True)
            with suppress(RuntimeError):  # no more threads: the next look tries again
                helper.start()
                self._helpers.append(helper)
        self._watch()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            self._begun += 1
            call()

    def _run_waiting(self) -> None:
        with suppress(Empty):
            while (call := self._calls.get_nowait()) is not None:
                self._begun += 1
                call()
            self._calls.put(None)  # for the thread that it ends


class WsgiBridge:
    """An ASGI application that calls `app` on worker threads.

    Clients with a verified certificate, other clients, and probes have threads of their own: none delays another.
    """

    def __init__(self, app: Wsgi, limits: ServerLimits, counters: ServerCounters) -> None:
        self._app = app
        self._limits = limits
        self._counters = counters
        self._verified, self._unverified, self._probes = _Workers(), _Workers(), _Workers()

    def close(self) -> None:
        """Let the threads end after their current request."""
        for workers in (self._verified, self._unverified, self._probes):
            workers.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        body = await self._body(receive, send)  # before the request counts: a slow body occupies no place
        if body is None:
            return
        workers = self._workers(scope)
        if workers.requests >= self._limits.requests:
            await self._refuse(TOO_MANY_REQUESTS, send)
            return
        workers.requests += 1
        try:
            await self._answer(workers, _environ(scope, body), send)
        finally:
            workers.requests -= 1

    def _workers(self, scope: Scope) -> _Workers:
        # A token waits for its review: probes of the kubelet have none.
        if scope["path"] in probes.PATHS and not any(name == b"authorization" for name, _ in scope["headers"]):
            return self._probes
        return self._verified if "extensions" in scope else self._unverified

    async def _answer(self, workers: _Workers, environ: dict[str, Any], send: Send) -> None:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[_Response | Refusal] = loop.create_future()
        deadline = loop.call_later(self._limits.response_s, _resolve, answered, TIMED_OUT)
        environ["adapter.is_answered"] = answered.done
        workers.submit(partial(self._call, environ, loop, answered))
        response = await answered
        deadline.cancel()
        if isinstance(response, Refusal):
            if response is TIMED_OUT:
                _log.warning("a request timed out", path=environ["PATH_INFO"], limit_s=self._limits.response_s)
            await self._refuse(response, send)
            return
        await send({"type": "http.response.start", "status": response.code, "headers": response.headers})
        await send({"type": "http.response.body", "body": response.body})

    def _call(
        self, environ: dict[str, Any], loop: asyncio.AbstractEventLoop, answered: asyncio.Future[_Response | Refusal]
    ) -> None:
        """Call the application on a worker thread."""
        if answered.done():
            return
        response: _Response | Refusal
        try:
            response = _respond(self._app, environ)
        except BaseException as error:  # the top of a request: the client gets a Status, the log gets the traceback
            response = FAILED
            with suppress(Exception):
                _log.error("a request failed", path=environ["PATH_INFO"], exc_info=error)
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(_resolve, answered, response)

    async def _body(self, receive: Receive, send: Send) -> bytes | None:
        """The request body; None if it is too large, which is answered, or if the client disconnected."""
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self._limits.body_bytes:
                await self._refuse(BODY_TOO_LARGE, send)
                return None
        return body

    async def _refuse(self, refusal: Refusal, send: Send) -> None:
        self._counters.refused[refusal.code] += 1
        await send({"type": "http.response.start", "status": refusal.code, "headers": refusal.headers})
        await send({"type": "http.response.body", "body": refusal.body})


def _resolve(answered: "asyncio.Future[_Response | Refusal]", response: _Response | Refusal) -> None:
    if not answered.done():
        answered.set_result(response)


def _respond(app: Wsgi, environ: dict[str, Any]) -> _Response:
    started: list[tuple[str, list[tuple[str, str]]]] = []
    chunks = app(environ, lambda status, headers, exc_info=None: started.append((status, headers)))
    try:
        body = b"".join(chunks)
    finally:
        getattr(chunks, "close", lambda: None)()
    status, fields = started[-1]
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]
    return _Response(int(status[:3]), headers, body)


def _environ(scope: Scope, body: bytes) -> dict[str, Any]:
    """The environment of PEP 3333, and the scope as `asgi.scope`."""
    host, port = scope.get("server") or ("localhost", 80)
    environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode("utf-8").decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": (scope.get("client") or ("",))[0],
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": BytesIO(body),
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "asgi.scope": scope,
    }
    for name, value in scope["headers"]:
        if b"_" not in name:  # `X_Remote_User` would become the variable of `X-Remote-User`
            variable = name.decode("latin-1").upper().replace("-", "_")
            key = variable if variable in ("CONTENT_LENGTH", "CONTENT_TYPE") else f"HTTP_{variable}"
            text = value.decode("latin-1")
            environ[key] = f"{environ[key]},{text}" if key in environ else text
    return environ
