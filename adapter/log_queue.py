"""Log without waiting for the file, which may be full or a pipe without a reader."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from logging.handlers import QueueHandler, QueueListener
from queue import Queue
from typing import TextIO

import structlog
from prometheus_client.core import CounterMetricFamily, Metric

MOST_LINES = 1_000  # that wait for the file
_LAST_S = 1.0  # for the lines that still wait at the end


class _LossCounter(logging.Handler):
    """Counts the lines that a handler cannot take; logging would write a traceback to stderr."""

    lost = 0

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # the name is logging's
        self.lost += 1


class _Queue(_LossCounter, QueueHandler):
    """Drops lines while `most` wait. The queue itself has no limit, so that the listener's last entry always fits."""

    def __init__(self, most: int) -> None:
        self._waiting: Queue[logging.LogRecord] = Queue()
        super().__init__(self._waiting)
        self._most = most

    def enqueue(self, record: logging.LogRecord) -> None:
        """Add the record, or count its loss."""
        if self._waiting.qsize() >= self._most:
            self.lost += 1
        else:
            super().enqueue(record)


class _File(_LossCounter, logging.StreamHandler):  # type: ignore[type-arg]  # cannot be subscripted at runtime in 3.11
    """Drops lines that the file does not take."""


@dataclass(frozen=True, slots=True)
class LogQueue:
    """The handlers of a queued log."""

    queue: _Queue
    file: _File

    @property
    def lost(self) -> int:
        """Lines that were not written."""
        return self.queue.lost + self.file.lost

    def gauges(self) -> Iterator[Metric]:
        """For Telemetry.add."""
        yield CounterMetricFamily("backlog_adapter_log_lines_lost", "log lines that were not written", value=self.lost)


@contextmanager
def queued_logging(file: TextIO, most: int = MOST_LINES) -> Iterator[LogQueue]:
    """Write all log lines of this process to the file from a thread of its own."""
    before = structlog.get_config()
    log = LogQueue(_Queue(most), _File(file))
    listener = QueueListener(log.queue.queue, log.file)
    logger = logging.Logger("backlog-adapter")
    logger.addHandler(log.queue)
    listener.start()
    structlog.configure(logger_factory=lambda *_: logger)
    try:
        yield log
    finally:
        structlog.configure(**before)
        last = threading.Thread(target=listener.stop, daemon=True)
        last.start()
        last.join(_LAST_S)
