"""Tests find the programs of `make tools` without naming a version."""

import os
from pathlib import Path

import pytest
from tool_cache import program

from bench.tool_folder import tools


def build(folder: Path, version: str, name: str, at_s: float) -> Path:
    file = folder / version / name
    file.parent.mkdir()
    file.touch()
    os.utime(file.parent, (at_s, at_s))
    return file


def test_the_last_built_version_of_a_program_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKLOG_ADAPTER_TOOLS", str(tmp_path))
    build(tmp_path, "helm-4.9.0", "helm", at_s=1000)
    newest = build(tmp_path, "helm-4.10.0", "helm", at_s=2000)
    build(tmp_path, "helm-docs-1.14.2", "helm-docs", at_s=3000)
    assert program("helm") == newest


def test_a_missing_program_skips_the_test_with_the_command_that_builds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKLOG_ADAPTER_TOOLS", str(tmp_path))
    with pytest.raises(pytest.skip.Exception, match=r"helm-docs is not built: .*; make tools-all$"):
        program("helm-docs", "make tools-all")


def test_an_empty_cache_home_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BACKLOG_ADAPTER_TOOLS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert tools() == Path.home() / ".cache" / "backlog-adapter" / "tools"
