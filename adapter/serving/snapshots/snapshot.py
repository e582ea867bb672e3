"""All decisions of one tick, immutable and versioned: what the pipeline publishes and every `serve` holds."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from adapter.core.decisions import Decision, StageSignals

VERSION = 2  # grows with every change of Decision, Reason, Bound or what is below
MOST_TICKS_AHEAD = 2  # clocks differ a little; a tick further in the future is a clock that was wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One workload: its decision, the labels a selector can use, and its visible stages.

    error_after_s: a number made from samples that are older is no answer.
    """

    decision: Decision
    error_after_s: float
    labels: dict[str, str] = field(default_factory=dict)
    stages: tuple[StageSignals, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """at_s: the tick; tick_s: seconds between ticks; window_s: the window of its rates; error_after_s: the largest of
    its entries, older than that it answers nothing. entries are sorted by workload."""

    version: int = VERSION
    at_s: float
    tick_s: float
    window_s: float
    error_after_s: float
    entries: tuple[Entry, ...]

    def is_ahead(self, now_s: float) -> bool:
        """Whether its tick lies in the future, farther than clocks may differ."""
        return self.at_s > now_s + MOST_TICKS_AHEAD * self.tick_s


@dataclass(frozen=True, slots=True)
class _Versioned:
    """As much of a snapshot as every version of it has."""

    version: int


class _Outline(msgspec.Struct):
    """A snapshot whose entries are still to be read."""

    at_s: float
    tick_s: float
    window_s: float
    error_after_s: float
    entries: list[msgspec.Raw]


# Entries that are read between two pauses: in one go, 40 000 would hold up every request for a third of a second.
_IN_A_ROW = 32

_encoder = msgspec.json.Encoder()
_version_decoder, _outline_decoder = msgspec.json.Decoder(_Versioned), msgspec.json.Decoder(_Outline)
_entry_decoder = msgspec.json.Decoder(Entry)


def encode(snapshot: Snapshot) -> bytes:
    """The snapshot as JSON."""
    return _encoder.encode(snapshot)


def decode(body: bytes) -> Snapshot:
    """JSON as a snapshot. Raises ValueError when it is not one, or of another version.

    The version is read first: a field or a reason that only another release knows is no other fault.
    """
    try:
        version = _version_decoder.decode(body).version
        if version != VERSION:
            raise ValueError(
                f"snapshot of version {version}, expected {VERSION}: run one release of pipeline and serve"
            )
        outline = _outline_decoder.decode(body)
        return Snapshot(
            version=version,
            at_s=outline.at_s,
            tick_s=outline.tick_s,
            window_s=outline.window_s,
            error_after_s=outline.error_after_s,
            entries=tuple(_entries(outline.entries)),
        )
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"not a snapshot: {error}") from error


def _entries(texts: Sequence[msgspec.Raw]) -> Iterator[Entry]:
    for number, text in enumerate(texts):
        if number % _IN_A_ROW == 0:
            time.sleep(0)  # lets another thread run
        yield _entry_decoder.decode(text)
