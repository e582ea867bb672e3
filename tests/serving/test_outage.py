"""What is wrong with another server is told once while it lasts."""

from typing import Any

import structlog

from adapter.serving.outage import MOST_CAUSES, Outage


def levels(*causes: str | None) -> list[tuple[str, Any]]:
    """What is logged of attempts that fail for a cause or, None, work."""
    with structlog.testing.capture_logs() as logs:
        outage = Outage(structlog.get_logger(), "it is down", "it is up again", server="other")
        for cause in causes:
            if cause is None:
                outage.worked()
            else:
                outage.failed(cause)
            assert outage.lasts is (cause is not None)
    assert all(log["server"] == "other" for log in logs)
    return [(log["log_level"], log.get("cause")) for log in logs]


def test_each_cause_is_told_once_and_then_that_it_is_over() -> None:
    assert levels(None, "refused", "refused", "late", "refused", None, None) == [
        ("warning", "refused"),
        ("warning", "late"),
        ("info", None),
    ]


def test_the_next_outage_is_told_anew() -> None:
    assert levels("refused", None, "refused") == [("warning", "refused"), ("info", None), ("warning", "refused")]


def test_a_server_that_words_each_error_anew_fills_no_log() -> None:
    assert len(levels(*map(str, range(1_000)))) == MOST_CAUSES
