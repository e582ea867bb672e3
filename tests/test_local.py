"""`backlog-adapter run` as a user has it: a process that prints, answers, ends, and refuses in clear words."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import httpx
import pytest

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
FIRST_DECISION_WITHIN_S = 180.0  # 15 s on a quiet machine
ANSWERS_WITHIN_S = 60.0
GONE_WITHIN_S = 5.0  # Spark's workers end when they notice that the JVM has
ENDS_WITHIN_S = 100.0  # of which the command runs 40 s

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


class Run:
    """A running `backlog-adapter run`; every process it starts carries its mark."""

    def __init__(self, folder: Path, arguments: tuple[str, ...], environment: Mapping[str, str]) -> None:
        self.mark = f"BACKLOG_ADAPTER_TEST={uuid.uuid4()}"
        name, _, value = self.mark.partition("=")
        self._out = folder / "out"
        self._folder = folder
        with self._out.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "adapter", "run", *arguments],
                env={**environment, name: value, "TMPDIR": str(folder)},
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    @property
    def printed(self) -> str:
        return self._out.read_text("utf-8")

    @property
    def address(self) -> str:
        found = ADDRESS.search(self.printed)
        assert found, self.printed
        return found[0]

    def wait_for_the_first_decision(self) -> None:
        self.wait_for(lambda: "first decision after" in self.printed, FIRST_DECISION_WITHIN_S)
        assert self.process.poll() is None, self.printed

    def wait_for(self, ready: Callable[[], bool], within_s: float) -> None:
        """Until it is so, or the process has ended."""
        until_s, pause = time.monotonic() + within_s, threading.Event()
        while not ready() and self.process.poll() is None:
            assert time.monotonic() < until_s, self.printed
            pause.wait(0.1)

    def interrupt(self) -> None:
        """Ctrl-C, as the terminal sends it: the JVM and the workers get it too."""
        os.killpg(self.process.pid, signal.SIGINT)

    def has_ended_well(self) -> None:
        """It ends, soon, with exit code 0, and leaves nothing behind."""
        self.wait_for(lambda: False, ENDS_WITHIN_S)
        assert self.process.wait() == 0, self.printed
        assert "Traceback" not in self.printed
        until_s, pause = time.monotonic() + GONE_WITHIN_S, threading.Event()
        while self.leftovers() and time.monotonic() < until_s:
            pause.wait(0.1)
        assert self.leftovers() == []

    def leftovers(self) -> list[str]:
        """What is left of it: processes that carry the mark, and its folders of the moment."""
        found = [str(path) for path in self._folder.glob("backlog-adapter-*")]
        for environ in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if self.mark.encode() in environ.read_bytes().split(b"\0"):
                    found.append((environ.parent / "cmdline").read_text().replace("\0", " ")[:200])
        return found


@contextmanager
def running(folder: Path, *arguments: str, environment: Mapping[str, str] = os.environ) -> Iterator[Run]:
    run = Run(folder, arguments, environment)
    try:
        yield run
    finally:
        with suppress(ProcessLookupError):
            os.killpg(run.process.pid, signal.SIGKILL)
        run.process.wait()


def refused(folder: Path, *arguments: str, environment: Mapping[str, str] = os.environ) -> list[str]:
    """The messages on stderr when it does not start, with exit code 2."""
    program = [sys.executable, "-m", "adapter", "run", "--port", "0", *arguments]
    ended = subprocess.run(program, env=dict(environment), cwd=folder, capture_output=True, text=True, timeout=100)
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stderr.splitlines()


def without_time(answer: str) -> str:
    return re.sub(r'"timestamp": ?"[^"]*"', '"timestamp": ""', answer)


def test_it_answers_as_the_readme_says_until_ctrl_c(tmp_path: Path) -> None:
    found = re.search(r"^curl -s 'http://127\.0\.0\.1:8080(\S+)'$.*?^```json\n(.*?)^```", README, re.M | re.S)
    assert found
    path, answer = found[1], found[2].strip()
    assert json.loads(answer)["items"][0]["value"] == "4"

    with running(tmp_path, "--port", "0") as run:
        run.wait_for_the_first_decision()
        with httpx.Client(base_url=run.address, trust_env=False) as client:
            assert client.get("/").headers["Content-Type"].startswith("text/html")
            curl = partial(client.get, path, headers={"User-Agent": "curl/8.0", "Accept": "*/*"})
            run.wait_for(lambda: curl().is_success, ANSWERS_WITHIN_S)  # a late first tick is already too old to serve
            assert json.loads(without_time(curl().text)) == json.loads(without_time(answer))
        run.interrupt()
        run.has_ended_well()
        assert re.search(r"^ +demo/steady +workers 4 ", run.printed, re.MULTILINE), run.printed


def test_ctrl_c_while_spark_starts_ends_it(tmp_path: Path) -> None:
    with running(tmp_path, "--port", "0") as run:
        run.wait_for(lambda: "starting Spark" in run.printed, FIRST_DECISION_WITHIN_S)
        run.interrupt()
        run.has_ended_well()


def test_it_ends_by_itself_with_a_summary(tmp_path: Path) -> None:
    with running(tmp_path, "--for", "40s", "--port", "0") as run:
        run.has_ended_well()
        assert re.search(r"\d workloads, \d+ rescales?$", run.printed, re.MULTILINE), run.printed


def test_the_message_of_a_taken_port_names_the_option(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        lines = refused(tmp_path, "--port", str(port))
    assert len(lines) == 1
    assert lines[0].startswith(f"backlog-adapter: cannot listen on 127.0.0.1:{port}: the port is taken; ")
    assert "--port" in lines[0]


def test_every_fault_of_a_configuration_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        """
sources:
  broker: {kind: kafka, bootstrap_server: "kafka:9092"}
workloads:
  - name: orders
    read: [{source: brokr, group: orders, topics: [orders]}]
rules: {policy: dataflo}
timing: {tick_s: 0}
pipeline: {checkpoint: state}
"""
    )
    told = "\n".join(refused(tmp_path, "--config", str(file)))
    for path in ("sources.broker.bootstrap_server", "workloads[0].read[0].source", "rules.policy", "timing.tick_s"):
        assert path in told


def test_a_configuration_that_is_not_there_is_told_by_its_name(tmp_path: Path) -> None:
    lines = refused(tmp_path, "--config", "absent.yaml")
    assert len(lines) == 1
    assert "absent.yaml" in lines[0]


def test_without_java_it_names_the_command_that_installs_it(tmp_path: Path) -> None:
    assert shutil.which("java"), "these tests need Java"
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    lines = refused(tmp_path, environment=environment)
    assert len(lines) == 1
    assert "Java is missing" in lines[0]
    assert "apt-get install openjdk-21-jre-headless" in lines[0]
