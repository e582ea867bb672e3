import os
import subprocess
import sys
from pathlib import Path

import pytest

from adapter.pipeline.java import parse_version

CHECK = """
from adapter.errors import SetupError
from adapter.pipeline.java import check_java
try:
    print("java", check_java())
except SetupError as fault:
    print("fault", fault)
"""


def outcome(**environment: str) -> str:
    """What the check prints in a process that has nothing but this environment."""
    ran = subprocess.run([sys.executable, "-c", CHECK], env=environment, capture_output=True, text=True, check=True)
    return ran.stdout


def java(folder: Path, version: str) -> str:
    """A folder with a program that says it is this Java."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2021-01-01' >&2\n")
    program.chmod(0o755)
    return str(program.parent)


@pytest.mark.parametrize(
    ("output", "major"),
    [
        pytest.param('openjdk version "17.0.15" 2025-04-15', 17, id="OpenJDK 17"),
        pytest.param('java version "1.8.0_402"', 8, id="the old way of counting"),
        pytest.param('openjdk version "21" 2023-09-19', 21, id="a first release"),
        pytest.param('openjdk version "25-ea" 2025-09-16', 25, id="early access"),
        pytest.param("bash: java: not found", None, id="no version at all"),
    ],
)
def test_the_version_is_parsed_from_the_output_of_java(output: str, major: int | None) -> None:
    assert parse_version(output) == major


def test_the_error_of_a_missing_java_has_the_install_command(tmp_path: Path) -> None:
    answer = outcome(PATH=str(tmp_path))
    assert answer.startswith("fault Java is missing: the pipeline needs Java 17 or newer; install it, e.g. `apt-get")


def test_an_empty_java_home_is_an_error_even_if_path_has_java(tmp_path: Path) -> None:
    found = outcome(PATH=os.environ["PATH"], JAVA_HOME=str(tmp_path))
    assert found.startswith("fault Java is missing")
    assert found.strip().endswith(f"no bin/java in JAVA_HOME={tmp_path}; unset it, or install Java")


def test_the_error_of_an_old_java_has_its_version(tmp_path: Path) -> None:
    folder = java(tmp_path, "11.0.22")
    expected = f"fault {folder}/java is Java 11: the pipeline needs Java 17 or newer; install it"
    assert outcome(PATH=os.pathsep.join([folder, "/bin"])).startswith(expected)


def test_a_java_without_a_version_is_an_error(tmp_path: Path) -> None:
    folder = java(tmp_path, "")
    assert "prints no version" in outcome(PATH=os.pathsep.join([folder, "/bin"]))
