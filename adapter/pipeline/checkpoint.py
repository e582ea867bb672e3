"""The checkpoint folder: its lock, its format version and its files.

<checkpoint>/backlog-adapter.json   the release and the tick that wrote it
<checkpoint>/lock                   the process that runs the pipeline holds it, and so does its JVM
<checkpoint>/spark.log              errors of the JVM and of Spark's workers; spark.log.1 is older
<checkpoint>/stream/                Spark's offsets, commits and state
<checkpoint>/partitions-*.msgpack   the last positions of each Kafka source, which show stuck and hot partitions
<checkpoint>/stream.format-*/       the last stream of another Spark or tick, which a rollback continues
<checkpoint>/stream.bad/            an older stream that could not be continued; nothing reads it
"""

import errno
import fcntl
import json
import os
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyspark
import structlog

from adapter.config import Config
from adapter.errors import CheckpointError, SetupError
from adapter.file_replacement import replace_file

FORMAT = 1
MARKER = "backlog-adapter.json"
_FITTING = ("format", "spark", "tick_s")  # entries of the marker without which Spark cannot continue the stream
LOG = "spark.log"
# With the values of the chart.
_FULL = "enlarge its volume (pipeline.persistence.size), or choose another folder"
_FIXES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EROFS: "mount its volume for writing, or choose another folder",
    errno.EACCES: f"let user {os.getuid()} write there (podSecurityContext.fsGroup), or choose another folder",
}
# Texts of failures that may pass, so that the stream can continue later: of the volume and of the machine.
_VOLUME = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT)
_MACHINE = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)
_TRANSIENT = (*(os.strerror(code) for code in (*_FIXES, *_VOLUME, *_MACHINE)), "MemoryError", "Python worker ")
_STATE = "[CANNOT_LOAD_STATE_STORE"  # Spark's class of errors
_EMPTY = "all workloads warm up and learn their capacity again"
_RETURNS = "the last stream that fits is continued"
ORPHAN_GONE_WITHIN_S = 15.0  # measured: a JVM outlives its killed driver by 2.4 to 3.9 s

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Checkpoint:
    """A locked checkpoint folder."""

    folder: Path
    state_partitions: int  # from the first start; Spark cannot change it later
    lock: IO[str]

    @property
    def stream(self) -> str:
        """The folder of Spark's offsets, commits and state."""
        return str(self.folder / "stream")

    def move_stream_away(self) -> Path | None:
        """Rename the folder of the stream, so that the next start has an empty one. No query may use the folder.

        The new folder replaces that of an older stream. A stream without a finished batch is removed instead if there
        is an older one. Returns the new path; None if the stream was removed, and without a stream.
        """
        aside = self.folder / "stream.bad"
        return _move_stream_away(Path(self.stream), aside, [aside] if aside.exists() else [])

    def close(self) -> None:
        """Release the lock."""
        self.lock.close()


def needs_empty_stream(cause: str, has_batch: bool) -> bool:
    """Whether each start from the same stream repeats a failure of the query. has_batch: whether a batch had begun.

    Before a batch, Spark reads its logs and checks the clock. The batch reads the state.
    """
    return (_STATE in cause or not has_batch) and not any(text in cause for text in _TRANSIENT)


def log_of(config: Config) -> str:
    """The log file of the JVM and of Spark's workers."""
    return str(Path(config.pipeline.checkpoint) / LOG)


def claim(config: Config, orphan_gone_within_s: float = ORPHAN_GONE_WITHIN_S) -> Checkpoint:
    """Lock the configured checkpoint folder, and create it if necessary.

    Waits for a lock that the JVM of a killed process still holds. Raises SetupError if the folder cannot be written or
    another process uses it, CheckpointError if its marker is missing or unreadable.
    """
    folder = Path(config.pipeline.checkpoint)
    try:
        return _claim_folder(folder, config, orphan_gone_within_s)
    except FileExistsError as error:
        raise SetupError(f"pipeline.checkpoint: expected a folder, and {folder} is a file; choose another") from error
    except OSError as error:
        fix = _FIXES.get(error.errno or 0, "choose a writable folder")
        raise SetupError(f"pipeline.checkpoint: {folder} cannot be written: {error.strerror}; {fix}") from error


