"""Caches for untrusted input: bounded, so that no client can fill the memory."""

from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache, wraps
from threading import Lock
from typing import Any, Generic, TypeVar, cast

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Function = TypeVar("Function", bound=Callable[..., Any])

LONGEST_TEXT = 2_000  # characters; real names, groups and paths are shorter
_TEXT_BYTES = 100  # of a string besides its characters
_ENTRY_BYTES = 1_000  # of an entry besides its strings


def cache(entries: int, longest: int) -> Callable[[Function], Function]:
    """Cache the results of a function of strings.

    entries: the least recently used result is dropped first. longest: characters of all arguments together; the result
    for longer ones is not stored.
    """

    def decorate(function: Function) -> Function:
        memory = lru_cache(maxsize=entries)(function)

        @wraps(function)
        def call(*texts: str) -> Any:
            return memory(*texts) if sum(map(len, texts)) <= longest else function(*texts)

        return cast("Function", call)

    return decorate


class ByteCache(Generic[Key, Value]):
    """A mapping bounded in bytes, as `weight` counts them; the oldest entry is dropped first. Reads take no lock."""

    def __init__(self, largest_bytes: int) -> None:
        self._largest_bytes = largest_bytes
        self._bytes = 0
        self._entries: dict[Key, tuple[Value, int]] = {}
        self._lock = Lock()

    def get(self, key: Key) -> Value | None:
        """Return the value of a key, or None."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def put(self, key: Key, value: Value, entry_bytes: int) -> None:
        """Store a value as the newest. entry_bytes: 0 for an entry that must not be stored."""
        if not 0 < entry_bytes <= self._largest_bytes:
            return
        with self._lock:
            self._drop(key)
            while self._bytes + entry_bytes > self._largest_bytes:
                self._drop(next(iter(self._entries)))
            self._entries[key] = value, entry_bytes
            self._bytes += entry_bytes

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry[1]


def weight(texts: Iterable[str | bytes]) -> int:
    """Estimate the bytes of an entry that consists of these strings; 0 if one of them is too long to store."""
    lengths = [len(text) for text in texts if text]
    if max(lengths, default=0) > LONGEST_TEXT:
        return 0
    return _ENTRY_BYTES + sum(lengths) + _TEXT_BYTES * len(lengths)
