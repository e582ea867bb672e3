import os
import subprocess
import sys
from pathlib import Path

import pytest

from adapter.pipeline.java import parsed_version

CHECK = """
from adapter.errors import SetupError
from adapter.pipeline.java import check_java
try:
    print("java", check_java())
except SetupError as fault:
    print("fault", fault)
"""


def said(**environment: str) -> str:
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
    ("told", "major"),
    [
        pytest.param('openjdk version "17.0.15" 2025-04-15', 17, id="OpenJDK 17"),
        pytest.param('java version "1.8.0_402"', 8, id="the old way of counting"),
        pytest.param('openjdk version "21" 2023-09-19', 21, id="a first release"),
        pytest.param('openjdk version "25-ea" 2025-09-16', 25, id="early access"),
        pytest.param("bash: java: not found", None, id="no version at all"),
    ],
)
def test_the_version_in_what_java_prints(told: str, major: int | None) -> None:
    assert parsed_version(told) == major


def test_a_missing_java_is_a_fault_that_names_the_install_command(tmp_path: Path) -> None:
    answer = said(PATH=str(tmp_path))
    assert answer.startswith("fault Java is missing: the pipeline needs Java 17 or newer; install it, e.g. `apt-get")


def test_a_java_home_that_names_nothing_is_a_fault_although_the_path_has_one(tmp_path: Path) -> None:
    assert said(PATH=os.environ["PATH"], JAVA_HOME=str(tmp_path)).startswith("fault Java is missing")


def test_an_old_java_is_a_fault_that_names_its_version(tmp_path: Path) -> None:
    folder = java(tmp_path, "11.0.22")
    expected = f"fault {folder}/java is Java 11: the pipeline needs Java 17 or newer; install it"
    assert said(PATH=os.pathsep.join([folder, "/bin"])).startswith(expected)


def test_a_java_that_says_no_version_is_a_fault(tmp_path: Path) -> None:
    folder = java(tmp_path, "")
    assert "prints no version" in said(PATH=os.pathsep.join([folder, "/bin"]))
