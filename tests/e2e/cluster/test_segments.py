"""Pravega's segments, through the cluster's API."""

from parts.adapter import SEGMENTS, Adapter
from parts.pravega import Pravega
from parts.process import until


def test_segments_are_what_pravega_counts_before_and_after_a_real_scale(adapter: Adapter, pravega: Pravega) -> None:
    pravega.create_stream("shop", "clicks", 2)
    for segments in (2, 5, 3):
        pravega.scale("shop", "clicks", segments)
        until(lambda wanted=segments: pravega.segments("shop", "clicks") == wanted, 120, f"{segments} segments")
        # Either server may be asked, and each has its own second in which it pulls the new snapshot.
        until(lambda wanted=segments: _answers(adapter) == [str(wanted)] * 2, 60, f"{segments} are served by both")
        assert adapter.number("segments", "clicks") == segments


def _answers(adapter: Adapter) -> list[str]:
    return [item["value"] for answer in adapter.ask_every_server(SEGMENTS) for item in answer.json()["items"]]
