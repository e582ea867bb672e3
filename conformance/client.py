"""An HTTP client over TLS that sends a request exactly as it was recorded, even a malformed one."""

import socket
import ssl
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse

from conformance.recording import Outcome, Request, Response

HOST = "127.0.0.1"
# Longer than the slowest response: a failing token review is retried for four seconds.
TIMEOUT_S = 30.0


class Client:
    """Sends requests to a server on loopback. contexts: the TLS settings of each identity."""

    def __init__(self, port: int, contexts: Callable[[str], ssl.SSLContext]) -> None:
        self.port = port
        self._contexts = contexts

    def send(self, request: Request) -> Outcome:
        """Send a request on a connection of its own."""
        return self.send_all([request])[0]

    def send_all(self, requests: list[Request]) -> list[Outcome]:
        """Send requests one after another on one connection, opened with the identity of the first."""
        outcomes: list[Outcome] = []
        try:
            with self.connect(requests[0].identity) as connection:
                for request in requests:
                    connection.sendall(encode(request))
                    outcomes.append(read_response(connection, request.method))
        except (OSError, HTTPException):
            outcomes += [None] * (len(requests) - len(outcomes))
        return outcomes

    def connect(self, identity: str) -> ssl.SSLSocket:
        """Open a TLS connection. Raises OSError, also for a handshake that fails."""
        plain = socket.create_connection((HOST, self.port), TIMEOUT_S)
        try:
            return self._contexts(identity).wrap_socket(plain, server_hostname=HOST)
        except OSError:
            plain.close()
            raise


def encode(request: Request) -> bytes:
    """The bytes of a request."""
    headers = list(request.headers)
    if not request.header("host"):
        headers.append(("Host", HOST))
    if request.body:
        headers.append(("Content-Length", str(len(request.body))))
    lines = [f"{request.method} {request.target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode() + request.body


def read_response(connection: socket.socket, method: str = "GET") -> Response:
    """Read one response. Raises OSError or HTTPException."""
    response = HTTPResponse(connection, method=method)
    response.begin()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Response(response.status, headers, response.read())
