"""What the numbers depend on besides the question: the code that makes them."""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

import adapter

_ROOT = Path(adapter.__file__).parents[1]
_FOLD = "adapter.backtest.unit_simulation"


@cache
def release() -> str:
    """The same for the same code of the fold and all that it imports of this package, and the same numpy."""
    hashed = hashlib.sha256(f"{adapter.__version__} {np.__version__}".encode())
    for path in sorted(_reached(_FOLD)):
        hashed.update(path.relative_to(_ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return hashed.hexdigest()


def _reached(module: str) -> set[Path]:
    found: set[Path] = set()
    waiting = [module]
    while waiting:
        path = _file(waiting.pop())
        if path is not None and path not in found:
            found.add(path)
            waiting += _imported(path)
    return found


def _imported(path: Path) -> Iterator[str]:
    """Every name that may be a module; a name imported from a package is one, another is none and has no file."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _file(module: str) -> Path | None:
    if module.partition(".")[0] != adapter.__name__:
        return None
    place = _ROOT.joinpath(*module.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)
