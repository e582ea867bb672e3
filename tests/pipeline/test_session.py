import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest
from pipeline_stream import OPENER, RULES, config_of
from py4j.protocol import Py4JError

import adapter
from adapter.errors import SetupError
from adapter.pipeline.job import RestartPolicy, StreamingJob
from adapter.pipeline.session import MOST_LOG_BYTES, open_log, run_within

# In a process of its own: the tests of a run share one session, and a second one would be borrowed.
REFUSED = """
import fcntl, sys
from adapter.pipeline.session import Session, settings
folder = sys.argv[1]
with open(folder + "/lock", "a") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        Session(settings("512m", "local[nonsense]", 1), folder + "/spark.log", [lock.fileno()])
    except Exception as error:
        print(error)
with open(folder + "/lock", "a") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
"""

LEVEL = """
from adapter.pipeline.session import Session, settings
session = Session(settings("512m", "local[1]", 1), "spark.log")
print(session.spark._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString())
session.close()
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "spark.log"


def test_a_restart_appends_to_the_log_of_the_last_crash(log: Path) -> None:
    for line in ("OutOfMemoryError\n", "started again\n"):
        with open_log(str(log)) as file:
            file.write(line)
    assert log.read_text() == "OutOfMemoryError\nstarted again\n"


def test_the_end_of_a_large_log_is_kept_once(log: Path) -> None:
    log.write_bytes(b"x" + b"y" * MOST_LOG_BYTES)
    open_log(str(log)).close()
    assert log.read_bytes() == b""
    assert log.with_name("spark.log.1").read_bytes() == b"y" * MOST_LOG_BYTES


def test_a_large_older_log_is_shortened_although_the_new_one_is_small(log: Path) -> None:
    older = log.with_name("spark.log.1")
    older.write_bytes(b"x" + b"y" * MOST_LOG_BYTES)
    log.write_text("started\n")
    open_log(str(log)).close()
    assert older.stat().st_size == MOST_LOG_BYTES
    assert log.read_text() == "started\n"


@pytest.fixture
def hanging() -> Iterator[threading.Event]:
    """A JVM that does not answer, until it is killed."""
    killed = threading.Event()
    yield killed
    killed.set()


def test_a_call_that_hangs_is_abandoned_after_the_step_that_ends_it(hanging: threading.Event) -> None:
    assert not run_within(0.0, hanging.wait)
    assert not hanging.is_set()
    assert not run_within(0.0, hanging.wait, hanging.set)
    assert hanging.is_set()


def test_a_call_into_an_ended_jvm_counts_as_done() -> None:
    def gone() -> None:
        raise Py4JError("an error occurred while calling stop")

    assert run_within(10.0, gone)


@pytest.mark.spark
def test_a_failed_start_of_spark_leaves_no_jvm_with_the_lock(tmp_path: Path) -> None:
    program, environment = [sys.executable, "-c", REFUSED, str(tmp_path)], os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=120)
    assert "nonsense" in done.stdout
    assert done.returncode == 0, done.stderr


@pytest.mark.spark
def test_spark_starts_from_a_folder_with_a_blank_in_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "my jobs"
    copytree(Path(adapter.__file__).parent, folder / "adapter", ignore=ignore_patterns("__pycache__"))
    done = subprocess.run([sys.executable, "-c", LEVEL], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.stdout == "ERROR\n", done.stderr


@pytest.mark.parametrize(("limit_s", "alive"), [(60.0, True), (0.0, False)], ids=["just created", "silent for long"])
def test_a_pipeline_is_alive_while_it_publishes(tmp_path: Path, limit_s: float, alive: bool) -> None:
    policy = RestartPolicy(stalled_after_s=limit_s, stalled_ticks=0)
    job = StreamingJob(config_of(tmp_path), RULES, lambda snapshot: None, opener=OPENER, policy=policy)
    assert job.is_alive() == alive


def test_a_signal_while_spark_starts_is_no_fault_of_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`timeout` also ends the JVM, because its signal goes to the whole process group."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    stop = threading.Event()
    with pytest.raises(SetupError, match="Java is missing"):
        StreamingJob(config_of(tmp_path), RULES, lambda snapshot: None).start(stop)
    stop.set()
    assert not StreamingJob(config_of(tmp_path), RULES, lambda snapshot: None).start(stop)


def shown(job: StreamingJob) -> dict[str, float]:
    return {sample.name: sample.value for family in job.gauges() for sample in family.samples}


def test_the_state_of_the_streaming_query_is_shown(tmp_path: Path) -> None:
    job = StreamingJob(config_of(tmp_path), RULES, lambda snapshot: None)
    state = {"backlog_adapter_query_restarts_total": 0, "backlog_adapter_failed_shards": 0}
    assert shown(job) == state, "there is no lateness before the first tick"
    job.publisher.lateness_s, job.phases_s = 1.5, {"addBatch": 0.9}
    assert shown(job) == state | {"backlog_adapter_tick_lateness_seconds": 1.5, "backlog_adapter_phase_seconds": 0.9}


def test_each_slow_start_doubles_the_time_for_the_next_until_the_pipeline_is_dead() -> None:
    policy = RestartPolicy()
    assert [policy.stall_limit_s(15, slow_starts) for slow_starts in range(4)] == [90.0, 180.0, 360.0, 360.0]
    assert policy.stall_limit_s(60, 0) == 4 * 60.0
    assert policy.dead_after_s(15, slow_starts=0) == 90.0 + 180.0 + 360.0


@pytest.mark.parametrize(
    ("published", "after_s", "is_alive"),
    [
        pytest.param(False, 180 + 360 + 350, True, id="in the last start without any tick"),
        pytest.param(False, 180 + 360 + 370, False, id="after three starts without any tick"),
        pytest.param(True, 90 + 180 + 350, True, id="in the last start since a tick"),
        pytest.param(True, 90 + 180 + 370, False, id="after three starts since a tick"),
    ],
)
def test_a_pipeline_is_alive_as_long_as_each_of_three_starts_may_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published: bool, after_s: float, is_alive: bool
) -> None:
    job = StreamingJob(config_of(tmp_path, timing={"tick_s": 15}), RULES, lambda snapshot: None)
    now_s = time.monotonic()
    if published:
        job.publisher.published_s = now_s
    monkeypatch.setattr(time, "monotonic", lambda: now_s + after_s)
    assert job.is_alive() is is_alive
