"""The documents agree with the program: tables, commands, links and examples."""

import ast
import re
import subprocess
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
import yaml

from adapter import config
from adapter.cli import app
from adapter.config.foreign_names import FOREIGN_NAMES
from adapter.config.sources import KINDS
from adapter.core.decisions import Bound, Reason
from adapter.core.metrics import METRICS
from adapter.core.rules import POLICIES

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)[^)]*\)")
ROW = re.compile(r"^\| *`([^`]+)` *\|([^|]*)\|", re.MULTILINE)
# A command at the start of a line of a code fence or of a code span.
CALL = re.compile(r"(?:^|`|\$ )(?:\.venv/bin/)?backlog-adapter ([a-z-]+)((?: [^`\n]*)?)", re.MULTILINE)
MAKE = re.compile(r"(?:^|`|\$ )make ((?:[a-z]|[A-Z]+=)[^`\n#]*)", re.MULTILINE)


def documents() -> list[Path]:
    """The Markdown files of the repository, committed or not."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    return [path for name in listed if (path := ROOT / name).is_file()] or sorted(ROOT.glob("**/*.md"))


DOCUMENTS = {path: path.read_text("utf-8") for path in documents()}
EVERY_DOCUMENT = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


@cache
def rows() -> set[tuple[str, str]]:
    """The first two cells of every table row that begins with code."""
    return {(name, cell.strip()) for text in DOCUMENTS.values() for name, cell in ROW.findall(text)}


def fences(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def code(text: str) -> str:
    """Code fences and code spans, each on lines of its own."""
    return "\n".join([*fences(text, "[a-z]*"), *re.findall(r"`[^`\n]+`", text)])


@cache
def options() -> dict[str, set[str]]:
    """The options of each command."""
    commands = getattr(typer.main.get_command(app), "commands", {})
    return {name: {"--help", *(o for p in one.params for o in p.opts)} for name, one in commands.items()}


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+):(?!=)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def anchors(path: Path) -> set[str]:
    """The fragments of the headings of a document, as GitHub creates them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@EVERY_DOCUMENT
def test_a_command_in_a_code_fence_runs_where_it_is_not_on_the_path(path: Path) -> None:
    lines = "".join(fences(DOCUMENTS[path], "[a-z]*")).splitlines()
    assert [line for line in lines if line.startswith("backlog-adapter ")] == []


def test_each_reason_is_documented_with_its_description() -> None:
    assert {(reason.value, reason.record.description) for reason in Reason} <= rows()


def test_each_bound_is_documented_with_its_description() -> None:
    assert {(bound.value, bound.record.description) for bound in Bound if bound is not Bound.NONE} <= rows()


def test_each_kind_of_source_is_documented() -> None:
    assert set(KINDS) <= {name for name, _ in ROW.findall(DOCUMENTS[ROOT / "docs" / "configuration.md"])}


def test_each_name_of_another_autoscaler_has_a_row() -> None:
    table = (ROOT / "docs" / "coexistence.md").read_text().partition("### From KEDA's scaler or Flink's autoscaler")[2]
    assert [name for name in FOREIGN_NAMES if f"`{name}`" not in table] == []


def test_each_policy_and_metric_has_a_row_of_the_readme() -> None:
    assert {*POLICIES, *METRICS} - {name for name, _ in ROW.findall(DOCUMENTS[ROOT / "README.md"])} == set()


def test_the_readme_names_the_tested_version_of_helm() -> None:
    version = re.search(r"\bhelm=(\S+)", (ROOT / "tests/e2e/tools/build.sh").read_text("utf-8"))
    assert version is not None
    assert f"Helm {version[1][0]} (tested: {version[1]})" in DOCUMENTS[ROOT / "README.md"]


def test_each_command_is_documented() -> None:
    shown = {command for text in DOCUMENTS.values() for command, _ in CALL.findall(code(text))}
    assert set(options()) <= shown


@EVERY_DOCUMENT
def test_commands_exist_with_their_options(path: Path) -> None:
    for command, rest in CALL.findall(code(DOCUMENTS[path])):
        assert command in options(), f"backlog-adapter {command}"
        for option in re.findall(r"(?<!\S)--[a-z-]+", rest):
            assert option in options()[command], f"backlog-adapter {command} {option}"


@EVERY_DOCUMENT
def test_make_targets_exist(path: Path) -> None:
    for words in MAKE.findall(code(DOCUMENTS[path])):
        named = [word for word in re.sub(r'\w+="[^"]*"', "", words).split() if "=" not in word]
        assert set(named) <= make_targets(), f"make {words}"


