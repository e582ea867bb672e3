"""`serve` on one CPU, and free to move between all: on an idle machine, and beside processes that use every CPU.

The runs alternate, because a shared machine changes its speed within minutes. Two lines have the requests/s of each
run, and a third line has the ratios of the pairs.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import go_server
from bench.figures import Figure
from bench.load import Generator, Load
from bench.processes import running
from bench.replica import HPA_HEADERS, Replica, path, replica

BUSY_PER_CPU = (0, 4)
CONNECTIONS = (1, 5, 25, 100)
PAIRS = 5
_SPIN = "while True: pass"


def figures() -> Iterator[Figure]:
    """Requests/s in both situations. Raises RuntimeError if the load generator is missing or fails."""
    with replica() as ours:
        folder = ours.identities.folder
        generator = go_server.load_generator(ours.identities)
        for busy in BUSY_PER_CPU:
            with _busy(busy * (os.cpu_count() or 1), folder):
                for connections in CONNECTIONS:
                    yield from _compare(generator, ours, connections, busy)


def _compare(generator: Generator, ours: Replica, connections: int, busy: int) -> Iterator[Figure]:
    target = f"https://127.0.0.1:{ours.port}{path('%d')}"
    load = Load(connections, 2.0, warmup_s=0.5, questions=10, headers=HPA_HEADERS)
    cpus = sorted(os.sched_getaffinity(0))
    one: list[float] = []
    free: list[float] = []
    for pair in range(PAIRS):
        for allowed, rates in (({cpus[pair % len(cpus)]}, one), (set(cpus), free)):
            _allow(ours.pid, allowed)
            rates.append(generator.run(load, target).requests_per_s)
    what = f"{connections} connections, {busy} busy processes a CPU"
    yield Figure(f"{what}: one CPU", tuple(one), "requests/s")
    yield Figure(f"{what}: free", tuple(free), "requests/s")
    yield Figure(f"{what}: ratio", tuple(a / b for a, b in zip(one, free, strict=True)), "")


def _allow(pid: int, cpus: set[int]) -> None:
    """Let every thread of a process run on these CPUs alone."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), cpus)


@contextmanager
def _busy(count: int, folder: Path) -> Iterator[None]:
    """Processes that use a CPU each while the block lasts."""
    with ExitStack() as stack:
        for number in range(count):
            stack.enter_context(running([sys.executable, "-c", _SPIN], folder / f"busy-{number}.out"))
        yield
