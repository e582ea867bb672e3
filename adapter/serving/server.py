"""A WSGI application on a port, with TLS and the client's certificate; nobody waits for a stalled neighbour."""

import asyncio
import errno
import socket
import threading
from asyncio import sslproto
from collections.abc import Callable, Iterable
from typing import Any

import uvicorn
from a2wsgi import WSGIMiddleware
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from adapter.errors import SetupError
from adapter.serving.tls import LiveTls

# The aggregator drops idle connections after 90 s; a server that drops them first meets half-closed ones.
KEEP_ALIVE_S = 120
# How long answers in progress may take when the server stops.
LAST_ANSWERS_S = 5
THREADS = 8
BACKLOG = 2048

# asyncio gives each TLS connection a buffer of 256 KiB; one TLS record is 16 KiB, and callers keep many connections.
sslproto.SSLProtocol.max_size = 16 * 1024

Wsgi = Callable[[dict[str, Any], Any], Iterable[bytes]]


class _PeerProtocol(HttpToolsProtocol):
    """Puts the client's verified certificate (DER, or None) into the scope of every request as `peer_certificate`."""

    _certificate: bytes | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn's own
        super().connection_made(transport)
        connection = transport.get_extra_info("ssl_object")
        self._certificate = None if connection is None else connection.getpeercert(binary_form=True)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["peer_certificate"] = self._certificate  # type: ignore[typeddict-unknown-key]  # ours

    def shutdown(self) -> None:
        # A TLS client that is idle does not answer a polite close, and would be waited for.
        idle = self.cycle is None or self.cycle.response_complete
        if idle and self.transport.get_write_buffer_size() == 0:
            self.transport.abort()
        else:
            super().shutdown()


class Server:
    """Serves from a thread of its own between `start` and `stop`. tls: None is plain HTTP. port: 0 is any free one."""

    def __init__(self, app: Wsgi, host: str, port: int, tls: LiveTls | None = None) -> None:
        self._host = host
        self._wanted_port = port
        self._tls = tls
        self._bridge = WSGIMiddleware(app, workers=THREADS)  # type: ignore[arg-type]  # Flask's environ is a plain dict
        self._server = _Uvicorn(self._settings())
        self._socket: socket.socket | None = None
        self.name = f"server {host}:{port}"
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)

    @property
    def port(self) -> int:
        """The port that is listened on, once started."""
        if self._socket is None:
            raise RuntimeError("the server was not started")
        return self._port

    def start(self) -> None:
        """Listen; returns when connections are accepted. Raises SetupError when the port cannot be had."""
        self._socket = listen(self._host, self._wanted_port)
        self._port: int = self._socket.getsockname()[1]
        self._thread.start()
        self._server.is_up.wait()

    def stop(self) -> None:
        """Accept nothing more, let answers in progress finish, close."""
        if self._socket is None:
            return
        self._server.should_exit = True
        self._thread.join(2 * LAST_ANSWERS_S)
        self._bridge.executor.shutdown(wait=False)
        self._socket.close()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket] if self._socket is not None else None)

    def _settings(self) -> uvicorn.Config:
        tls = self._tls
        return uvicorn.Config(
            self._bridge,
            loop="asyncio",
            http=_PeerProtocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=LAST_ANSWERS_S,
            timeout_notify=1,
            callback_notify=None if tls is None else _refresher(tls),
            ssl_context_factory=None if tls is None else lambda config, default: tls.context,
        )


class _Uvicorn(uvicorn.Server):
    """Says when it is up, or when it never will be; leaves no connection open at its end."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.is_up.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # the loop closes them in its next round, and there is none after this


def _refresher(tls: LiveTls) -> Callable[[], Any]:
    async def refresh() -> None:
        # In the event loop: no handshake begins while the contexts are swapped.
        tls.refresh()

    return refresh


def listen(host: str, port: int) -> socket.socket:
    """A listening socket whose connections send at once. Raises SetupError when the port cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Inherited by connections. Without it each answer on a busy connection waits 40 ms for the caller's delayed ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise SetupError(_cannot_listen(host, port, error)) from error
    listener.setblocking(False)
    return listener


def _cannot_listen(host: str, port: int, error: OSError) -> str:
    where = f"cannot listen on {host}:{port}"
    if error.errno == errno.EADDRINUSE:
        return f"{where}: the port is taken; set another one, or stop who has it (ss -ltnp 'sport = :{port}')"
    if error.errno == errno.EACCES:
        return f"{where}: ports below 1024 need a privilege; set a higher one"
    return f"{where}: {error.strerror}; the address must be one of this machine"
