"""A hash of the code that produces a result, so that a resumed run never mixes two versions."""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import adapter
from adapter.core import policies


@cache
def release(module: str) -> str:
    """Hash of numpy's version, and of a module and all that it imports of this package and of its own."""
    digest = hashlib.sha256(f"{adapter.__version__} {np.__version__}".encode())
    files = reached_files(module)
    for name in sorted(files):
        digest.update(name.encode() + b"\0" + files[name].read_bytes() + b"\0")
    return digest.hexdigest()


def reached_files(module: str) -> dict[str, Path]:
    """Module name -> its file, for a module, the policies (core imports them by name), and all that they import."""
    packages = {adapter.__name__, module.partition(".")[0]}
    found: dict[str, Path] = {}
    pending = [module, *(f"{policies.__name__}.{policy.module}" for policy in policies.POLICIES)]
    while pending:
        name = pending.pop()
        if name in found or name.partition(".")[0] not in packages:
            continue
        if (path := _file(name)) is not None:
            found[name] = path
            pending += _imports(path)
    return found


def _imports(path: Path) -> Iterator[str]:
    """Every imported name that may be a module. A name that is a function or class has no file."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _file(module: str) -> Path | None:
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:  # a name inside a module, which is no package
        return None
    return Path(spec.origin) if spec is not None and spec.origin is not None else None
