"""`python -m bench`: an error in its command line, and a benchmark that cannot run."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bench import default_settings, foresight, metrics_api, policies
from bench.__main__ import main
from bench.kafka_broker import broker
from bench.load import Generator, Load

FAILING_JAVA = """#!/bin/sh
if [ "$1" = -version ]; then echo 'openjdk version "17.0.1"' >&2; exit 0; fi
echo 'no space left on device' >&2
exit 3
"""


@pytest.fixture
def failing_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `java` that fails; the folder of a Kafka that needs it."""
    program, jars = tmp_path / "bin" / "java", tmp_path / "tools" / "kafka-1.2.3" / "libs"
    program.parent.mkdir()
    program.write_text(FAILING_JAVA)
    program.chmod(0o755)
    jars.mkdir(parents=True)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("BACKLOG_ADAPTER_TOOLS", str(tmp_path / "tools"))
    return jars


@pytest.mark.parametrize("word", ["typo", "--help"])
def test_the_machine_is_not_described_before_the_usage(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([word])
    assert "load average" not in capsys.readouterr().out


def test_a_failed_format_of_kafkas_folder_is_reported_with_its_output(failing_java: Path, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="exit code 3:\nno space left on device"), broker(failing_java, tmp_path):
        pass


@pytest.mark.usefixtures("failing_java")
def test_a_benchmark_that_cannot_run_ends_the_command_with_its_message() -> None:
    with pytest.raises(SystemExit, match=r"^bench: Kafka's storage tool failed with exit code 3"):
        main(["kafka_groups"])


@pytest.mark.parametrize(
    "command",
    [main, policies.main, default_settings.main, foresight.main, metrics_api.main],
    ids=["bench", "policies", "default settings", "foresight", "metrics API"],
)
def test_without_java_a_command_ends_with_one_line(
    command: Callable[[Sequence[str]], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "goserver").mkdir()
    (tmp_path / "goserver" / "load").touch()
    monkeypatch.setenv("BACKLOG_ADAPTER_TOOLS", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SystemExit, match=r"^[a-z_-]+: Java is missing: .*; unset it, or install Java$"):
        command([])


def test_a_missing_load_generator_is_reported_by_its_run(tmp_path: Path) -> None:
    generator = Generator(tmp_path / "load", tmp_path, tmp_path)
    with pytest.raises(RuntimeError, match="load is missing: `make tools` builds it"):
        generator.run(Load(1, 0.1), "https://127.0.0.1:1/")
