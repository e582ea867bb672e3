"""The chart, rendered by helm."""

import subprocess
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from tool_cache import program

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "backlog-adapter"

Render = Callable[..., dict[tuple[str, str], dict[str, Any]]]


@pytest.fixture(scope="session")
def helm() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs helm with its arguments."""
    helm = program("helm")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([helm, *arguments], capture_output=True, text=True, timeout=60, check=False)

    return run


@pytest.fixture(scope="session")
def render(helm: Callable[..., subprocess.CompletedProcess[str]]) -> Render:
    """The objects of a release `orders` in namespace `streaming`, by kind and name, with these --set values."""

    @cache
    def rendered(*values: str) -> dict[tuple[str, str], dict[str, Any]]:
        options = [word for value in values for word in ("--set", value)]
        done = helm("template", "orders", str(CHART), "--namespace", "streaming", *options)
        assert done.returncode == 0, done.stderr
        found = [item for item in yaml.safe_load_all(done.stdout) if item]
        return {(item["kind"], item["metadata"]["name"]): item for item in found}

    return lambda *values: deepcopy(rendered(*values))
