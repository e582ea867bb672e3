"""Logging to a file that is full, stuck or gone: requests do not notice."""

import errno
import io
import threading
import time

import pytest
import structlog

from adapter.serving.lines import Lines, unhindered_logs


class Refusing(io.StringIO):
    """Takes nothing while it is full."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__()
        self.error = error

    def write(self, text: str) -> int:
        if self.error is not None:
            raise self.error
        return super().write(text)


class Stuck(io.StringIO):
    """A pipe that nobody reads: a write returns when it is drained."""

    def __init__(self) -> None:
        super().__init__()
        self.is_drained = threading.Event()

    def write(self, text: str) -> int:
        self.is_drained.wait(10)
        return super().write(text)


def wait_until_lost(lines: Lines, count: int) -> None:
    deadline_s = time.monotonic() + 10
    while lines.lost < count:
        assert time.monotonic() < deadline_s
        time.sleep(0.001)


def test_lines_arrive_whole_and_in_order_before_it_ends() -> None:
    file = io.StringIO()
    with unhindered_logs(file):
        for number in range(100):
            structlog.get_logger().info("request", number=number)
    numbers = [int(line.rsplit("=", 1)[1].removesuffix("\x1b[0m")) for line in file.getvalue().splitlines()]
    assert numbers == list(range(100))


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        BrokenPipeError(errno.EPIPE, "Broken pipe"),
        ValueError("I/O operation on closed file"),
        UnicodeEncodeError("ascii", "é", 0, 1, "ordinal not in range(128)"),
    ],
    ids=["full disk", "closed pipe", "closed file", "not encodable"],
)
def test_a_file_that_takes_nothing_fails_nobody_and_is_written_to_again_when_it_does(error: Exception) -> None:
    file = Refusing(error)
    with unhindered_logs(file) as lines:
        structlog.get_logger().info("lost")
        wait_until_lost(lines, 1)
        file.error = None
        structlog.get_logger().info("kept")
    assert "kept" in file.getvalue()
    assert "lost" not in file.getvalue()
    assert lines.lost == 1


def test_a_file_that_is_stuck_blocks_nobody_and_what_it_missed_is_counted() -> None:
    file = Stuck()
    lines = Lines(file, most=10)
    began_s = time.monotonic()
    for _ in range(100):
        lines.write("line\n")
    assert time.monotonic() - began_s < 1
    assert 89 <= lines.lost <= 90, "ten wait, and one may be on its way"
    (family,) = lines.gauges()
    assert family.samples[0].value == lines.lost
    file.is_drained.set()
    lines.close()
    assert file.getvalue() == "line\n" * (100 - lines.lost)


def test_afterwards_logging_is_as_it_was() -> None:
    before = structlog.get_config()
    with unhindered_logs(io.StringIO()):
        assert structlog.get_config() != before
    assert structlog.get_config() == before
    assert "log" not in {thread.name for thread in threading.enumerate()}
