"""The same command on a cluster: two standalone Spark workers give the bits of one core."""

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pyspark
import pytest
from parts.process import Process, free_port, until

pytestmark = pytest.mark.full
LOOPBACK = "127.0.0.1"
SPARK = Path(pyspark.__file__).parent
RUN = ("--policy", "drain,netflix,static-peak", "--profile", "consumer-group,netflix", "--delay", "0,120")
STARTS_WITHIN_S, RUNS_WITHIN_S = 180.0, 600.0
# Spark's daemons and drivers name themselves by the host's address, which nobody here can reach.
ENV = {"SPARK_LOCAL_IP": LOOPBACK, "SPARK_HOME": str(SPARK), "PYSPARK_PYTHON": sys.executable}


def daemon(folder: Path, name: str, *arguments: str) -> Process:
    """A master or a worker of Spark's standalone cluster."""
    kind = f"org.apache.spark.deploy.{name.partition('-')[0]}.{name.partition('-')[0].capitalize()}"
    command = [SPARK / "bin" / "spark-class", kind, "--host", LOOPBACK, *arguments]
    return Process(name, command, folder, ENV | {"SPARK_WORKER_DIR": str(folder / name)})


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a master with two workers, each of one core."""
    port = free_port()
    address = f"spark://{LOOPBACK}:{port}"
    with ExitStack() as started:
        head = started.enter_context(daemon(tmp_path, "master", "--port", str(port), "--webui-port", "0"))
        until(lambda: "I have been elected leader" in head.log.read_text(), STARTS_WITHIN_S, "the master leads")
        for name in ("worker-1", "worker-2"):
            arguments = ("--cores", "1", "--memory", "2g", "--webui-port", "0", address)
            started.enter_context(daemon(tmp_path, name, *arguments))
        registered = re.compile("Registering worker")
        until(lambda: len(registered.findall(head.log.read_text())) == 2, STARTS_WITHIN_S, "two workers are there")
        yield address


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """An hour of load that doubles and falls back."""
    path = tmp_path / "hour.csv"
    rows = [f"{60 * minute},{100 + 50 * np.sin(minute / 10):.3f}" for minute in range(60)]
    path.write_text("\n".join(["seconds,rate", *rows]))
    return path


def backtested(folder: Path, trace: Path, name: str, master: str) -> dict[str, bytes]:
    """The files of the results of a run of the command."""
    out = folder / name
    words = ["backtest", "--trace", str(trace), *RUN, "--master", master, "--out", str(out)]
    with Process(f"run-{name}", [sys.executable, "-m", "adapter", *words], folder, ENV) as run:
        assert run.child.wait(RUNS_WITHIN_S) == 0, run.log.read_text()
    return {path.name: path.read_bytes() for path in [*(out / "units").iterdir(), out / "scores.csv"]}


def test_two_standalone_workers_give_the_bits_of_one_core(tmp_path: Path, trace: Path, master: str) -> None:
    on_cluster = backtested(tmp_path, trace, "cluster", master)
    assert on_cluster == backtested(tmp_path, trace, "one-core", "local[1]")
    assert pq.read_table(tmp_path / "cluster" / "scores.parquet").num_rows == 12
    executors = {path.parent.name for path in tmp_path.glob("worker-*/app-*")}
    assert executors == {"worker-1", "worker-2"}
