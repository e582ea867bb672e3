"""uvicorn's HTTP protocol with the client certificate, deadlines and limits."""

import asyncio
import time
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from adapter.apiserver.limits import HEAD_TOO_LARGE, MALFORMED, TOO_MANY_REQUESTS, Refusal, ServerCounters, ServerLimits

_MOST_PIPELINED = 16
_FIELD_BYTES = len(b": \r\n")
_LINGER_S = 1.0  # between a refusal and the close, so that the client reads the refusal before it sees a reset


class LimitedProtocol(HttpToolsProtocol):
    """One connection.

    The scope has the verified leaf certificate as `["extensions"]["tls"]["client_cert"]` (DER), as in uvicorn's pull
    request 3132. `receive_s` limits the time from the first byte of a request to the last one of its body.
    """

    def __init__(self, limits: ServerLimits, counters: ServerCounters, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self.headers = []
        self.limits = limits
        self.counters = counters
        self.client_certificate: bytes | None = None
        self.last_used_s = time.monotonic()
        self.refusal: Refusal | None = None
        self.in_head = False
        # Of the request, without those in the chunk in which another one ends: at most 64 KiB, until its head is whole.
        self.message_bytes = 0
        self.read_deadline: asyncio.TimerHandle | None = None
        self.write_deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        self.client_certificate = tls.getpeercert(binary_form=True) if tls else None
        self._start_read_deadline()
        if len(self.connections) > self.limits.connections:
            self._close_least_recently_used()

    def _close_least_recently_used(self) -> None:
        """Close one connection, one without a client certificate if there is any."""
        least = min(self.connections, key=_priority)
        self.connections.discard(least)
        self.counters.closed_for_room += 1
        least.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self.read_deadline, self.write_deadline, self.timeout_keep_alive_task):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.refusal is not None:
            return
        self._start_read_deadline()
        self.message_bytes += len(data)
        super().data_received(data)
        rest_bytes = 0 if self.in_head else 2 * self.limits.body_bytes  # a body with its chunk sizes and trailers
        is_too_long = self.message_bytes > self.limits.header_bytes + rest_bytes
        if self.refusal is None and (is_too_long or len(self.headers) > self.limits.header_fields):
            self.refusal = HEAD_TOO_LARGE
            self.send_400_response("")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._start_read_deadline()  # the end of the previous request in the same packet stopped it
        self.in_head = True
        if self.client_certificate is not None:
            self.scope["extensions"] = {"tls": {"client_cert": self.client_certificate}}

    def on_headers_complete(self) -> None:
        self.in_head = False
        refusal = _head_refusal(self.url, self.headers, self.parser.get_http_version(), self.limits)
        self.refusal = TOO_MANY_REQUESTS if len(self.pipeline) >= _MOST_PIPELINED else refusal
        if self.refusal is not None:
            raise ValueError(self.refusal.message)  # ends the parsing; uvicorn calls `send_400_response`
        super().on_headers_complete()
        self.headers = []  # for trailers: in the scope they could name a user

    def on_message_complete(self) -> None:
        if self.read_deadline is not None:
            self.read_deadline.cancel()
            self.read_deadline = None
        self.message_bytes = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self.last_used_s = time.monotonic()
        is_last = not self.pipeline
        super().on_response_complete()
        if is_last:
            self._end_refused()

    def _start_read_deadline(self) -> None:
        if self.read_deadline is None:
            self.read_deadline = self.loop.call_later(self.limits.receive_s, self.timeout_keep_alive_handler)

    def send_400_response(self, msg: str) -> None:
        """Refuse the request; the name is uvicorn's."""
        self.refusal = self.refusal or MALFORMED
        self.counters.refused[self.refusal.code] += 1
        self.headers.clear()  # the scope has the same list
        if self.cycle is None or self.cycle.response_complete:
            self._end_refused()
        elif self.cycle.more_body:  # a malformed body: the application does not get the request
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if self.pipeline:
                self.pipeline.popleft()  # this request; earlier ones are in progress
            else:
                self._end_refused()

    def _end_refused(self) -> None:
        if self.refusal is not None and not self.transport.is_closing():
            self.transport.write(self.refusal.wire)
            self.loop.call_later(_LINGER_S, self.transport.close)

    def pause_writing(self) -> None:
        super().pause_writing()
        self.write_deadline = self.loop.call_later(self.limits.write_s, self.timeout_keep_alive_handler)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.write_deadline is not None:
            self.write_deadline.cancel()

    def timeout_keep_alive_handler(self) -> None:
        """End the connection: a deadline has passed. The name is uvicorn's."""
        self.counters.closed_for_time += 1
        self.transport.abort()


def _head_refusal(url: bytes, headers: list[tuple[bytes, bytes]], version: str, limits: ServerLimits) -> Refusal | None:
    """Why a complete head is refused; None if it is not."""
    size = len(url) + sum(len(name) + len(value) + _FIELD_BYTES for name, value in headers)
    if size > limits.header_bytes or len(headers) > limits.header_fields:
        return HEAD_TOO_LARGE
    hosts = sum(name == b"host" for name, _ in headers)
    return MALFORMED if hosts > 1 or (hosts == 0 and version == "1.1") else None  # RFC 9112, 3.2


def _priority(connection: Any) -> tuple[bool, float]:
    return connection.client_certificate is not None, connection.last_used_s
