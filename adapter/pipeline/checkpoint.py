"""The checkpoint folder: whose it is, which version wrote it, and that only one process writes it.

<checkpoint>/backlog-adapter.json   who wrote it
<checkpoint>/lock                   held by the process that runs the pipeline, and by its JVM
<checkpoint>/spark.log              what the JVM and Spark's workers print: errors only; spark.log.1 is an older one
<checkpoint>/stream/                Spark's own
"""

import fcntl
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyspark

from adapter.config import Config
from adapter.errors import CheckpointError, SetupError

FORMAT = 1
MARKER = "backlog-adapter.json"
LOG = "spark.log"
ORPHAN_GONE_WITHIN_S = 15.0  # a JVM was seen to outlive its killed driver by 2.4 to 3.9 s


@dataclass(frozen=True)
class Checkpoint:
    """A folder that this process may write. state_partitions was chosen at the first start and is kept for good."""

    folder: Path
    state_partitions: int
    lock: IO[str]

    @property
    def log(self) -> str:
        """What the JVM prints."""
        return str(self.folder / LOG)

    @property
    def stream(self) -> str:
        """Where Spark keeps offsets, commits and state."""
        return str(self.folder / "stream")

    def close(self) -> None:
        """Let another process have it."""
        self.lock.close()


def log_of(config: Config) -> str:
    """What the JVM and Spark's workers print."""
    return str(Path(config.pipeline.checkpoint) / LOG)


def claim(config: Config, orphan_gone_within_s: float = ORPHAN_GONE_WITHIN_S) -> Checkpoint:
    """The checkpoint of the configuration, created when it is not there.

    Raises SetupError when the folder cannot be written or another process runs on it, CheckpointError when it
    was written by another version or with another tick. A lock that is held is waited for, as an orphan's.
    """
    folder = Path(config.pipeline.checkpoint)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("a")
    except OSError as error:
        raise SetupError(
            f"pipeline.checkpoint: {folder} cannot be written: {error.strerror}; name a folder this user may write"
        ) from error
    try:
        _lock(lock, folder, orphan_gone_within_s)
        return Checkpoint(folder, _agreed(folder, config), lock)
    except BaseException:
        lock.close()
        raise


def _lock(lock: IO[str], folder: Path, within_s: float) -> None:
    """The JVM inherits the lock and outlives a killed driver by seconds: two writers would corrupt the checkpoint."""
    until_s = time.monotonic() + within_s
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > until_s:
                raise SetupError(
                    f"pipeline.checkpoint: another process runs on {folder}; stop it, or name another folder"
                ) from error
        time.sleep(0.1)


def _agreed(folder: Path, config: Config) -> int:
    """State partitions of the folder, after its marker was checked against ours, or written."""
    marker = folder / MARKER
    if not marker.exists():
        if (folder / "stream").exists():
            raise _mismatch(folder, f"it holds a stream, but no {MARKER}")
        _write(marker, _ours(config, config.pipeline.cores))
        return config.pipeline.cores
    found = _read(marker)
    ours = _ours(config, found["state_partitions"])
    for name in ("format", "spark", "tick_s"):
        if found.get(name) != ours[name]:
            raise _mismatch(folder, f"it was written with {name} {found.get(name)}, this is {name} {ours[name]}")
    if found != ours:
        _write(marker, ours)
    return int(found["state_partitions"])


def _ours(config: Config, state_partitions: int) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "spark": pyspark.__version__,
        "tick_s": config.timing.tick_s,
        "state_partitions": state_partitions,
        # Offsets are times, so sources may come and go; their names are here for whoever reads the folder.
        "sources": sorted(config.sources),
    }


def _read(marker: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(marker.read_text())
        if found["state_partitions"] < 1:
            raise ValueError("state_partitions is below 1")
        return found
    except (ValueError, KeyError, TypeError) as error:
        raise _mismatch(marker.parent, f"{MARKER} cannot be read: {error}") from error


def _write(marker: Path, content: dict[str, Any]) -> None:
    fresh = marker.with_suffix(".new")
    fresh.write_text(json.dumps(content, indent=2) + "\n")
    os.replace(fresh, marker)


def _mismatch(folder: Path, fault: str) -> CheckpointError:
    return CheckpointError(
        f"the checkpoint {folder} cannot be used: {fault}; run the release and the timing that wrote it, or move the "
        f"folder away: the pipeline then starts with a warm-up"
    )
