"""The decisions of one tick, immutable and versioned, and their MessagePack encoding."""

from dataclasses import dataclass

import msgspec

from adapter.serving.snapshots.columns import Columns, Entries, Entry

__all__ = ["Entry", "Snapshot", "decode", "encode"]

VERSION = 11  # increase after each change of Decision, its defaults, Reason, Bound, Columns or Snapshot
MOST_TICKS_AHEAD = 2  # allowed difference of clocks; a tick further in the future comes from a wrong clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All decisions of one tick."""

    at_s: float  # the tick
    tick_s: float  # seconds between ticks
    error_after_s: float  # the largest of its entries; no number of an older snapshot is served
    entries: Entries  # sorted by workload

    def is_ahead(self, now_s: float) -> bool:
        """Whether its tick is further in the future than clocks may differ."""
        return self.at_s > now_s + MOST_TICKS_AHEAD * self.tick_s


class _Versioned(msgspec.Struct):
    """The field that every version of a snapshot has."""

    version: int


class _Message(_Versioned):
    at_s: float
    tick_s: float
    error_after_s: float
    columns: Columns


_encode = msgspec.msgpack.Encoder().encode
_decode_version = msgspec.msgpack.Decoder(_Versioned).decode
_decode = msgspec.msgpack.Decoder(_Message).decode


def encode(snapshot: Snapshot) -> bytes:
    """Encode a snapshot as MessagePack."""
    numbers = snapshot.at_s, snapshot.tick_s, snapshot.error_after_s
    return _encode(_Message(VERSION, *numbers, snapshot.entries.columns))


def decode(body: bytes | memoryview) -> Snapshot:
    """Decode MessagePack; the columns are views of the body.

    Raises ValueError if it is not a snapshot, or has another version.
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
        error_after_s=message.error_after_s,
        entries=Entries(message.at_s, message.columns),
    )
