"""The limits of a server, and what it refused because of them."""

from collections import Counter
from dataclasses import dataclass

_KIB = 1024


@dataclass(frozen=True)
class ServerLimits:
    """What one client may use. The settings `serving.limits` describe each field."""

    connections: int = 512
    handshakes: int = 128
    handshake_s: float = 10.0
    header_s: float = 15.0
    header_bytes: int = 32 * _KIB
    header_fields: int = 100
    body_bytes: int = 16 * _KIB
    requests: int = 128
    request_s: float = 10.0
    write_s: float = 20.0
    idle_s: float = 120.0


class ServerCounters:
    """Counts what a server closed or refused. The event loop alone writes them."""

    def __init__(self) -> None:
        self.handshakes = 0  # in progress
        self.closed_for_room = 0
        self.closed_for_time = 0
        self.refused = Counter[int]()  # by status code
