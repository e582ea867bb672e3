"""The trace source: the fleet's past over HTTP, or a recorded file's."""

from pathlib import Path

import pytest

from adapter.config import TraceSource
from adapter.errors import SourceError
from adapter.simulator.fleet import SimulatedFleet
from adapter.sources import FAULT, Row
from adapter.sources.trace import TraceReader, at_ticks, read, record

START_S = 1_000_000


def row(at_s: int = 60, workload: str = "demo/sine", signal: str = "backlog_records", value: float = 7.0) -> Row:
    return Row(at_s, workload, "", signal, value)


def from_file(path: Path) -> TraceReader:
    return TraceReader("lab", TraceSource(kind="trace", file=str(path)))


def test_it_reads_what_the_fleet_serves() -> None:
    fleet = SimulatedFleet(1, lambda: START_S)
    fleet.start()
    reader = TraceReader("embedded", TraceSource(kind="trace", url=fleet.url))
    try:
        assert reader.samples(START_S - 30, START_S, 15) == fleet.rows(START_S - 30, START_S, 15)
    finally:
        reader.close()
        fleet.stop()


def test_a_fleet_that_does_not_answer_is_a_source_error() -> None:
    reader = TraceReader("embedded", TraceSource(kind="trace", url="http://127.0.0.1:1", deadline_s=1))
    try:
        with pytest.raises(SourceError, match="embedded: the fleet does not answer"):
            reader.samples(0, 15, 15)
    finally:
        reader.close()


def test_what_is_recorded_is_read_again(tmp_path: Path) -> None:
    rows = SimulatedFleet(1, lambda: START_S).rows(START_S - 60, START_S, 15)
    file = tmp_path / "fleet.jsonl"
    file.write_text(record(rows))

    assert read("lab", str(file)) == rows
    assert from_file(file).samples(START_S - 60, START_S, 15) == rows


def test_a_recorded_override_of_a_rule_is_read_again(tmp_path: Path) -> None:
    recorded = [row(signal="rule.min_workers", value=3)]
    (tmp_path / "a.jsonl").write_text(record(recorded))
    assert read("lab", str(tmp_path / "a.jsonl")) == recorded


def test_a_file_answers_any_window_any_number_of_times(tmp_path: Path) -> None:
    file = tmp_path / "fleet.jsonl"
    file.write_text(record([row(at_s=at_s, value=at_s) for at_s in (75, 60, 45, 30)]))
    reader = from_file(file)

    assert [seen.at_s for seen in reader.samples(45, 60, 15)] == [45, 60]
    assert [seen.at_s for seen in reader.samples(30, 30, 15)] == [30]
    assert reader.samples(900, 930, 15) == []


def test_an_empty_file_and_empty_lines_are_no_samples(tmp_path: Path) -> None:
    file = tmp_path / "fleet.jsonl"
    file.write_text("\n\n" + record([row()]) + "\n")

    assert read("lab", str(file)) == [row()]


def test_a_tick_sees_the_newest_moment_that_is_less_than_a_step_old() -> None:
    recorded = [row(at_s=at_s, value=at_s) for at_s in (15, 16, 22, 29, 31)]

    assert [(seen.at_s, seen.value) for seen in at_ticks(recorded, 0, 60, 15)] == [(15, 15), (30, 29), (45, 31)]


def test_each_workload_has_its_own_newest_moment_and_all_rows_of_it() -> None:
    recorded = [
        row(at_s=14, workload="demo/a"),
        row(at_s=14, workload="demo/a", signal="workers"),
        row(at_s=15, workload="demo/b"),
        Row(13, "demo/b", "", FAULT, 0.0, "it was away"),
    ]

    assert {(seen.workload, seen.signal) for seen in at_ticks(recorded, 15, 15, 15)} == {
        ("demo/a", "backlog_records"),
        ("demo/a", "workers"),
        ("demo/b", "backlog_records"),
    }


@pytest.mark.parametrize(
    ("line", "says"),
    [
        pytest.param("{", "is not a row", id="half a line"),
        pytest.param(record([row()])[:-20], "is not a row", id="a line cut off"),
        pytest.param('{"at_s":1}', "missing required field `workload`", id="a field missing"),
        pytest.param(
            '{"at_s":1.5,"workload":"a/b","stage":"","signal":"workers","value":1}',
            "Expected `int`",
            id="half a second",
        ),
        pytest.param(
            '{"at_s":1,"workload":"a/b","stage":"","signal":"workers","value":NaN}', "is not a row", id="NaN (X-06)"
        ),
        pytest.param(
            '{"at_s":1,"workload":"a/b","stage":"","signal":"workers","value":1e999}', "out of range", id="infinite"
        ),
        pytest.param(
            '{"at_s":1,"workload":"a/b","stage":"","signal":"workers","value":null}', "Expected `float`", id="null"
        ),
        pytest.param(
            '{"at_s":1,"workload":"a/b","stage":"","signal":"lag","value":1}', "signal must be one of", id="no signal"
        ),
        pytest.param(
            '{"at_s":1,"workload":"ab","stage":"","signal":"workers","value":1}', '"namespace/name"', id="no namespace"
        ),
        pytest.param(
            '{"at_s":1,"workload":"a/b","stage":"","signal":"workers","value":-1}', "not be negative", id="negative"
        ),
    ],
)
def test_a_wrong_line_is_named_by_its_number(tmp_path: Path, line: str, says: str) -> None:
    file = tmp_path / "fleet.jsonl"
    file.write_text(record([row()]) + line + "\n")

    with pytest.raises(SourceError, match=r"fleet.jsonl:2") as caught:
        from_file(file).samples(0, 60, 15)

    assert says in caught.value.cause


def test_a_file_that_is_not_there_is_a_source_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be read"):
        from_file(tmp_path / "nowhere.jsonl").samples(0, 60, 15)


def test_a_file_that_is_not_text_is_a_source_error(tmp_path: Path) -> None:
    file = tmp_path / "fleet.parquet"
    file.write_bytes(b"PAR1\xff\xfe")

    with pytest.raises(SourceError, match="cannot be read"):
        from_file(file).samples(0, 60, 15)
