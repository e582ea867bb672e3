"""docs/scenario.svg, the picture of the README: current, complete, small and without external files."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.picture import FILE, draw
from bench.scenario import NAMES, play

SVG = "{http://www.w3.org/2000/svg}"
README = Path(__file__).parents[2] / "README.md"


def words() -> list[str]:
    return ["".join(text.itertext()) for text in ElementTree.fromstring(FILE.read_text("utf-8")).iter(f"{SVG}text")]  # noqa: S314  # our own file


@pytest.mark.simulation
def test_the_committed_picture_is_what_the_code_draws() -> None:
    assert FILE.read_text("utf-8") == draw(play()), "python -m bench.picture writes it"


def test_the_picture_names_every_policy_and_unit() -> None:
    assert set(NAMES) <= set(words())
    assert {"input and throughput, records/s", "backlog time, s", "workers, desired and ready", "40 min"} <= set(
        words()
    )


def test_the_picture_is_small_and_loads_nothing() -> None:
    text = FILE.read_text("utf-8")
    assert len(text.encode()) < 60_000
    assert not re.search(r"href|url\(|@import|<script|<image|<foreignObject", text)


def test_the_picture_has_a_light_and_a_dark_style() -> None:
    assert "prefers-color-scheme: dark" in FILE.read_text("utf-8")
