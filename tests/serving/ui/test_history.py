"""The last minutes in memory: bounded, gaps stay gaps."""

import pytest
from ui_decisions import AT_S, decision, snapshot

from adapter.serving.ui.history import MOST_POINTS, MOST_TICKS, SERIES, History


def test_a_history_begins_empty() -> None:
    assert History().series(["demo/steady"]) == ([], {"demo/steady": {name: [] for name in SERIES}})


def test_an_unknown_number_is_a_gap() -> None:
    history = History()
    history.add(snapshot(decision(backlog_time_s=2.5)))
    history.add(snapshot(decision(backlog_time_s=None, required_workers=None), at_s=AT_S + 15))

    times_s, series = history.series(["demo/steady"])

    assert times_s == [AT_S, AT_S + 15]
    assert series["demo/steady"]["backlog_time_s"] == [2.5, None]
    assert series["demo/steady"]["required_workers"] == [4.0, None]
    assert series["demo/steady"]["ready_workers"] == [4.0, 4.0]


def test_a_new_workload_begins_with_a_gap() -> None:
    history = History()
    history.add(snapshot(decision("demo/b")))
    history.add(snapshot(decision("demo/a", required_workers=9.0), decision("demo/b"), at_s=AT_S + 15))

    _, series = history.series(["demo/a", "demo/b", "demo/never"])

    assert [series[name]["required_workers"] for name in series] == [[None, 9], [4, 4], [None, None]]


def test_the_same_snapshot_twice_and_an_older_one_change_nothing() -> None:
    history = History()
    for at_s in (AT_S, AT_S, AT_S - 15):
        history.add(snapshot(decision(), at_s=at_s))

    assert history.series([])[0] == [AT_S]


def test_ticks_beyond_the_window_are_dropped() -> None:
    history = History(window_s=60)
    for tick in range(10):
        history.add(snapshot(decision(), at_s=AT_S + 15 * tick))

    assert history.series([])[0] == [AT_S + 15 * tick for tick in range(5, 10)]


@pytest.mark.parametrize("ticks", [MOST_POINTS, MOST_POINTS + 1, 400, MOST_TICKS + 50])
def test_a_curve_has_a_bounded_number_of_points(ticks: int) -> None:
    history = History(window_s=1e9)
    for tick in range(ticks):
        history.add(snapshot(decision(), at_s=AT_S + 15 * tick))

    times_s, series = history.series(["demo/steady"])

    assert len(times_s) <= MOST_POINTS + 1
    assert times_s == sorted(times_s)
    assert times_s[-1] == AT_S + 15 * (ticks - 1)
    assert len(series["demo/steady"]["ready_workers"]) == len(times_s)


@pytest.mark.parametrize("first", [0, 1], ids=["even ticks", "odd ticks"])
def test_a_curve_of_every_second_tick_has_a_bounded_number_of_points(first: int) -> None:
    history = History(window_s=1e9)
    for tick in range(first, 400, 2):
        history.add(snapshot(decision(), at_s=AT_S + 15 * tick))

    assert MOST_POINTS / 2 <= len(history.series([])[0]) <= MOST_POINTS + 1


def test_a_thinned_curve_keeps_its_points_as_it_moves_on() -> None:
    history = History(window_s=1e9)
    for tick in range(300):
        history.add(snapshot(decision(), at_s=AT_S + 15 * tick))
    before = history.series([])[0]
    history.add(snapshot(decision(), at_s=AT_S + 15 * 300))
    after = history.series([])[0]

    assert set(before[:-1]) <= set(after)
