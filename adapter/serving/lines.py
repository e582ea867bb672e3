"""Log lines on their way to a file that may be full, stuck or gone: nobody waits for it, and nothing fails by it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Full, Queue
from typing import TextIO, cast

import structlog
from prometheus_client.core import CounterMetricFamily, Metric

MOST_LINES = 1_000  # that wait for the file
LAST_S = 1.0  # for the lines that are left at the end


class Lines:
    """A text file to write to, as far as a logger needs one, that a thread writes for it. `flush` waits for nothing."""

    def __init__(self, file: TextIO, most: int = MOST_LINES) -> None:
        self._file = file
        self._waiting: Queue[str] = Queue(most)
        self._ends = threading.Event()
        self._dropped = 0
        self._failed = 0
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """Lines that were not written, because too many waited or because the file took none."""
        return self._dropped + self._failed

    def write(self, text: str) -> int:
        """Take a line; it is lost where too many wait already."""
        try:
            self._waiting.put_nowait(text)
        except Full:
            self._dropped += 1
        return len(text)

    def flush(self) -> None:
        """Nothing: the thread does."""

    def close(self) -> None:
        """Write what waits, as far as the file takes it soon."""
        self._ends.set()
        with suppress(Full):  # then there is enough to wake it up
            self._waiting.put_nowait("")
        self._thread.join(LAST_S)

    def gauges(self) -> Iterator[Metric]:
        """For Telemetry.add."""
        yield CounterMetricFamily("backlog_adapter_log_lines_lost", "log lines that were not written", value=self.lost)

    def _run(self) -> None:
        while not (self._ends.is_set() and self._waiting.empty()):
            try:
                self._file.write(self._waiting.get())
                self._file.flush()
            except (OSError, ValueError):  # no space, nobody reads, not encodable, closed
                self._failed += 1


@contextmanager
def unhindered_logs(file: TextIO) -> Iterator[Lines]:
    """All logging of this process goes through Lines meanwhile."""
    before = structlog.get_config()
    lines = Lines(file)
    structlog.configure(logger_factory=structlog.WriteLoggerFactory(cast("TextIO", lines)))
    try:
        yield lines
    finally:
        structlog.configure(**before)
        lines.close()
