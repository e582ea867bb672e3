"""The history of partitions in a file, as several processes use it in turn."""

from pathlib import Path

import msgspec
import pytest

from adapter.sources.history_file import HistoryFile
from adapter.sources.partition_history import Partitions, Position, advance, stuck_backlog

WINDOW_S = 60
JOB = "shop/orders"


def with_tick(history: Partitions, at_s: int) -> Partitions:
    """One partition is read to its end, the other one is stuck at offset 0."""
    positions = [
        Position(("orders", "orders", 0), 10 * at_s, 0, 10 * at_s),
        Position(("orders", "orders", 1), 0, 0, 10 * at_s),
    ]
    return advance(history, at_s, positions, WINDOW_S)


def test_processes_that_read_in_turn_know_what_one_would_know(tmp_path: Path) -> None:
    files = [HistoryFile(tmp_path / "history") for _ in range(3)]
    expected = Partitions()
    for number in range(20):
        at_s, file = 15 * number, files[number * 7 // 3 % 3]
        file.store({JOB: with_tick(file.load().get(JOB, Partitions()), at_s)})
        expected = with_tick(expected, at_s)
        assert HistoryFile(tmp_path / "history").load() == {JOB: expected}
    assert stuck_backlog(expected, WINDOW_S) == 10 * at_s


def test_a_partition_is_stuck_in_the_first_tick_after_a_restart(tmp_path: Path) -> None:
    before = Partitions()
    for at_s in range(0, 150, 15):
        before = with_tick(before, at_s)
    HistoryFile(tmp_path / "history").store({JOB: before})
    after = with_tick(HistoryFile(tmp_path / "history").load()[JOB], 600)
    assert stuck_backlog(after, WINDOW_S) == 6_000


@pytest.mark.parametrize("content", [b"", b"\xc1", b"\x81\xa1a\x01", b"not msgpack"])
def test_an_unusable_file_is_no_history_and_is_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "history").write_bytes(content)
    file, histories = HistoryFile(tmp_path / "history"), {JOB: with_tick(Partitions(), 0)}
    assert file.load() == {}
    file.store(histories)
    assert HistoryFile(tmp_path / "history").load() == histories


@pytest.mark.parametrize("former", [{}, {"readable_end": 150}], ids=["before transactions", "with another field"])
def test_a_history_of_an_earlier_commit_is_read(tmp_path: Path, former: dict[str, int]) -> None:
    written = msgspec.to_builtins({JOB: with_tick(Partitions(), 15)})
    for each in written[JOB]["partitions"]:
        del each["position"]["unstable_records"]
        each["position"] |= former
    (tmp_path / "history").write_bytes(msgspec.msgpack.encode(written))
    assert HistoryFile(tmp_path / "history").load() == {JOB: with_tick(Partitions(), 15)}


@pytest.mark.parametrize("name", [None, "missing/history"])
def test_without_a_folder_the_history_stays_in_the_process(tmp_path: Path, name: str | None) -> None:
    file, histories = HistoryFile(None if name is None else tmp_path / name), {JOB: with_tick(Partitions(), 0)}
    assert file.load() == {}
    file.store(histories)
    assert file.load() == histories
    assert list(tmp_path.iterdir()) == []
