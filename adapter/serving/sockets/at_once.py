"""An answer that is ready -> its bytes on the wire, in one piece."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from adapter.serving.api.status import encode, failure, internal_error

Fields = Sequence[tuple[bytes, bytes]]

REFUSALS = 400  # codes from here on
CLOSE = (b"connection", b"close")
_WITHOUT_BODY = (204, 304)
_JSON = ((b"content-type", b"application/json"), (b"cache-control", b"no-cache, private"))
_TEXT = ((b"content-type", b"text/plain; charset=utf-8"),)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer in whole. headers: without Date and Content-Length, which the server adds, and without line feeds.

    body: also of an answer to HEAD, which is sent without it.
    """

    code: int
    headers: Fields
    body: bytes

    @property
    def closes(self) -> bool:
        """Whether it is the connection's last."""
        return any(name.lower() == b"connection" and b"close" in value.lower() for name, value in self.headers)


# The ASGI scope of a request without a body -> its answer; None: another has to answer. It must not wait.
AtOnce = Callable[[Mapping[str, Any]], Reply | None]


def wire(reply: Reply, more: Fields = (), *, is_head: bool = False) -> bytes:
    """Status line, headers and body. more: headers besides the reply's own. is_head: as an answer to HEAD."""
    parts = [STATUS_LINE[reply.code]]
    for name, value in (*more, *reply.headers):
        parts += (name, b": ", value, b"\r\n")
    if reply.code in _WITHOUT_BODY:
        parts.append(b"\r\n")
    else:
        parts += (b"content-length: %d\r\n\r\n" % len(reply.body), b"" if is_head else reply.body)
    return b"".join(parts)


def _status(code: int, reason: str, message: str) -> Reply:
    return Reply(code, _JSON, encode(failure(code, reason, message).document))


# What the server itself answers. Go's server has 400 and 431 as text, and 429 from its limit of requests in work.
BAD_REQUEST = Reply(400, _TEXT, b"400 Bad Request")
URI_TOO_LONG = _status(
    414, "RequestURITooLong", "the request's path and query are too long; ask with a shorter selector"
)
HEAD_TOO_LARGE = _status(431, "RequestHeaderFieldsTooLarge", "the request's headers are too large")
TOO_MANY_REQUESTS = _status(429, "TooManyRequests", "too many requests are in work; ask again later")
FAILED = Reply(500, _JSON, encode(internal_error().document))
