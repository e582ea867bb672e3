"""The trace source: the fleet's past over HTTP, or a recorded file's."""

from pathlib import Path

import pytest
from sample_rows import Row, lines_of, rows_of, table_of

from adapter.config import TraceSource
from adapter.errors import SourceError
from adapter.simulator.fleet import SimulatedFleet
from adapter.sources.sample_table import FAULT
from adapter.sources.trace import LONGEST_ROW_BYTES, TraceReader, at_ticks, read

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
        assert reader.samples(START_S - 30, START_S, 15).equals(fleet.samples(START_S - 30, START_S, 15))
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


def test_a_recorded_file_is_read_back(tmp_path: Path) -> None:
    rows = rows_of(SimulatedFleet(1, lambda: START_S).samples(START_S - 60, START_S, 15))
    file = tmp_path / "fleet.jsonl"
    file.write_text(lines_of(rows))

    assert rows_of(read("lab", str(file))) == rows
    assert rows_of(from_file(file).samples(START_S - 60, START_S, 15)) == rows


def test_a_recorded_rule_override_is_read_back(tmp_path: Path) -> None:
    recorded = [row(signal="rule.min_workers", value=3)]
    (tmp_path / "a.jsonl").write_text(lines_of(recorded))
    assert rows_of(read("lab", str(tmp_path / "a.jsonl"))) == recorded


def test_a_file_can_be_read_at_any_ticks_again_and_again(tmp_path: Path) -> None:
    file = tmp_path / "fleet.jsonl"
    file.write_text(lines_of([row(at_s=at_s, value=at_s) for at_s in (75, 60, 45, 30)]))
    reader = from_file(file)

    assert {seen.at_s for seen in rows_of(reader.samples(45, 60, 15))} == {45, 60}
    assert [seen.at_s for seen in rows_of(reader.samples(30, 30, 15))] == [30]
    assert rows_of(reader.samples(900, 930, 15)) == []


def test_empty_lines_are_skipped(tmp_path: Path) -> None:
    file = tmp_path / "fleet.jsonl"
    file.write_text("\n\n" + lines_of([row()]) + "\n")

    assert rows_of(read("lab", str(file))) == [row()]


def test_a_tick_gets_the_newest_values_less_than_a_step_old() -> None:
    recorded = [row(at_s=at_s, value=at_s) for at_s in (15, 16, 22, 29, 31)]

    assert [(seen.at_s, seen.value) for seen in rows_of(at_ticks(table_of(recorded), range(0, 61, 15)))] == [
        (15, 15),
        (30, 29),
        (45, 31),
    ]


def test_each_workload_has_all_rows_of_its_own_newest_time() -> None:
    recorded = [
        row(at_s=14, workload="demo/a"),
        row(at_s=14, workload="demo/a", signal="workers"),
        row(at_s=15, workload="demo/b"),
        Row(13, "demo/b", "", FAULT, 0.0, "it was away"),
    ]

    assert {(seen.workload, seen.signal) for seen in rows_of(at_ticks(table_of(recorded), range(15, 16, 15)))} == {
        ("demo/a", "backlog_records"),
        ("demo/a", "workers"),
        ("demo/b", "backlog_records"),
    }


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        pytest.param("{", "is not a row", id="half a line"),
        pytest.param(lines_of([row()])[:-20], "is not a row", id="a line cut off"),
        pytest.param('{"at_s":1}', "a row has no workload", id="a field missing"),
        pytest.param(
            '{"at_s":1.5,"workload":"a/b","stage":"","signal":"workers","value":1}',
            "is not a row",
            id="half a second",
        ),
        pytest.param(
            '{"at_s":1,"workload":"a/b","stage":"","signal":"workers","value":NaN}', "must be finite", id="NaN (X-06)"
        ),
        pytest.param(
            '{"at_s":1,"workload":"a/b","stage":"","signal":"workers","value":1e999}', "is not a row", id="infinite"
        ),
        pytest.param(
            '{"at_s":1,"workload":"a/b","stage":"","signal":"workers","value":null}', "a row has no value", id="null"
        ),
        pytest.param(
            '{"at_s":1,"workload":"a/b","stage":"","signal":"lag","value":1}', "signal must be one of", id="no signal"
        ),
        pytest.param(
            '{"at_s":1,"workload":"ab","stage":"","signal":"workers","value":1}', '"namespace/name"', id="no namespace"
        ),
        pytest.param(
            '{"at_s":1,"workload":"a/b","stage":"","signal":"workers","value":-1}', "not negative", id="negative"
        ),
    ],
)
def test_a_faulty_line_is_reported_with_its_number(tmp_path: Path, line: str, sentence: str) -> None:
    file = tmp_path / "fleet.jsonl"
    file.write_text(lines_of([row()]) + line + "\n")

    with pytest.raises(SourceError, match=r"fleet.jsonl:2") as caught:
        from_file(file).samples(0, 60, 15)

    assert sentence in caught.value.cause


def fault_row(length: int) -> str:
    """A line that is not a valid row, `length` bytes long with its end."""
    shortest = lines_of([Row(60, "demo/sine", "", FAULT, 0.0, "")])
    return shortest.replace('"text": ""', f'"text": "{"x" * (length - len(shortest))}"')


@pytest.mark.parametrize("before", [0, 100])
def test_a_row_that_is_too_long_is_reported_with_its_number_and_the_limit(tmp_path: Path, before: int) -> None:
    file = tmp_path / "fleet.jsonl"
    file.write_text(lines_of([row()] * before) + fault_row(3 * LONGEST_ROW_BYTES) + lines_of([row()]))

    with pytest.raises(SourceError) as caught:
        from_file(file).samples(0, 60, 15)

    expected = f":{before + 1}: a row has at most 1048576 bytes, got {3 * LONGEST_ROW_BYTES - 1}; shorten its text"
    assert caught.value.cause.endswith(expected)


def test_rows_of_the_greatest_length_are_read(tmp_path: Path) -> None:
    file = tmp_path / "fleet.jsonl"
    file.write_text(lines_of([row()]) + 3 * fault_row(LONGEST_ROW_BYTES))
    assert len(read("lab", str(file))) == 4


def test_a_text_that_is_not_utf_8_is_a_source_error(tmp_path: Path) -> None:
    file = tmp_path / "fleet.jsonl"
    file.write_bytes(lines_of([row()]).replace('"stage": ""', '"stage": "Zähler"').encode("latin-1"))
    with pytest.raises(SourceError, match="UTF8"):
        from_file(file).samples(0, 60, 15)


def test_a_missing_file_is_a_source_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="file: expected a readable file, got "):
        from_file(tmp_path / "nowhere.jsonl").samples(0, 60, 15)


def test_a_file_that_is_not_text_is_a_source_error(tmp_path: Path) -> None:
    file = tmp_path / "fleet.parquet"
    file.write_bytes(b"PAR1\xff\xfe")

    with pytest.raises(SourceError, match=r"fleet.parquet:1: is not a row"):
        from_file(file).samples(0, 60, 15)
