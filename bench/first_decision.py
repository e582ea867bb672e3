"""Measure the time from the start of `backlog-adapter run` to its first decision."""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure
from bench.machine import tree_cpu_s
from bench.processes import running, wait_until

RUNS = 3
DECIDES_WITHIN_S = 180.0


def figures() -> Iterator[Figure]:
    """Seconds per start, each with a new checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [_first_decision(Path(folder) / f"out-{number}") for number in range(RUNS)]
    took_s, cpu_s = zip(*runs, strict=True)
    yield Figure("from process start to the first decision", took_s, "s", "< 30 s")
    yield Figure("processor time until then", cpu_s, "s")


def _first_decision(out: Path) -> tuple[float, float]:
    """Wall-clock seconds and processor seconds."""
    began_s = time.monotonic()
    with running([sys.executable, "-m", "adapter", "run", "--port", "0"], out) as process:
        wait_until(lambda: "first decision" in out.read_text(), process, out, DECIDES_WITHIN_S)
        return time.monotonic() - began_s, tree_cpu_s(process.pid)
