"""A Spark that does not start reports the cause, and its output stays in a log."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

# A fake Java: it prints the address that Spark passes, and fails as Java does.
NO_JAVA = """#!/bin/sh
[ "$1" = -version ] && echo 'openjdk version "21.0.1"' >&2 && exit
echo 'Exception in thread "main" java.lang.ExceptionInInitializerError
Caused by: java.lang.RuntimeException: outer
	... 17 more
Caused by: java.net.UnknownHostException: bound to '"$SPARK_LOCAL_IP"'
	... 18 more' >&2
exit 1
"""

CONFIG = """
sources: {{broker: {{kind: kafka, bootstrap_servers: "127.0.0.1:1"}}}}
workloads: [{{name: orders, read: [{{source: broker, group: orders, topics: [orders]}}]}}]
pipeline: {{checkpoint: "{checkpoint}", port: 0}}
"""
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def java(tmp_path: Path) -> Path:
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(NO_JAVA)
    program.chmod(0o755)
    return program.parents[1]


def start(java: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the program in a process of its own, because all tests share one session."""
    env = {"JAVA_HOME": str(java), "PATH": "/usr/bin:/bin", "TMPDIR": str(java), "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-m", "adapter", *words]
    return subprocess.run(command, capture_output=True, text=True, env=env, cwd=java, timeout=60, check=False)


def last_message(java: Path, *words: str) -> str:
    """The last line of the program's log."""
    done = start(java, *words)
    assert done.returncode == 2, done.stderr
    return done.stderr.splitlines()[-1]


def test_the_message_has_the_last_cause_and_names_the_log(java: Path) -> None:
    message = last_message(java, "run", "--port", "0")
    assert "Spark does not start with --master local" in message
    log = Path(re.sub(".*for details see ", "", message))
    assert "UnknownHostException" in log.read_text()
    assert re.search(r"java\.net\.UnknownHostException: bound to .*; for details see ", message)


def test_no_log_is_left_if_spark_was_not_started(java: Path) -> None:
    (java / "bin" / "java").unlink()
    assert "Java is missing" in last_message(java, "run", "--port", "0")
    assert list(java.glob("backlog-adapter-*")) == []


def test_local_spark_does_not_need_to_resolve_the_host_name(java: Path) -> None:
    assert "bound to 127.0.0.1;" in last_message(java, "run", "--port", "0")


@pytest.mark.parametrize("command", ["run --port 0", "pipeline --config config.yaml"])
def test_a_signal_that_also_ends_java_is_no_error(java: Path, command: str) -> None:
    """While the program waits for `java -version`."""
    (java / "bin" / "java").write_text("#!/bin/sh\nkill -TERM $PPID $$\n")
    (java / "config.yaml").write_text(CONFIG.format(checkpoint=java / "checkpoint"))
    ended = start(java, *command.split())
    assert (ended.returncode, "no version" in ended.stderr) == (0, False), ended.stderr


def test_a_cause_in_the_log_of_an_earlier_start_is_not_reported(java: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "spark.log").write_text("Caused by: something of yesterday\n")
    load = tmp_path / "load.csv"
    load.write_text("seconds,rate\n0,1\n150,2\n")
    (java / "bin" / "java").write_text(NO_JAVA.replace("Caused by: ", "Or by: "))
    message = last_message(java, "backtest", "--trace", str(load), "--out", str(out))
    assert "yesterday" not in message
    assert message.endswith(f": java.lang.ExceptionInInitializerError; for details see {out / 'spark.log'}")
