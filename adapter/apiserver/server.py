"""A WSGI application on a port."""

import asyncio
import errno
import resource
import socket
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from math import inf

import structlog
import uvicorn

from adapter.apiserver.event_loop import LimitedLoop, OnRejected
from adapter.apiserver.limits import ServerCounters, ServerLimits
from adapter.apiserver.protocol import LimitedProtocol
from adapter.apiserver.tls import LiveTls
from adapter.apiserver.wsgi_bridge import Wsgi, WsgiBridge
from adapter.errors import SetupError
from adapter.failure_logger import FailureLogger

BACKLOG = 2048
DEFAULTS = ServerLimits()
DRAIN_S = 5  # for requests in progress when the server stops

# File descriptors besides those of connections: listeners, the cluster's API, snapshots, libraries.
_OTHER_FILES = 256
_SEND_BYTES = 128 * 1024

_log = structlog.get_logger(__name__)


class Server:
    """Serves on a thread of its own between `start` and `stop`. tls: None is plain HTTP. port: 0 is any free one."""

    def __init__(
        self, app: Wsgi, host: str, port: int, tls: LiveTls | None = None, limits: ServerLimits = DEFAULTS
    ) -> None:
        self.counters = ServerCounters()
        self.port = port  # that it listens on, once started
        self._address = host, port
        self._limits = limits
        self._bridge = WsgiBridge(app, limits, self.counters)
        self._uvicorn = uvicorn.Server(self._settings(tls))

    @property
    def connections(self) -> int:
        """Open connections, those in a handshake included."""
        return len(self._uvicorn.server_state.connections) + self.counters.handshakes

    def start(self, on_rejected: OnRejected | None = None) -> None:
        """Listen. Raises SetupError if the port is not available.

        on_rejected: called for each client certificate that fails the handshake.
        """
        _raise_file_limit(self._limits)
        self._listener = _listen(*self._address)
        self.port = self._listener.getsockname()[1]
        name = f"server {self._address[0]}:{self.port}"
        self._thread = threading.Thread(target=self._run, args=(on_rejected,), name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Accept no more connections, finish requests in progress, close."""
        self._uvicorn.should_exit = True
        self._thread.join(2 * DRAIN_S)
        self._bridge.close()
        self._listener.close()

    def _run(self, on_rejected: OnRejected | None) -> None:
        loop = partial(LimitedLoop, self._limits, self.counters, on_rejected)
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(self._uvicorn.serve([self._listener]))

    def _settings(self, tls: LiveTls | None) -> uvicorn.Config:
        return uvicorn.Config(
            self._bridge,
            http=partial(LimitedProtocol, self._limits, self.counters),  # type: ignore[arg-type]  # makes a protocol
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=self._limits.idle_s,  # type: ignore[arg-type]  # seconds of a timer
            timeout_graceful_shutdown=DRAIN_S,
            timeout_notify=-inf,  # type: ignore[arg-type]  # each second, also after the clock was set back
            callback_notify=None if tls is None else _refresh(tls),
            ssl_context_factory=None if tls is None else lambda config, default: tls.context,
        )


def _refresh(tls: LiveTls) -> Callable[[], Awaitable[None]]:
    failures = FailureLogger(
        _log,
        "the certificate or the client CAs cannot be used; retrying",
        "the certificate and the client CAs are used",
    )

    async def refresh() -> None:
        # In the event loop: no handshake begins while the contexts are swapped.
        failures.attempt(tls.refresh, is_grave=True, effect=tls.effect_of_failure)

    return refresh


def _raise_file_limit(limits: ServerLimits) -> None:
    """Raise the soft limit of open files to what the connections need, as far as the hard limit allows."""
    needed = limits.connections + limits.handshakes + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    most = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < needed:
        fix = f"raise the hard limit of open files (ulimit -Hn) to {needed}"
        _log.warning("too few open files are allowed for all connections", allowed=most, needed=needed, fix=fix)


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket; `::` is every address of IPv6 and IPv4. Raises SetupError if the port is not available."""
    if host == "::" and not socket.has_dualstack_ipv6():
        host = "0.0.0.0"  # noqa: S104  # the same for a kernel without IPv6
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)  # the system's default may be IPv6 alone
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit both. A larger send buffer would hide too long that a client stopped reading.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise SetupError(_listen_failure(host, port, error)) from error
    listener.setblocking(False)
    return listener


def _listen_failure(host: str, port: int, error: OSError) -> str:
    start = f"cannot listen on {f'[{host}]' if ':' in host else host}:{port}"
    if error.errno == errno.EADDRINUSE:
        settings = "`run --port`, serving.port or pipeline.port"
        owner = f"ss -ltnp 'sport = :{port}'"
        return f"{start}: the port is taken; choose another one ({settings}), or stop its owner ({owner})"
    if error.errno == errno.EACCES:
        return f"{start}: ports below 1024 need a privilege; choose a higher one"
    return f"{start}: {error.strerror}; the address must be one of this machine"
