"""A request over TLS exactly as it was recorded -> what came of it."""

import ssl
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse, HTTPSConnection

from conformance.recording import Answered, Asked, Dropped, Outcome

# Longer than the slowest answer: a token review that fails is tried for four seconds.
PATIENCE_S = 30.0

Connect = Callable[[str], ssl.SSLContext]


class _Connection(HTTPSConnection):
    """Sends what it is given: a recording may hold a path that no careful client would send."""

    def _validate_path(self, url: str) -> None:
        pass

    def _encode_request(self, request: str) -> bytes:
        return request.encode("utf-8")


class Caller:
    """Asks a server on loopback. contexts: how somebody connects, by identity."""

    def __init__(self, port: int, contexts: Connect) -> None:
        self.port = port
        self._contexts = contexts

    def ask(self, asked: Asked) -> Outcome:
        """What came of a request on a connection of its own."""
        return self.ask_in_turn(asked)[0]

    def ask_in_turn(self, *requests: Asked) -> list[Outcome]:
        """What came of requests on one connection, which the first one's identity opens; it is never opened again."""
        context = self._contexts(requests[0].identity)
        connection = _Connection("127.0.0.1", self.port, timeout=PATIENCE_S, context=context)
        try:
            connection.connect()
        except OSError as error:
            return [Dropped(type(error).__name__)] * len(requests)
        connection.auto_open = False
        try:
            return [_outcome(connection, asked) for asked in requests]
        finally:
            connection.close()


def _outcome(connection: HTTPSConnection, asked: Asked) -> Outcome:
    try:
        connection.putrequest(asked.method, asked.uri, skip_host=bool(asked.header("host")), skip_accept_encoding=True)
        for name, value in asked.headers:
            connection.putheader(name, value)
        if asked.body is not None:
            connection.putheader("Content-Length", str(len(asked.body)))
        connection.endheaders(asked.body)
        response = connection.getresponse()
        return Answered(response.status, _headers(response), response.read())
    except (HTTPException, OSError, ValueError) as error:  # ValueError: a header that cannot be sent
        return Dropped(type(error).__name__)


def _headers(response: HTTPResponse) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in response.getheaders():
        known = headers.get(name.lower())
        headers[name.lower()] = value if known is None else f"{known}, {value}"
    return headers
