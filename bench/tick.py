"""The real pipeline at a tick of one second: how long a tick takes, how late it is out, and what memory it holds."""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure
from bench.loopback import served
from bench.machine import tree_cpu_s, tree_pss_mib
from bench.processes import running, wait_until
from bench.workloads import NAMESPACE, Workloads

COUNT = 1_000
WARM_UP_TICKS = 20
TICKS = 100
STARTS_WITHIN_S = 180.0
TICKS_WITHIN_S = 600.0
MEMORY_AIM = "< 2560 MiB"
_CONFIG = """
sources:
  fleet: {{kind: trace, url: "{url}", deadline_s: 0.9}}
workloads:
{workloads}
rules: {{rate_window_s: 5, stale_after_s: 5}}
timing: {{tick_s: 1, warm_up_s: 0}}
pipeline: {{checkpoint: "{checkpoint}", cores: 2}}
"""


def figures() -> Iterator[Figure]:
    """Times in seconds; memory in MiB, after the last tick, of the pipeline's processes alone."""
    workloads = Workloads(COUNT)
    with tempfile.TemporaryDirectory() as folder, served(workloads.answer) as url:
        config, out = Path(folder) / "config.yaml", Path(folder) / "out"
        config.write_text(_config(workloads, url, folder))
        with running([sys.executable, "-m", "bench.pipeline", str(config)], out) as process:
            wait_until(lambda: len(_told(out, "took_s")) >= WARM_UP_TICKS, process, out, STARTS_WITHIN_S)
            before_s, before = tree_cpu_s(process.pid), len(_told(out, "took_s"))
            wait_until(lambda: len(_told(out, "took_s")) >= WARM_UP_TICKS + TICKS, process, out, TICKS_WITHIN_S)
            cpu_s = (tree_cpu_s(process.pid) - before_s) / (len(_told(out, "took_s")) - before)
            memory_mib = tree_pss_mib(process.pid)
        took_s, late_s, published = (_told(out, name)[WARM_UP_TICKS:] for name in ("took_s", "late_s", "workloads"))
    yield Figure(f"{COUNT} workloads: a tick (triggerExecution)", took_s, "s", "p50 < 0.6 s")
    yield Figure("processor time a tick", (cpu_s,), "s")
    yield Figure("from the tick to its publication", late_s, "s")
    yield Figure("workloads published a tick", published, "", f"{COUNT}")
    for name, used_mib in memory_mib.items():
        yield Figure(f"memory (PSS) of its {name} processes", (used_mib,), "MiB")
    yield Figure("memory (PSS) of all its processes", (sum(memory_mib.values()),), "MiB", MEMORY_AIM)


def _config(workloads: Workloads, url: str, folder: str) -> str:
    names = (name.removeprefix(f"{NAMESPACE}/") for name in workloads.names)
    listed = "\n".join(f"  - {{namespace: {NAMESPACE}, name: {name}, read: [{{source: fleet}}]}}" for name in names)
    return _CONFIG.format(url=url, workloads=listed, checkpoint=f"{folder}/checkpoint")


def _told(out: Path, name: str) -> tuple[float, ...]:
    """What the pipeline printed under a name; its log lines are not JSON, its last line may be under way."""
    lines = out.read_text().split("\n")[:-1]
    told = [json.loads(line) for line in lines if line.startswith("{")]
    return tuple(line[name] for line in told if name in line)
