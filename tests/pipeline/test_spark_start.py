"""A Spark that does not start says why, and keeps what it printed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

# What Spark finds in the place of Java: it tells what it was told, and fails as Java does.
NO_JAVA = """#!/bin/sh
[ "$1" = -version ] && echo 'openjdk version "21.0.1"' >&2 && exit
echo 'Exception in thread "main" java.lang.ExceptionInInitializerError
Caused by: java.lang.RuntimeException: outer
	... 17 more
Caused by: java.net.UnknownHostException: asked for '"$SPARK_LOCAL_IP"'
	... 18 more' >&2
exit 1
"""


@pytest.fixture
def java(tmp_path: Path) -> Path:
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(NO_JAVA)
    program.chmod(0o755)
    return program.parents[1]


def told(java: Path, *words: str) -> str:
    """What the program says last, in a process of its own, for the tests of a run share one session."""
    env = {"JAVA_HOME": str(java), "PATH": "/usr/bin:/bin", "TMPDIR": str(java)}
    command = [sys.executable, "-m", "adapter", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    return done.stderr.splitlines()[-1]


def test_the_last_cause_is_told_and_the_log_it_came_from_is_kept(java: Path) -> None:
    said = told(java, "run", "--port", "0")
    assert "Spark does not start with --master local" in said
    log = Path(re.sub(".*more is in ", "", said))
    assert "UnknownHostException" in log.read_text()
    assert re.search(r"java\.net\.UnknownHostException: asked for .*; more is in ", said)


def test_nothing_is_kept_where_spark_was_not_tried(java: Path) -> None:
    (java / "bin" / "java").unlink()
    assert "Java is missing" in told(java, "run", "--port", "0")
    assert list(java.glob("backlog-adapter-*")) == []


def test_a_spark_in_this_process_needs_nobody_to_know_the_name_of_this_machine(java: Path) -> None:
    assert "asked for 127.0.0.1;" in told(java, "run", "--port", "0")


def test_a_cause_of_an_earlier_start_is_not_told_again(java: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "spark.log").write_text("Caused by: something of yesterday\n")
    load = tmp_path / "load.csv"
    load.write_text("seconds,rate\n0,1\n150,2\n")
    (java / "bin" / "java").write_text(NO_JAVA.replace("Caused by: ", "Or by: "))
    said = told(java, "backtest", "--trace", str(load), "--out", str(out))
    assert "yesterday" not in said
    assert said.endswith(f"before sending its port number; more is in {out / 'spark.log'}")
