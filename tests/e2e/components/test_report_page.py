"""The report in a real browser: every chart is drawn without console errors, light and dark. And the page's width."""

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from parts.browser import NAMES, Browser, Page, chromium
from parts.process import until

from adapter.backtest import recorded_runs
from adapter.backtest.prices import Prices
from adapter.backtest.report import write
from adapter.backtest.report_content import MEASURED, SIMULATED, Fact, HpaTarget, Report, Resize, Score, Section, Track
from adapter.backtest.sections import trace_section
from adapter.backtest.trace import Trace
from adapter.backtest.unit_simulation import simulate_units
from adapter.backtest.units import Grid, units
from adapter.core.decisions import Decision, Reason
from adapter.serving.snapshots.columns import entries_of
from adapter.serving.snapshots.snapshot import Entry, Snapshot
from adapter.serving.ui.history import History
from adapter.serving.ui.page import content
from adapter.simulator.profiles import PROFILES

pytestmark = pytest.mark.full
BEGIN_S = 1_767_225_600.0
DRAWN = """
[...document.querySelectorAll(".chart")].map(chart => ({
  id: chart.id,
  titles: [...chart.querySelectorAll(".infolayer g[class$=title] text")].map(title => title.textContent),
  paths: [...chart.querySelectorAll(".scatterlayer .trace path.js-line")].map(path => {
    const box = path.getBoundingClientRect();
    return {width: box.width, height: box.height, stroke: getComputedStyle(path).stroke};
  }),
}))
"""
LIGHTNESS = """
(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d");
  canvas.fillStyle = getComputedStyle(document.%s).%s;
  canvas.fillRect(0, 0, 1, 1);
  const [red, green, blue] = canvas.getImageData(0, 0, 1, 1).data;
  return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255;
})()
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if chromium() is None:
        pytest.skip(f"none of {', '.join(NAMES)} is installed: make tools-all, or set BACKLOG_ADAPTER_CHROMIUM")
    with Browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with a synthetic history and one trace."""
    path = tmp_path_factory.mktemp("report") / "backtest.html"
    write(path, Report(title="Backtest of two jobs", sections=(history(), trace()), notes=("A note.",)))
    return path


def history() -> Section:
    at_s, rate = _day(BEGIN_S)
    return Section(
        title="shop/orders <&>",
        prices=Prices(worker_hour=0.12, late_minute=0.5),
        target_s=60.0,
        at_s=at_s,
        rate_records_per_s=rate,
        simulated=(_track("actual", at_s, rate, 1.6), _track("drain", at_s, rate, 1.3)),
        recommended=(_track("actual", at_s, rate, 1.6), _track("drain", at_s, rate, 1.2)),
        scores=(
            Score(name="actual", kind=MEASURED, worker_hours=300.0, late_ratio=0.01, p99_s=80.0, rescales=3),
            Score(
                name="drain", kind=SIMULATED, worker_hours=240.0, late_ratio=0.0, p99_s=20.0, rescales=9, pause_s=270.0
            ),
        ),
        facts=(
            Fact(
                name="worker capacity", value="100 records/s", observations=12, source="throughput while records waited"
            ),
        ),
        notes=("A note of a section.",),
        target=HpaTarget(policy="drain", advice="The metric already is the number of workers."),
    )


def trace() -> Section:
    _, rate = _day(0.0)
    load = Trace(name="two waves", step_s=60.0, rate=rate[:360])
    policies, profiles = ("drain", "dataflow", "beam-flink"), (PROFILES["consumer-group-small"],)
    made = units(load, Grid(policies=policies, profiles=profiles, records_first_seed=True))
    ((profile, runs),) = recorded_runs.runs(made, simulate_units(made, {load.name: load})).items()
    return trace_section(load.name, profile, runs)


def _day(begin_s: float) -> tuple[np.ndarray, np.ndarray]:
    at_s = np.arange(0, 86_400, 60.0)
    return begin_s + at_s, 1000 + 600 * np.sin(2 * np.pi * at_s / 43_200)


