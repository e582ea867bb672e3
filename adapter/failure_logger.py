"""Log a lasting failure once, instead of at every attempt."""

import logging
from collections.abc import Callable
from traceback import format_exception
from typing import Any

from adapter.errors import AdapterError, plain

MOST_CAUSES = 10  # of one failure: a server that words each error anew must not fill the log


class FailureLogger:
    """Logs each cause of a failure once until it is over, and then that it is over.

    log: of structlog. fields: of every line.
    """

    def __init__(self, log: Any, failure_message: str, recovery_message: str, **fields: object) -> None:
        self._log = log
        self._failure_message = failure_message
        self._recovery_message = recovery_message
        self._fields = fields
        self._causes: set[str] = set()

    @property
    def is_failing(self) -> bool:
        """Whether the last attempt failed."""
        return bool(self._causes)

    def attempt(self, act: Callable[[], object], *, is_grave: bool = False, **more: object) -> bool:
        """Call a function and log its failure. Returns whether it succeeded.

        Background threads use this for each round, so that no exception of one round ends the thread. An unforeseen
        exception is logged with its traceback.
        """
        try:
            act()
        except Exception as error:  # the top of a background round: it must not end the thread
            traceback = {} if isinstance(error, AdapterError) else {"exc_info": error}
            self.record_failure(one_line(error), is_grave=is_grave, **more, **traceback)
            return False
        self.record_success()
        return True

    def record_failure(self, cause: str, *, is_grave: bool = False, **more: object) -> None:
        """Record a failed attempt. is_grave: somebody has to act. more: further fields of this line."""
        if cause not in self._causes and len(self._causes) < MOST_CAUSES:
            self._causes.add(cause)
            (self._log.error if is_grave else self._log.warning)(
                self._failure_message, cause=cause, **self._fields, **more
            )

    def record_success(self) -> None:
        """Record a successful attempt."""
        if self._causes:
            self._log.info(self._recovery_message, **self._fields)
        self._causes.clear()


class TracebackLogger:
    """Logs each of the first causes of an unexpected error once: a bug repeats each tick, and would fill a volume.

    logger: of the standard library, the only one that Spark's workers have.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._causes: set[str] = set()

    def log(self, error: Exception, message: str, *values: object) -> None:
        """Log a message in the form of the standard library, and the traceback."""
        cause = one_line(error)
        if cause not in self._causes and len(self._causes) < MOST_CAUSES:
            self._causes.add(cause)
            # As text: a record with the error would keep the frames of its traceback.
            text = "".join(format_exception(error))
            self._logger.error(f"{message}; this cause is logged once\n%s", *values, text)


def one_line(error: Exception) -> str:
    """An error in one line, with its type unless it is one of ours."""
    text = plain(str(error))
    return text if text and isinstance(error, AdapterError) else f"{type(error).__name__}: {text}".removesuffix(": ")
