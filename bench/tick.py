"""The real pipeline, small and large: how long a tick takes, how late it is out, and what memory it holds."""

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from adapter import config as configuration
from adapter.config import Config
from bench import phases
from bench.figures import Figure
from bench.loopback import serve
from bench.machine import tree_cpu_s, tree_pss_mib
from bench.processes import running, wait_until
from bench.workloads import NAMESPACE, Workloads

WARM_UP_TICKS = 10
STARTS_WITHIN_S = 300.0
TICKS_WITHIN_S = 900.0
MEMORY_AIM = "<= 2560 MiB"
_CONFIG = """
sources:
  fleet: {{kind: trace, url: "{url}", deadline_s: {deadline_s}}}
workloads:
{workloads}
rules: {{rate_window_s: {window_s}, stale_after_s: {window_s}}}
timing: {{tick_s: {tick_s}, history_s: 0}}
pipeline: {{checkpoint: "{checkpoint}", cores: 2}}
"""


@dataclass(frozen=True, slots=True)
class Size:
    """A fleet to measure."""

    count: int  # workloads
    tick_s: int
    ticks: int
    aim: str  # of the median tick


SIZES = (Size(1_000, 1, 60, "p50 <= 0.6 s"), Size(40_000, 5, 30, "p50 <= 2.0 s"))


def figures() -> Iterator[Figure]:
    """For each size: seconds a tick, its phases, and memory in MiB after the last tick, of the pipeline alone."""
    for size in SIZES:
        yield from _measure(size)
        yield from phases.figures(size.count, _config(Workloads(size.count), "http://127.0.0.1:1", "unused", size))


def _measure(size: Size) -> Iterator[Figure]:
    workloads = Workloads(size.count)
    with tempfile.TemporaryDirectory() as folder, serve(workloads.answer) as url:
        config, out = Path(folder) / "config.yaml", Path(folder) / "out"
        config.write_text(_text(workloads, url, folder, size))
        with running([sys.executable, "-m", "bench.pipeline", str(config)], out) as process:
            wait_until(lambda: len(_values(out, "took_s")) >= WARM_UP_TICKS, process, out, STARTS_WITHIN_S)
            before_s, before = tree_cpu_s(process.pid), len(_values(out, "took_s"))
            wait_until(lambda: len(_values(out, "took_s")) >= before + size.ticks, process, out, TICKS_WITHIN_S)
            cpu_s = (tree_cpu_s(process.pid) - before_s) / (len(_values(out, "took_s")) - before)
            memory_mib = tree_pss_mib(process.pid)
        took_s, late_s, published = (_values(out, name)[WARM_UP_TICKS:] for name in ("took_s", "late_s", "workloads"))
    yield Figure(f"{size.count} workloads: a tick (triggerExecution)", took_s, "s", size.aim)
    yield Figure("processor time a tick", (cpu_s,), "s")
    yield Figure("from the tick to its publication", late_s, "s")
    yield Figure("workloads published a tick", published, "", f"{size.count}")
    for name, used_mib in memory_mib.items():
        yield Figure(f"memory (PSS) of its {name} processes", (used_mib,), "MiB")
    yield Figure("memory (PSS) of all its processes", (sum(memory_mib.values()),), "MiB", MEMORY_AIM)


def _config(workloads: Workloads, url: str, folder: str, size: Size) -> Config:
    return configuration.parse(_text(workloads, url, folder, size), "bench")


def _text(workloads: Workloads, url: str, folder: str, size: Size) -> str:
    names = (name.removeprefix(f"{NAMESPACE}/") for name in workloads.names)
    return _CONFIG.format(
        url=url,
        workloads="\n".join(
            f"  - {{namespace: {NAMESPACE}, name: {name}, read: [{{source: fleet}}]}}" for name in names
        ),
        checkpoint=f"{folder}/checkpoint",
        tick_s=size.tick_s,
        deadline_s=0.9 * size.tick_s,
        window_s=5 * size.tick_s,
    )


def _values(out: Path, name: str) -> tuple[float, ...]:
    """The values of a name in the pipeline's output. Log lines are not JSON, and the last line may be incomplete."""
    lines = out.read_text().split("\n")[:-1]
    printed = [json.loads(line) for line in lines if line.startswith("{")]
    return tuple(line[name] for line in printed if name in line)
