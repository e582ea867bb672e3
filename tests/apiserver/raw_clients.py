"""Clients that write exact bytes, and a server with a small WSGI application."""

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import trustme
from serving_certificates import SERVER

from adapter.apiserver.event_loop import OnRejected
from adapter.apiserver.limits import ServerLimits
from adapter.apiserver.request import from_environ
from adapter.apiserver.server import DEFAULTS, Server
from adapter.apiserver.tls import LiveTls

LARGE = b"x" * (8 * 2**20)  # more than the buffers between two sockets hold


class Application:
    """Describes each request in JSON. /wait answers once `go_on` is set; /large and /fails do what they say."""

    def __init__(self) -> None:
        self.go_on = threading.Event()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/fails":
            raise RuntimeError("the password is swordfish")
        if path == "/exits":
            raise SystemExit(1)
        if path == "/wait":
            self.go_on.wait(20)
        body = LARGE if path == "/large" else json.dumps(_description(environ)).encode()
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]


def _description(environ: dict[str, Any]) -> dict[str, Any]:
    return {
        "path": environ["PATH_INFO"],
        "query": environ["QUERY_STRING"],
        "body": len(environ["wsgi.input"].read()),
        "certificate": from_environ(environ).certificate is not None,
        "headers": [[name.decode(), value.decode()] for name, value in environ["asgi.scope"]["headers"]],
        "variables": sorted(name for name in environ if name.startswith("HTTP_")),
    }


@dataclass(frozen=True)
class Running:
    server: Server
    application: Application


@contextmanager
def serving(
    limits: ServerLimits = DEFAULTS, tls: LiveTls | None = None, on_rejected: OnRejected | None = None
) -> Iterator[Running]:
    application = Application()
    server = Server(application, "127.0.0.1", 0, tls, limits)
    server.start(on_rejected)
    try:
        yield Running(server, application)
    finally:
        application.go_on.set()
        server.stop()


def trust(leaf: trustme.LeafCert | None = None) -> ssl.SSLContext:
    """Trusts the server and presents the certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    SERVER.configure_trust(context)
    if leaf is not None:
        leaf.configure_cert(context)
    return context


@dataclass(frozen=True)
class Response:
    code: int
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        found = json.loads(self.body)
        assert isinstance(found, dict)
        return found


class Client:
    """One connection. context: None is plain HTTP. name: for SNI. window: the size of its receive buffer."""

    def __init__(
        self,
        server: Server,
        context: ssl.SSLContext | None = None,
        *,
        name: str | None = "localhost",
        window: int | None = None,
    ) -> None:
        plain = socket.socket()
        if window is not None:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.settimeout(20)
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

    def send(self, text: bytes) -> None:
        self.socket.sendall(text)

    def get(self, path: str, *headers: str) -> Response:
        self.send(request(path, *headers))
        return self.response()

    def response(self) -> Response:
        """The next response. Raises ConnectionError when the server closes the connection instead."""
        line = self._file.readline()
        if not line:
            raise ConnectionError("the server closed the connection")
        headers = {}
        while field := self._file.readline().strip():
            name, _, value = field.decode().partition(":")
            headers[name.lower()] = value.strip()
        return Response(int(line.split()[1]), headers, self._file.read(int(headers.get("content-length", 0))))

    def is_closed(self, within_s: float = 10.0) -> bool:
        """Whether the server closes the connection in time, after whatever it still sends."""
        self.socket.settimeout(within_s)
        try:
            while self.socket.recv(65536):
                pass
        except TimeoutError:
            return False
        except OSError:
            return True
        return True


def request(path: str, *headers: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *headers, "", ""]).encode()


def eventually(holds: Callable[[], object], within_s: float = 10.0) -> bool:
    """Whether it holds before the time is over."""
    until_s = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > until_s:
            return False
        time.sleep(0.01)
    return True
