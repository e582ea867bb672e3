"""image/build.sh, with a program that prints its arguments as the engine."""

import os
import subprocess
from pathlib import Path

import pytest

BUILD = Path(__file__).parents[2] / "image" / "build.sh"


@pytest.mark.parametrize("registry", ["registry.example.com/team", "registry.example.com/team/"])
def test_a_registry_with_and_without_a_slash_is_the_same(registry: str) -> None:
    environment = os.environ | {"ENGINE": "echo", "REGISTRY": registry}
    printed = subprocess.run([BUILD], env=environment, capture_output=True, text=True, check=True).stdout
    for role in ("serve", "pipeline"):
        assert f"--tag registry.example.com/team/backlog-adapter-{role}:" in printed
