"""Bytes of one connection -> requests within limits, answered at once or handed to the application."""

import asyncio
import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from adapter.config import Limits
from adapter.serving.api.rendering import Response
from adapter.serving.sockets import at_once
from adapter.serving.sockets.at_once import BAD_REQUEST, CLOSE, HEAD_TOO_LARGE, REFUSALS, TOO_MANY_REQUESTS, AtOnce
from adapter.serving.sockets.connections import Connection, Connections, nothing
from adapter.serving.sockets.heads import FIELD_BYTES, NOTED, Head, complete
from adapter.serving.sockets.outlet import UNSENT_BYTES, Exit, Outlet


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for every connection of a server. at_once: asked before the application is, if there is one."""

    limits: Limits
    connections: Connections
    at_once: AtOnce | None


def speaking(terms: Terms, config: uvicorn.Config, state: ServerState) -> Callable[[Connection], asyncio.Protocol]:
    """What makes uvicorn's protocol of each new connection, under our terms.

    Each scope has the client's verified certificate (DER, or None) as `peer_certificate`, and `granted`, to be called
    when a request was let in.
    """
    return partial(_Protocol, terms, config=config, server_state=state, app_state={})


class _Protocol(HttpToolsProtocol):
    _certificate: bytes | None = None
    _refusal: Response | None = None
    _is_last = False  # nothing that comes now is read
    _has_ended = False  # nothing is answered any more
    _is_whole = True  # it has arrived, or none is on its way
    _has_moved = False  # from one to the other; a part in between buys its caller no time
    _ahead = 0  # requests that came in one piece
    _body_bytes = 0  # of the request's body, as far as it has come

    def __init__(self, terms: Terms, connection: Connection, **theirs: Any) -> None:
        super().__init__(**theirs)
        self.parser = None  # type: ignore[assignment]  # it refers to this in turn, and the handshake may yet fail
        self._limits = terms.limits
        self._connections = terms.connections
        self._connection = connection
        self._at_once = terms.at_once
        self._head = Head(terms.limits, terms.connections)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn's own
        super().connection_made(transport)
        transport.set_write_buffer_limits(UNSENT_BYTES)
        tls = transport.get_extra_info("ssl_object")
        self._certificate = None if tls is None else tls.getpeercert(binary_form=True)
        self._outlet = Outlet(transport, self.flow, self._emptied)
        self._granted = nothing if self._certificate is None else partial(self._connections.admit, self._connection)
        self.parser = httptools.HttpRequestParser(self)
        if not self._connections.ready(self._connection, self._abort):
            self._is_last = True
            transport.abort()
        self._settle()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head.end()
        self._outlet.clear()
        self._unset_keepalive_if_required()
        # Without an error uvicorn closes once more, and Python 3.11 fails on what answers in work still write then.
        super().connection_lost(exc or ConnectionResetError())
        self._connections.remove(self._connection)
        self.cycle = None  # type: ignore[assignment]  # it refers to this in turn

    def data_received(self, data: bytes) -> None:
        if self._is_leaving:
            return
        self._ahead = 0
        super().data_received(data)
        if self._head.is_open:
            # What ends an earlier request in the same piece is not counted.
            self._consider(self._head.hold(0 if self._ahead else len(data)))
        if self._refusal is not None:
            self._refuse(self._refusal)
        if self._has_moved:
            self._has_moved = False
            self._settle()

    # The parts of a request, in the order in which they come.

    def on_message_begin(self) -> None:
        if self._is_last or self._has_ended:
            return
        super().on_message_begin()
        self.scope["peer_certificate"] = self._certificate  # type: ignore[typeddict-unknown-key]  # ours
        if self._certificate is not None:
            self.scope["extensions"] = {"tls": {"client_cert": self._certificate}}
        self.scope["granted"] = self._granted  # type: ignore[typeddict-unknown-key]  # ours
        self._head.begin()
        self._is_whole = False
        self._has_moved = True
        self._body_bytes = 0

    def on_url(self, url: bytes) -> None:
        if self._head.is_open:
            self.url += url.replace(b"#", b"%23")  # a request has no fragment: it would be dropped
            self._consider(self._head.target(len(self.url)))

    def on_header(self, name: bytes, value: bytes) -> None:
        head = self._head
        if not head.is_open:  # it is a trailer, which as a header could say who is asking
            return
        name = name.lower()
        self.headers.append((name, value))
        # Counted here: a call for each header would take as long as all the rest of it.
        head.size_bytes += len(name) + len(value) + FIELD_BYTES
        if name in NOTED:
            head.note(name, value)
        if head.size_bytes > self._limits.header_bytes:
            self._consider(HEAD_TOO_LARGE)

    def on_headers_complete(self) -> None:
        if not self._head.is_open:
            return
        self._head.end()
        self._ahead += 1
        is_crowd = max(self._ahead, len(self.pipeline)) > self._limits.pipelined
        fault = TOO_MANY_REQUESTS if is_crowd else self._head.fault(self.url, self.parser)
        if fault is not None:
            self._consider(fault)
        elif not (self._head.is_plain and self._answered()):
            self._hand_over()

    def _hand_over(self) -> None:
        self.expect_100_continue = self._head.expects
        if not self._busy:
            self._outlet.sent_bytes = 0
        super().on_headers_complete()
        way_out = Exit(self._outlet.write, self._close, self.transport.is_closing)
        self.cycle.transport = way_out  # type: ignore[assignment]  # it has all of a transport that a cycle calls
        if self._head.body_bytes > self._limits.body_bytes:
            self._answer_unread()
        elif self.parser.should_upgrade():  # to a protocol that is not spoken here
            self._make_last()

    def on_body(self, body: bytes) -> None:
        if self._is_last or self._has_ended:
            return
        self._body_bytes += len(body)
        if self._body_bytes > self._limits.body_bytes:
            self._answer_unread()
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_whole = self._has_moved = True
        if self.cycle is not None:
            super().on_message_complete()

    # Answers.

    def _answered(self) -> bool:
        """Whether the answer was at hand, and is on its way."""
        if self._at_once is None or self._busy or self.flow.write_paused or self.parser.get_http_version() != "1.1":
            return False
        complete(self.scope, self.parser.get_method(), self.url)  # type: ignore[arg-type]  # it is a dict
        response = at_once.found(self._at_once, self.scope, self._connections.refused)
        if response is None:
            return False
        if response.code < REFUSALS and not self._connection.admitted:
            self._granted()
        self._send(response)
        self._connections.used(self._connection)
        return True

    def _send(self, response: Response) -> None:
        is_head = self.scope["method"] == "HEAD"
        self._outlet.sent_bytes = 0
        self._outlet.write(at_once.wire(response, self.server_state.default_headers, is_head=is_head))
        if at_once.closes(response):
            self._close()

    def send_400_response(self, msg: str) -> None:
        self._consider(BAD_REQUEST)

    def _consider(self, refusal: Response | None) -> None:
        """If it is the first: what comes now is thrown away, and it is sent when the piece at hand is done with."""
        if refusal is not None and self._refusal is None:
            self._refusal = refusal
            self._connections.refused[refusal.code] += 1
            self._is_last = True
            self._head.end()

    def _refuse(self, refusal: Response) -> None:
        self.parser = None  # type: ignore[assignment]  # as uvicorn does at the end; it may hold a large head
        if self._busy:  # an answer that was asked for before
            self._make_last()
        elif not (self._has_ended or self.transport.is_closing()):
            self._outlet.write(at_once.wire(refusal, (*self.server_state.default_headers, CLOSE)))
            self._linger()

    def _answer_unread(self) -> None:
        """The application sees no body, and its answer is the last."""
        if self._busy:
            self._make_last()
            self.cycle.more_body = False
            self.cycle.message_event.set()
        else:
            self._linger()

    def _make_last(self) -> None:
        self._is_last = True
        self.cycle.keep_alive = False

    def _close(self) -> None:
        """The last answer was given."""
        self._has_ended = True
        if self._outlet.is_empty:
            self._leave()

    def _leave(self) -> None:
        if self._is_last:
            self._linger()
        elif not self.transport.is_closing():
            self.transport.close()

    def _linger(self) -> None:
        """Read on for a moment, and close then."""
        self._is_last = True
        self.flow.resume_reading()
        self._settle()

    def on_response_complete(self) -> None:
        if not self._has_ended:
            super().on_response_complete()
        self._connections.used(self._connection)
        self._settle()

    def shutdown(self) -> None:
        # A TLS client that is idle does not answer a polite close, and would be waited for.
        if not self._busy and self._outlet.is_empty and self.transport.get_write_buffer_size() == 0:
            self.transport.abort()
        else:
            super().shutdown()

    def _abort(self) -> None:
        # Python 3.11: a TLS transport that was closed twice has lost what it would abort.
        with suppress(AttributeError):
            self.transport.abort()

    # Time and memory.

    def pause_writing(self) -> None:
        self._outlet.pause()
        self._connection.until_s = time.monotonic() + self._limits.write_s

    def resume_writing(self) -> None:
        self._outlet.resume()

    def _emptied(self) -> None:
        if self._has_ended:
            self._leave()
        self._settle()

    @property
    def _is_leaving(self) -> bool:
        return self._is_last or self._has_ended or self.transport.is_closing()

    @property
    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _settle(self) -> None:
        """Say by when something has to happen. A caller who does not read what he is sent gets no more time."""
        if not self.flow.write_paused:
            self._connection.until_s = time.monotonic() + self._patience_s()

    def _patience_s(self) -> float:
        if not self._is_whole and not self._is_last:
            return self._limits.header_s
        if self._busy:
            return math.inf
        if not self._is_leaving:
            return self._limits.idle_s
        return self._limits.linger_s if self._outlet.sent_bytes <= UNSENT_BYTES else self._limits.write_s
