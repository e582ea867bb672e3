"""The head of a request, as it arrives -> its size, whether it is refused, and what it asks of the connection."""

import string
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import unquote

import httptools

from adapter.config import Limits
from adapter.serving.api.rendering import Response
from adapter.serving.api.request import is_well_formed
from adapter.serving.sockets.at_once import (
    BAD_REQUEST,
    HEAD_TOO_LARGE,
    MALFORMED_HOST,
    NO_HOST,
    TOO_MANY_REQUESTS,
    UNKNOWN_CODING,
    URI_TOO_LONG,
)
from adapter.serving.sockets.connections import Connections

FIELD_BYTES = len(b": \r\n")  # of a header, besides its name and its value
# Headers that make a request more than a question, and their harmless values.
_UNUSUAL = {
    b"connection": b"keep-alive",
    b"content-length": b"0",
    b"expect": None,
    b"transfer-encoding": None,
    b"upgrade": None,
}
NOTED = frozenset((b"host", *_UNUSUAL))
_OF_HOSTS = (string.ascii_letters + string.digits + "-._~!$&'()*+,;=%:[]").encode()  # RFC 3986, 3.2.2, and the port
_PERCENT = ord("%")


class Head:
    """The head that a connection is at, one after the other.

    is_open: it has begun and is not complete. size_bytes: of what has come of it, to be counted by whoever takes its
    headers. is_plain: it asks for nothing but an answer. body_bytes: of the body that it announces. expects: whether a
    word is awaited before the body comes.
    """

    __slots__ = (
        "_codings",
        "_connections",
        "_held_bytes",
        "_hosts",
        "_limits",
        "body_bytes",
        "expects",
        "is_open",
        "is_plain",
        "size_bytes",
    )

    def __init__(self, limits: Limits, connections: Connections) -> None:
        self._limits = limits
        self._connections = connections
        self._held_bytes = 0
        self.is_open = False
        self.begin()
        self.is_open = False

    def begin(self) -> None:
        """Another one."""
        self.is_open = self.is_plain = True
        self.expects = False
        self.size_bytes = self.body_bytes = 0
        self._hosts: tuple[bytes, ...] = ()
        self._codings: tuple[bytes, ...] = ()

    def end(self) -> None:
        """It is complete, or nobody waits for the rest of it."""
        self.is_open = False
        self._connections.held_bytes -= self._held_bytes
        self._held_bytes = 0

    def target(self, size: int) -> Response | None:
        """Take note of its target, as long as it is by now; the refusal if it is too long."""
        self.size_bytes = size
        return URI_TOO_LONG if size > self._limits.uri_bytes else None

    def note(self, name: bytes, value: bytes) -> None:
        """Take note of a header that matters here, its name in lower case."""
        if name == b"host":
            self._hosts += (value,)
            return
        value = value.strip(b" \t").lower()
        if value != _UNUSUAL[name]:
            self.is_plain = False
        if name == b"content-length":
            self.body_bytes = int(value)
        elif name == b"expect":
            self.expects = value == b"100-continue"
        elif name == b"transfer-encoding":
            self._codings += (value,)

    def fault(self, url: bytes, parser: httptools.HttpRequestParser) -> Response | None:
        """The refusal, if it is complete and not well-formed; as Go's net/http has it, and in its order.

        parser: knows the version, which is asked for where it matters alone.
        """
        if len(self._hosts) > 1 or not _has_sound_path(url):
            return BAD_REQUEST
        if self._codings and self._codings != (b"chunked",):
            return UNKNOWN_CODING
        if not self._hosts:
            return None if parser.get_http_version() == "1.0" else NO_HOST
        return MALFORMED_HOST if self._hosts[0].strip(b" \t").translate(None, _OF_HOSTS) else None

    def hold(self, more_bytes: int) -> Response | None:
        """Count bytes of it that the parser keeps until it is whole; the refusal if they are too many."""
        self._held_bytes += more_bytes
        self._connections.held_bytes += more_bytes
        if self._held_bytes > self._limits.header_bytes:
            return HEAD_TOO_LARGE
        return TOO_MANY_REQUESTS if self._connections.held_bytes > self._limits.held_bytes else None


def _has_sound_path(url: bytes) -> bool:
    path = url.partition(b"?")[0]
    return _PERCENT not in path or is_well_formed(path.decode("latin-1"))


def complete(scope: MutableMapping[str, Any], method: bytes, url: bytes) -> None:
    """What uvicorn adds to a scope when it hands a request over."""
    target = httptools.parse_url(url)
    path = target.path.decode("ascii")
    scope["method"] = method.decode("ascii")
    scope["path"] = unquote(path) if "%" in path else path
    scope["raw_path"] = target.path
    scope["query_string"] = target.query or b""
