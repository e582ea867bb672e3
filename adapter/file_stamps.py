"""Detect that files were replaced or rewritten."""

from collections.abc import Iterable
from pathlib import Path

FileStamp = tuple[int, int, int] | None  # inode, time of the last change and size; None if the file cannot be read


def file_stamps(paths: Iterable[str | None]) -> tuple[FileStamp, ...]:
    """The stamps of the paths that are set. A changed stamp is a changed file."""
    return tuple(_stamp(path) for path in paths if path)


def _stamp(path: str) -> FileStamp:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
