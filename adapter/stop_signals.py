"""Signals that end a process."""

import _thread
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

SPARK_STOPS = "stopping; Spark ends first, which takes some seconds"
_STDERR = 2
_SET_WITHIN_S = 0.5
_LONGEST_WAIT_S = 1.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@contextmanager
def stop_event(notice: str = "") -> Iterator[threading.Event]:
    """An event that SIGTERM, SIGINT or SIGHUP sets. A second signal ends the process at once.

    notice: written to stderr at the first signal. For the main thread alone. A signal that is ignored stays ignored:
    `nohup` ignores SIGHUP.
    """
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    handled = [number for number, handler in before.items() if handler is not signal.SIG_IGN]

    def handle(*_: object) -> None:
        for each in handled:
            signal.signal(each, signal.SIG_DFL)
        # On another thread: set() on this one could wait for a lock that wait() holds.
        _thread.start_new_thread(stop.set, ())
        if notice:
            with suppress(OSError):  # the terminal may be closed
                os.write(_STDERR, f"\n{notice}\n".encode())  # not a buffered write, which may be in progress

    for number in handled:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        for number in handled:
            signal.signal(number, before[number])


def wait_for_stop(stop: threading.Event) -> None:
    """Wait for the event. A signal that arrives right before a wait without a limit would not interrupt it."""
    while not stop.wait(_LONGEST_WAIT_S):
        pass


def is_stopping(stop: threading.Event) -> bool:
    """Whether a signal has arrived. Waits briefly, because the handler sets the event on another thread."""
    return stop.wait(_SET_WITHIN_S)