@EVERY_DOCUMENT
def test_links_between_files_lead_somewhere(path: Path) -> None:
    for target in LINK.findall(DOCUMENTS[path]):
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, fragment = target.partition("#")
        file = path.parent / name if name else path
        assert file.exists(), target
        if fragment and file.suffix == ".md":
            assert fragment in anchors(file), target


@EVERY_DOCUMENT
def test_configurations_are_valid(path: Path) -> None:
    for text in fences(DOCUMENTS[path], "yaml"):
        document = yaml.safe_load(text)
        if isinstance(document, dict) and "sources" in document:
            config.parse(text, path.name)


@cache
def printed() -> str:
    """Every text of the program, with NUL for the values of f-strings."""
    found = []
    for path in (ROOT / "adapter").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                found.append(
                    "".join(str(part.value) if isinstance(part, ast.Constant) else "\0" for part in node.values)
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(found)


OWN_SECTIONS = ("The adapter answers with an error", "The sentence of a workload names a fault", "The adapter itself")
OWN_MESSAGES = [
    message
    for section in re.split(r"^## ", DOCUMENTS[ROOT / "docs" / "troubleshooting.md"], flags=re.MULTILINE)
    if section.startswith(OWN_SECTIONS)
    for message, _ in ROW.findall(section)
]


def test_the_listener_for_spark_commits_the_end_of_each_micro_batch() -> None:
    commits, names = [], dict[str, Any]()
    code = re.search(r"```python\n(.*?)```", DOCUMENTS[ROOT / "docs" / "sources.md"], re.DOTALL)
    assert code is not None
    exec(code[1], names)  # noqa: S102  # the example of the document
    names["Consumer"] = lambda _: SimpleNamespace(commit=lambda offsets, **_: commits.append(offsets))
    source = SimpleNamespace(endOffset='{"invoices": {"0": 7, "1": 9}}')
    event = SimpleNamespace(progress=SimpleNamespace(sources=[source]))

    names["OffsetCommitter"]("kafka:9092", "invoices").onQueryProgress(event)

    committed = [(each.topic, each.partition, each.offset) for each in commits[0]]
    assert committed == [("invoices", 0, 7), ("invoices", 1, 9)]


@pytest.mark.parametrize("message", OWN_MESSAGES)
def test_each_message_in_the_troubleshooting_is_one_that_the_program_prints(message: str) -> None:
    pieces = [re.escape(piece) for piece in message.split("...")]
    assert re.search("\0".join(pieces).replace("\0", "[^\n]{1,80}?"), printed()), message


@cache
def compared() -> dict[str, list[list[str]]]:
    """Policy or baseline -> the first four figures of its row in each printed table of the comparison, in order."""
    text = (ROOT / "docs" / "benchmarks.md").read_text("utf-8").split("## The comparison of policies")[1]
    found: dict[str, list[list[str]]] = {}
    for name, figures in re.findall(r"^\| `([^`]+)` \| (\d.*) \|$", text, re.MULTILINE):
        found.setdefault(name, []).append(figures.split(" | ")[:4])
    return found


def test_the_summary_of_the_comparison_has_the_figures_of_the_printed_tables() -> None:
    summary = (ROOT / "docs" / "policies.md").read_text("utf-8").split("## The comparison")[1]
    rows_of_summary = re.findall(r"^\| `([\w:.-]+)` \| (\d\.\d\d · .*) \|$", summary.split("\n\n| ")[1], re.MULTILINE)
    assert len(rows_of_summary) > 20
    for name, cells in rows_of_summary:
        printed = [[*figures, f"{float(late):.1f}"] for *figures, late in compared()[name]]
        assert [cell.split(" · ") for cell in cells.split(" | ")] == printed[:4], name


def test_the_readme_quotes_the_comparison() -> None:
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    quotes = {
        "drain": r"`drain` uses ([\d.]+) times the worker-hours .*?, with (\d+) rescales a day",
        "hpa-cpu-70": r"the HPA on 70 % CPU uses ([\d.]+) times with (\d+) rescales",
        "flink-default": r"Flink's autoscaler ([\d.]+) with (\d+) rescales",
    }
    assert {name: re.findall(quote, text) for name, quote in quotes.items()} == {
        name: [tuple(compared()[name][0][:2])] for name in quotes
    }
