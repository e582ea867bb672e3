"""The programs of `make tools` and `make tools-all`, found by name, in any version."""

from pathlib import Path

import pytest

from bench.tool_folder import tools


def program(name: str, target: str = "make tools") -> Path:
    """The last built version of a program. Skips the test if there is none. target: the command that builds it."""
    versions = [file for file in tools().glob(f"{name}-*/{name}") if file.is_file()]
    if not versions:
        pytest.skip(f"{name} is not built: no {tools()}/{name}-*/{name}; {target}")
    return max(versions, key=lambda file: file.parent.stat().st_mtime)


def need(tool: str, target: str = "make tools") -> None:
    """Skips the test without the folder of a tool. target: the command that builds it."""
    if not (tools() / tool).is_dir():
        pytest.skip(f"{tool} is not in {tools()}: {target}")
