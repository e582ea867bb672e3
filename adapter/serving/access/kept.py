"""What is remembered of others' words: so many bytes and no more, the oldest goes first."""

from collections.abc import Hashable, Iterable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

LONGEST_TEXT = 2_000  # characters; no name, group or path is so long, and who sends such would fill the memory
_TEXT_BYTES = 100  # of a text besides its characters
_ENTRY_BYTES = 1_000  # of what is remembered besides its texts


class Kept(Generic[Key, Value]):
    """A memory. Reading takes no lock. most_bytes: as `weight` counts them."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._held: dict[Key, tuple[Value, int]] = {}
        self._lock = Lock()

    def get(self, key: Key) -> Value | None:
        """What is remembered of it, None for nothing."""
        held = self._held.get(key)
        return None if held is None else held[0]

    def put(self, key: Key, value: Value, weight: int) -> None:
        """Remember it, as the newest. weight: bytes, 0 for what is not to be remembered."""
        if not 0 < weight <= self._most_bytes:
            return
        with self._lock:
            self._drop(key)
            while self._bytes + weight > self._most_bytes:
                self._drop(next(iter(self._held)))
            self._held[key] = value, weight
            self._bytes += weight

    def _drop(self, key: Key) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._bytes -= held[1]


def weight(texts: Iterable[str]) -> int:
    """Bytes that it takes to remember something of these texts, about; 0 where one of them is too long for that."""
    lengths = [len(text) for text in texts if text]
    if max(lengths, default=0) > LONGEST_TEXT:
        return 0
    return _ENTRY_BYTES + sum(lengths) + _TEXT_BYTES * len(lengths)
