"""Callers that say exactly what a test wants on the wire, and a server whose application does what its path says."""

import asyncio
import json
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import trustme
from serving_certificates import SERVER

from adapter.config import Limits
from adapter.serving.api.rendering import Response
from adapter.serving.sockets.bridge import Receive, Scope, Send
from adapter.serving.sockets.server import Server
from adapter.serving.sockets.tls import LiveTls

LARGE = b"x" * (8 * 2**20)  # more than any buffer between two sockets holds
# What a neighbour may wait on a busy machine; a server that is held up makes him wait for as long as the test lasts.
BOUNDED_S = 1.0


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers after /slow/<seconds>, with /large, with the size of the .../body, or with what it was asked.

    It fails before (/fails) or in the middle of its answer (/breaks).
    """
    path = scope["path"]
    if path == "/fails":
        raise RuntimeError("secret of the inside")
    if path == "/breaks":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"10")]})
        await send({"type": "http.response.body", "body": b"12345", "more_body": True})
        raise RuntimeError("secret of the inside")
    if path.startswith("/slow/"):
        await asyncio.sleep(float(path.split("/")[2]))
    body = LARGE if path == "/large" else json.dumps(await _asked(scope, receive)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    code = 403 if path == "/forbidden" else 200
    await send({"type": "http.response.start", "status": code, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _asked(scope: Scope, receive: Receive) -> dict[str, Any]:
    body = b""
    while scope["path"].endswith("/body"):
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    headers = [[name.decode(), value.decode()] for name, value in scope["headers"]]
    return {
        "path": scope["path"],
        "query": scope["query_string"].decode(),
        "body": len(body),
        "headers": headers,
        "known": scope["peer_certificate"] is not None,
    }


def from_memory(scope: Mapping[str, Any]) -> Response | None:
    """Answers /memory..., and nothing else."""
    path = scope["path"]
    if path == "/memory/fails":
        raise RuntimeError("secret of the inside")
    if path == "/memory/large":
        return Response(200, (), LARGE)
    if path == "/memory/last":
        return Response(200, ((b"connection", b"close"),), b"bye")
    return Response(200, ((b"content-type", b"text/plain"),), path.encode()) if path.startswith("/memory") else None


@contextmanager
def serving(limits: Limits = Limits(), tls: LiveTls | None = None) -> Iterator[Server]:  # noqa: B008 - it is frozen
    server = Server(application, "127.0.0.1", 0, tls, at_once=from_memory, limits=limits)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def trust(leaf: trustme.LeafCert | None = None) -> ssl.SSLContext:
    """What trusts the server and presents the certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    SERVER.configure_trust(context)
    if leaf is not None:
        leaf.configure_cert(context)
    return context


@dataclass(frozen=True)
class Answer:
    code: int
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        found = json.loads(self.body)
        assert isinstance(found, dict)
        return found


class Caller:
    """One connection. context: None is plain HTTP. window: bytes that it lets wait for it, when it does not read.

    name: of the server, as it is said in the handshake.
    """

    def __init__(
        self,
        server: Server,
        context: ssl.SSLContext | None = None,
        *,
        window: int | None = None,
        name: str | None = "localhost",
    ) -> None:
        plain = socket.socket()
        if window is not None:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.settimeout(10)
        try:
            plain.connect(("127.0.0.1", server.port))
            self.socket = plain if context is None else context.wrap_socket(plain, server_hostname=name)
        except OSError:
            plain.close()
            raise
        self._file = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self.socket.close()

    def say(self, text: bytes) -> None:
        self.socket.sendall(text)

    def ask(self, path: str, *headers: str, method: str = "GET") -> Answer:
        self.say(request(path, *headers, method=method))
        return self.answer(method)

    def answer(self, method: str = "GET") -> Answer:
        """The next answer. Raises ConnectionError when there is none."""
        line = self._file.readline()
        if not line:
            raise ConnectionError("the server closed the connection")
        headers = {}
        while field := self._file.readline().strip():
            name, _, value = field.decode().partition(":")
            headers[name.lower()] = value.strip()
        size = 0 if method == "HEAD" else int(headers.get("content-length", 0))
        return Answer(int(line.split()[1]), headers, self._file.read(size))

    def is_closed(self, within_s: float) -> bool:
        """Whether the server ends the connection within the time, and says nothing more before."""
        self.socket.settimeout(within_s)
        try:
            return self.socket.recv(1) == b""
        except TimeoutError:
            return False
        except OSError:
            return True


def request(path: str, *headers: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *headers, "", ""]).encode()


def longest_wait_s(neighbour: Caller, times: int = 50) -> float:
    """The longest of many answers, half of them from memory."""
    waits_s = []
    for number in range(times):
        began_s = time.monotonic()
        assert neighbour.ask("/memory" if number % 2 else "/").code == 200
        waits_s.append(time.monotonic() - began_s)
    return max(waits_s)


def eventually(holds: Any, within_s: float = 5.0) -> bool:
    """Whether it holds before the time is over."""
    until_s = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > until_s:
            return False
        time.sleep(0.01)
    return True
