"""What the tests of dashboards and rules share."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def promtool() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs promtool with its arguments."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "backlog-adapter" / "tools"
    program = Path(os.environ.get("BACKLOG_ADAPTER_TOOLS", cache)) / "promtool-0.315.0" / "promtool"
    if not program.is_file():
        pytest.skip(f"promtool is not built: no {program}; make tools")

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)

    return run
