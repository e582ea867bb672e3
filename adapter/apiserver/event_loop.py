"""An event loop that limits the TLS handshakes of its servers."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import structlog
import uvloop

from adapter.apiserver.limits import ServerCounters, ServerLimits
from adapter.apiserver.read_buffer import ReadBuffer

_SHUTDOWN_S = 1.0  # for the client to confirm the end of TLS
_ACCEPTED_AT_ONCE = 16  # before open connections are served again
_PAUSE_S = 0.5  # after accept fails, as without a free file descriptor

OnRejected = Callable[[str, str], None]  # called with the cause and the client's address

_log = structlog.get_logger(__name__)


class LimitedLoop(uvloop.Loop):
    """uvloop, whose TLS buffers take memory only once they are used.

    A listening socket of `create_server` has at most `limits.handshakes` in progress, each for `limits.handshake_s`.
    on_rejected: called for each client certificate that fails the handshake.
    """

    def __init__(self, limits: ServerLimits, counters: ServerCounters, on_rejected: OnRejected | None) -> None:
        super().__init__()
        self.limits = limits
        self.counters = counters
        self.on_rejected = on_rejected

    async def create_server(  # type: ignore[override]  # what uvicorn calls it with
        self, protocol_factory: Any, *_: Any, sock: Any, ssl: Any, **__: Any
    ) -> Any:
        """Accept connections of a listening socket, as uvicorn wants it. ssl: None is plain HTTP."""
        listener = Listener(self, sock, protocol_factory, ssl)
        listener.resume()
        return listener


class Listener:
    """Accepts connections and begins their handshakes."""

    def __init__(
        self,
        loop: LimitedLoop,
        listener: socket.socket,
        protocol_factory: Callable[[], asyncio.Protocol],
        tls: ssl.SSLContext | None,
    ) -> None:
        self._loop = loop
        self._listener = listener
        self._buffer = ReadBuffer()
        self._protocol_factory = protocol_factory
        limits = loop.limits
        timeouts = {"ssl_handshake_timeout": limits.handshake_s, "ssl_shutdown_timeout": _SHUTDOWN_S}
        self._options: dict[str, Any] = {} if tls is None else {"ssl": tls, **timeouts}
        self._handshakes: dict[socket.socket, asyncio.Task[None]] = {}  # the oldest first

    def resume(self) -> None:
        """Accept connections, unless the socket is closed."""
        if self._listener.fileno() >= 0:
            self._loop.add_reader(self._listener, self._accept)

    def close(self) -> None:
        """Accept no more connections."""
        self._loop.remove_reader(self._listener)
        while self._handshakes:
            self._end_oldest()

    async def wait_closed(self) -> None:
        """Nothing: uvicorn waits for the connections."""

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                _log.error("no connection can be accepted", cause=str(error), retry_after_s=_PAUSE_S)
                self._loop.remove_reader(self._listener)
                self._loop.call_later(_PAUSE_S, self.resume)
                return
            self._begin(accepted, address[0])

    def _begin(self, accepted: socket.socket, client: str) -> None:
        if len(self._handshakes) >= self._loop.limits.handshakes:
            self._loop.counters.closed_for_room += 1
            self._end_oldest()
        accepted.setblocking(False)
        self._handshakes[accepted] = self._loop.create_task(self._handshake(accepted, client))
        self._loop.counters.handshakes = len(self._handshakes)

    async def _handshake(self, accepted: socket.socket, client: str) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, accepted, **self._options)
        except OSError as error:  # the client's fault: it stalled, left, or presented a certificate of another CA
            accepted.close()
            if isinstance(error, ssl.SSLCertVerificationError):
                self._reject(error.verify_message, client)
        finally:
            self._handshakes.pop(accepted, None)
            self._loop.counters.handshakes = len(self._handshakes)

    def _reject(self, cause: str, client: str) -> None:
        self._loop.counters.closed_for_certificate += 1
        if self._loop.on_rejected is not None:
            self._loop.on_rejected(cause, client)

    def _protocol(self) -> asyncio.BufferedProtocol:
        return self._buffer.connection(self._protocol_factory())

    def _end_oldest(self) -> None:
        oldest = next(iter(self._handshakes))
        del self._handshakes[oldest]
        with suppress(OSError):
            oldest.shutdown(socket.SHUT_RDWR)
