"""`backlog-adapter run` as a process: its output, its answers, its end and its error messages."""

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
FIRST_DECISION_WITHIN_S = 300.0  # 15 s on an idle machine
ANSWERS_WITHIN_S = 60.0
SAYS_SO_WITHIN_S = 5.0
GONE_WITHIN_S = 30.0  # the Python workers of Spark end after the JVM
ENDS_WITHIN_S = 200.0  # the command itself runs for 90 s, because Spark starts slowly on a busy machine

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


class Run:
    """A running `backlog-adapter run`. Its mark is in the environment of every process that it starts."""

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

    def wait_for(self, condition: Callable[[], bool], within_s: float) -> None:
        """Waits until the condition is true or the process ends."""
        end_s, pause = time.monotonic() + within_s, threading.Event()
        while not condition() and self.process.poll() is None:
            assert time.monotonic() < end_s, self.printed
            pause.wait(0.1)

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        """Sends Ctrl-C as a terminal does, or another signal: also to the JVM and the workers."""
        os.killpg(self.process.pid, number)

    def assert_clean_end(self) -> None:
        """Waits for exit code 0; no process and no folder is left."""
        self.wait_for(lambda: False, ENDS_WITHIN_S)
        assert self.process.wait() == 0, self.printed
        assert "Traceback" not in self.printed
        end_s, pause = time.monotonic() + GONE_WITHIN_S, threading.Event()
        while self.leftovers() and time.monotonic() < end_s:
            pause.wait(0.1)
        assert self.leftovers() == []

    def leftovers(self) -> list[str]:
        """Processes with the mark, and temporary folders."""
        temporary = ("backlog-adapter-*", "spark-*", "artifacts-*", "blockmgr-*")  # the last three are Spark's
        found = [str(path) for name in temporary for path in self._folder.glob(name)]
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


def start_errors(folder: Path, *arguments: str, environment: Mapping[str, str] = os.environ) -> list[str]:
    """The lines on stderr of a start that fails with exit code 2."""
    program = [sys.executable, "-m", "adapter", "run", "--port", "0", *arguments]
    ended = subprocess.run(program, env=dict(environment), cwd=folder, capture_output=True, text=True, timeout=100)
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stderr.splitlines()


def without_time(answer: str) -> str:
    return re.sub(r'"timestamp": ?"[^"]*"', '"timestamp": ""', answer)


def test_it_answers_as_in_the_readme_until_ctrl_c(tmp_path: Path) -> None:
    found = re.search(r"^curl -s 'http://127\.0\.0\.1:8080(\S+)'$.*?^```json\n(.*?)^```", README, re.M | re.S)
    assert found
    path, answer = found[1], found[2].strip()
    assert json.loads(answer)["items"][0]["value"] == "4"

    with running(tmp_path, "--port", "0") as run:
        run.wait_for_the_first_decision()
        assert "code=503" not in run.printed.partition("first decision after")[0]
        with httpx.Client(base_url=run.address, trust_env=False) as client:
            assert client.get("/").headers["Content-Type"].startswith("text/html")
            curl = partial(client.get, path, headers={"User-Agent": "curl/8.0", "Accept": "*/*"})
            run.wait_for(lambda: curl().is_success, ANSWERS_WITHIN_S)  # a late first tick is too old to serve
            assert json.loads(without_time(curl().text)) == json.loads(without_time(answer))
        run.interrupt()
        run.assert_clean_end()
        assert re.search(r"^ +demo/steady +workers 4 ", run.printed, re.MULTILINE), run.printed
        assert re.search(r"^\d\d:\d\d:\d\d demo/steady Hold: ", run.printed, re.MULTILINE), run.printed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "a signal that ends the JVM too"])
def test_a_signal_while_spark_starts_ends_it_and_it_says_so_at_once(tmp_path: Path, number: signal.Signals) -> None:
    with running(tmp_path, "--port", "0") as run:
        run.wait_for(lambda: "starting Spark" in run.printed, FIRST_DECISION_WITHIN_S)
        run.interrupt(number)
        run.wait_for(lambda: "stopping" in run.printed, SAYS_SO_WITHIN_S)
        run.assert_clean_end()
        assert "--for" not in run.printed


def test_it_ends_by_itself_with_a_summary(tmp_path: Path) -> None:
    with running(tmp_path, "--for", "90s", "--port", "0") as run:
        run.assert_clean_end()
        assert re.search(r"^1 min 30 s, \d workloads, \d+ rescales?$", run.printed, re.MULTILINE), run.printed


def test_a_fault_is_shown_before_the_first_decision(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        f"""
sources: {{broker: {{kind: kafka, bootstrap_servers: "127.0.0.1:1", deadline_s: 1}}}}
workloads: [{{name: orders, read: [{{source: broker, group: orders, topics: [orders]}}]}}]
timing: {{tick_s: 2}}
pipeline: {{checkpoint: {tmp_path / "checkpoint"}}}
"""
    )
    with running(tmp_path, "--port", "0", "--config", str(file)) as run:
        run.wait_for(lambda: "NoDataYet: No sample of default/orders yet" in run.printed, FIRST_DECISION_WITHIN_S)
        run.wait_for(lambda: "no answer from 127.0.0.1:1 within" in run.printed, ANSWERS_WITHIN_S)
        run.interrupt()
        run.assert_clean_end()
    assert "no answer from 127.0.0.1:1 within" in run.printed.rpartition("1 workload, 0 rescales")[2]


def test_without_a_decision_it_ends_with_an_error(tmp_path: Path) -> None:
    with running(tmp_path, "--for", "3s", "--port", "0") as run:  # Spark takes longer to start
        assert run.process.wait(FIRST_DECISION_WITHIN_S) == 2
        assert not list(tmp_path.glob("backlog-adapter-*"))
    assert "expected a decision within 3 s, got none; fix any fault above, or give --for more time" in run.printed


def test_without_a_decision_the_errors_of_spark_stay(tmp_path: Path) -> None:
    environment = {**os.environ, "JAVA_TOOL_OPTIONS": "-Dof.a.test=Error"}  # the JVM writes its options into the log
    with running(tmp_path, "--for", "3s", "--port", "0", environment=environment) as run:
        assert run.process.wait(FIRST_DECISION_WITHIN_S) == 2
    (log,) = tmp_path.glob("backlog-adapter-*/spark.log")
    assert f"; see the errors in {log}" in run.printed


def test_the_message_of_a_taken_port_names_the_option(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        lines = start_errors(tmp_path, "--port", str(port))
    assert len(lines) == 1
    assert lines[0].startswith(f"backlog-adapter: cannot listen on 127.0.0.1:{port}: the port is taken; ")
    assert "--port" in lines[0]


def test_all_errors_of_a_configuration_are_reported_at_once(tmp_path: Path) -> None:
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
    shown = "\n".join(start_errors(tmp_path, "--config", str(file)))
    for path in ("sources.broker.bootstrap_server", "workloads[0].read[0].source", "rules.policy", "timing.tick_s"):
        assert path in shown


def test_the_message_of_a_missing_configuration_names_the_file(tmp_path: Path) -> None:
    lines = start_errors(tmp_path, "--config", "absent.yaml")
    assert len(lines) == 1
    assert "absent.yaml" in lines[0]


def test_without_java_the_message_has_the_install_command(tmp_path: Path) -> None:
    assert shutil.which("java"), "these tests need Java"
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    lines = start_errors(tmp_path, environment=environment)
    assert len(lines) == 1
    assert "Java is missing" in lines[0]
    assert "apt-get install openjdk-21-jre-headless" in lines[0]
