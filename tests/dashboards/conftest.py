"""What the tests of dashboards and rules share."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tool_cache import program


@pytest.fixture(scope="session")
def promtool() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs promtool with its arguments."""
    promtool = program("promtool")

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([promtool, *arguments], capture_output=True, text=True, check=False)

    return run
