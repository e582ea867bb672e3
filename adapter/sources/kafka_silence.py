"""Decide when to replace a Kafka client that gets no answer for some groups."""

from collections.abc import Iterable

# After a broker was away, librdkafka (2.16, its issue 5511) can wait forever for the coordinator on it.
_FIRST_LIMIT_S = 30.0
_LAST_LIMIT_S = 300.0  # for some groups no client gets an answer, and each new client repeats requests for all groups


class SilentGroups:
    """The groups for which one client gets no answer, possibly by its own fault."""

    def __init__(self) -> None:
        self._since_s: dict[str, float] = {}  # group -> the first of its last ticks, all without an answer
        self._limits_s: dict[str, float] = {}  # group -> how long it may be silent, since its last answer
        self._overdue: list[str] = []  # groups beyond their limits

    @property
    def need_new_client(self) -> bool:
        """Whether a group has been silent for so long that the client may be the reason."""
        return bool(self._overdue)

    def update(self, groups: Iterable[str], now_s: float) -> None:
        """Replace the silent groups by those of a tick. A clock that was set back begins their time anew."""
        self._since_s = {group: min(self._since_s.get(group, now_s), now_s) for group in groups}
        self._limits_s = {group: self._limits_s.get(group, _FIRST_LIMIT_S) for group in self._since_s}
        self._overdue = [group for group, limit_s in self._limits_s.items() if now_s - self._since_s[group] >= limit_s]

    def restart(self) -> None:
        """Start over with a new client; double the limit of the groups that caused the change."""
        self._limits_s |= {group: min(2 * self._limits_s[group], _LAST_LIMIT_S) for group in self._overdue}
        self._since_s, self._overdue = {}, []
