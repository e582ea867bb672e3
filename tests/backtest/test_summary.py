"""Results -> summaries, files and tables, without Spark."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import StringIO
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from rich.text import Text

from adapter.backtest import command, results, table
from adapter.backtest.summary import Interval, Summary, scores_by_seed, summarize, write
from adapter.backtest.trace import Trace
from adapter.backtest.units import Grid, Unit, groups, units
from adapter.simulator.profiles import PROFILES
from adapter.simulator.score import SUMS

NETFLIX = PROFILES["netflix"]
GRID = Grid(policies=("drain", "static-peak"), profiles=(NETFLIX,), delays_s=(0.0, 120.0), seeds=(1, 2, 3))
HOUR = Trace(name="hour", step_s=60.0, rate=1 + np.arange(60.0))
WEEK = Trace(name="week", step_s=300.0, rate=1 + np.arange(2016.0))
UNITS = tuple(unit for trace in (HOUR, WEEK) for unit in units(trace, GRID))


def sums_of(unit: Unit) -> dict[str, float]:
    """The scores of a window of one hour. The workers are the length of the policy's name plus the seed."""
    known = {"scored_s": 3600.0, "worker_s": 3600.0 * (len(unit.policy) + unit.seed), "ups": 1.0, "records": 100.0}
    return known | {"max_delay_s": 10.0 * (1 + unit.window.index)}


