"""Signals that end a process."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@contextmanager
def stop_event() -> Iterator[threading.Event]:
    """An event that SIGTERM, SIGINT or SIGHUP sets. A second signal ends the process at once.

    For the main thread alone. A signal that is ignored stays ignored: `nohup` ignores SIGHUP.
    """
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    handled = [number for number, handler in before.items() if handler is not signal.SIG_IGN]

    def handle(*_: object) -> None:
        for each in handled:  # first, because another signal must not interrupt set(): it would wait for itself
            signal.signal(each, signal.SIG_DFL)
        stop.set()

    for number in handled:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        for number in handled:
            signal.signal(number, before[number])
