"""An ASGI application on a port, with TLS and the client's certificate; what a caller costs the others is limited."""

import asyncio
import socket
import threading
import time
from asyncio import sslproto
from collections.abc import Callable
from typing import Any

import structlog
import uvicorn

from adapter.config import Limits
from adapter.serving.outage import Outage
from adapter.serving.sockets.at_once import AtOnce
from adapter.serving.sockets.bridge import Asgi, guarded
from adapter.serving.sockets.connections import Connections
from adapter.serving.sockets.limits import affordable
from adapter.serving.sockets.listening import Acceptor, listen
from adapter.serving.sockets.protocol import Terms, speaking
from adapter.serving.sockets.tls import LiveTls

# How long answers in progress may take when the server stops.
LAST_ANSWERS_S = 5

# How often connections are looked at whose time may be over.
_LOOK_EVERY_S = 0.1
# uvicorn's own watch over idle connections is not wanted: ours sees those it does not.
_NEVER_S = 10**6

_log = structlog.get_logger(__name__)

# asyncio gives each TLS connection a buffer of 256 KiB; a question needs little, and callers keep many connections.
sslproto.SSLProtocol.max_size = 4 * 1024


class Server:
    """Serves from a thread of its own between `start` and `stop`. tls: None is plain HTTP. port: 0 is any free one.

    app: asked for what at_once, in the event loop, does not answer. connections: how many are open, admitted, ended.
    """

    def __init__(  # noqa: PLR0913 - what a server is made of; the last three may be left out
        self,
        app: Asgi,
        host: str,
        port: int,
        tls: LiveTls | None = None,
        *,
        at_once: AtOnce | None = None,
        limits: Limits = Limits(),  # noqa: B008 - it is frozen
    ) -> None:
        self._host = host
        self._wanted_port = port
        self._limits = limits
        self.connections = Connections(limits.connections, limits.handshakes, limits.handshake_s)
        self._server = _Uvicorn(
            _settings(guarded(app, limits.requests, self.connections.refused), tls),
            Terms(limits, self.connections, at_once),
        )
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
        self.connections.most = affordable(self._limits.connections)
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
        self._socket.close()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket] if self._socket is not None else None)


def _settings(app: Asgi, tls: LiveTls | None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="asyncio",
        http="httptools",
        ws="none",
        lifespan="auto",
        interface="asgi3",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_NEVER_S,
        timeout_graceful_shutdown=LAST_ANSWERS_S,
        timeout_notify=1,
        callback_notify=None if tls is None else _refresher(tls),
        ssl_context_factory=None if tls is None else lambda config, default: tls.context,
    )


class _Uvicorn(uvicorn.Server):
    """Says when it is up, or when it never will be; ends connections in time, and all of them at its end."""

    def __init__(self, config: uvicorn.Config, terms: Terms) -> None:
        super().__init__(config)
        self.is_up = threading.Event()
        self._terms = terms
        self._open = terms.connections

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await self.lifespan.startup()
            protocol = speaking(self._terms, self.config, self.server_state)
            acceptors = [Acceptor(each, self._open, protocol, self.config.ssl) for each in sockets or ()]
            for acceptor in acceptors:
                acceptor.start()
            self.servers = acceptors  # type: ignore[assignment]  # all of a server that uvicorn calls
            self._ending = asyncio.create_task(self._end_late())
            self.started = True
        finally:
            self.is_up.set()

    async def _end_late(self) -> None:
        while True:
            self._open.end_late(time.monotonic())
            await asyncio.sleep(_LOOK_EVERY_S)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        self._ending.cancel()
        self._open.end_all()
        while self._open.open:
            await asyncio.sleep(0)  # the loop closes them in its next rounds, and there are none after this


def _refresher(tls: LiveTls) -> Callable[[], Any]:
    outage = Outage(_log, "certificate and CAs cannot be followed; the last ones stay", "they are followed again")

    async def refresh() -> None:
        # In the event loop: no handshake begins while the contexts are swapped.
        outage.attempt(tls.refresh)

    return refresh
