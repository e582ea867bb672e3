"""One reader a segment, whatever they carry."""

from math import nan

import pytest
from policy_inputs import bounded, terms, wanted

from adapter.core.decisions import Bound
from adapter.core.policies import policy_of

SEGMENTS = {
    "S2-01: as many readers as segments": (7, 1, 7),
    "S2-02: 40 segments need 40, and the maximum of 32 is a bound": (40, 1, 40),
    "S2-03: threshold 1 of the KEDA variant": (15, 1, 15),
    "several segments a worker, upwards": (7, 2, 4),
    "several segments a worker, even": (8, 2, 4),
    "S2-18: the gauge has vanished": (nan, 1, nan),
    "a stream has at least one segment, so 0 is not a count yet": (0, 1, nan),
}


@pytest.mark.parametrize(("segments", "per_worker", "expected"), SEGMENTS.values(), ids=SEGMENTS)
def test_the_size_is_segments_over_segments_per_worker(segments, per_worker, expected):
    size, keep_up, catch_up = terms("segments", 10, 1000, partitions=segments, segments_per_worker=per_worker)
    assert (size, keep_up, catch_up) == pytest.approx((expected, nan, nan), nan_ok=True)


@pytest.mark.parametrize(("slots", "per_worker", "expected"), [(2, 1, 5), (2, 4, 3), (4, 1, 3)])
def test_a_worker_reads_a_segment_in_each_of_its_slots(slots, per_worker, expected):
    rules = {"slots_per_worker": slots, "segments_per_worker": per_worker}
    assert wanted("segments", 3, 1000, partitions=10, **rules) == expected


def test_s2_02_the_demo_has_32_readers_at_most():
    assert bounded(wanted("segments", 10, 1000, partitions=40), 10, max_workers=32) == (32, Bound.MAX)


@pytest.mark.parametrize("observed", [3, 5, 10, 14])
def test_s2_15_replicas_are_the_segments_of_the_named_stream_and_not_one_less(observed):
    assert wanted("segments", 9, 1000, partitions=observed) == observed


@pytest.mark.parametrize("load", [(10, nan, nan, nan), (nan, 1000, 0, 0), (2, 9000, 5000, 1e9), (0, 0, 0, 0)])
def test_s2_17_only_the_segments_matter(load):
    assert wanted("segments", *load, partitions=7, cpu=1.0) == 7


def test_s2_16_fewer_segments_scale_down_at_once():
    assert wanted("segments", 14, 1000, partitions=10) == 10
    assert not policy_of("segments").defaults
