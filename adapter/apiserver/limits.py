"""The limits of a server, and its own responses: to requests that the application never sees or never answers."""

from collections import Counter
from dataclasses import dataclass
from http import HTTPStatus

import msgspec

from adapter.apiserver.status import StatusError

_KIB = 1024
_HEADERS = ((b"content-type", b"application/json"), (b"cache-control", b"no-cache, private"), (b"connection", b"close"))


@dataclass(frozen=True, kw_only=True)
class ServerLimits:
    """What one client of the metrics API may use. Sizes in bytes, times in seconds."""

    connections: int = 512  # open; one more closes the least recently used, one without a certificate first
    handshakes: int = 128  # TLS handshakes in progress; one more closes the oldest
    handshake_s: float = 10.0
    receive_s: float = 15.0  # from the first byte of a request to the last byte of its body
    header_bytes: int = 32 * _KIB  # of the request line and headers; more are a 431
    header_fields: int = 100  # more are a 431
    body_bytes: int = 16 * _KIB  # more are a 413
    requests: int = 128  # in progress, of clients with a certificate, and as many of others; more are a 429
    response_s: float = 10.0  # a later response is a 504
    write_s: float = 20.0  # how long a client may stop reading a response; then its connection is closed
    idle_s: float = 120.0  # between two requests; above the 90 s after which an API server closes its side


class ServerCounters:
    """Counts what a server closed or refused. The event loop alone writes them."""

    def __init__(self) -> None:
        self.handshakes = 0  # in progress
        self.closed_for_room = 0
        self.closed_for_time = 0
        self.closed_for_certificate = 0
        self.refused = Counter[int]()  # by status code


@dataclass(frozen=True, slots=True)
class Refusal:
    """A Status as Kubernetes clients read it."""

    code: int
    reason: str
    message: str

    @property
    def body(self) -> bytes:
        """The Status in JSON."""
        return msgspec.json.encode(StatusError(self.code, self.reason, self.message).document)

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """Headers of the response; the connection closes after it."""
        return [*_HEADERS, (b"content-length", b"%d" % len(self.body))]

    @property
    def wire(self) -> bytes:
        """The whole response, for a request that has no ASGI scope yet."""
        fields = b"".join(b"%s: %s\r\n" % field for field in self.headers)
        return b"HTTP/1.1 %d %s\r\n" % (self.code, HTTPStatus(self.code).phrase.encode()) + fields + b"\r\n" + self.body


MALFORMED = Refusal(400, "BadRequest", "the request is not valid HTTP/1.1")
BODY_TOO_LARGE = Refusal(413, "RequestEntityTooLarge", "the request body is too large")
TOO_MANY_REQUESTS = Refusal(429, "TooManyRequests", "too many requests are in progress; try again later")
HEAD_TOO_LARGE = Refusal(431, "RequestHeaderFieldsTooLarge", "the request line and headers are too large or too many")
FAILED = Refusal(500, "InternalError", "an internal error occurred; the log of this server has the cause")
TIMED_OUT = Refusal(504, "Timeout", "the request took too long")
REFUSALS = (MALFORMED, BODY_TOO_LARGE, TOO_MANY_REQUESTS, HEAD_TOO_LARGE, FAILED, TIMED_OUT)
