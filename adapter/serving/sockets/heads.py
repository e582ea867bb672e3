"""The head of a request, as it arrives -> its size, whether it is refused, and what it asks of the connection."""

from adapter.config import Limits
from adapter.serving.sockets.at_once import HEAD_TOO_LARGE, TOO_MANY_REQUESTS, URI_TOO_LONG, Reply
from adapter.serving.sockets.connections import Connections

# Headers that make a request more than a question, and their harmless values.
_UNUSUAL = {
    b"connection": b"keep-alive",
    b"content-length": b"0",
    b"expect": None,
    b"transfer-encoding": None,
    b"upgrade": None,
}


class Head:
    """The head that a connection is at, one after the other.

    is_open: it has begun and is not complete. is_plain: it asks for nothing but an answer. body_bytes: of the body
    that it announces. expects: whether a word is awaited before the body comes.
    """

    __slots__ = ("_bytes", "_connections", "_held_bytes", "_limits", "body_bytes", "expects", "is_open", "is_plain")

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
        self._bytes = self.body_bytes = 0

    def end(self) -> None:
        """It is complete, or nobody waits for the rest of it."""
        self.is_open = False
        self._connections.held_bytes -= self._held_bytes
        self._held_bytes = 0

    def target(self, size: int) -> Reply | None:
        """Take note of its target, as long as it is by now; the refusal if it is too long."""
        self._bytes = size
        return URI_TOO_LONG if size > self._limits.uri_bytes else None

    def header(self, name: bytes, value: bytes) -> Reply | None:
        """Take note of a header, its name in lower case; the refusal if that makes the head too large."""
        self._bytes += len(name) + len(value) + len(b": \r\n")
        if name in _UNUSUAL:
            self._note(name, value.lower())
        return HEAD_TOO_LARGE if self._bytes > self._limits.header_bytes else None

    def _note(self, name: bytes, value: bytes) -> None:
        if value != _UNUSUAL[name]:
            self.is_plain = False
        if name == b"content-length":
            self.body_bytes = int(value)
        elif name == b"expect":
            self.expects = value == b"100-continue"

    def hold(self, more_bytes: int) -> Reply | None:
        """Count bytes of it that the parser keeps until it is whole; the refusal if they are too many."""
        self._held_bytes += more_bytes
        self._connections.held_bytes += more_bytes
        if self._held_bytes > self._limits.header_bytes:
            return HEAD_TOO_LARGE
        return TOO_MANY_REQUESTS if self._connections.held_bytes > self._limits.held_bytes else None
