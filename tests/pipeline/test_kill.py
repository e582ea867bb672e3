"""Killed in mid-tick, the pipeline goes on as if nothing had happened."""

import fcntl
import os
import re
import signal
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pipeline_stream import config_of, decisions, plain_fold, spans

from adapter.pipeline.checkpoint import claim
from adapter.serving.snapshots.snapshot import Snapshot, decode

HERE = Path(__file__).parent
PUBLISHED_WITHIN_S = 250.0

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@contextmanager
def child(folder: Path, dies_at: int = 0) -> "Iterator[subprocess.Popen[bytes]]":
    """A pipeline process that does not outlive the block, whatever happens in it."""
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    program = [sys.executable, str(HERE / "pipeline_child.py"), str(folder), str(dies_at)]
    with (folder / "child.log").open("ab") as log:
        process = subprocess.Popen(program, env=environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def jvm_of(process: "subprocess.Popen[bytes]") -> int:
    """The process ID of the JVM, which is the only child."""
    (jvm,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(jvm)


def published(folder: Path) -> list[Snapshot]:
    """Whole lines only: the last one may be under way."""
    file = folder / "published"
    lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
    return [decode(b64decode(line)) for line in lines]


def wait_for(folder: Path, count: int, process: "subprocess.Popen[bytes]") -> None:
    """Until so many snapshots are written."""
    until_s = time.monotonic() + PUBLISHED_WITHIN_S
    while len(published(folder)) < count:
        assert process.poll() is None, (folder / "child.log").read_text()
        assert time.monotonic() < until_s, (folder / "child.log").read_text()
        time.sleep(0.05)


@pytest.mark.parametrize("dies_at", [pytest.param(1, marks=pytest.mark.full), 3])
def test_a_run_after_a_kill_equals_an_undisturbed_run(tmp_path: Path, dies_at: int) -> None:
    with child(tmp_path, dies_at) as process:  # the state of the tick is stored, its snapshot is not out
        assert process.wait(PUBLISHED_WITHIN_S) == -9
    before = len(published(tmp_path))
    assert before == dies_at - 1

    with child(tmp_path) as process:
        wait_for(tmp_path, before + 3, process)
        process.terminate()
        assert process.wait(60) == 0

    # Stopped in good order, it leaves no JVM behind: that would hold the lock.
    with (tmp_path / "checkpoint" / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    found = published(tmp_path)
    assert [snapshot.at_s for snapshot in found] == sorted(snapshot.at_s for snapshot in found)
    expected = plain_fold(spans(tmp_path)[0][0], int(found[-1].at_s))
    for snapshot in found:
        assert decisions(snapshot) == expected[int(snapshot.at_s)]


def kill_jvm(process: "subprocess.Popen[bytes]") -> None:
    os.kill(jvm_of(process), signal.SIGKILL)


def stop_jvm(process: "subprocess.Popen[bytes]") -> None:
    """The JVM hangs: it neither answers nor ends."""
    os.kill(jvm_of(process), signal.SIGSTOP)


def stop_spark(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGUSR1)


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (kill_jvm, "the JVM has ended with exit code -9; if it was killed, raise the memory limit"),
        pytest.param(stop_jvm, r"the JVM did not answer \(TimeoutError\) and was killed", marks=pytest.mark.full),
        pytest.param(stop_spark, r"Spark runs no jobs \(.*\), so its JVM was killed", marks=pytest.mark.full),
    ],
)
def test_a_broken_jvm_ends_the_pipeline_with_the_cause_and_leaves_its_checkpoint(
    tmp_path: Path, damage: Callable[["subprocess.Popen[bytes]"], None], cause: str
) -> None:
    with child(tmp_path) as process:
        wait_for(tmp_path, 2, process)
        damage(process)
        assert process.wait(120) == 1
    output = (tmp_path / "child.log").read_text()
    log = tmp_path / "checkpoint" / "spark.log"
    assert re.fullmatch(rf"adapter\.errors\.JvmError: {cause}; see {log}", output.splitlines()[-1])
    assert output.count("Traceback") == 1
    assert log.exists()
    assert not (tmp_path / "checkpoint" / "stream.bad").exists()
    claim(config_of(tmp_path), 0.0).close()


def test_a_jvm_that_is_killed_while_the_query_starts_is_an_error_of_the_start(tmp_path: Path) -> None:
    claim(config_of(tmp_path)).close()
    metadata = tmp_path / "checkpoint" / "stream" / "metadata"
    metadata.parent.mkdir()
    os.mkfifo(metadata)  # the JVM waits for a writer
    with child(tmp_path) as process, metadata.open("wb"):
        os.kill(jvm_of(process), signal.SIGKILL)
        assert process.wait(60) == 1
    last = (tmp_path / "child.log").read_text().splitlines()[-1]
    assert last.startswith("adapter.errors.SetupError: the streaming query does not start: ")
    claim(config_of(tmp_path), 0.0).close()
