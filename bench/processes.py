"""Programs under measurement: started in a group of their own, and gone at the end whatever happens."""

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

STOPS_WITHIN_S = 30.0
LOOK_EVERY_S = 0.02


@contextmanager
def running(program: Sequence[str], out: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """The program while the block lasts, then Ctrl-C to its group, then the kill. out: what it prints."""
    with out.open("wb") as file:
        process = subprocess.Popen(  # noqa: S603 - our own program
            list(program), stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
    try:
        yield process
    finally:
        _signal(process, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOPS_WITHIN_S)
        _signal(process, signal.SIGKILL)
        process.wait()


def wait_until(ready: Callable[[], bool], process: "subprocess.Popen[bytes]", out: Path, within_s: float) -> None:
    """Wait. Raises RuntimeError with what the program printed when it ends or takes too long."""
    until_s = time.monotonic() + within_s
    pause = threading.Event()
    while not ready():
        if process.poll() is not None or time.monotonic() > until_s:
            ended = "ended" if process.poll() is not None else f"was not ready within {within_s:.0f} s"
            raise RuntimeError(f"the program under measurement {ended}:\n{out.read_text()}")
        pause.wait(LOOK_EVERY_S)


def free_port() -> int:
    """A port of loopback that nobody listens on at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _signal(process: "subprocess.Popen[bytes]", number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