def numbers(group: tuple[Unit, ...]) -> dict[str, Any]:
    made = {name: np.zeros((len(group), width) if width > 1 else len(group)) for name, width in SUMS.items()}
    for place, unit in enumerate(group):
        for name, value in sums_of(unit).items():
            made[name][place] = value
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where all results are already."""
    for group in groups(UNITS):
        results.save(results.open_folder(tmp_path / "units"), group, results.encode(group, numbers(group)))
    return tmp_path


@pytest.fixture
def found(folder: Path) -> list[Summary]:
    return summarize(scores_by_seed(results.load(folder / "units", UNITS)))


def one(found: list[Summary], **wanted: object) -> Summary:
    (summary_row,) = [row for row in found if all(getattr(row, name) == value for name, value in wanted.items())]
    return summary_row


def test_a_trace_is_the_sum_of_its_windows(found: list[Summary]) -> None:
    hour = one(found, trace="hour", policy="drain", delay_s=0.0).scores
    week = one(found, trace="week", policy="drain", delay_s=0.0).scores
    assert (hour["worker_hours"].median, hour["rescales"].median, hour["max_delay_s"].median) == (7.0, 1.0, 10.0)
    assert (week["worker_hours"].median, week["rescales"].median, week["max_delay_s"].median) == (14.0, 2.0, 20.0)


def test_seeds_become_a_median_and_an_interval(found: list[Summary]) -> None:
    summary_row = one(found, trace="hour", policy="drain", delay_s=0.0)
    hours = summary_row.scores["worker_hours"]
    assert summary_row.seeds == 3
    assert (hours.low, hours.median, hours.high) == (6.0, 7.0, 8.0)


def test_there_is_one_summary_for_each_trace_profile_delay_and_policy(found: list[Summary]) -> None:
    assert len(found) == 2 * 1 * 2 * 2


def test_a_complete_run_writes_scores_without_spark(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    @contextmanager
    def never() -> Iterator[Any]:
        pytest.fail("Spark was started")
        yield

    requested = command.TraceBacktest(traces=(HOUR, WEEK), units=UNITS, policies=GRID.policies, out=folder)
    command.run(requested, never, Event())
    rows = list(csv.DictReader((folder / "scores.csv").read_text().splitlines()))
    assert {(row["trace"], row["policy"], row["delay_s"], row["seeds"]) for row in rows} == {
        (trace, policy, delay, "3") for trace in ("hour", "week") for policy in GRID.policies for delay in ("0", "120")
    }
    assert float(rows[0]["worker_hours_low"]) <= float(rows[0]["worker_hours"]) <= float(rows[0]["worker_hours_high"])
    assert pq.read_table(folder / "scores.parquet").num_rows == 24
    result = capsys.readouterr().out
    assert "week · netflix · metrics 120 s late · medians of 3 seeds" in result


def test_a_table_lists_policies_in_the_given_order(found: list[Summary]) -> None:
    console = Console(width=120)
    with console.capture() as captured:
        for made in table.tables(found, ("static-peak", "drain")):
            console.print(made)
    lines = captured.get().splitlines()
    rows = [line.split() for line in lines if line.split()[:1] in (["static-peak"], ["drain"])]
    assert [row[0] for row in rows] == ["static-peak", "drain"] * 4
    assert rows[0][1:3] == ["13.0", "0.000"]


def test_brackets_in_the_name_of_a_trace_or_folder_are_no_markup(
    found: list[Summary], capsys: pytest.CaptureFixture[str]
) -> None:
    tables = table.tables([replace(found[0], trace="shop[prod] [/b]")], [found[0].policy])
    command.show(Path("runs[may]/a[/b]:key:"), tables)
    first, *_, last = capsys.readouterr().out.splitlines()

    assert first.startswith("shop[prod] [/b] · netflix")
    assert last == "written: runs[may]/a[/b]:key:/scores.csv, runs[may]/a[/b]:key:/scores.parquet"


def test_unknown_is_not_shown_as_a_number(found: list[Summary]) -> None:
    without = replace(found[0], scores={})
    console = Console(width=120)
    with console.capture() as captured:
        console.print(next(table.tables([without], [without.policy])))
    assert table.UNKNOWN in captured.get()


@pytest.mark.parametrize("width", [80, 120])
def test_a_policy_with_parameters_leaves_every_number_readable(found: list[Summary], width: int) -> None:
    name = "drain:target_utilization_ratio=0.9+backlog_time_target_s=120+rescale_worth_s=600"
    medians = (12_345.67, 100.0, 99.999, 1234.5, 12_345.0, 86_400.0)
    large = {
        number: Interval(median=median, low=0.0, high=0.0)
        for (_, number, _), median in zip(table.COLUMNS, medians, strict=True)
    }
    rows = [replace(found[0], policy=policy, scores=large) for policy in (name, "drain")]
    console = Console(width=width)
    with console.capture() as captured:
        console.print(next(table.tables(rows, (name, "drain"))))
    lines = captured.get().splitlines()
    cells = ["12,345.7", "100.000", "99.999", "1234.5", "12345", "86,400"]
    assert max(map(len, lines)) <= width
    assert [line.split()[1:] for line in lines if "12,345.7" in line] == [cells, cells]
    began = next(place for place, line in enumerate(lines) if "12,345.7" in line)
    assert "".join(line.split()[0] for line in lines[began:] if line.strip()).startswith(f"{name}drain")


def test_without_a_terminal_progress_is_printed_every_15_seconds() -> None:
    now_s = 0.0
    console = Console(file=StringIO(), width=80)
    with table.progress(console, lambda: now_s) as result:
        for at_s, done in [(0, 0), (1, 0), (57, 0), (62, 5), (72, 6), (73, 6), (74, 9)]:
            now_s = float(at_s)
            result(done, 9)
    assert console.file.getvalue().splitlines() == [  # type: ignore[attr-defined] - a StringIO, given above
        "0 of 9 runs done after 0 s",
        "0 of 9 runs done after 57 s",
        "6 of 9 runs done after 72 s, about 36 s left",
        "9 of 9 runs done after 74 s",
    ]


def test_stored_results_do_not_shorten_the_remaining_time() -> None:
    now_s = 0.0
    console = Console(file=StringIO(), width=80)
    with table.progress(console, lambda: now_s) as result:
        result(8, 12)
        now_s = 60.0
        result(9, 12)
    assert console.file.getvalue().splitlines()[-1] == (  # type: ignore[attr-defined] - a StringIO, given above
        "9 of 12 runs done after 60 s, about 180 s left"
    )


def test_the_remaining_time_falls_while_no_run_ends() -> None:
    now_s = 0.0
    console = Console(file=StringIO(), width=80)
    with table.progress(console, lambda: now_s) as result:
        for at_s, done in [(0, 0), (60, 6), (75, 6), (90, 6), (105, 6)]:
            now_s = float(at_s)
            result(done, 9)
    assert console.file.getvalue().splitlines()[1:] == [  # type: ignore[attr-defined] - a StringIO, given above
        "6 of 9 runs done after 60 s, about 30 s left",
        "6 of 9 runs done after 75 s, about 15 s left",
        "6 of 9 runs done after 90 s",
        "6 of 9 runs done after 105 s",
    ]


def test_a_terminal_shows_the_remaining_time() -> None:
    now_s = 0.0
    console = Console(file=StringIO(), width=80, force_terminal=True, get_time=lambda: now_s)
    with table.progress(console) as result:
        for at_s, done in [(0, 8), (60, 9), (300, 10)]:
            now_s = float(at_s)
            result(done, 12)
    assert (
        "10/12 0:05:00 left 0:05:00"
        in Text.from_ansi(
            console.file.getvalue()  # type: ignore[attr-defined] - a StringIO, given above
        ).plain
    )


@pytest.mark.parametrize("name", ["scores.csv", "scores.parquet"])
def test_a_full_disk_leaves_no_partial_scores(tmp_path: Path, found: list[Summary], name: str) -> None:
    (tmp_path / name).write_text("earlier")
    (tmp_path / f".{name}.part").symlink_to("/dev/full")
    with pytest.raises(results.ResultsError, match=r"No space left on device.*free some space and repeat the command"):
        write(tmp_path, {"cost": np.ones(3)}, found)
    assert (tmp_path / name).read_text() == "earlier"
    assert list(tmp_path.glob(".*")) == []
