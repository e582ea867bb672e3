"""All decisions of one tick, immutable and versioned: what the pipeline publishes and every `serve` holds."""

from collections.abc import Collection
from dataclasses import dataclass

import msgspec

from adapter.serving.snapshots.columns import Columns, Entries, Entry, entries_of

__all__ = ["Entry", "Snapshot", "decode", "encode"]

VERSION = 4  # increase with every change of Decision, its defaults, Reason, Bound, Columns or what is below
MOST_TICKS_AHEAD = 2  # clocks differ a little; a tick further in the future is a clock that was wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All decisions of one tick. entries are sorted by workload."""

    version: int = VERSION
    at_s: float  # the tick
    tick_s: float  # seconds between ticks
    window_s: float  # of its rates
    error_after_s: float  # the largest of its entries; an older snapshot serves no number
    entries: Collection[Entry]

    def is_ahead(self, now_s: float) -> bool:
        """Whether its tick lies in the future, farther than clocks may differ."""
        return self.at_s > now_s + MOST_TICKS_AHEAD * self.tick_s


class _Versioned(msgspec.Struct):
    """As much of a snapshot as every version of it has."""

    version: int


class _Message(_Versioned):
    at_s: float
    tick_s: float
    window_s: float
    error_after_s: float
    columns: Columns


_encode = msgspec.msgpack.Encoder().encode
_decode_version = msgspec.msgpack.Decoder(_Versioned).decode
_decode = msgspec.msgpack.Decoder(_Message).decode


def encode(snapshot: Snapshot) -> bytes:
    """The snapshot as MessagePack, column by column."""
    columns = entries_of(snapshot.at_s, snapshot.entries).columns
    numbers = snapshot.at_s, snapshot.tick_s, snapshot.window_s, snapshot.error_after_s
    return _encode(_Message(snapshot.version, *numbers, columns))


def decode(body: bytes | memoryview) -> Snapshot:
    """MessagePack as a snapshot; its columns are views of the body.

    Raises ValueError when it is not a snapshot, or one of another version.
    """
    try:
        if (version := _decode_version(body).version) != VERSION:
            raise ValueError(
                f"snapshot of version {version}, expected {VERSION}: run one release of pipeline and serve"
            )
        message = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not a snapshot: {error}") from error
    return Snapshot(
        at_s=message.at_s,
        tick_s=message.tick_s,
        window_s=message.window_s,
        error_after_s=message.error_after_s,
        entries=Entries(message.at_s, message.columns),
    )
