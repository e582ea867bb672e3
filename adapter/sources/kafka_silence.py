"""Groups that a Kafka client gets no answer for -> whether to replace that client."""

from collections.abc import Iterable

# After a broker was away, librdkafka (2.16, its issue 5511) can wait forever for the coordinator on it.
_FIRST_LIMIT_S = 30.0
_LAST_LIMIT_S = 300.0  # no client gets an answer for some groups, and each new one costs all groups requests


class SilentGroups:
    """The groups that one client gets no answer for, which may be the client's own fault."""

    def __init__(self) -> None:
        self._since_s: dict[str, float] = {}  # group -> the first of its last ticks, all without an answer
        self._longest_s = 0.0
        self._limit_s = _FIRST_LIMIT_S

    @property
    def need_new_client(self) -> bool:
        """Whether a group has been silent for so long that the client may be the reason."""
        return self._longest_s >= self._limit_s

    def update(self, groups: Iterable[str], now_s: float) -> None:
        """Replace the silent groups by those of a tick. A clock that was set back begins their time anew."""
        self._since_s = {group: min(self._since_s.get(group, now_s), now_s) for group in groups}
        self._longest_s = now_s - min(self._since_s.values(), default=now_s)
        if not self._since_s:
            self._limit_s = _FIRST_LIMIT_S

    def restart(self) -> None:
        """Begin anew for another client, which gets more time if silent groups were the reason for it."""
        if self.need_new_client:
            self._limit_s = min(2 * self._limit_s, _LAST_LIMIT_S)
        self._since_s, self._longest_s = {}, 0.0
