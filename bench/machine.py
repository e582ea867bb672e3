"""Describe the machine and its load, on which all results depend."""

import os
import platform
import re
from datetime import UTC, datetime
from pathlib import Path

from adapter.pipeline.java import check_java


def description() -> str:
    """Date, processor, cores, memory, Python, Java and load, in two lines."""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    cores = len(os.sched_getaffinity(0))
    memory_gib = _kib("/proc/meminfo", "MemTotal") / 2**20
    return (
        f"{now}   {_processor()}, {cores} cores, {memory_gib:.0f} GiB, {platform.system()} {platform.release()}\n"
        f"Python {platform.python_version()}, Java {check_java()}, load average {load()} (1, 5, 15 minutes)"
    )


def load() -> str:
    """The load average. Far above the number of cores, the results are those of a busy machine."""
    return " ".join(f"{value:.1f}" for value in os.getloadavg())


def rss_mib(pid: int) -> float:
    """Resident memory of one process."""
    return _kib(f"/proc/{pid}/status", "VmRSS") / 1024


def tree_pss_mib(pid: int) -> dict[str, float]:
    """Program name -> proportional memory of a process and all its descendants; shared pages are counted once."""
    used: dict[str, float] = {}
    for each in _tree(pid):
        try:
            name = Path(f"/proc/{each}/comm").read_text().strip()
            used[name] = used.get(name, 0.0) + _kib(f"/proc/{each}/smaps_rollup", "Pss") / 1024
        except (OSError, ValueError):  # it ended meanwhile
            continue
    return used


def tree_cpu_s(pid: int) -> float:
    """Processor time of a process and all its descendants, including ended ones; independent of other load."""
    ticks = 0
    for each in _tree(pid):
        try:
            stat = Path(f"/proc/{each}/stat").read_text()
        except OSError:  # it ended meanwhile
            continue
        ticks += sum(map(int, stat.rpartition(")")[2].split()[11:15]))  # its own and its dead children's
    return ticks / os.sysconf("SC_CLK_TCK")


def _tree(root: int) -> list[int]:
    parents = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            parents[int(status.parent.name)] = _kib(str(status), "PPid")
        except (OSError, ValueError):  # it ended meanwhile
            continue
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def _kib(file: str, name: str) -> int:
    """The number of a field in a file of /proc. Raises OSError or ValueError if it is missing."""
    found = re.search(rf"^{name}:\s+(\d+)", Path(file).read_text(), re.MULTILINE)
    if found is None:
        raise ValueError(f"{file}: expected a line {name}")
    return int(found[1])


def _processor() -> str:
    found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.machine()
