"""The options of the command itself. Each subcommand is tested with the code that it starts."""

import pytest

from adapter import __version__, cli


def test_version_prints_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"backlog-adapter {__version__}\n")
