"""An answer that is ready -> its bytes on the wire, in one piece."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from adapter.serving.api.rendering import Response
from adapter.serving.api.status import encode, failure, internal_error

Fields = Sequence[tuple[bytes, bytes]]

REFUSALS = 400  # codes from here on
CLOSE = (b"connection", b"close")
_WITHOUT_BODY = (204, 304)
_JSON = ((b"content-type", b"application/json"), (b"cache-control", b"no-cache, private"))
_TEXT = ((b"content-type", b"text/plain; charset=utf-8"),)

_log = structlog.get_logger(__name__)


# The ASGI scope of a request without a body -> its answer; None: another has to answer. It must not wait.
AtOnce = Callable[[Mapping[str, Any]], Response | None]


def found(at_once: AtOnce, scope: Mapping[str, Any], refused: Counter[int]) -> Response | None:
    """The answer, whatever happens on the way to it. refused: counts a failure by its code."""
    try:
        return at_once(scope)
    except Exception as error:  # the top of a request: the caller gets an answer, the log gets the rest
        _log.error("a request failed", path=scope["path"], exc_info=error)
        refused[FAILED.code] += 1
        return FAILED


def closes(response: Response) -> bool:
    """Whether it is the connection's last."""
    return any(b"close" in value.lower() for name, value in response.headers if name == b"connection")


def wire(response: Response, more: Fields = (), *, is_head: bool = False) -> bytes:
    """Status line, headers and body. more: headers besides the response's own, the server's Date among them.

    is_head: as an answer to HEAD, which is sent without its body.
    """
    parts = [STATUS_LINE[response.code]]
    for name, value in (*more, *response.headers):
        parts += (name, b": ", value, b"\r\n")
    if response.code in _WITHOUT_BODY:
        parts.append(b"\r\n")
    else:
        parts += (b"content-length: %d\r\n\r\n" % len(response.body), b"" if is_head else response.body)
    return b"".join(parts)


def _status(code: int, reason: str, message: str) -> Response:
    return Response(code, _JSON, encode(failure(code, reason, message).document))


# What the server itself answers. Go's server has 400, 431 and 501 as text, and 429 from its limit of requests in work.
BAD_REQUEST = Response(400, _TEXT, b"400 Bad Request")
NO_HOST = Response(400, _TEXT, b"400 Bad Request: missing required Host header")
MALFORMED_HOST = Response(400, _TEXT, b"400 Bad Request: malformed Host header")
UNKNOWN_CODING = Response(501, _TEXT, b"Unsupported transfer encoding")
URI_TOO_LONG = _status(
    414, "RequestURITooLong", "the request's path and query are too long; ask with a shorter selector"
)
HEAD_TOO_LARGE = _status(431, "RequestHeaderFieldsTooLarge", "the request's headers are too large")
TOO_MANY_REQUESTS = _status(429, "TooManyRequests", "too many requests are in work; ask again later")
FAILED = Response(500, _JSON, encode(internal_error().document))
_OWN = (BAD_REQUEST, URI_TOO_LONG, TOO_MANY_REQUESTS, HEAD_TOO_LARGE, FAILED, UNKNOWN_CODING)
OWN_CODES = tuple(each.code for each in _OWN)
