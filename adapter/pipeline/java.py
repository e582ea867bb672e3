"""Check that Spark can start Java."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from adapter.errors import SetupError

OLDEST = 17
INSTALL = (
    "install it, e.g. `apt-get install openjdk-21-jre-headless` (Debian 13, Ubuntu; openjdk-17 on Debian 12), "
    "`dnf install java-21-openjdk-headless` (Fedora) or `brew install openjdk@21` (macOS), "
    "and add it to PATH or set JAVA_HOME"
)
ANSWER_WITHIN_S = 30.0


def check_java() -> int:
    """The major version of the Java that Spark will start. Raises SetupError if it is missing or too old."""
    program = _program()
    if program is None:
        home = os.environ.get("JAVA_HOME")
        where = f"no bin/java in JAVA_HOME={home}; unset it, or install Java" if home else INSTALL
        raise SetupError(f"Java is missing: the pipeline needs Java {OLDEST} or newer; {where}")
    output = _version_output(program)
    major = parse_version(output)
    if major is None:
        raise SetupError(f"{program} -version prints no version: {output.strip()!r}; {INSTALL}")
    if major < OLDEST:
        raise SetupError(f"{program} is Java {major}: the pipeline needs Java {OLDEST} or newer; {INSTALL}")
    return major


def parse_version(output: str) -> int | None:
    """The major version in the output of `java -version`: 17 of "17.0.15", 8 of "1.8.0_402"; None without one."""
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(found.group(1)) if found else None


def _program() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home:  # Spark reads JAVA_HOME first, and fails if there is no Java
        program = Path(home) / "bin" / "java"
        return str(program) if program.is_file() else None
    return shutil.which("java")


def _version_output(program: str) -> str:
    try:
        answer = subprocess.run(  # noqa: S603 - the program that Spark starts too
            [program, "-version"],
            capture_output=True,
            text=True,
            timeout=ANSWER_WITHIN_S,
            check=False,
            start_new_session=True,  # a Ctrl-C does not reach it
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(f"{program} does not start: {error}; {INSTALL}") from error
    return answer.stderr + answer.stdout
