"""Answers of a fake server that are read as a stream, as those of a real one."""

from collections.abc import AsyncIterator, Callable, Iterator
from inspect import isawaitable
from typing import Any

import httpx


class _Stream(httpx.SyncByteStream, httpx.AsyncByteStream):
    def __init__(self, body: bytes) -> None:
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        yield self._body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body


class StreamedTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """httpx.MockTransport reads each answer before the client does. answer: a function or a coroutine function."""

    def __init__(self, answer: Callable[[httpx.Request], Any]) -> None:
        self._answer = answer

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        return _streamed(self._answer(request))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        given = self._answer(request)
        return _streamed(await given if isawaitable(given) else given)


def _streamed(given: httpx.Response) -> httpx.Response:
    assert isinstance(given.stream, httpx.SyncByteStream)
    return httpx.Response(given.status_code, headers=given.headers, stream=_Stream(b"".join(given.stream)))
