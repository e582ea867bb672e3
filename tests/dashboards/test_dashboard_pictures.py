"""The pictures of the dashboards: what the renderer draws from what a Prometheus answers."""

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from hostile_server import Form, http_server, send

from dashboards.queries import NAMES, dashboard, panels
from dashboards.render.__main__ import main
from dashboards.render.data import PanelData, Span
from dashboards.render.picture import NOTE, draw
from dashboards.render.units import formatted

SPAN = Span(1_767_323_000, 1_767_323_600)
LABELS = {"namespace": "shop", "workload": "orders", "reason": "Hold", "policy": "drain", "bound": "max"}


def one_series(request: BaseHTTPRequestHandler, form: Form) -> None:
    """Every query finds one series, of value 3, with a gap."""
    if "step" in form:
        times = range(int(form["start"]), int(form["end"]), int(form["step"]))
        found = {"metric": LABELS, "values": [[at_s, "NaN" if at_s == times[2] else "3"] for at_s in times]}
    else:
        found = {"metric": LABELS, "value": [int(form["time"]), "3"]}
    send_result(request, [found])


def no_series(request: BaseHTTPRequestHandler, _: Form) -> None:
    send_result(request, [])


def send_result(request: BaseHTTPRequestHandler, result: list[dict]) -> None:
    send(request, json.dumps({"status": "success", "data": {"result": result}}).encode())


@pytest.fixture
def full() -> Iterator[str]:
    with http_server(one_series) as url:
        yield url


@pytest.fixture
def empty() -> Iterator[str]:
    with http_server(no_series) as url:
        yield url


@pytest.fixture(params=["full", "empty"])
def url(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(request.param)


def picture(name: str, url: str) -> str:
    data = PanelData(url, SPAN, {"workload": "orders"}, 15)
    try:
        return draw(name, data)
    finally:
        data.close()


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]  # noqa: S314 - our own


@pytest.mark.parametrize("name", NAMES)
def test_every_panel_is_drawn_and_the_picture_says_who_drew_it(name: str, url: str) -> None:
    found = texts(picture(name, url))
    assert found[0] == dashboard(name)["title"]
    assert found[1].startswith(NOTE)
    assert {panel["title"] for panel in panels(name)} <= set(found)


def test_a_panel_without_series_says_so(empty: str) -> None:
    charts = [panel for panel in panels("workload") if panel["type"] not in ("stat", "table")]
    assert texts(picture("workload", empty)).count("no data in this time range") == len(charts)


def test_a_table_has_one_row_for_a_workload_with_the_columns_of_every_query(full: str) -> None:
    found = texts(picture("fleet", full))
    begin = found.index("Times target") + len(["Times target", "Backlog time", "Required", "Current", "Maximum"])
    assert found[begin : begin + 10] == ["shop", "orders", "drain", "Hold", "max", "3", "3 s", "3", "3", "3"]


def test_a_gap_in_a_series_is_a_gap_in_its_line(full: str) -> None:
    tree = ElementTree.fromstring(picture("cost", full))  # noqa: S314 - our own
    lines = [
        element.get("d", "")
        for element in tree.iter("{http://www.w3.org/2000/svg}path")
        if element.get("class") == "line"
    ]
    assert lines
    assert {path.count("M") for path in lines} == {2}


def test_equal_data_give_equal_pictures(full: str) -> None:
    assert picture("health", full) == picture("health", full)


def test_the_command_writes_the_pictures_that_were_asked_for(full: str, tmp_path: Path) -> None:
    main(
        ["--prometheus", full, "--minutes", "10", "--end", "1767323600", "--dashboard", "cost", "--out", str(tmp_path)]
    )
    assert [path.name for path in tmp_path.iterdir()] == ["cost.svg"]


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (None, "none", "–"),
        (0.0, "s", "0 s"),
        (0.0123, "s", "12.3 ms"),
        (90.0, "s", "1.5 min"),
        (86_400.0, "s", "1 d"),
        (0.123, "percentunit", "12.3 %"),
        (1_250.0, "short", "1.25 K"),
        (12.0, "d", "12 d"),
        (0.5, "reqps", "0.5 req/s"),
        (-136.0, "short", "-136"),
    ],
)
def test_numbers_have_their_unit(value: float | None, unit: str, expected: str) -> None:
    assert formatted(value, unit) == expected
