"""Responses of the server itself, for requests that the application never sees or never answers."""

import json
from dataclasses import dataclass

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

_HEADERS = ((b"content-type", b"application/json"), (b"cache-control", b"no-cache, private"), (b"connection", b"close"))


@dataclass(frozen=True, slots=True)
class Refusal:
    """A Status as Kubernetes clients read it."""

    code: int
    reason: str
    message: str

    @property
    def body(self) -> bytes:
        """The Status in JSON."""
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        return json.dumps({**status, "message": self.message, "reason": self.reason, "code": self.code}).encode()

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """Headers of the response; the connection closes after it."""
        return [*_HEADERS, (b"content-length", b"%d" % len(self.body))]

    @property
    def wire(self) -> bytes:
        """The whole response, for a request that has no ASGI scope yet."""
        fields = b"".join(b"%s: %s\r\n" % field for field in self.headers)
        return STATUS_LINE[self.code] + fields + b"\r\n" + self.body


MALFORMED = Refusal(400, "BadRequest", "the request is not valid HTTP/1.1")
BODY_TOO_LARGE = Refusal(413, "RequestEntityTooLarge", "the request body is too large")
TOO_MANY_REQUESTS = Refusal(429, "TooManyRequests", "too many requests are in progress; try again later")
HEAD_TOO_LARGE = Refusal(431, "RequestHeaderFieldsTooLarge", "the request line and headers are too large or too many")
FAILED = Refusal(500, "InternalError", "an internal error occurred; the log of this server has the cause")
TIMED_OUT = Refusal(504, "Timeout", "the request took too long")
REFUSALS = (MALFORMED, BODY_TOO_LARGE, TOO_MANY_REQUESTS, HEAD_TOO_LARGE, FAILED, TIMED_OUT)
