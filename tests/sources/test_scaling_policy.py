"""The scaling policies in answers that a real controller gave."""

from pathlib import Path

import pytest

from adapter.sources.scaling_policy import policy_text

RECORDED = Path(__file__).parents[1] / "data" / "pravega"


@pytest.mark.parametrize(
    ("recording", "text"),
    [
        pytest.param("stream_fixed", "fixed, 4 segments", id="a fixed number"),
        pytest.param(
            "stream_by_events", "by rate, target 100 events/s a segment, factor 2, at least 1 segment", id="events"
        ),
        pytest.param(
            "stream_by_bytes", "by rate, target 512 KB/s a segment, factor 3, at least 2 segments", id="bytes"
        ),
    ],
)
def test_the_policy_of_a_real_controller_is_one_phrase(recording: str, text: str) -> None:
    assert policy_text((RECORDED / f"{recording}.json").read_bytes()) == text


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<html>", id="not a controller"),
        pytest.param(b"\xff", id="not UTF-8"),
        pytest.param(b"{}", id="no policy"),
        pytest.param(b'{"scalingPolicy": {"type": "BY_MOON"}}', id="a kind that is not known"),
        pytest.param(b'{"scalingPolicy": {"type": "BY_RATE_IN_EVENTS_PER_SEC"}}', id="a rate without a number"),
    ],
)
def test_another_answer_is_an_error_and_no_policy(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"^no scaling policy that this release knows: ."):
        policy_text(body)
