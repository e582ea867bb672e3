"""Pravega's segments, through the cluster's API."""

from parts.adapter import SEGMENTS, Adapter
from parts.pravega import Pravega
from parts.process import until


def test_segments_follow_each_scaling_of_the_stream(adapter: Adapter, pravega: Pravega) -> None:
    pravega.create_stream("shop", "clicks", 2)
    for segments in (2, 5, 3):
        pravega.scale("shop", "clicks", segments)
        until(lambda wanted=segments: pravega.segments("shop", "clicks") == wanted, 120, f"{segments} segments")
        # Each server pulls the new snapshot at a time of its own.
        until(lambda wanted=segments: _answers(adapter) == [str(wanted)] * 2, 60, f"both servers answer {segments}")
        assert adapter.number("segments", "clicks") == segments


def _answers(adapter: Adapter) -> list[str]:
    return [item["value"] for answer in adapter.read_every_server(SEGMENTS) for item in answer.json()["items"]]
