"""Rules for the whole tree: module sizes, locks and addresses."""

import os
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
MOST_LINES = 300
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
# Joined at run time, so that this file does not contain them.
REGISTRIES = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("anaconda", "org"),
        ("registry", "npmjs", "org"),
        ("maven", "apache", "org"),
        ("repo1", "maven", "org"),
        ("proxy", "golang", "org"),
        ("sum", "golang", "org"),
        ("docker", "io"),
        ("ghcr", "io"),
        ("gcr", "io"),
        ("quay", "io"),
        ("registry", "k8s", "io"),
    )
]


@cache
def tracked() -> tuple[Path, ...]:
    """The files of the repository, committed or not."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        pytest.skip("not a checkout")
    return tuple(path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file())


def requirements(lock: Path) -> dict[str, str]:
    """Name -> the lines of one requirement."""
    entries = re.split(r"\n(?=\S)", lock.read_text("utf-8").strip())
    return {canonicalize_name(re.split(r"[^\w.-]", entry, maxsplit=1)[0]): entry for entry in entries}


def test_no_file_names_a_package_registry() -> None:
    named = re.compile("|".join(rf"\b{re.escape(host)}\b" for host in REGISTRIES))
    found = {
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in tracked()
        for match in named.finditer(path.read_bytes().decode("utf-8", "replace"))
    }
    assert not found


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_locked_requirement_has_one_version_and_a_hash(lock: Path) -> None:
    assert requirements(lock)
    for name, entry in requirements(lock).items():
        assert re.match(r"\S+==[\w.+!]+ ", entry), name
        assert "--hash=sha256:" in entry, name
        assert "://" not in entry, name


@pytest.mark.parametrize(
    ("lock", "direct"),
    [
        ("serve", PROJECT["project"]["dependencies"]),
        ("pipeline", PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"]["pipeline"]),
        (
            "dev",
            PROJECT["project"]["dependencies"]
            + PROJECT["project"]["optional-dependencies"]["pipeline"]
            + PROJECT["dependency-groups"]["dev"]
            + PROJECT["build-system"]["requires"],
        ),
    ],
    ids=["serve", "pipeline", "dev"],
)
def test_every_dependency_is_locked_in_an_accepted_version(lock: str, direct: list[str]) -> None:
    locked = requirements(ROOT / "requirements" / f"{lock}.lock")
    for wanted in map(Requirement, direct):
        entry = locked[canonicalize_name(wanted.name)]
        version = entry.split("==")[1].split()[0]
        assert version in wanted.specifier, f"{lock}.lock: {wanted}, locked {version}"


def test_no_module_is_long() -> None:
    sizes = {path: len(path.read_text("utf-8").splitlines()) for path in (ROOT / "adapter").rglob("*.py")}
    assert [path for path, lines in sizes.items() if lines > MOST_LINES] == []


def test_every_script_is_executable() -> None:
    scripts = [path for path in tracked() if path.read_bytes().startswith(b"#!")]
    assert [path for path in scripts if not os.access(path, os.X_OK)] == []


def test_test_modules_have_unique_names() -> None:
    """pytest imports the modules of folders without a package by their file names."""
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if path.name not in ("conftest.py", "__init__.py")]
    assert sorted(names) == sorted(set(names))
