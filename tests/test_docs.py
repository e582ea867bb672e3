"""The documents say what the program does: tables, commands, links and examples are compared with the code."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
import typer
import yaml

from adapter import config
from adapter.cli import app
from adapter.core.decisions import Bound, Reason
from adapter.core.descriptions import BOUND_DESCRIPTIONS, REASON_DESCRIPTIONS
from adapter.core.rules import POLICIES
from adapter.serving.signals.metrics import METRICS
from conformance import divergences

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
COMMANDS = {"run", "pipeline", "serve", "schema", "explain"}
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)[^)]*\)")
# A command at the beginning of a line of a fence, or of a code span.
CALL = re.compile(r"(?:^|`|\$ )(?:\.venv/bin/)?backlog-adapter ([a-z]+)((?: [^`\n]*)?)", re.MULTILINE)
MAKE = re.compile(r"(?:^|`|\$ )make ((?:[a-z]|[A-Z]+=)[^`\n#]*)", re.MULTILINE)


def documents() -> list[Path]:
    """The Markdown files that belong to the project; also those not committed yet."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    named = [ROOT / name for name in listed.stdout.split()]
    return [path for path in named if path.is_file()] or sorted(ROOT.glob("*.md"))


def section(heading: str) -> str:
    """The README's text under a heading, down to the next of its level."""
    found = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL)
    assert found, f"README.md has no heading '## {heading}'"
    return found[1]


def table(text: str) -> list[list[str]]:
    """The rows of the first Markdown table, without its head."""
    found = re.search(r"^\|.*\n\|[-:| ]+\|\n((?:\|.*(?:\n|\Z))+)", text, re.MULTILINE)
    assert found, "no table"
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in found[1].splitlines()]


def fences(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def code(text: str) -> str:
    """Code fences and code spans, each on lines of its own."""
    return "\n".join([*fences(text, "[a-z]*"), *re.findall(r"`[^`\n]+`", text)])


@cache
def cli() -> dict[str, set[str]]:
    """Command -> its options."""
    group = typer.main.get_command(app)
    commands = getattr(group, "commands", {})
    return {name: {"--help", *(o for p in one.params for o in p.opts)} for name, one in commands.items()}


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+):(?!=)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def anchors(path: Path) -> set[str]:
    """The fragments that point to a document's headings, as forges make them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_readme_explains_each_reason_in_order_and_in_the_words_of_the_program() -> None:
    told = [(row[0].strip("`"), row[1]) for row in table(section("Why it scaled"))]
    assert told == [(reason.value, REASON_DESCRIPTIONS[reason]) for reason in Reason]


def test_the_readme_explains_each_bound_in_order_and_in_the_words_of_the_program() -> None:
    after = section("Why it scaled").partition("Then bounds cut")[2]
    told = [(row[0].strip("`"), row[1]) for row in table(after)]
    assert told == [(bound.value, BOUND_DESCRIPTIONS[bound]) for bound in Bound if bound is not Bound.NONE]


def test_the_readme_lists_exactly_the_policies_there_are() -> None:
    assert [row[0].strip("`") for row in table(section("Policies"))] == list(POLICIES)


def test_the_readme_lists_exactly_the_metrics_that_are_served() -> None:
    assert [row[0] for row in table(section("What it serves"))] == [f"`{name}`" for name in METRICS]


def test_the_readme_lists_exactly_the_divergences_from_a_go_server() -> None:
    assert divergences.table() in README


def test_the_readme_shows_every_command() -> None:
    assert {call for call, _ in CALL.findall(code(README))} >= COMMANDS


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_in_documents_exist_with_their_options(path: Path) -> None:
    for command, rest in CALL.findall(code(path.read_text("utf-8"))):
        assert command in cli(), f"{path.name}: backlog-adapter {command}"
        for option in re.findall(r"(?<!\S)--[a-z-]+", rest):
            assert option in cli()[command], f"{path.name}: backlog-adapter {command} {option}"


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_make_targets_in_documents_exist(path: Path) -> None:
    for words in MAKE.findall(code(path.read_text("utf-8"))):
        named = [word for word in re.sub(r'\w+="[^"]*"', "", words).split() if "=" not in word]
        assert set(named) <= make_targets(), f"{path.name}: make {words}"


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_files_lead_somewhere(path: Path) -> None:
    for target in LINK.findall(path.read_text("utf-8")):
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, fragment = target.partition("#")
        file = path.parent / name if name else path
        assert file.exists(), f"{path.name}: {target}"
        if fragment and file.suffix == ".md":
            assert fragment in anchors(file), f"{path.name}: {target}"


def test_configurations_in_the_readme_are_valid() -> None:
    for text in fences(README, "yaml"):
        document = yaml.safe_load(text)
        if isinstance(document, dict) and "sources" in document:
            config.parse(text, "README.md")


def test_the_changelog_has_a_place_for_what_is_not_released() -> None:
    assert "## Unreleased" in (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()
