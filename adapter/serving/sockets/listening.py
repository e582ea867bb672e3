"""A host and a port -> a listening socket -> connections with a protocol each."""

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable
from functools import partial

import structlog

from adapter.errors import SetupError
from adapter.serving.sockets.connections import Connection, Connections

BACKLOG = 2048
# Connections taken from the queue before those that are open are served again: a flood of new ones delays nobody long.
_IN_A_ROW = 16
# When the process or the machine has no file left: some are closed meanwhile.
_PAUSE_S = 0.5

_SEND_BYTES = 128 * 1024

_log = structlog.get_logger(__name__)


class Acceptor:
    """Takes connections between `start` and `close`, in the event loop that runs then.

    protocol: of each of them. tls: None is plain HTTP. In place of asyncio's own, which waits for a stalled handshake
    as long as it likes, takes as many in a row as have come, and leaves each failed one to the garbage collector.
    """

    def __init__(
        self,
        listener: socket.socket,
        connections: Connections,
        protocol: Callable[[Connection], asyncio.Protocol],
        tls: ssl.SSLContext | None,
    ) -> None:
        self._listener = listener
        self._connections = connections
        self._protocol = protocol
        self._tls = tls
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Take those that come."""
        self._loop.add_reader(self._listener, self._take)

    def close(self) -> None:
        """Take no more."""
        self._loop.remove_reader(self._listener)

    async def wait_closed(self) -> None:
        """Nothing is left to wait for: connections end by themselves."""

    def _take(self) -> None:
        for _ in range(_IN_A_ROW):
            try:
                accepted, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause(error)
                return
            self._begin(accepted)

    def _pause(self, error: OSError) -> None:
        _log.error("no connection can be taken", cause=str(error), again_after_s=_PAUSE_S)
        self.close()
        self._loop.call_later(_PAUSE_S, self._resume)

    def _resume(self) -> None:
        if self._listener.fileno() >= 0:
            self.start()

    def _begin(self, accepted: socket.socket) -> None:
        connection = self._connections.add()
        shaking_hands = self._loop.create_task(self._shake_hands(accepted, connection))
        connection.end = shaking_hands.cancel
        shaking_hands.add_done_callback(partial(self._shook_hands, accepted, connection))

    async def _shake_hands(self, accepted: socket.socket, connection: Connection) -> None:
        await self._loop.connect_accepted_socket(partial(self._protocol, connection), accepted, ssl=self._tls)

    def _shook_hands(self, accepted: socket.socket, connection: Connection, done: asyncio.Task[None]) -> None:
        if connection.is_ready:
            return
        self._connections.remove(connection)
        accepted.close()
        error = None if done.cancelled() else done.exception()
        if error is None:
            return
        if not isinstance(error, OSError):
            _log.error("a connection could not be begun", exc_info=error)
        error.with_traceback(None)  # it refers to what refers to it, with all buffers of the connection


def listen(host: str, port: int) -> socket.socket:
    """A listening socket whose connections send at once. Raises SetupError when the port cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Inherited by connections. Without it each answer on a busy connection waits 40 ms for the caller's delayed ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # Inherited too. The system's own, up to megabytes, would hide for long whether a caller goes on reading.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
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
        settings = "`run --port`, serving.port or pipeline.port"
        owner = f"ss -ltnp 'sport = :{port}'"
        return f"{where}: the port is taken; choose another one ({settings}), or stop its owner ({owner})"
    if error.errno == errno.EACCES:
        return f"{where}: ports below 1024 need a privilege; set a higher one"
    return f"{where}: {error.strerror}; the address must be one of this machine"
