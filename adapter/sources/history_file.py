"""The partitions of a Kafka source in a file of the checkpoint."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from adapter.file_stamps import FileStamp, file_stamps
from adapter.sources.partition_history import Partitions

LARGEST_BYTES = 16 << 20  # about 100 000 partitions, read in a second; a larger history stays in its process

_Histories = dict[str, Partitions]


class HistoryFile:
    """The partitions of each workload over the last ticks, for the process that reads the next tick.

    Spark reads each tick in any of its Python workers, and ends a worker that is idle for a minute. Without the file,
    each worker would know only the ticks that it read itself. A file that cannot be read or written costs only this
    history.

    path: in the folder of the checkpoint. None, or a folder that does not exist, keeps the histories in this process.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path if path is not None and path.parent.is_dir() else None
        self._stamps: tuple[FileStamp, ...] = (None,)  # of the newest history that this process knows
        self._known: _Histories = {}

    def load(self) -> Mapping[str, Partitions]:
        """The newest histories by workload."""
        if self._path is not None and (stamps := file_stamps([str(self._path)])) != self._stamps:
            self._known, self._stamps = _read(self._path), stamps
        return self._known

    def store(self, histories: _Histories) -> None:
        """Store the histories after a tick."""
        self._known = histories
        if self._path is not None:
            with suppress(OSError):
                _replace(self._path, msgspec.msgpack.encode(histories))
                self._stamps = file_stamps([str(self._path)])


def _read(path: Path) -> _Histories:
    with suppress(OSError, msgspec.MsgspecError):
        if path.stat().st_size <= LARGEST_BYTES:
            return msgspec.msgpack.decode(path.read_bytes(), type=_Histories)
    return {}


def _replace(path: Path, content: bytes) -> None:
    """Write a file whole, without waiting for the disk: after a crash of the machine the history is too old anyway."""
    if len(content) > LARGEST_BYTES:
        return path.unlink(missing_ok=True)
    part = path.with_suffix(".part")
    part.write_bytes(content)
    part.replace(path)
