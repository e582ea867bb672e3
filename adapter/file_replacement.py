"""Replace a file, so that neither a reader nor a crash of the machine sees half of it."""

import os
from pathlib import Path
from stat import S_IMODE


def replace_file(path: Path, content: bytes, *, is_private: bool = False) -> None:
    """Write a file whole or not at all, and its folder if necessary. A file with this content stays as it is.

    is_private: only this user may read it. Raises OSError, and leaves no partial file.
    """
    mode = 0o600 if is_private else 0o666
    if path.exists() and path.read_bytes() == content and (not is_private or S_IMODE(path.stat().st_mode) == mode):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    if is_private:  # an older one may have another mode
        part.unlink(missing_ok=True)
    exclusive = os.O_EXCL if is_private else os.O_TRUNC
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | exclusive, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
