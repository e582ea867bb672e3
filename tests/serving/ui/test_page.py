"""The page and the JSON it polls."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from flask import Flask
from serving_builders import get
from ui_decisions import AT_S, decision, snapshot

from adapter.apiserver.app import create_app
from adapter.core.decisions import Reason
from adapter.serving.snapshots.snapshot import Snapshot
from adapter.serving.ui.history import SERIES, History
from adapter.serving.ui.page import page_routes


def app_of(held: Snapshot | None, now_s: float = AT_S + 3, history: History | None = None) -> Flask:
    return create_app(page_routes(lambda: held, history or History(), lambda: now_s))


class Document(HTMLParser):
    """Every tag with its attributes, and the labels' targets."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_page_loads_nothing_from_other_hosts() -> None:
    text = get(app_of(None), "/").text
    tags = Document(text).tags

    assert {attributes["href"] for tag, attributes in tags if tag == "link"} == {"data:,"}
    assert [attributes for tag, attributes in tags if tag in ("script", "style")] == [{}, {}]
    assert not [tag for tag, attributes in tags if "src" in attributes or "style" in attributes]
    assert not [tag for tag, attributes in tags if any(name.startswith("on") for name in attributes)]
    assert set(re.findall(r"https?://[^\"]+", text)) == {"http://www.w3.org/2000/svg"}


def test_only_the_pages_own_script_and_style_may_run() -> None:
    answer = get(app_of(None), "/")
    policy = answer.headers["Content-Security-Policy"]

    for tag in ("script", "style"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", answer.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_the_curves_are_described_in_words() -> None:
    names = re.findall(r'\{ name: "([^"]+)"', get(app_of(None), "/").text)
    assert len(names) >= 5
    assert not [name for name in names if "_" in name]


def test_the_script_never_makes_markup_from_text() -> None:
    text = get(app_of(None), "/").text

    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)


def test_the_page_has_both_color_schemes_and_is_accessible() -> None:
    text = get(app_of(None), "/").text
    tags = Document(text).tags

    assert "prefers-color-scheme: dark" in text
    assert ("html", {"lang": "en"}) in tags
    assert {attributes.get("for") for tag, attributes in tags if tag == "label"} == {"filter"}
    assert all(attributes.get("scope") == "col" for tag, attributes in tags if tag == "th")
    assert "status" in {attributes.get("role") for _, attributes in tags}


def test_before_the_first_decision_the_page_says_so() -> None:
    data = get(app_of(None), "/page/data").get_json()

    assert data["state"] == "waiting"
    assert data["rows"] == []
    assert "waiting for the first decision" in data["notice"]


def test_a_row_shows_the_decision_in_words_with_its_curves() -> None:
    (row,) = get(app_of(snapshot(decision())), "/page/data").get_json()["rows"]

    assert (row["workload"], row["required"], row["current"], row["input_rate"]) == ("demo/steady", "4", "4", "370")
    assert row["sentence"].startswith("Holding 4 workers")
    assert set(row["series"]) == set(SERIES)
    assert row["series"]["throughput_records_per_s"] == [370.0]


def test_a_stale_snapshot_is_shown_as_stale() -> None:
    data = get(app_of(snapshot(decision()), now_s=AT_S + 200), "/page/data").get_json()

    assert (data["state"], len(data["rows"])) == ("stale", 1)
    assert "503" in data["notice"]


def test_an_unknown_number_is_unknown_on_the_page_and_a_gap_in_its_curve() -> None:
    lost = decision(reason=Reason.NO_DATA, required_workers=None, throughput_records_per_s=None, sample_age_s=None)
    (row,) = get(app_of(snapshot(lost)), "/page/data").get_json()["rows"]

    assert (row["required"], row["throughput"], row["urgency"]) == ("unknown", "unknown", "no number")
    assert row["series"]["required_workers"] == [None]


def test_names_are_sent_as_text() -> None:
    answer = get(app_of(snapshot(decision("demo/<img src=x onerror=alert(1)>"))), "/page/data")

    assert answer.mimetype == "application/json"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.get_json()["rows"][0]["workload"] == "demo/<img src=x onerror=alert(1)>"


def test_only_the_most_urgent_rows_of_1000_workloads_are_sent() -> None:
    many = [decision(f"demo/job-{number:04d}") for number in range(999)]
    held = snapshot(*many, decision("demo/zzz", reason=Reason.STALE))

    data = get(app_of(held), "/page/data").get_json()

    assert (data["total"], data["matching"], len(data["rows"])) == (1000, 1000, 50)
    assert data["rows"][0]["workload"] == "demo/zzz"
    assert data["urgencies"] == {"attention": 1, "calm": 999}


def test_parameters_set_the_filter_and_the_number_of_rows() -> None:
    held = snapshot(*(decision(f"demo/job-{number:04d}") for number in range(200)))

    data = get(app_of(held), "/page/data?filter=job-01&rows=3").get_json()

    assert (data["matching"], [row["workload"] for row in data["rows"]]) == (
        100,
        ["demo/job-0100", "demo/job-0101", "demo/job-0102"],
    )


@pytest.mark.parametrize("rows", ["0", "-1", "501", "all", "1.5", "", pytest.param("9" * 5000, id="long")])
def test_a_wrong_number_of_rows_is_refused(rows: str) -> None:
    answer = get(app_of(snapshot(decision())), f"/page/data?rows={rows}")

    assert answer.status_code == 400
    assert "rows must be a whole number from 1 to 500" in answer.get_json()["message"]


def test_polling_adds_to_the_history() -> None:
    history = History()
    for tick in range(3):
        get(app_of(snapshot(decision(), at_s=AT_S + 15 * tick), history=history), "/page/data")

    data = get(app_of(snapshot(decision(), at_s=AT_S + 30), history=history), "/page/data").get_json()

    assert data["age_s"] == [30, 15, 0]
