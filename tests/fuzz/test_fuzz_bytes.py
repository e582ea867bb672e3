"""Arbitrary bytes on a connection, in TLS and in its place: the server stays up and answers other clients."""

import socket
from contextlib import closing, suppress

from hypothesis import given
from hypothesis import strategies as st

from conformance.client import HOST
from conformance.recording import Request
from conformance.server import Running

FRAGMENTS = (
    b"GET /livez HTTP/1.1\r\n", b"Host: a\r\n", b"\r\n", b"Content-Length: 5\r\n", b"Content-Length: -1\r\n",
    b"Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n", b"0\r\n\r\n", b"fffffffffffffffff\r\n",
    b"Expect: 100-continue\r\n",
    b"GET / HTTP/9.9\r\n", b"\x00" * 10, b"X: " + b"a" * 5000 + b"\r\n", b"a:\r\n" * 200,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\x15\x03\x03\x00\x02\x02\x28",
)  # fmt: skip
chunks = st.lists(st.sampled_from(FRAGMENTS) | st.binary(max_size=100), max_size=8)


def send_beside_another_client(running: Running, connection: socket.socket, sent: list[bytes]) -> None:
    """Send on one connection; a second client is answered while it is open and afterwards."""
    with closing(connection), suppress(OSError):  # the server may close the connection at any time
        for chunk in sent:
            connection.sendall(chunk)
        assert is_alive(running)
    assert is_alive(running)


def is_alive(running: Running) -> bool:
    response = running.client.send(Request("GET", "/readyz"))
    return response is not None and response.status == 200


@given(chunks)
def test_bytes_in_a_tls_connection_do_not_affect_others(running: Running, sent: list[bytes]) -> None:
    send_beside_another_client(running, running.client.connect("alice"), sent)


@given(chunks)
def test_bytes_in_place_of_a_handshake_do_not_affect_others(running: Running, sent: list[bytes]) -> None:
    send_beside_another_client(running, socket.create_connection((HOST, running.client.port), 5), sent)
