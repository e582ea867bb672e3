"""Answers of the Pravega controller -> numbers of segments and the scaling policy. Pure."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec


class Event(msgspec.Struct, frozen=True):
    """One scaling of a stream. timestamp: Unix milliseconds; the segments are the whole set from then on, not a change.

    The specification says segmentList, the server (0.13) sends segments.
    """

    timestamp: int
    segments: list[dict[str, float]] = []
    segmentList: list[dict[str, float]] = []  # noqa: N815 the name on the wire

    def count(self) -> int:
        """How many segments are in force after it."""
        return len(self.segments) or len(self.segmentList)


class _Events(msgspec.Struct, frozen=True, rename="camel"):
    scaling_events: list[Event] = []


class Policy(msgspec.Struct, frozen=True, rename="camel"):
    """How Pravega scales a stream. type: FIXED_NUM_SEGMENTS, BY_RATE_IN_EVENTS_PER_SEC or BY_RATE_IN_KBYTES_PER_SEC.

    target_rate: events or KB a second and segment; scale_factor: splits of one segment at once; None where fixed.
    """

    type: str
    min_segments: int
    target_rate: int | None = None
    scale_factor: int | None = None


class _Stream(msgspec.Struct, frozen=True, rename="camel"):
    scaling_policy: Policy


def events(body: bytes) -> list[Event]:
    """Scaling events, oldest first, from either shape of the answer (S2-20). Raises ValueError when it is neither."""
    answer = _decoded(body, list[Event] | _Events)
    found: list[Event] = answer.scaling_events if isinstance(answer, _Events) else answer
    return sorted(found, key=lambda event: event.timestamp)


def policy(body: bytes) -> Policy:
    """The scaling policy in a stream's properties. Raises ValueError when there is none."""
    stream: _Stream = _decoded(body, _Stream)
    return stream.scaling_policy


def _decoded(body: bytes, shape: Any) -> Any:
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from error


def segments_at(history: Sequence[Event], at_s: float) -> int | None:
    """Segments in force at a time: those of the last event before it. None before the stream was created."""
    before = [event for event in history if event.timestamp <= at_s * 1000]
    return before[-1].count() if before else None


def prometheus_signals(scope: str, stream: str, unit: Literal["bytes", "events"] = "bytes") -> dict[str, str]:
    """PromQL of a stream's rates, signal -> query with $window, all in one unit (X-12).

    Pravega counts what is read in bytes only, so in events there is no throughput. The rate is taken a segment: each
    split or merge makes new series, and a sum of their counters would fall (T4).
    """
    match = f"scope={_quoted(scope)},stream={_quoted(stream)}"
    written = f"sum(rate(pravega_segmentstore_segment_write_{unit}_total{{{match}}}[$window]))"
    if unit == "events":
        return {"input_rate_records_per_s": written}
    read = f"sum(rate(pravega_segmentstore_segment_read_bytes_total{{{match}}}[$window]))"
    return {"input_rate_records_per_s": written, "throughput_records_per_s": read}


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
