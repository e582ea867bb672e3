"""Positions of a consumer group over several ticks -> its stuck and hottest partitions, and transaction markers."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

Key = tuple[str, str, int]  # group, topic and number of a partition

# A commit of a checkpoint is spread over at most two ticks. A partition whose records arrive after the snapshot of one
# checkpoint moves with the next one, so that the group commits at most three times before.
_COMMITS_OF_OTHERS = 4


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a group in one partition."""

    key: Key
    committed: int | None  # None without a commit
    earliest: int  # log start offset
    latest: int  # log end offset
    unstable_records: int = 0  # from the last stable offset on, if the group waits for the end of transactions

    @property
    def readable_end(self) -> int:
        """The end of the records that the group can read."""
        return self.latest - self.unstable_records

    def backlog(self, offset_reset: str) -> int:
        """Records that the group can read and has not read yet. Retention may have deleted some of them."""
        start = self.earliest if offset_reset == "earliest" else self.readable_end
        return self.readable_end - max(start if self.committed is None else self.committed, self.earliest)


@dataclass(frozen=True, slots=True)
class _Partition:
    """The state of one partition over the ticks so far."""

    position: Position
    unchanged: bool  # neither the commit nor the readable end has moved since the tick before
    waiting_since_s: int | None  # since when records wait and the commit does not move; None if no record waits
    commits_of_others: int = 0  # ticks since then in which the group committed on another partition


@dataclass(frozen=True, slots=True)
class Partitions:
    """The history of one workload's partitions, as far as the partition signals need it."""

    partitions: tuple[_Partition, ...] = ()  # in the order of their keys
    # The time of each tick of the window with these partitions, and their log end offsets in the same order.
    ends: tuple[tuple[int, tuple[int, ...]], ...] = ()


def advance(history: Partitions, at_s: int, positions: Iterable[Position], window_s: int) -> Partitions:
    """The history with the positions of one more tick. It begins anew if the clock was set back.

    A tick that is read again, because a task is repeated, changes nothing: no time has passed in which offsets move.
    """
    newest_s = history.ends[-1][0] if history.ends else at_s - 1
    if at_s == newest_s:
        return history
    history = history if at_s > newest_s else Partitions()
    current = sorted(positions, key=lambda position: position.key)
    before = {each.position.key: each for each in history.partitions}
    commits = Counter(each.key[0] for each in current if each.key in before and _has_advanced(before[each.key], each))
    partitions = tuple(_next(before.get(each.key), at_s, each, commits[each.key[0]] > 0) for each in current)
    are_same = before.keys() == {position.key for position in current}
    ends = [each for each in history.ends if are_same and each[0] >= at_s - window_s]
    return Partitions(partitions, (*ends, (at_s, tuple(position.latest for position in current))))


def _has_advanced(before: _Partition, position: Position) -> bool:
    return before.position.committed != position.committed


def _next(before: _Partition | None, at_s: int, position: Position, group_committed: bool) -> _Partition:
    waits = position.committed is not None and position.backlog("latest") > 0
    if before is None or before.waiting_since_s is None or not waits or _has_advanced(before, position):
        return _Partition(position, _is_unchanged(before, position), at_s if waits else None)
    commits = before.commits_of_others + group_committed
    return _Partition(position, _is_unchanged(before, position), before.waiting_since_s, commits)


def _is_unchanged(before: _Partition | None, now: Position) -> bool:
    # The log end is not compared, because it moves while the next transaction is open.
    if before is None:
        return False
    was = before.position
    return (was.committed, was.earliest, was.readable_end) == (now.committed, now.earliest, now.readable_end)


def stuck_backlog(history: Partitions, window_s: int) -> int | None:
    """Records of the partitions that the group does not read although it commits on others; None if not known yet.

    A partition is known to be stuck after four commits of others and a whole window, whichever process read the earlier
    ticks. That none is stuck is known after half a window.

    The commits of other partitions count, not the time alone: a group that commits on checkpoints stands still between
    two of them. A group that commits nowhere is not stuck in a partition but as a whole.
    """
    stuck = sum(
        each.position.backlog("latest")
        for each in history.partitions
        if each.waiting_since_s is not None
        and history.ends[-1][0] - each.waiting_since_s >= window_s
        and each.commits_of_others >= _COMMITS_OF_OTHERS
    )
    return stuck if stuck or _covers(history, window_s) else None


def hottest_ratio(history: Partitions, window_s: int) -> float | None:
    """Records that arrived in the heaviest partition / in the mean one; None without records or a whole window."""
    if not _covers(history, window_s):
        return None
    arrived = [max(0, last - first) for first, last in zip(history.ends[0][1], history.ends[-1][1], strict=True)]
    return max(arrived) * len(arrived) / sum(arrived) if sum(arrived) > 0 else None


def marker_keys(history: Partitions) -> frozenset[Key]:
    """Partitions whose only unread offset is the marker at the end of a transaction, if the producers write those.

    No consumer reads the marker: one that commits the offset after the last record leaves a lag of 1 in every partition
    of the topic for ever. One unread record in each partition looks the same.
    A lag of 1 counts as a marker if it does not change from tick to tick and no partition of the topic has lag 0.
    """
    positions = [each.position for each in history.partitions]
    # An empty partition has lag 0 too, also if retention has deleted its marker.
    read_to_the_end = {each.key[:2] for each in positions if _lag(each) == 0 and each.readable_end > each.earliest}
    return frozenset(
        each.position.key
        for each in history.partitions
        if each.unchanged and _lag(each.position) == 1 and each.position.key[:2] not in read_to_the_end
    )


def _lag(position: Position) -> int | None:
    return None if position.committed is None else position.readable_end - max(position.committed, position.earliest)


def _covers(history: Partitions, window_s: int) -> bool:
    return len(history.ends) > 1 and history.ends[-1][0] - history.ends[0][0] >= window_s / 2
