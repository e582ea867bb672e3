"""Read the files that settings of a source name; an error names the setting, the file and the fix."""

import errno
import os
from pathlib import Path

from adapter.errors import SourceError

_FIXES = {
    errno.ENOENT: "mount its Secret or volume there, or run this where the file is",
    errno.EACCES: f"let user {os.getuid()} read it",
}


def read_bytes(source: str, setting: str, file: str) -> bytes:
    """The content of a file. Raises SourceError if it cannot be read."""
    try:
        return Path(file).read_bytes()
    except OSError as error:
        cause, fix = (error.strerror or str(error)).lower(), _FIXES.get(error.errno or 0, "name another file")
        raise SourceError(source, f"{setting}: expected a readable file, got {file} ({cause}); {fix}") from None


def read_text(source: str, setting: str, file: str) -> str:
    """The text of a file. Raises SourceError if it cannot be read or is not UTF-8."""
    try:
        return read_bytes(source, setting, file).decode()
    except UnicodeDecodeError as error:
        cause = f"expected UTF-8 text, got {file} with other bytes at byte {error.start}; write it in UTF-8"
        raise SourceError(source, f"{setting}: {cause}") from None
