"""Servers on loopback that do what servers should not: byte by byte, over real TLS or without it."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

# Does something with a connection whose request was read; the head of the request comes with it.
Behave = Callable[[socket.socket, str], None]


@dataclass
class StrangeServer:
    """port: that it listens on. heads: of the received requests. ends: set when it stops."""

    port: int
    behave: Behave
    heads: list[str] = field(default_factory=list)
    ends: threading.Event = field(default_factory=threading.Event)


def response(code: int, body: bytes, content_type: str = "application/vnd.msgpack", **headers: str) -> bytes:
    """A whole response; header names have _ for -."""
    given: Mapping[str, str] = {
        "Content-Type": content_type,
        "Content-Length": str(len(body)),
        "Connection": "close",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"HTTP/1.1 {code} {HTTPStatus(code).phrase}\r\n{head}\r\n".encode() + body


def saying(text: bytes) -> Behave:
    """Sends the text and closes."""
    return lambda connection, head: connection.sendall(text)


def tls_of(leaf: object) -> ssl.SSLContext:
    """A server's context with a certificate of trustme."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    leaf.configure_cert(context)  # type: ignore[attr-defined]  # a LeafCert
    return context


@contextlib.contextmanager
def strange_server(behave: Behave, tls: ssl.SSLContext | None) -> Iterator[StrangeServer]:
    """Serves until the end of the block. tls: None is plain HTTP. `behave` of the server may be replaced."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = StrangeServer(listener.getsockname()[1], behave)
        threads: list[threading.Thread] = []
        accepting = threading.Thread(target=_accept, args=(server, listener, tls, threads))
        accepting.start()
        try:
            yield server
        finally:
            server.ends.set()
            socket.create_connection(listener.getsockname()).close()  # ends the wait in `accept`
            for thread in [accepting, *threads]:
                thread.join(10)


def _accept(
    server: StrangeServer, listener: socket.socket, tls: ssl.SSLContext | None, threads: list[threading.Thread]
) -> None:
    while True:
        connection, _ = listener.accept()
        if server.ends.is_set():
            connection.close()
            return
        thread = threading.Thread(target=_serve, args=(server, connection, tls))
        threads.append(thread)
        thread.start()


def _serve(server: StrangeServer, connection: socket.socket, tls: ssl.SSLContext | None) -> None:
    connection.settimeout(5)
    # The client may leave at any time.
    with contextlib.suppress(OSError), contextlib.closing(connection):
        talking = connection if tls is None else tls.wrap_socket(connection, server_side=True)
        with contextlib.closing(talking):
            head = _head(talking)
            if head:
                server.heads.append(head)
                server.behave(talking, head)


def _head(connection: socket.socket) -> str:
    read = b""
    while b"\r\n\r\n" not in read:
        piece = connection.recv(4096)
        if not piece:
            return ""
        read += piece
        if read.startswith(b"\x16"):  # a TLS handshake; a server of plain HTTP reads no more
            break
    return read.decode("latin-1")
