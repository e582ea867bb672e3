"""A real program as a child process: its log, its readiness, its end."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self, TypeVar

import httpx
from confluent_kafka import KafkaException

HOST = "10.244.0.1"  # the bridge of tests/e2e/run: reachable from the tests and from every pod
# The log4j2 properties of a Java program that logs to its console.
LOG4J = """\
rootLogger.level={level}
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d %p %c %m%n
"""
UNVERIFIED_TLS = httpx.create_ssl_context(verify=False)  # for self-signed certificates, and as the kubelet's probes

T = TypeVar("T")
# Below the ephemeral ports of the kernel (ip_local_port_range): no outgoing connection takes the port of a server that
# has not started yet, or that restarts.
_PORTS = iter(random.sample(range(20_000, 32_000), 12_000))


class CommandError(AssertionError):
    """A command failed; the message is its output."""


class NotReadyError(AssertionError):
    """A condition was not true in time; the message names the condition and its last value."""


# How a client sees a server or an object that does not exist yet.
_NOT_YET = (OSError, ValueError, LookupError, httpx.HTTPError, KafkaException, CommandError)


def free_port() -> int:
    """A port without a listener on any address; never the same twice."""
    for port in _PORTS:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("", port))
            return port
    raise OSError("no port is free")


def until(condition: Callable[[], T], within_s: float, what: str, every_s: float = 0.2) -> T:
    """Waits until the condition is true and returns its value; the errors of _NOT_YET count as false.

    Raises NotReadyError after within_s.
    """
    end_s = time.monotonic() + within_s
    while True:
        last: object
        try:
            last = value = condition()
            if value:
                return value
        except _NOT_YET as error:
            last = repr(error)
        if time.monotonic() > end_s:
            raise NotReadyError(f"{what}: not within {within_s:g} s; last value: {last}")
        time.sleep(every_s)


def tail(log: Path, lines: int = 25) -> str:
    """The end of a log; long lines are cut."""
    return "\n".join(line[:300] for line in log.read_text(errors="replace").splitlines()[-lines:])


class Part:
    """Starts when it is entered and stops when it is left, also if its start fails."""

    def start(self) -> None:
        """Returns when the part is ready."""
        raise NotImplementedError

    def stop(self) -> None:
        """Ends every process of the part."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


class Loop(Part):
    """Repeats a step on a thread of its own. pause_s: before each step."""

    def __init__(self, pause_s: float) -> None:
        self._pause_s = pause_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=type(self).__name__)

    def step(self) -> None:
        """One step; an exception ends the loop."""
        raise NotImplementedError

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Returns when the last step has ended."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(120)

    def _run(self) -> None:
        while not self._stopping.wait(self._pause_s):
            self.step()


class Process(Part):
    """One program and its children."""

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
        """The child process, once it has started."""
        assert self._child is not None, f"{self.name} was not started"
        return self._child

    def start(self) -> None:
        """Starts the program in a session of its own, so that its whole group can be ended."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                self._command, stdin=self.stdin, stdout=log, stderr=log, env=self._env, start_new_session=True,
                cwd=self.folder,
            )  # fmt: skip

    def running(self) -> bool:
        """Whether the program still runs."""
        return self._child is not None and self._child.poll() is None

    def ready(self, condition: Callable[[], object], within_s: float = 180) -> None:
        """Waits until the condition is true. Raises NotReadyError with the end of the log if the program ends first."""
        try:
            until(lambda: not self.running() or condition(), within_s, f"{self.name} is ready")
        except NotReadyError as error:
            raise NotReadyError(f"{error}\n{self.log}:\n{tail(self.log)}") from None
        if not self.running():
            raise NotReadyError(f"{self.name} ended with {self.child.returncode}\n{self.log}:\n{tail(self.log)}")

    def stop(self, grace_s: float = 15) -> None:
        """Sends SIGTERM, waits for grace_s, and kills what is left of the group."""
        if self._child is None:
            return
        if self.running():
            self.child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.child.wait(grace_s)
        self.kill()

    def kill(self) -> None:
        """Kills the whole group at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()
        if self.child.stdin is not None and not self.child.stdin.closed:
            self.child.stdin.close()
