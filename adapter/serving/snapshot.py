"""All decisions of one tick, immutable and versioned: what the pipeline publishes and every `serve` holds."""

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


_encoder = msgspec.json.Encoder()
_decoder, _version_decoder = msgspec.json.Decoder(Snapshot), msgspec.json.Decoder(_Versioned)


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
        return _decoder.decode(body)
    except msgspec.DecodeError as error:
        raise ValueError(f"not a snapshot: {error}") from error