def _claim_folder(folder: Path, config: Config, orphan_gone_within_s: float) -> Checkpoint:
    folder.mkdir(parents=True, exist_ok=True)
    lock = (folder / "lock").open("a")
    try:
        _lock(lock, folder, orphan_gone_within_s)
        return Checkpoint(folder, _state_partitions(folder, config), lock)
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
                    f"pipeline.checkpoint: another process uses {folder}; stop it, or choose another folder"
                ) from error
        time.sleep(0.1)


def _state_partitions(folder: Path, config: Config) -> int:
    """The state partitions of the folder. Checks its marker, or writes a new one.

    A stream that Spark cannot continue is moved away, and the last one that it can continue is moved back, so that an
    upgrade and its rollback need no manual step.
    """
    marker, stream, new = folder / MARKER, folder / "stream", _new_marker(config)
    fitting = _aside(folder, new)
    if not marker.exists():
        if stream.exists():
            raise _mismatch(folder, f"it has a stream, but no {MARKER}")
        (fitting / MARKER).unlink(missing_ok=True)  # somebody removed the stream and its marker, to start empty
    found = written = _read(marker) if marker.exists() else new
    if other := [name for name in _FITTING if written.get(name) != new[name]]:
        returns = (fitting / MARKER).exists()
        found = _read(fitting / MARKER) if returns else new
        moved = _set_aside(stream, written, fitting)
        log.warning(
            f"the checkpoint does not fit this pipeline, so {_RETURNS if returns else _EMPTY}",
            cause="; ".join(f"it has {name} {written.get(name)} instead of {new[name]}" for name in other),
            **({} if moved is None else {"moved_to": str(moved)}),
        )
    current = new | {"state_partitions": found["state_partitions"]}
    if not marker.exists() or written != current:
        _write(marker, current)
    if (fitting / MARKER).exists() and not stream.exists():  # the marker comes first, because a process can end here
        os.replace(fitting, stream)
    return int(current["state_partitions"])


def _aside(folder: Path, marker: dict[str, Any]) -> Path:
    """The folder to which a stream with this marker is moved."""
    entries = "-".join(f"{name}-{marker.get(name)}" for name in _FITTING)
    return folder / re.sub(r"[^\w.-]", "_", f"stream.{entries}")


def _set_aside(stream: Path, marker: dict[str, Any], fitting: Path) -> Path | None:
    """Move a stream with this marker away. Of the streams that were moved before, only the fitting one stays."""
    if stream.exists():
        _write(stream / MARKER, marker)
    older = [each for each in stream.parent.glob("stream.format-*") if each != fitting]
    return _move_stream_away(stream, _aside(stream.parent, marker), older)


def _move_stream_away(stream: Path, aside: Path, older: list[Path]) -> Path | None:
    """Replace older streams by this one, or remove it if only they hold finished batches.

    Returns its new path; None if it was removed, and without a stream.
    """
    if not stream.exists():
        return None
    if older and not any(stream.glob("commits/[0-9]*")):
        shutil.rmtree(stream)
        return None
    for each in older:
        (each / MARKER).unlink(missing_ok=True)  # first, so that a stream that is removed in part fits nothing
        shutil.rmtree(each)
    return stream.rename(aside)


def _new_marker(config: Config) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "spark": pyspark.__version__,
        "tick_s": config.timing.tick_s,
        "state_partitions": config.pipeline.cores,
        # For a reader of the folder: offsets are times, so sources can be added and removed.
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
    replace_file(marker, f"{json.dumps(content, indent=2)}\n".encode())


def _mismatch(folder: Path, fault: str) -> CheckpointError:
    return CheckpointError(
        f"the checkpoint {folder} cannot be used: {fault}; choose another folder, or move this one away: the pipeline "
        f"then starts with a warm-up"
    )
