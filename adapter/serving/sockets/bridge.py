"""A WSGI application -> an ASGI one, on threads; and an ASGI application -> one that always answers."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

import structlog
from a2wsgi import WSGIMiddleware

from adapter.serving.api.rendering import Response
from adapter.serving.sockets.at_once import FAILED, REFUSALS, TOO_MANY_REQUESTS

THREADS = 16  # two other adapters may hold six each

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]
Wsgi = Callable[[dict[str, Any], Any], Iterable[bytes]]

_log = structlog.get_logger(__name__)


def of_wsgi(app: Wsgi, threads: int = THREADS) -> Asgi:
    """Each request on a thread, which ends with ASGI's `lifespan.shutdown`; who wraps this hands those scopes on.

    threads: for callers with a verified certificate, and as many for those without: neither waits for the other.
    """
    known, strangers = _pool(app, threads), _pool(app, threads)

    async def bridge(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await known(scope, receive, send)
            for each in (known, strangers):
                each.executor.shutdown(wait=False)
        else:
            await (strangers if scope.get("peer_certificate") is None else known)(scope, receive, _in_one_piece(send))

    return bridge


def _in_one_piece(send: Send) -> Send:
    """Sends nothing before the answer is whole. a2wsgi ends each with an empty message of its own, some switches of
    threads after the last byte: the caller's next request would come before it, find its connection busy, and go to a
    thread as well, and so would all that follow."""
    held: list[MutableMapping[str, Any]] = []

    async def sending(message: MutableMapping[str, Any]) -> None:
        held.append(message)
        if message["type"] == "http.response.start" or message.get("more_body"):
            return
        start, *bodies = held
        await send(start)
        await send({**message, "body": b"".join([each["body"] for each in bodies])})

    return sending


def _pool(app: Wsgi, threads: int) -> Any:
    # Any: a2wsgi has types of its own for what are plain dicts here.
    return WSGIMiddleware(app, workers=threads)  # type: ignore[arg-type]  # see above


def guarded(app: Asgi, most: int, refused: Counter[int]) -> Asgi:
    """Answers 500 when the application fails, and 429 beyond what may be in work.

    most: requests of callers with a verified certificate, and of those without: neither takes the other's room.
    refused: counts both, by code.
    """
    in_work = {True: 0, False: 0}

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        kind = scope["peer_certificate"] is None
        if in_work[kind] >= most:
            refused[TOO_MANY_REQUESTS.code] += 1
            await say(TOO_MANY_REQUESTS, send)
            return
        in_work[kind] += 1
        try:
            await _answer(app, scope, receive, send, refused)
        finally:
            in_work[kind] -= 1

    return guard


async def _answer(app: Asgi, scope: Scope, receive: Receive, send: Send, refused: Counter[int]) -> None:
    begun = ended = False

    async def watched(message: MutableMapping[str, Any]) -> None:
        nonlocal begun, ended
        if not begun and message["status"] < REFUSALS:
            scope["granted"]()
        begun, ended = True, begun and not message.get("more_body")
        await send(message)

    try:
        await app(scope, receive, watched)
    except Exception as error:  # the top of a request: the caller gets an answer, the log gets the rest
        if begun and not ended:
            raise  # the answer breaks off, and so has the connection to
        _log.error("a request failed", path=scope["path"], exc_info=error)
        refused[FAILED.code] += 1
        if not begun:
            await say(FAILED, send)


async def say(response: Response, send: Send) -> None:
    """The response as an ASGI application sends it."""
    headers = [*response.headers, (b"content-length", b"%d" % len(response.body))]
    await send({"type": "http.response.start", "status": response.code, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})
