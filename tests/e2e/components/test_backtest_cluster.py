"""The backtest on a cluster: two standalone Spark workers give the same bits as one core."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from parts.process import Process
from parts.spark import ENV, standalone_cluster

pytestmark = pytest.mark.full
RUN = ("--policy", "drain,netflix,static-peak", "--profile", "consumer-group,netflix", "--delay", "0,120")
RUNS_WITHIN_S = 600.0


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    with standalone_cluster(tmp_path) as address:
        yield address


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """An hour of load in waves."""
    path = tmp_path / "hour.csv"
    rows = [f"{60 * minute},{100 + 50 * np.sin(minute / 10):.3f}" for minute in range(60)]
    path.write_text("\n".join(["seconds,rate", *rows]))
    return path


def backtested(folder: Path, trace: Path, name: str, master: str) -> dict[str, bytes]:
    """Runs the command and returns the files of its results."""
    out = folder / name
    words = ["backtest", "--trace", str(trace), *RUN, "--master", master, "--out", str(out)]
    with Process(f"run-{name}", [sys.executable, "-m", "adapter", *words], folder, ENV) as run:
        assert run.child.wait(RUNS_WITHIN_S) == 0, run.log.read_text()
    return {path.name: path.read_bytes() for path in [*(out / "units").iterdir(), out / "scores.csv"]}


def test_two_standalone_workers_give_the_same_bits_as_one_core(tmp_path: Path, trace: Path, master: str) -> None:
    on_cluster = backtested(tmp_path, trace, "cluster", master)
    assert on_cluster == backtested(tmp_path, trace, "one-core", "local[1]")
    assert pq.read_table(tmp_path / "cluster" / "scores.parquet").num_rows == 12
    executors = {path.parent.name for path in tmp_path.glob("worker-*/app-*")}
    assert executors == {"worker-1", "worker-2"}
