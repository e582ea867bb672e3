"""Pravega's segments, through the cluster's API."""

from parts.adapter import Adapter
from parts.pravega import Pravega
from parts.process import until


def test_segments_are_what_pravega_counts_before_and_after_a_real_scale(adapter: Adapter, pravega: Pravega) -> None:
    pravega.create_stream("shop", "clicks", 2)
    for segments in (2, 5, 3):
        pravega.scale("shop", "clicks", segments)
        until(lambda wanted=segments: pravega.segments("shop", "clicks") == wanted, 30, f"{segments} segments")
        until(lambda wanted=segments: adapter.number("segments", "clicks") == wanted, 30, f"{segments} are served")
        assert adapter.number("segments", "clicks") == pravega.segments("shop", "clicks")
