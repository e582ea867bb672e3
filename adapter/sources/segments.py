"""Scaling events of a Pravega stream -> the number of its segments. Pure."""

from collections.abc import Sequence
from typing import Any

import msgspec


class ScalingEvent(msgspec.Struct, frozen=True):
    """One change of a stream's segments. The segments are the complete set from then on, not a difference.

    The specification calls the field segmentList; the server (0.13) sends segments.
    """

    timestamp: int  # Unix milliseconds
    segments: list[dict[str, float]] = []
    segmentList: list[dict[str, float]] = []  # noqa: N815 - the name in the API

    def count(self) -> int:
        """The number of segments in force after the event."""
        return len(self.segments) or len(self.segmentList)


class _Events(msgspec.Struct, frozen=True, rename="camel"):
    scaling_events: list[ScalingEvent] = []


def scaling_events(body: bytes) -> list[ScalingEvent]:
    """Scaling events, oldest first, from either form of the answer (S2-20). Raises ValueError for anything else."""
    try:
        answer: Any = msgspec.json.decode(body, type=list[ScalingEvent] | _Events)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    found: list[ScalingEvent] = answer.scaling_events if isinstance(answer, _Events) else answer
    return sorted(found, key=lambda event: event.timestamp)


def segments_at(history: Sequence[ScalingEvent], at_s: float) -> int | None:
    """The segments in force at a time, from the last event before it; None before the stream was created."""
    before = [event for event in history if event.timestamp <= at_s * 1000]
    return before[-1].count() if before else None
