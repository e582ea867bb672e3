"""Start programs under measurement in their own process group, and end them in every case."""

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
    """Run a program while the block lasts; then interrupt, and finally kill, its process group. out: its output."""
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
    """Wait for a condition. Raises RuntimeError with the program's output if it ends or takes too long."""
    until_s = time.monotonic() + within_s
    pause = threading.Event()
    while not ready():
        if process.poll() is not None or time.monotonic() > until_s:
            ended = "ended" if process.poll() is not None else f"was not ready within {within_s:.0f} s"
            raise RuntimeError(f"the program under measurement {ended}:\n{out.read_text()}")
        pause.wait(LOOK_EVERY_S)


def free_port() -> int:
    """A currently unused port of loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _signal(process: "subprocess.Popen[bytes]", number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
