"""A failure of another server is logged once while it lasts."""

from typing import Any

import pytest
import structlog

from adapter.errors import SourceError
from adapter.failure_logger import MOST_CAUSES, FailureLogger, one_line


def levels(*causes: str | None) -> list[tuple[str, Any]]:
    """What is logged of attempts that fail for a cause or, None, work."""
    with structlog.testing.capture_logs() as logs:
        outage = FailureLogger(structlog.get_logger(), "it is down", "it is up again", server="other")
        for cause in causes:
            if cause is None:
                outage.record_success()
            else:
                outage.record_failure(cause)
            assert outage.is_failing is (cause is not None)
    assert all(log["server"] == "other" for log in logs)
    return [(log["log_level"], log.get("cause")) for log in logs]


def test_each_cause_is_logged_once_and_then_the_recovery() -> None:
    assert levels(None, "refused", "refused", "late", "refused", None, None) == [
        ("warning", "refused"),
        ("warning", "late"),
        ("info", None),
    ]


def test_the_next_failure_is_logged_again() -> None:
    assert levels("refused", None, "refused") == [("warning", "refused"), ("info", None), ("warning", "refused")]


def test_an_error_with_ever_new_words_does_not_fill_the_log() -> None:
    assert len(levels(*map(str, range(1_000)))) == MOST_CAUSES


def attempts(*errors: Exception | None, **more: Any) -> list[Any]:
    """What is logged of attempts that raise an error or, None, work."""
    left = list(errors)

    def act() -> None:
        error = left.pop(0)
        if error is not None:
            raise error

    with structlog.testing.capture_logs() as logs:
        outage = FailureLogger(structlog.get_logger(), "it is down", "it is up again")
        assert [outage.attempt(act, **more) for _ in errors] == [error is None for error in errors]
    return logs


@pytest.mark.parametrize("error", [OSError("no"), KeyError("a"), RecursionError(), AssertionError(), StopIteration()])
def test_an_attempt_raises_nothing_and_logs_an_unforeseen_error_with_its_traceback(
    error: Exception,
) -> None:
    logs = attempts(None, error, error, None)
    assert [log["event"] for log in logs] == ["it is down", "it is up again"]
    assert (logs[0]["cause"], logs[0]["exc_info"]) == (one_line(error), error)


def test_an_expected_error_is_one_sentence() -> None:
    (log,) = attempts(SourceError("kubernetes", "connection refused"))
    assert log == {"event": "it is down", "log_level": "warning", "cause": "kubernetes: connection refused"}


def test_a_grave_failure_is_an_error_with_its_effect() -> None:
    (log,) = attempts(SourceError("kubernetes", "no"), is_grave=True, effect="none is admitted")
    assert (log["log_level"], log["effect"]) == ("error", "none is admitted")


def test_an_exit_request_is_not_caught() -> None:
    def leave() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        FailureLogger(structlog.get_logger(), "it is down", "it is up again").attempt(leave)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (SourceError("kafka", "no brokers"), "kafka: no brokers"),
        (OSError(" of two\n  lines"), "OSError: of two lines"),
        (KeyError("a"), "KeyError: 'a'"),
        (TimeoutError(), "TimeoutError"),
    ],
    ids=["ours", "of two lines", "a key", "without words"],
)
def test_an_error_is_formatted_as_one_line(error: Exception, words: str) -> None:
    assert one_line(error) == words
