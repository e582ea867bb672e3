"""The options of the command itself, and `check`. The other subcommands are tested with the code that they start."""

from pathlib import Path

import pytest

from adapter import __version__, cli

EXAMPLE = Path(__file__).parents[1] / "examples" / "config.yaml"
VALID = """
sources: {kafka: {kind: kafka, bootstrap_servers: "broker:9092"}}
workloads: [{name: orders, read: [{source: kafka, group: orders, topics: [orders]}]}]
pipeline: {checkpoint: /tmp/checkpoint}
"""


def test_version_prints_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"backlog-adapter {__version__}\n")


def test_check_says_that_a_configuration_is_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(VALID)
    with pytest.raises(SystemExit) as ended:
        cli.main(["check", "--config", str(file)])
    assert (ended.value.code, capsys.readouterr().out) == (
        0,
        f"{file} is valid: 1 source, 1 workload, 0 fleets\n",
    )


def test_check_needs_none_of_the_files_that_are_mounted_in_the_pod(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["check", "--config", str(EXAMPLE)])
    assert (ended.value.code, capsys.readouterr().err) == (0, "")


def test_check_prints_every_fault_with_its_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(VALID.replace("source: kafka", "source: kafak") + "timing: {tick_s: soon}\n")
    with pytest.raises(SystemExit) as ended:
        cli.main(["check", "--config", str(file)])
    faults = capsys.readouterr().err
    assert ended.value.code == 2
    assert "timing.tick_s: " in faults
    assert "kafak" in faults
