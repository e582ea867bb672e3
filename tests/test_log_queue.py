"""Logging through a queue: no log call waits for the file, and none fails because of it."""

import io
import threading

import structlog

from adapter.log_queue import queued_logging


class Stuck(io.StringIO):
    """A file that takes no line before `go_on` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()

    def write(self, text: str) -> int:
        self.go_on.wait(20)
        return super().write(text)


class Full(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


def test_lines_are_written_in_order_before_the_end() -> None:
    file = io.StringIO()
    with queued_logging(file) as log:
        for number in range(100):
            structlog.get_logger().info("line", number=number)
    written = file.getvalue().splitlines()
    assert [int(line.rpartition("=")[2]) for line in written] == list(range(100))
    assert log.lost == 0


def test_a_stuck_file_delays_no_log_call_and_lost_lines_are_counted() -> None:
    file = Stuck()
    with queued_logging(file, most=10) as log:
        for _ in range(100):
            structlog.get_logger().info("line")
        assert 88 <= log.lost <= 90  # one line may be on its way to the file
        assert next(iter(log.gauges())).samples[0].value == log.lost
        file.go_on.set()


def test_a_full_disk_fails_no_log_call() -> None:
    with queued_logging(Full()) as log:
        structlog.get_logger().info("line")
    assert log.lost == 1
