"""Stuck partitions, the hottest partition and transaction markers, from the positions of several ticks."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.sources.partition_history import Partitions, Position, advance, hottest_ratio, marker_keys, stuck_backlog

WINDOW_S = 60
TICK_S = 15
Offsets = tuple[int | None, int]  # committed, log end


def after(ticks: int, offsets_at: Callable[[int], Sequence[Offsets]], tick_s: int = TICK_S) -> Partitions:
    """The history of a group after so many ticks. offsets_at: Unix seconds -> offsets of each partition."""
    history = Partitions()
    for at_s in range(0, ticks * tick_s, tick_s):
        positions = [
            Position(("orders", "orders", number), committed, 0, end)
            for number, (committed, end) in enumerate(offsets_at(at_s))
        ]
        history = advance(history, at_s, positions, WINDOW_S)
    return history


def steps(at_s: int, interval_s: int) -> int:
    """10 records a second, committed every interval_s."""
    return 10 * (at_s // interval_s * interval_s)


@pytest.mark.parametrize(
    ("commit_interval_s", "ticks", "stuck"),
    [
        pytest.param(5, 2, None, id="not known within the first half of the window"),
        pytest.param(5, 4, 0, id="not yet a window"),
        pytest.param(5, 6, 750, id="a partition that is not read while the group commits on others"),
        pytest.param(300, 20, 0, id="one checkpoint of the others proves nothing"),
        pytest.param(300, 82, 12_150, id="four checkpoints of the others do"),
    ],
)
def test_a_partition_is_stuck_if_the_group_commits_only_on_others(
    commit_interval_s: int, ticks: int, stuck: int | None
) -> None:
    history = after(ticks, lambda at_s: [(steps(at_s, commit_interval_s), 10 * at_s), (0, 10 * at_s)])
    assert stuck_backlog(history, WINDOW_S) == stuck


@pytest.mark.parametrize("interval_s", [60, 300, 600])
def test_a_group_that_commits_on_checkpoints_has_no_stuck_partition(interval_s: int) -> None:
    for ticks in range(4, 130):
        history = after(ticks, lambda at_s: [(steps(at_s, interval_s), 10 * at_s)] * 3)
        assert stuck_backlog(history, WINDOW_S) == 0


def test_a_checkpoint_whose_commits_are_spread_over_two_ticks_is_no_stuck_partition() -> None:
    def offsets(at_s: int) -> list[Offsets]:
        return [(steps(at_s, 120), 10 * at_s), (steps(max(0, at_s - TICK_S), 120), 10 * at_s)]

    assert {stuck_backlog(after(ticks, offsets), WINDOW_S) for ticks in range(4, 60)} == {0}


def test_a_group_that_commits_nowhere_has_no_stuck_partition() -> None:
    assert stuck_backlog(after(20, lambda at_s: [(0, 10 * at_s), (0, 10 * at_s)]), WINDOW_S) == 0


def test_a_partition_that_moves_again_is_not_stuck() -> None:
    def offsets(at_s: int) -> list[Offsets]:
        return [(10 * at_s, 10 * at_s), (1 if at_s >= 150 else 0, 500)]

    assert stuck_backlog(after(10, offsets), WINDOW_S) == 500
    assert stuck_backlog(after(11, offsets), WINDOW_S) == 0


def test_a_partition_without_a_commit_is_not_stuck() -> None:
    assert stuck_backlog(after(20, lambda at_s: [(10 * at_s, 10 * at_s), (None, 10 * at_s)]), WINDOW_S) == 0


def test_a_tick_that_is_read_again_changes_nothing() -> None:
    history = after(10, lambda at_s: [(10 * at_s, 10 * at_s + 1), (0, 10 * at_s)])
    again = [Position(("orders", "orders", 0), 1360, 0, 1361), Position(("orders", "orders", 1), 0, 0, 1360)]
    assert advance(history, 9 * TICK_S, again, WINDOW_S) == history


def test_the_history_begins_anew_when_the_clock_was_set_back() -> None:
    ahead = advance(Partitions(), 36_000, [Position(("orders", "orders", 0), 5, 0, 9)], WINDOW_S)
    position = Position(("orders", "orders", 0), 5, 0, 9)
    assert advance(ahead, 15, [position], WINDOW_S) == advance(Partitions(), 15, [position], WINDOW_S)


@pytest.mark.parametrize(
    ("rates", "ratio"),
    [
        pytest.param([10, 10, 10, 10], 1.0, id="even"),
        pytest.param([70, 10, 10, 10], 2.8, id="one partition has 70 % of the input"),
        pytest.param([10, 0], 2.0, id="one partition has all of it"),
        pytest.param([0, 0], None, id="no input"),
    ],
)
def test_the_hottest_partition_is_measured_over_the_window(rates: list[int], ratio: float | None) -> None:
    history = after(8, lambda at_s: [(0, rate * at_s) for rate in rates])
    assert hottest_ratio(history, WINDOW_S) == ratio


def test_the_hottest_partition_is_unknown_while_a_partition_is_new() -> None:
    history = after(6, lambda at_s: [(0, 10 * at_s)] * (3 if at_s >= 60 else 2))
    assert hottest_ratio(history, WINDOW_S) is None


@pytest.mark.parametrize(
    ("offsets", "markers"),
    [
        pytest.param([(9, 10), (4, 5)], {0, 1}, id="a transaction ended in every partition"),
        pytest.param([(9, 10), (3, 5)], {0}, id="another partition is behind"),
        pytest.param([(9, 10), (None, 0)], {0}, id="a partition that was never written"),
        pytest.param([(9, 10), (5, 5)], set(), id="a partition is read to its end: the lag of 1 is a record"),
        pytest.param([(8, 10), (3, 5)], set(), id="a lag of 2"),
    ],
)
def test_a_lag_of_1_that_stays_in_every_partition_is_a_transaction_marker(
    offsets: list[Offsets], markers: set[int]
) -> None:
    assert {number for _, _, number in marker_keys(after(2, lambda _: offsets))} == markers


def test_a_marker_stays_one_while_the_next_transaction_is_open() -> None:
    history = Partitions()
    for at_s in (0, TICK_S):
        history = advance(history, at_s, [Position(("g", "t", 0), 9, 0, 10 + at_s, at_s)], WINDOW_S)
    assert marker_keys(history) == {("g", "t", 0)}


def test_a_partition_that_retention_has_emptied_does_not_speak_against_a_marker() -> None:
    positions = [Position(("g", "t", 0), 9, 0, 10), Position(("g", "t", 1), 4, 5, 5)]
    history = advance(advance(Partitions(), 0, positions, WINDOW_S), TICK_S, positions, WINDOW_S)
    assert marker_keys(history) == {("g", "t", 0)}


def test_a_lag_of_1_in_a_moving_partition_is_a_record() -> None:
    assert marker_keys(after(5, lambda at_s: [(at_s, at_s + 1)])) == frozenset()
    assert marker_keys(after(1, lambda at_s: [(9, 10)])) == frozenset()


@given(
    st.lists(st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 20)), st.integers(20, 40)), min_size=2, max_size=2))
)
def test_stuck_records_never_exceed_the_backlog(ticks: list[list[Offsets]]) -> None:
    history = after(len(ticks), lambda at_s: ticks[at_s // TICK_S])
    stuck = stuck_backlog(history, WINDOW_S)
    assert stuck is None or 0 <= stuck <= sum(end - done for done, end in ticks[-1] if done is not None)
