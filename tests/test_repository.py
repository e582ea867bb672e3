"""What holds for the tree as a whole: sizes, locks, addresses, and that every requirement has its test."""

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
# Put together here, so that this file does not hold them either.
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
# What was lost with the originals, describes their products, or belongs to what is not built yet is not among them.
REQUIREMENTS = [
    *(f"S0-{number:02}" for number in range(6, 17)),
    "S0-21",
    "S0-28",
    *(f"S1-{number:02}" for number in range(10, 21)),
    *(f"S2-{number:02}" for number in (1, 2, 3, 4, 15, 16, 17, 18, 20)),
    *(f"S3-{number:02}" for number in range(6, 18)),
    "S3-20",
    "S3-22",
    *(f"S4-{number:02}" for number in (*range(4, 7), *range(9, 31), 32, *range(35, 39))),
    *(f"X-{number:02}" for number in range(1, 13)),
    *(f"P-{number:02}" for number in range(1, 12)),
]


@cache
def tracked() -> tuple[Path, ...]:
    """The files of the repository, also those not committed yet; all files where there is no repository."""
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


@cache
def words_of_tests() -> str:
    return "\n".join(
        path.read_text("utf-8") for path in sorted((ROOT / "tests").rglob("*.py")) if path != Path(__file__)
    )


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
def test_what_the_project_asks_for_is_locked_in_a_version_it_accepts(lock: str, direct: list[str]) -> None:
    locked = requirements(ROOT / "requirements" / f"{lock}.lock")
    for asked in map(Requirement, direct):
        entry = locked[canonicalize_name(asked.name)]
        version = entry.split("==")[1].split()[0]
        assert version in asked.specifier, f"{lock}.lock: {asked}, locked {version}"


@pytest.mark.parametrize("path", sorted((ROOT / "adapter").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_stays_short(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) < MOST_LINES


@pytest.mark.parametrize("identity", REQUIREMENTS)
def test_a_requirement_is_named_by_a_test(identity: str) -> None:
    assert identity in words_of_tests().upper().replace("_", "-")
