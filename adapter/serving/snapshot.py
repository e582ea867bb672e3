"""All decisions of one tick, immutable and versioned: what the pipeline publishes and every `serve` holds."""

from dataclasses import dataclass, field

import msgspec

from adapter.core.decisions import Decision, StageSignals

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One workload: its decision, the labels a selector can use, and its visible stages."""

    decision: Decision
    labels: dict[str, str] = field(default_factory=dict)
    stages: tuple[StageSignals, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """at_s: the tick; tick_s: seconds between ticks; window_s: the window of its rates; error_after_s: older than that
    it is no longer an answer. entries are sorted by workload."""

    version: int = VERSION
    at_s: float
    tick_s: float
    window_s: float
    error_after_s: float
    entries: tuple[Entry, ...]


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Snapshot)


def encode(snapshot: Snapshot) -> bytes:
    """The snapshot as JSON."""
    return _encoder.encode(snapshot)


def decode(body: bytes) -> Snapshot:
    """JSON as a snapshot. Raises ValueError when it is not one, or of another version."""
    try:
        snapshot = _decoder.decode(body)
    except msgspec.DecodeError as error:
        raise ValueError(f"not a snapshot: {error}") from error
    if snapshot.version != VERSION:
        raise ValueError(
            f"snapshot of version {snapshot.version}, expected {VERSION}: run one release of pipeline and serve"
        )
    return snapshot
