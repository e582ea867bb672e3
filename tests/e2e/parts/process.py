"""A real program as a child process: its log, its readiness, its end."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import httpx
from confluent_kafka import KafkaException

HOST = "10.244.0.1"  # the bridge of tests/e2e/run: reachable from the tests and from every pod

T = TypeVar("T")
# Below those that the kernel gives to who names none (ip_local_port_range): a port stays free until its server is
# started, or started again, whatever connects in the meantime.
_PORTS = iter(random.sample(range(20_000, 32_000), 12_000))


class CommandError(AssertionError):
    """A program refused what it was asked for; the message is its complaint."""


class NotReadyError(AssertionError):
    """Something asked for did not come true in time; the message says what, and what was answered last."""


# What a server that is not there yet, or an object that is not there yet, looks like from a client.
_NOT_YET = (OSError, ValueError, LookupError, httpx.HTTPError, KafkaException, CommandError)


def tools() -> Path:
    """The folder with the real parts (tests/e2e/tools/build.sh)."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return Path(os.environ.get("BACKLOG_ADAPTER_TOOLS", cache / "backlog-adapter" / "tools"))


def free_port() -> int:
    """A port nobody listens on, on any address; never the same twice."""
    for port in _PORTS:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            return port
    raise OSError("no port is free")


def until(question: Callable[[], T], within_s: float, what: str, every_s: float = 0.2) -> T:
    """Asks until the answer is true and returns it; the errors of _NOT_YET count as untrue.

    Raises NotReadyError with the last answer after within_s.
    """
    end_s = time.monotonic() + within_s
    while True:
        answer: object
        try:
            answer = found = question()
            if found:
                return found
        except _NOT_YET as error:
            answer = repr(error)
        if time.monotonic() > end_s:
            raise NotReadyError(f"{what}: not within {within_s:g} s; last answer: {answer}")
        time.sleep(every_s)


def tail(log: Path, lines: int = 25) -> str:
    """The end of a log, long lines cut."""
    return "\n".join(line[:300] for line in log.read_text(errors="replace").splitlines()[-lines:])


class Process:
    """One program. A context manager: whatever happens inside, the program and its children are gone afterwards."""

    stdin = subprocess.DEVNULL

    def __init__(
        self, name: str, command: Sequence[str | Path], folder: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.folder = folder
        self.log = folder / f"{name}.log"
        self._command = [str(word) for word in command]
        self._env = {**os.environ, **(env or {})}
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def child(self) -> subprocess.Popen[bytes]:
        """The child process; it must have been started."""
        assert self._child is not None, f"{self.name} was not started"
        return self._child

    def start(self) -> None:
        """Starts it, in a session of its own, so that its whole group can be ended."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                self._command, stdin=self.stdin, stdout=log, stderr=log, env=self._env, start_new_session=True,
                cwd=self.folder,
            )  # fmt: skip

    def running(self) -> bool:
        """Whether it still runs."""
        return self._child is not None and self._child.poll() is None

    def ready(self, question: Callable[[], object], within_s: float = 180) -> None:
        """Waits until the answer is true. Raises NotReadyError with the log's end when it exits or stays silent."""

        def answered() -> object:
            return not self.running() or question()

        try:
            until(answered, within_s, f"{self.name} is ready")
        except NotReadyError as error:
            raise NotReadyError(f"{error}\n{self.log}:\n{tail(self.log)}") from None
        if not self.running():
            raise NotReadyError(f"{self.name} ended with {self.child.returncode}\n{self.log}:\n{tail(self.log)}")

    def stop(self, grace_s: float = 15) -> None:
        """Asks it to end, and ends it and its children when it does not."""
        if self._child is None:
            return
        if self.running():
            self.child.terminate()
            try:
                self.child.wait(grace_s)
            except subprocess.TimeoutExpired:
                self.kill()
        self.kill()

    def kill(self) -> None:
        """Ends its whole group at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()
        if self.child.stdin is not None and not self.child.stdin.closed:
            self.child.stdin.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
