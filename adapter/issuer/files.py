"""Files that other parts of the process read while they are replaced."""

import os
from pathlib import Path


def replace_file(path: Path, content: bytes) -> bool:
    """Write a file that only this user may read, whole or not at all. Returns whether its content changed."""
    if path.exists() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    draft.replace(path)
    return True
