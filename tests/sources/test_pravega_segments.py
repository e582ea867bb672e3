from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.sources.segments import ScalingEvent, scaling_events, segments_at

RECORDED = Path(__file__).parents[1] / "data" / "pravega"
SPECIFIED = b"""{"scalingEvents": [
  {"timestamp": 2000, "segmentList": [{"number": 1}, {"number": 2}], "splits": 1, "merges": 0},
  {"timestamp": 1000, "segmentList": [{"number": 0}], "splits": 0, "merges": 0}]}"""


def test_each_event_of_a_real_controller_has_all_segments_s2_20() -> None:
    found = scaling_events((RECORDED / "scaling_events.json").read_bytes())
    assert [(event.timestamp, event.count()) for event in found] == [
        (1795283939020, 1),
        (1795283941430, 4),
        (1795283944786, 2),
    ]


def test_the_specified_format_is_read_too_oldest_first_s2_20() -> None:
    assert [(event.timestamp, event.count()) for event in scaling_events(SPECIFIED)] == [(1000, 1), (2000, 2)]


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"scalingEvents": 3}', b'[{"segments": []}]', b"\xff"])
def test_any_other_format_is_an_error(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        scaling_events(body)


@pytest.mark.parametrize(
    ("at_s", "expected"),
    [
        pytest.param(0.999, None, id="before the stream was created"),
        pytest.param(1.0, 1, id="from the event on"),
        pytest.param(1.999, 1, id="until the next"),
        pytest.param(2.0, 2, id="the next"),
        pytest.param(9e9, 2, id="the last one lasts"),
    ],
)
def test_the_last_event_defines_the_segments_in_force(at_s: float, expected: int | None) -> None:
    assert segments_at(scaling_events(SPECIFIED), at_s) == expected


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(1, 9)), min_size=1), st.integers(0, 200))
def test_the_count_at_a_time_never_depends_on_later_events(parts: list[tuple[int, int]], at_s: int) -> None:
    history = [ScalingEvent(timestamp=1000 * second, segments=[{}] * count) for second, count in sorted(parts)]
    before = [event for event in history if event.timestamp <= 1000 * at_s]
    assert segments_at(history, at_s) == segments_at(before, at_s)
