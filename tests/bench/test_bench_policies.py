"""The benchmark over a folder of traces: its units and its tables, without Spark."""

import re
from pathlib import Path

import numpy as np
import pytest

from adapter.backtest import results
from adapter.backtest.summary import Interval, Summary
from adapter.backtest.units import Unit, groups
from adapter.core.formatting import DAY_S
from adapter.simulator.score import SUMS
from bench import oracle_comparison, policies
from bench.oracle_comparison import BRACKETS, ORACLE

VARIED = "drain:target_utilization_ratio=0.9"


def write_trace(folder: Path, name: str, step_s: int, rows: int) -> None:
    lines = [f"{row * step_s},{1 + row % 7}" for row in range(rows)]
    (folder / f"{name}.csv").write_text("\n".join(["seconds,rate", *lines]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Traces of two hours and of three days, and an invalid file."""
    write_trace(tmp_path, "hours", 60, 120)
    write_trace(tmp_path, "days", 1800, 144)
    (tmp_path / "notes.csv").write_text("who,when\n")
    return tmp_path


def words(folder: Path, *more: str) -> list[str]:
    return ["--traces", str(folder), "--out", str(folder / "out"), "--policies", f"static-peak,{VARIED},drain", *more]


def backtest(folder: Path, *more: str) -> policies.command.TraceBacktest:
    return policies.comparison(policies.parse_arguments(words(folder, *more)))


def profiles(units: tuple[Unit, ...], trace: str) -> set[str]:
    return {unit.profile.name for unit in units if unit.trace == trace}


def test_an_invalid_trace_is_skipped_with_a_message(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [trace.name for trace in backtest(folder).traces] == ["days", "hours"]
    assert capsys.readouterr().out.startswith(f"skipped: {folder / 'notes.csv'}:1: expected the header")


def test_a_long_trace_is_cut_to_its_first_days_with_a_message(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut, whole = (backtest(folder, "--days", days).traces for days in ("1.5", "0"))
    assert [len(trace.rate) for trace in cut] == [72, 120]
    assert [len(trace.rate) for trace in whole] == [144, 120]
    assert capsys.readouterr().out.count("days: its first 1.5 of 3 days; --days 0 takes all") == 1


def test_the_first_days_of_each_trace_can_be_left_out(folder: Path) -> None:
    whole, *_ = backtest(folder, "--days", "0").traces
    (later,) = backtest(folder, "--days", "1", "--skip-days", "1.5").traces
    assert later.name == "days"
    assert later.rate.tolist() == whole.rate[72:120].tolist()


def test_traces_of_less_than_a_day_run_with_the_published_profiles_too(folder: Path) -> None:
    long, short = set(policies.PROFILES.split(",")), set(policies.SHORT_PROFILES.split(","))
    units = backtest(folder).units
    assert profiles(units, "days") == long
    assert profiles(units, "hours") == long | short
    assert {unit.profile.metric_delay_s for unit in units if unit.profile.name == "pause-30-60"} == {0.0, 45.0}


def test_only_the_named_profiles_are_run(folder: Path) -> None:
    units = backtest(folder, "--profiles", "netflix").units
    assert profiles(units, "days") == profiles(units, "hours") == {"netflix"}


def test_tables_have_the_named_policies_in_their_order(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question = ("--profiles", "netflix", "--delays", "0")
    for group in groups(backtest(folder, *question).units):
        results.save(results.open_folder(folder / "out" / "units"), group, results.encode(group, numbers(group)))
    policies.main(words(folder, *question))
    result = capsys.readouterr().out
    table = result[result.index("hours · netflix") :]
    assert table.index("static-peak") < table.index(VARIED) < table.index("drain ")
    assert f"{2 * 4} units; this run took" in result
    assert re.search(r"oracle +1\.0 +1\.00 .*\n *static-peak +1\.0 +1\.00 ", table)
    means = result[result.index("netflix, metrics 0 s late, 1 trace, means |") :]
    assert "| `static-peak` | 1.00 | 0 | 0.00 | 0.00 | 1.00 | 1.00 | 1.00 | 1.00 | 0 |" in means


def test_the_oracle_runs_once_for_each_window_profile_and_seed(folder: Path) -> None:
    oracles = [
        unit
        for unit in backtest(folder, "--profiles", "netflix,consumer-group", "--seeds", "3").units
        if unit.policy == ORACLE
    ]
    assert len(oracles) == 2 * 2 * 3
    assert {unit.profile.metric_delay_s for unit in oracles} == {0.0}


@pytest.mark.parametrize(
    ("late", "expected"),
    [(0.0, ""), (1.0, "; 1 minute late even with all workers"), (3.0, "; 3 minutes late even with all workers")],
    ids=["in time", "one minute", "more"],
)
def test_the_brackets_of_the_oracle_stand_below_its_table(late: float, expected: str) -> None:
    scores = {
        "oracle_bound": 7.0,
        "oracle_plan": 8.0,
        "oracle_played": 9.0,
        "oracle_margin_pct": 4.0,
        "oracle_late_slots": late,
    }
    row = Summary(
        trace="week",
        profile="netflix",
        delay_s=0.0,
        policy="drain",
        seeds=1,
        scores={name: Interval(median=value, low=value, high=value) for name, value in scores.items()},
    )
    assert oracle_comparison.caption(row) == (
        "oracle, a rescale at 900 s: bound 7.0 worker-hours, plan without margin 8.0, "
        f"played with 4 % margin 9.0{expected}"
    )


@pytest.mark.parametrize(
    ("where", "result"),
    [("nowhere", "nowhere: there is no such folder"), (".", "expected files `seconds,rate` named \\*.csv, got 0")],
    ids=["no folder", "no files"],
)
def test_a_folder_without_traces_ends_the_bench_with_a_sentence(tmp_path: Path, where: str, result: str) -> None:
    with pytest.raises(SystemExit, match=f"bench-policies: .*{result}"):
        policies.main(words(tmp_path / where))


def numbers(group: tuple[Unit, ...]) -> dict[str, np.ndarray]:
    """Results of an hour, or of a day, without events."""
    made = {name: np.zeros((len(group), width) if width > 1 else len(group)) for name, width in SUMS.items()}
    made |= {name: np.full(len(group), 3600.0) for name in ("worker_s", "records")}
    made["scored_s"] = np.array([DAY_S if unit.trace == "days" else 3600.0 for unit in group])
    if group[0].policy == ORACLE:
        made |= {name: np.ones(len(group)) for name in BRACKETS if name != "oracle_played"}
    return made
