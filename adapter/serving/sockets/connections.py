"""Accepted connections -> a bounded number of them, each with a time by which it has to be of use."""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable


class Connection:
    """One accepted connection until it is closed, whatever has become of its handshake.

    end: ends it at once. until_s: when it is ended, on the monotonic clock; infinity while it waits for us.
    is_ready: whether requests may come. admitted: whether one was granted by its certificate.
    """

    __slots__ = ("admitted", "end", "is_ready", "until_s")

    def __init__(self, until_s: float) -> None:
        self.end: Callable[[], object] = nothing
        self.until_s = until_s
        self.is_ready = False
        self.admitted = False


class Connections:
    """All open connections. Of one event loop; its counts may be read from anywhere.

    most: open at once. handshakes: of them, not ready yet. handshake_s: from being accepted until it is ready.
    refused: code -> requests for which the server itself had this answer, and none of the application's.
    """

    def __init__(self, most: int, handshakes: int, handshake_s: float) -> None:
        self.most = most
        self._handshakes = handshakes
        self._handshake_s = handshake_s
        self._open: set[Connection] = set()
        # Each in the order of use, the longest unused first. Those that were ended for others are in none.
        self._beginning: OrderedDict[Connection, None] = OrderedDict()
        self._strangers: OrderedDict[Connection, None] = OrderedDict()
        self._admitted: OrderedDict[Connection, None] = OrderedDict()
        self.held_bytes = 0  # of all requests that have arrived in part
        self.ended_for_room = 0
        self.ended_for_time = 0
        self.refused: Counter[int] = Counter()

    @property
    def open(self) -> int:
        """How many are open, those in their handshake too."""
        return len(self._open)

    @property
    def admitted(self) -> int:
        """How many of them were granted a request by their certificate."""
        return len(self._admitted)

    def add(self) -> Connection:
        """One that was just accepted. Where there are too many, the one that is least missed ends.

        That is the stranger that was longest of no use; without strangers, the handshake that began first; without
        those, the longest unused of the admitted. So a flood drives out strangers, and a young handshake has its time.
        """
        if len(self._beginning) >= self._handshakes:
            self._end_first(self._beginning)
        elif len(self._beginning) + len(self._strangers) + len(self._admitted) >= self.most:
            self._end_first(self._strangers or self._beginning or self._admitted)
        connection = Connection(time.monotonic() + self._handshake_s)
        self._open.add(connection)
        self._beginning[connection] = None
        return connection

    def _end_first(self, among: OrderedDict[Connection, None]) -> None:
        least, _ = among.popitem(last=False)
        self.ended_for_room += 1
        least.end()

    def ready(self, connection: Connection, end: Callable[[], object]) -> bool:
        """Its handshake is over. end: as of a connection from now on. Whether it may stay, not ended meanwhile."""
        connection.is_ready, connection.end = True, end
        may_stay = connection in self._beginning
        if may_stay:
            del self._beginning[connection]
            self._strangers[connection] = None
        return may_stay

    def used(self, connection: Connection) -> None:
        """A request of it was answered."""
        if connection in self._strangers:
            self._strangers.move_to_end(connection)
        elif connection in self._admitted:
            self._admitted.move_to_end(connection)

    def admit(self, connection: Connection) -> None:
        """A request of it was granted, and its certificate was verified: from now on strangers go first."""
        if connection in self._strangers:
            del self._strangers[connection]
            self._admitted[connection] = None
            connection.admitted = True

    def remove(self, connection: Connection) -> None:
        """It is closed."""
        connection.end = nothing
        self._open.discard(connection)
        for queue in (self._beginning, self._strangers, self._admitted):
            queue.pop(connection, None)

    def end_late(self, now_s: float) -> None:
        """End every connection whose time is over."""
        for connection in [each for each in self._open if each.until_s < now_s]:
            connection.until_s = now_s + self._handshake_s  # once more, should this end have been without effect
            self.ended_for_time += 1
            connection.end()

    def end_all(self) -> None:
        """End every connection."""
        for connection in list(self._open):
            connection.end()


def nothing() -> None:
    """Does nothing."""
