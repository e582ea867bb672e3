"""A server under more connections than its limit: the latency of other clients, and its memory.

Real: the server of `serve`, its TLS and its limits, in its own process. Stand-in: the application, which returns the
same few bytes from memory.
"""

import resource
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from adapter.apiserver.limits import ServerLimits
from adapter.apiserver.server import Server
from adapter.apiserver.tls import LiveTls
from bench.figures import Figure
from bench.machine import rss_mib
from bench.processes import free_port, running, wait_until
from conformance.identities import NO_CERTIFICATE, Identities, issue

FLOOD = 10_000
IDLE = ServerLimits().connections - 10  # the limit, less a reserve for the measuring clients
TIMES = 2_000
STARTS_WITHIN_S = 30.0
ENDS_WITHIN_S = 300.0
_QUESTION = b"GET /apis/external.metrics.k8s.io/v1beta1 HTTP/1.1\r\nHost: bench\r\n\r\n"
_ANSWER = b'{"kind":"ExternalMetricValueList","items":[]}\n'


def figures() -> Iterator[Figure]:
    """Milliseconds from request to answer on one connection; memory in MiB."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as started:
        folder, port = Path(name), free_port()
        identities = issue(folder)
        trust, anonymous = identities.context("proxy"), identities.context(NO_CERTIFICATE)
        server = started.enter_context(running(_role("serve", port, folder), folder / "out"))
        wait_until(lambda: _answers(port, trust), server, folder / "out", STARTS_WITHIN_S)
        with _connect(port, trust) as other:
            yield Figure("latency without other clients", tuple(_ask(other) for _ in range(TIMES)), "ms")
            idle_mib = rss_mib(server.pid)
            yield Figure(
                f"memory (RSS) added by {IDLE} idle connections",
                (_with_idle(port, anonymous, server.pid) - idle_mib,),
                "MiB",
                "< 25 MiB",
            )
            for kind in ("silent", "shaking hands"):
                waited_ms, late_ms, flood = _measure_flood(port, folder, kind, other, trust)
                yield Figure(f"latency during {flood} connections, {kind}", waited_ms, "ms", "max < 1000 ms")
                yield Figure("first answer on a new connection meanwhile", late_ms, "ms", "max < 5000 ms")
            full_mib = _with_idle(port, anonymous, server.pid)
        yield Figure(f"memory (RSS) added by all of these and {IDLE} idle connections", (full_mib - idle_mib,), "MiB")


def _role(*words: object) -> list[str]:
    return [sys.executable, "-m", "bench.connections", *map(str, words)]


def _measure_flood(
    port: int, folder: Path, kind: str, other: socket.socket, trust: ssl.SSLContext
) -> tuple[tuple[float, ...], tuple[float, ...], int]:
    """Latency on an existing and on new connections during a flood, and the connections of the flood."""
    waited_ms, late_ms = [], []
    out = folder / "flood"
    with running(_role("flood", port, folder, kind.split()[0]), out) as flood:
        until_s = time.monotonic() + ENDS_WITHIN_S
        while not (printed := out.read_text()).strip() and time.monotonic() < until_s and flood.poll() is None:
            waited_ms += [_ask(other) for _ in range(20)]
            late_ms.append(_first_answer_ms(port, trust))
    return tuple(waited_ms), tuple(late_ms), int(printed)


def _ask(connection: socket.socket) -> float:
    began_s = time.perf_counter()
    connection.sendall(_QUESTION)
    received = b""
    while not received.endswith(_ANSWER):
        if not (part := connection.recv(4096)):
            raise ConnectionError("the server closed the connection")
        received += part
    return (time.perf_counter() - began_s) * 1000


def _first_answer_ms(port: int, trust: ssl.SSLContext) -> float:
    began_s = time.perf_counter()
    with _connect(port, trust) as late:
        _ask(late)
    return (time.perf_counter() - began_s) * 1000


def _with_idle(port: int, trust: ssl.SSLContext, pid: int) -> float:
    """Memory of the server with idle connections, each after one request."""
    with ExitStack() as stack:
        for _ in range(IDLE):
            _ask(stack.enter_context(_connect(port, trust)))
        return rss_mib(pid)


def _connect(port: int, trust: ssl.SSLContext) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", port), timeout=30)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return trust.wrap_socket(plain, server_hostname="127.0.0.1")


def _answers(port: int, trust: ssl.SSLContext) -> bool:
    try:
        return _first_answer_ms(port, trust) > 0
    except OSError:
        return False


# The other two programs.


def _serve(port: str, folder: str) -> None:
    identities = Identities(Path(folder))
    tls = LiveTls(*identities.serving, lambda: identities.proxy_cas)
    server = Server(_answer, "127.0.0.1", int(port), tls)
    server.start()
    threading.Event().wait()


def _answer(environ: dict[str, Any], start_response: Callable[..., object]) -> list[bytes]:
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(_ANSWER)))])
    return [_ANSWER]


def _flood(port: str, folder: str, kind: str) -> None:
    """Open FLOOD connections, or as many as the limit of open files allows, and print their number."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    wanted = FLOOD if hard == resource.RLIM_INFINITY else min(FLOOD, hard - 100)
    trust = Identities(Path(folder)).context(NO_CERTIFICATE)
    with ExitStack() as stack:
        for _ in range(wanted):
            with suppress(OSError):  # the server closes connections beyond its limit
                plain = stack.enter_context(socket.create_connection(("127.0.0.1", int(port)), timeout=30))
                if kind == "shaking":
                    stack.enter_context(trust.wrap_socket(plain, server_hostname="127.0.0.1"))
        sys.stdout.write(str(wanted))
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        _serve(*sys.argv[2:4])
    else:
        _flood(*sys.argv[2:5])
