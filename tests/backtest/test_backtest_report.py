"""The report is complete, shows unknown values as gaps, and escapes names. Its tables hold all its numbers."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recorded_job import JOB, busy_day

from adapter import cli
from adapter import config as configuration
from adapter.backtest import command, history_report, recorded_runs, results, summary
from adapter.backtest.history import HistoryError, RecordedHistory
from adapter.backtest.prices import Prices
from adapter.backtest.report import ReportError, probe, write
from adapter.backtest.report_charts import MAX_POINTS, downsample, figures
from adapter.backtest.report_content import MEASURED, SIMULATED, HpaTarget, Report, Resize, Score, Section, Track
from adapter.backtest.report_page import page
from adapter.backtest.sections import trace_section
from adapter.backtest.simulation import TOTALS
from adapter.backtest.trace import Trace
from adapter.backtest.unit_simulation import SERIES, simulate_units
from adapter.backtest.units import Grid, groups, units
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.core.samples import Samples
from adapter.simulator.profiles import PROFILES
from adapter.simulator.score import Tally, scores

pytestmark = pytest.mark.simulation

AT_S = 1_767_225_600 + np.arange(100) * 15.0
EVIL = "a </script><b>&\"'"


def section(**changes: object) -> Section:
    ran = Track(name="actual", at_s=AT_S, workers=np.full(100, 5.0), backlog_time_s=np.zeros(100))
    drain = Track(
        name="drain",
        at_s=AT_S,
        workers=np.repeat([4.0, np.nan, 6.0, 6.0], 25),
        changes=(Resize(at_s=float(AT_S[50]), before=4.0, after=6.0, why=f"4 -> 6: {EVIL}"),),
    )
    result = Section(
        title=JOB,
        target_s=60.0,
        at_s=AT_S,
        rate_records_per_s=np.where(np.arange(100) == 7, np.nan, 900.0),
        simulated=(ran, replace(drain, backlog_time_s=np.arange(100.0))),
        recommended=(ran, drain),
        scores=(
            Score(name="actual", kind=MEASURED, worker_hours=100.0, late_ratio=0.001, late_minutes=6.0, rescales=3),
            Score(
                name="drain",
                kind=SIMULATED,
                worker_hours=80.0,
                late_ratio=0.0,
                late_minutes=0.0,
                p99_s=12.0,
                rescales=9,
                pause_s=90.0,
            ),
        ),
        target=HpaTarget(policy="drain", advice="Raise min_workers."),
    )
    return replace(result, **changes)


def past_of(samples: list[Samples]) -> RecordedHistory:
    return RecordedHistory(ticks=range(int(samples[0].at_s), int(samples[-1].at_s) + 1, 15), samples=tuple(samples))


def page_of(*sections: Section, **changes: object) -> str:
    return page(replace(Report(title="T", sections=sections), **changes))


def cells(text: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", text.partition("<table")[2], re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def drawn(text: str) -> list[dict[str, object]]:
    (found,) = re.findall(r'<script type="application/json" id="figures">(.*?)</script>', text, re.DOTALL)
    return json.loads(found)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_page_uses_no_network_and_forbids_it() -> None:
    text = page_of(section())
    own = text.partition("<script>")[0] + text.rpartition("<script>")[2]

    assert "default-src 'none'" in own
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", own)
    assert len(text) > 4_000_000  # plotly.js is within


def test_the_table_compares_hours_price_and_lateness_with_the_real_run() -> None:
    titles, ran, drain = cells(page_of(section(prices=Prices(worker_hour=0.5)), currency="USD"))

    assert titles[2:5] == ["Worker-hours", "Compared with actual", "Cost of workers, USD"]
    assert titles[5] == "Time with a backlog time over 60 s"
    assert ran == ["actual", "measured", "100.0", "–", "50.00", "0.10%", "unknown", "3", "unknown"]
    assert drain == ["drain", "simulated", "80.0", "−20%", "40.00", "0.00%", "12 s", "9", "90 s"]


def test_runs_of_different_known_time_are_compared_by_mean_workers() -> None:
    actual, drain = section().scores
    table = cells(page_of(section(scores=(replace(actual, known_ratio=0.5), drain))))
    assert "−60%" in table[2]


def test_a_price_of_late_minutes_shows_what_lateness_costs_and_the_sum() -> None:
    titles, ran, drain = cells(page_of(section(prices=Prices(worker_hour=0.5, late_minute=2.0))))

    assert titles[4:7] == ["Cost of workers, EUR", "Cost of lateness, EUR", "Cost, EUR"]
    assert (ran[4:7], drain[4:7]) == (["50.00", "12.00", "62.00"], ["40.00", "0.00", "40.00"])
    assert cells(page_of(section(prices=Prices(late_minute=2.0))))[1][4] == "12.00"


def test_a_price_of_the_command_line_replaces_that_of_the_rules() -> None:
    rules = Rules(worker_hour_price=0.04, late_minute_price=2.0)

    assert Prices(worker_hour=1.0).or_else(Prices.of(rules)) == Prices(worker_hour=1.0, late_minute=2.0)
    assert Prices().or_else(Prices.of(rules)) == Prices(worker_hour=0.04, late_minute=2.0)
    assert Prices.of(Rules()).lateness(10.0) is None


def test_without_a_price_or_a_history_their_columns_are_missing() -> None:
    alone = section(scores=(Score(name="ds2", kind=SIMULATED, worker_hours=8.0, late_ratio=0.0),))

    assert not any("Cost" in title for title in cells(page_of(section()))[0])
    assert cells(page_of(alone))[0][2:4] == ["Worker-hours", "Time with a backlog time over 60 s"]


def test_names_and_sentences_are_text_never_markup() -> None:
    text = page_of(section(title=EVIL, notes=(EVIL,)), title=EVIL, notes=(EVIL,))
    outside = text.replace(re.search(r"<script>(.*?)</script>", text, re.DOTALL)[1], "")

    assert "</script><b>" not in outside
    assert outside.count("a &lt;/script&gt;&lt;b&gt;") >= 5
    requested = drawn(text)[1]["data"]
    assert "a &lt;/script&gt;&lt;b&gt;&amp;" in requested[2]["text"][2]


def test_the_value_for_the_hpa_is_shown_with_the_advice() -> None:
    text = page_of(section())

    assert 'averageValue: "1"' in text
    assert "Raise min_workers." in text


def test_an_unknown_value_is_a_gap_in_a_curve() -> None:
    simulated, recommended = figures(0, section())

    assert simulated["data"][0]["y"][7] is None
    assert recommended["data"][2]["y"] == [4.0, None, 6.0, 6.0]


def test_workers_are_drawn_as_steps_with_the_sentence_where_they_change() -> None:
    step = figures(0, section())[1]["data"][2]

    assert step["line"]["shape"] == "hv"
    assert step["x"] == [AT_S[0] * 1000, AT_S[25] * 1000, AT_S[50] * 1000, AT_S[99] * 1000]
    assert step["text"][2].startswith("<br>4 -&gt; 6")
    assert step["text"][0] == ""


def test_axes_have_titles_with_units_and_the_target_is_a_line() -> None:
    layout = figures(0, section())[0]["layout"]

    titles = [layout[axis]["title"]["text"] for axis in ("yaxis", "yaxis2", "yaxis3", "xaxis")]
    assert titles == ["input, records/s", "workers", "backlog time, s", "time, UTC"]
    assert (layout["shapes"][0]["y0"], layout["annotations"][0]["text"]) == (60.0, "target<br>60 s")


def test_a_trace_without_a_calendar_counts_hours() -> None:
    at_s = np.arange(0, 7200, 60.0)
    track = Track(name="ds2", at_s=at_s, workers=np.ones(120), backlog_time_s=np.zeros(120))
    alone = Section(title="t", target_s=60, at_s=at_s, rate_records_per_s=at_s, simulated=(track,))
    (figure,) = figures(3, alone)

    assert figure["id"] == "simulated-3"
    assert figure["layout"]["xaxis"]["title"]["text"] == "time, hours"
    assert figure["data"][0]["x"][-1] == pytest.approx(119 / 60, abs=1e-3)


def test_only_some_of_many_policies_are_visible_at_first() -> None:
    tracks = tuple(Track(name=f"p{n}", at_s=AT_S, workers=np.full(100, float(n))) for n in range(9))
    data = figures(0, section(simulated=(), recommended=tracks))[0]["data"][1:]

    assert [curve["visible"] for curve in data] == [True] * 3 + ["legendonly"] * 6
    assert len({(curve["meta"], curve["line"]["dash"]) for curve in data}) >= 8


def test_a_long_curve_keeps_its_peaks() -> None:
    values = np.zeros(100_000)
    values[77_777] = 500.0
    at_s, peaks = downsample(np.arange(100_000.0), values, np.nanmax)

    assert len(peaks) <= MAX_POINTS
    assert peaks.max() == 500
    assert abs(at_s[peaks.argmax()] - 77_777) <= 67


def test_a_peak_at_the_very_end_is_on_the_chart() -> None:
    values = np.zeros(100_000)
    values[-1] = 500.0
    at_s, peaks = downsample(np.arange(100_000.0), values, np.nanmax)

    assert peaks[-1] == 500
    assert len(at_s) == len(peaks)


def test_tables_are_written_beside_the_page_with_every_number(tmp_path: Path) -> None:
    files = write(
        tmp_path / "deep" / "report.html", Report(title="T", sections=(section(prices=Prices(worker_hour=0.5)),))
    )
    scores, changes, series = (rows_of(path) for path in files[1:])

    assert [path.name for path in files[1:]] == ["report-scores.csv", "report-changes.csv", "report-series.csv"]
    assert (scores[1]["worker_hours"], scores[1]["cost"], scores[0]["p99_backlog_time_s"]) == ("80", "40", "")
    assert scores[1]["over_target_ratio"] == "0"
    assert [(row["loop"], row["why"]) for row in changes] == [(loop, f"4 -> 6: {EVIL}") for loop in ("closed", "open")]
    assert len(series) == 400
    assert {row["loop"] for row in series} == {"closed", "open"}
    assert set((tmp_path / "deep").iterdir()) == set(files)


def test_a_path_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match=r"file/report.html: cannot write the report \(.+\); choose another file"):
        write(tmp_path / "file" / "report.html", Report(title="T", sections=()))


@pytest.mark.parametrize("taken", ["report.html", "report-series.csv"])
def test_if_one_file_cannot_be_written_none_is_written(tmp_path: Path, taken: str) -> None:
    (tmp_path / taken).mkdir()
    for attempt in (
        lambda: probe(tmp_path / "report.html"),
        lambda: write(tmp_path / "report.html", Report(title="", sections=())),
    ):
        with pytest.raises(ReportError, match=f"{taken} is a directory"):
            attempt()
        assert [path.name for path in tmp_path.iterdir()] == [taken]


def test_probing_a_path_leaves_it_unchanged(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("an older one")
    probe(tmp_path / "report.html")

    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("report.html", "an older one")]


def test_an_unwritable_report_stops_the_command_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = "sources: {t: {kind: trace, file: /nowhere.jsonl}}\n"
    text = f"{gone}workloads: [{{namespace: shop, name: orders, read: [{{source: t}}]}}]\npipeline: {{checkpoint: x}}\n"
    options = history_report.ReportOptions(start="-1h", report=tmp_path)
    with pytest.raises(ReportError, match="is a directory"):
        history_report.run(configuration.parse(text, "test"), options, lambda _: None)
    trace = str(Path(__file__).parents[1] / "data" / "traces" / "nab_nyc_taxi_30m.csv")
    with pytest.raises(SystemExit) as ended:
        cli.main(["backtest", "--trace", trace, "--report", str(tmp_path), "--out", str(tmp_path / "out")])
    assert "is a directory" in capsys.readouterr().err
    assert ended.value.code == 2
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def past() -> RecordedHistory:
    samples = busy_day(sizes={0: 9, 450: 14, 900: 10}).samples(1500)
    return RecordedHistory(
        ticks=range(int(samples[0].at_s), int(samples[-1].at_s) + 1, 15), samples=tuple(samples), notes=("a note",)
    )


def test_each_workload_of_a_history_becomes_a_section(past: RecordedHistory) -> None:
    messages: list[str] = []
    book = RuleBook(by_workload={JOB: Rules(max_workers=30)})
    options = history_report.ReportOptions(
        start="-1h", policies=("drain", "dataflow", "static-peak"), prices=Prices(worker_hour=1.0)
    )
    (found,) = history_report.history_report(past, book, options, messages.append).sections

    assert [score.name for score in found.scores] == ["actual", "drain", "dataflow", "static-peak"]
    assert [track.name for track in found.simulated] == ["actual", "drain", "dataflow", "static-peak"]
    assert [track.name for track in found.recommended] == ["actual", "drain", "dataflow"]
    assert found.scores[0].worker_hours == pytest.approx((9 * 495 + 14 * 405 + 10 * 600) / 3600, rel=0.03)
    assert found.scores[0].rescales == 2
    assert found.target is not None
    assert found.target.policy == "drain"
    assert any(mark.why for mark in found.recommended[1].changes)
    assert "replaying the policies: 100 %" in messages


def test_a_workload_without_throughput_is_named_in_the_terminal() -> None:
    samples = tuple(replace(each, stages=(), by_stage={}) for each in busy_day(sizes={0: 9}).samples(1500))
    messages: list[str] = []
    past = RecordedHistory(ticks=range(int(samples[0].at_s), int(samples[-1].at_s) + 1, 15), samples=samples)
    options = history_report.ReportOptions(start="-1h", policies=("drain",))
    history_report.history_report(past, RuleBook(by_workload={}), options, messages.append)
    assert messages[-1].startswith(f"Not simulated: {JOB}: the capacity of a worker is unknown")


def sections_of(load: Trace, grid: Grid) -> list[Section]:
    """The sections of one trace, without Spark."""
    made = units(load, replace(grid, records_first_seed=True))
    found = recorded_runs.runs(made, simulate_units(made, {load.name: load}))
    return [trace_section(load.name, profile, runs) for profile, runs in found.items()]


def simulated(load: Trace, grid: Grid, out: Path) -> command.TraceBacktest:
    """A backtest whose results are stored, without Spark."""
    backtest = command.trace_backtest((load,), replace(grid, records_first_seed=True), out)
    results.open_folder(backtest.folder)
    for group in groups(backtest.units):
        results.save(backtest.folder, group, results.encode(group, simulate_units(group, {load.name: load})))
    return backtest


def test_a_trace_becomes_a_section_in_its_own_unit() -> None:
    load = Trace(name="wave", step_s=60.0, rate=100 + 50 * np.sin(np.arange(30) / 5))
    grid = Grid(policies=("static-peak", "drain"), profiles=(PROFILES["consumer-group-small"],), seeds=(1,))
    (found,) = sections_of(load, grid)

    assert found.title == "wave, consumer-group-small, metrics 0 s late"
    assert [score.name for score in found.scores] == ["static-peak", "drain"]
    assert len(found.at_s) == 120
    assert found.rate_records_per_s.max() == pytest.approx(150, rel=0.03)
    assert found.target is not None
    assert found.target.policy == "drain"
    peak, drain = found.simulated
    assert peak.changes == ()
    first, *_, last = drain.changes
    assert (first.before, last.after) == (drain.workers[0], drain.workers[-1])


def test_the_page_has_the_worker_hours_of_the_terminal(tmp_path: Path) -> None:
    """The load ends within a tick."""
    load = Trace(name="wave", step_s=10.0, rate=100 + 50 * np.sin(np.arange(361) / 30))
    grid = Grid(policies=("drain", "ds2"), profiles=(PROFILES["consumer-group-small"],), seeds=(1,))
    backtest = simulated(load, grid, tmp_path)
    ((profile, runs),) = recorded_runs.load(backtest.folder, backtest.units).items()
    page = {score.name: score.worker_hours for score in trace_section(load.name, profile, runs).scores}
    terminal = summary.scores_by_seed(results.load(backtest.folder, backtest.units, summary.COLUMNS))
    assert page == dict(zip(terminal["policy"].tolist(), terminal["worker_hours"].tolist(), strict=True))
    alone = units(load, grid)
    expected = scores(Tally(simulate_units(alone, {load.name: load})))["worker_hours"]
    assert page == dict(zip((unit.policy for unit in alone), expected.tolist(), strict=True))


def test_the_windows_of_a_long_load_become_one_run() -> None:
    """The second window begins six hours before the part that counts."""
    load = Trace(name="days", step_s=3600.0, rate=np.ones(120))
    made = units(load, Grid(policies=("ds2",), profiles=(PROFILES["consumer-group"],), records_first_seed=True))
    ticks = np.stack([(unit.window.begin + np.arange(unit.window.steps))[2::3] // 3 for unit in made]).astype(float)
    columns = dict.fromkeys(SERIES, ticks) | dict.fromkeys(TOTALS, np.array([3600.0, 7200.0]))
    ((_, found),) = recorded_runs.runs(made, columns).items()

    assert found["ds2"].workers.tolist() == list(range(120 * 240))
    assert found["ds2"].at_s.tolist() == [15.0 * (tick + 1) for tick in range(120 * 240)]
    assert found["ds2"].worker_hours == 3


@pytest.mark.parametrize(
    ("delays_s", "titles"),
    [
        pytest.param((None,), ["metrics 45 s late"], id="the profile's own"),
        pytest.param((0.0, 300.0), ["metrics 0 s late", "metrics 300 s late"], id="the given delays"),
    ],
)
def test_recorded_loads_are_drawn_with_each_delay(
    tmp_path: Path, delays_s: tuple[float | None, ...], titles: list[str]
) -> None:
    load = Trace(name="step", step_s=60.0, rate=np.repeat([100.0, 300.0], 20))
    grid = Grid(policies=("ds2",), profiles=(PROFILES["pause-10-15"],), delays_s=delays_s)
    options = history_report.ReportOptions(start="", report=tmp_path / "r.html")
    files = history_report.write_trace_report(simulated(load, grid, tmp_path), grid, options)

    rows = rows_of(files[1])
    assert [row["workload"] for row in rows] == [f"step, pause-10-15, {title}" for title in titles]
    assert len({row["p99_backlog_time_s"] for row in rows}) == len(titles)
    assert "records that waited for more than 300 s" in files[0].read_text()


@pytest.mark.parametrize(
    ("capacity", "peak_workers", "expected"),
    [
        pytest.param(100.0, 19, "carries 100 records/s (--worker-capacity)", id="given"),
        pytest.param(None, 40, "carries 46.67 records/s (assumed from 40 workers at the peak", id="inferred"),
    ],
)
def test_a_trace_is_simulated_in_its_own_unit_and_the_worker_capacity_is_stated(
    tmp_path: Path, capacity: float | None, peak_workers: int, expected: str
) -> None:
    load = Trace(name="shop", step_s=60.0, rate=np.full(60, 1400.0))
    grid = Grid(
        policies=("static-peak",),
        profiles=(PROFILES["consumer-group"],),
        worker_capacity_records_per_s=capacity,
    )
    options = history_report.ReportOptions(start="", report=tmp_path / "r.html", prices=Prices(worker_hour=1.0))
    page, scores, _, series = history_report.write_trace_report(simulated(load, grid, tmp_path), grid, options)

    assert {row["rate_records_per_s"] for row in rows_of(series)} == {"1400"}
    hours = np.ceil(1.2 * peak_workers)
    assert (rows_of(scores)[0]["worker_hours"], rows_of(scores)[0]["cost"]) == (f"{hours:g}", f"{hours:g}")
    assert expected in page.read_text()
    assert "Length of the load: 1.0 h." in page.read_text()
    (sentence,) = command.assumptions((load,), grid)
    assert sentence.startswith("shop, consumer-group: a worker carries")
    assert expected in sentence
    busy = 1400 / (peak_workers * (capacity or 1400 / 30))
    assert f"the peak of 1 400 records/s keeps {peak_workers} workers {busy * 100:.0f} % busy" in sentence


def test_a_policy_with_parameters_is_a_metric_policy(past: RecordedHistory) -> None:
    varied = "drain:min_workers=20"
    options = history_report.ReportOptions(start="-1h", policies=("static-peak", varied, "drain"))
    (found,) = history_report.history_report(past, RuleBook(by_workload={}), options, lambda _: None).sections

    assert found.target is not None
    assert found.target.policy == varied
    assert [track.name for track in found.recommended] == ["actual", varied, "drain"]
    assert np.nanmin(found.recommended[1].workers) == 20
    assert np.nanmin(found.recommended[2].workers) < 20


def test_a_workload_of_a_fleet_is_replayed_with_the_rules_of_the_fleet(past: RecordedHistory) -> None:
    unknown, known = np.array([np.nan]), np.array([0.0])
    samples = tuple(
        replace(tick, by_workload={**tick.by_workload, "fleet": unknown if place % 7 else known})
        for place, tick in enumerate(past.samples)
    )
    book = RuleBook(by_workload={}, by_fleet=(Rules(policy="varga", min_workers=20, max_workers=30),))
    (found,) = history_report.history_report(
        replace(past, samples=samples), book, history_report.ReportOptions(start="-1h"), lambda _: None
    ).sections

    assert [score.name for score in found.scores] == ["actual", "varga"]
    assert np.nanmin(found.recommended[1].workers) == 20


def test_a_workload_without_workers_is_shown_and_not_simulated() -> None:
    samples = busy_day().samples(900, without=("spec_workers", "workers", "ready_workers"))
    blind = past_of(samples)
    (found,) = history_report.history_report(
        blind, RuleBook(by_workload={}), history_report.ReportOptions(start="-1h"), lambda _: None
    ).sections

    assert found.simulated == ()
    assert found.notes[0].startswith(f"Not simulated: {JOB}: the capacity of a worker is unknown")
    assert page_of(found).count('class="chart') == 1


def test_a_source_that_fails_midway_leaves_a_partial_report(tmp_path: Path, past: RecordedHistory) -> None:
    cut = replace(past, cut="t: gone; the history ends early")
    options = history_report.ReportOptions(start="-1h", report=tmp_path / "r.html")

    with pytest.raises(HistoryError, match=r"ends early; .*r.html contains what was read until then"):
        history_report.write_history_report(cut, RuleBook(by_workload={}), options, lambda _: None)
    assert "t: gone" in (tmp_path / "r.html").read_text()


def test_the_scores_of_a_history_are_printed(
    tmp_path: Path, past: RecordedHistory, capsys: pytest.CaptureFixture[str]
) -> None:
    options = history_report.ReportOptions(start="-1h", policies=("static-peak",), report=tmp_path / "r.html")
    history_report.write_history_report(past, RuleBook(by_workload={}), options, lambda _: None)
    title, *_, actual, simulated, _ = capsys.readouterr().out.splitlines()

    assert title.strip() == JOB
    assert (actual.split()[0], simulated.split()[0]) == ("actual", "static-peak")
    hours = rows_of(tmp_path / "r-scores.csv")[0]["worker_hours"]
    assert actual.split()[1] == f"{float(hours):.1f}"


def test_a_history_of_which_nothing_is_simulated_is_an_error_with_a_report(tmp_path: Path) -> None:
    blind = past_of(busy_day().samples(900, without=("spec_workers", "workers", "ready_workers")))
    options = history_report.ReportOptions(start="-1h", report=tmp_path / "r.html")

    with pytest.raises(HistoryError, match=r"^no workload was simulated; .*r.html contains the causes"):
        history_report.write_history_report(blind, RuleBook(by_workload={}), options, lambda _: None)
    assert "Not simulated: " in (tmp_path / "r.html").read_text()


def test_pods_that_become_ready_one_by_one_are_one_rescale() -> None:
    samples = busy_day(sizes={0: 12, 2400: 18}).samples(3600)
    for number, seen in enumerate(samples):
        seen.by_workload["ready_workers"][:] = min(max(12, 12 + number - 162), 18)
        if 60 <= number < 84:  # a rolling update
            seen.by_workload["ready_workers"][:] = 11 + number % 2
    options = history_report.ReportOptions(start="-1h", policies=("static-peak",))
    (found,) = history_report.history_report(
        past_of(samples), RuleBook(by_workload={}), options, lambda _: None
    ).sections

    assert found.scores[0].rescales == 1