def _track(name: str, at_s: np.ndarray, rate: np.ndarray, spare: float) -> Track:
    workers = np.ceil(rate * spare / 100)
    why = Resize(at_s=float(at_s[0]), before=np.nan, after=float(workers[0]), why="10 -> 12: behind <b>by</b> 90 s")
    waits = np.where(np.diff(workers, prepend=workers[0]) != 0, 45.0 * spare, 1.0)
    return Track(name=name, at_s=at_s, workers=workers, backlog_time_s=waits, changes=(why,))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_chart_is_drawn_without_console_errors(browser: Browser, report: Path, scheme: str) -> None:
    with browser.page(report.as_uri(), scheme) as page:
        charts = page.evaluate(DRAWN)

        assert [chart["id"] for chart in charts] == ["simulated-0", "recommended-0", "simulated-1"]
        assert [len(chart["paths"]) for chart in charts] == [5, 3, 7]
        assert all(path["width"] > 100 and path["height"] > 0 for chart in charts for path in chart["paths"])
        assert len({path["stroke"] for path in charts[2]["paths"]}) == 4
        assert charts[0]["titles"] == ["time, UTC", "input, records/s", "workers", "backlog time, s"]
        assert charts[2]["titles"][0] == "time, hours"
        assert page.console_errors == []
        assert page.screenshot(report.with_name(f"{scheme}.png")) > 50


def test_the_page_follows_the_preferred_colour_scheme(browser: Browser, report: Path) -> None:
    with browser.page(report.as_uri(), "light") as page:
        light = _looks(page)
        page.prefer("dark")
        until(lambda: _looks(page)[3] != light[3], 60, "the charts are redrawn")
        dark = _looks(page)

    assert light[0] > 0.9 > 0.3 > light[1]
    assert dark[0] < 0.15 < 0.5 < dark[1]
    assert light[2] < 0.6
    assert dark[2] > 0.4


def _looks(page: Page) -> tuple[float, float, float, str]:
    """Lightness of the background, the text and the text of a chart, and the colour of a curve."""
    tick = "querySelector('.xtick text')"
    curve = page.evaluate(DRAWN)[0]["paths"][1]["stroke"]
    return (
        page.evaluate(LIGHTNESS % ("body", "backgroundColor")),
        page.evaluate(LIGHTNESS % ("body", "color")),
        page.evaluate(LIGHTNESS % (tick, "fill")),
        curve,
    )


def test_a_tooltip_shows_why_the_number_changes(browser: Browser, report: Path) -> None:
    with browser.page(report.as_uri(), "light") as page:
        page.evaluate("Plotly.Fx.hover('recommended-0', [{curveNumber: 2, pointNumber: 0}], ['xy2'])")
        shown = page.evaluate("document.querySelector('#recommended-0 .hoverlayer').textContent")

    assert "behind <b>by</b> 90 s" in shown
    assert "drain" in shown


def test_the_page_fits_a_narrow_window(browser: Browser, report: Path) -> None:
    with browser.page(report.as_uri(), "light", size=(480, 800)) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 480


@pytest.mark.parametrize("width", [1024, 1280, 1366, 1440])
def test_the_page_of_decisions_fits_the_window(browser: Browser, width: int) -> None:
    decision = Decision(
        workload="demo/onboarding-step",
        at_s=BEGIN_S,
        policy="drain",
        reason=Reason.STUCK,
        backlog_time_s=86_400.0,
        backlog_time_target_s=60.0,
    )
    entry = Entry(decision=decision, error_after_s=180.0, window_s=60.0, labels={})
    held = Snapshot(at_s=BEGIN_S, tick_s=15, error_after_s=180, entries=entries_of(BEGIN_S, [entry]))
    document = files("adapter.serving.ui") / "page.html"
    with browser.page(f"file://{document}", "light", size=(width, 900)) as page:
        page.evaluate(f"show({json.dumps(content(held, History(), BEGIN_S, ('', 1)))})")
        assert page.evaluate("byId('frame').scrollWidth - byId('frame').clientWidth") == 0
