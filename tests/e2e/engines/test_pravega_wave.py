"""A Pravega stream that scales itself by its event rate (S2-10, S2-17): segments and readers follow a wave."""

import pytest
from parts.stream_readers import StreamObservation, StreamReaders


@pytest.mark.full
@pytest.mark.timeout(3000)
def test_segments_and_readers_follow_a_wave(stream_readers: StreamReaders) -> None:
    readers, half_s = stream_readers, stream_readers.wave.period_s / 2

    readers.watch(lambda now: now.segments >= 2 and follows(now), half_s + 120, "segments and readers rise")
    readers.watch(lambda now: now.segments >= 4 and follows(now), half_s + 120, "they rise again")
    high = readers.watch(lambda now: now.at_s > readers.wave.period_s, half_s, "the wave is over")
    readers.watch(lambda now: now.segments < high.segments and follows(now), 1800, "segments and readers fall")
    readers.assert_that_the_hpa_set_each_size()


def follows(now: StreamObservation) -> bool:
    """One reader for each segment (S2-01, S2-15)."""
    return now.segments == now.replicas == now.readers
