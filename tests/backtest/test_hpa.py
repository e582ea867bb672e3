"""The HPA's arithmetic against the numbers of upstream's own tables and of a real controller."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.backtest.hpa import (
    DOWN,
    MOST_WORKERS,
    UP,
    Behavior,
    Direction,
    Hpa,
    Memory,
    RatePolicy,
    Select,
    Tolerance,
    by_average_value,
    by_value,
    combine,
    milli,
    recommend,
    usage,
)

DEFAULT = Tolerance()
OLDER = Tolerance(before_1_33=True)
EXACT = Tolerance(up_ratio=0.0, down_ratio=0.0)
AT_ONCE = Direction(window_s=0, policies=DOWN.policies)
FAR = Hpa(max_workers=10_000)


def settle(hpa: Hpa, spec_workers: int, proposals: list[int | None], every_s: float = 15.0) -> list[int]:
    """Replicas after each sync."""
    memory = Memory()
    sizes = []
    for turn, proposal in enumerate(proposals):
        spec_workers, memory = recommend(hpa, memory, spec_workers, proposal, turn * every_s)
        sizes.append(spec_workers)
    return sizes


@pytest.mark.parametrize(
    ("usage_milli", "target_milli", "replicas", "tolerance", "expected"),
    [
        pytest.param(8600, 2150, 3, DEFAULT, 4, id="8600m over 2150m is 4"),
        pytest.param(8600, 2867, 5, DEFAULT, 3, id="8600m over 2867m is 3"),
        pytest.param(8600, 2900, 3, DEFAULT, 3, id="inside the tolerance nothing moves"),
        pytest.param(8600, 2800, 3, Tolerance(up_ratio=0.01, down_ratio=0.01), 4, id="a tolerance of 1 % lets it move"),
        pytest.param(2**63 - 1, 1, 3, DEFAULT, MOST_WORKERS, id="the largest number is the largest size"),
        pytest.param(20_000, 1000, 3, DEFAULT, 20, id="20 from 3"),
        pytest.param(20_001, 1000, 20, EXACT, 21, id="a hair more than 20 is 21 at tolerance 0"),
        pytest.param(0, 1000, 3, DEFAULT, 0, id="0 asks for nothing"),
        pytest.param(1000, 1000, 0, DEFAULT, 1, id="from 0 the tolerance does not count"),
        pytest.param(0, 1000, 0, DEFAULT, 0, id="0 from 0"),
    ],
)
def test_average_value(usage_milli: int, target_milli: int, replicas: int, tolerance: Tolerance, expected: int) -> None:
    assert by_average_value(usage_milli, target_milli, replicas, tolerance) == expected


@pytest.mark.parametrize(
    ("usage_milli", "target_milli", "spec", "ready", "expected"),
    [
        pytest.param(8600, 14334, 5, 5, 3, id="8600 against 14334 takes 5 to 3"),
        pytest.param(8600, 4400, 3, 1, 2, id="only ready pods are multiplied"),
        pytest.param(8600, 8600, 3, 1, 3, id="inside the tolerance the spec stays"),
        pytest.param(8600, 4400, 0, 0, 2, id="from 0 the ratio is the size"),
        pytest.param(8600, 4400, 3, 0, 0, id="no ready pod is 0, which min raises"),
    ],
)
def test_value(usage_milli: int, target_milli: int, spec: int, ready: int, expected: int) -> None:
    assert by_value(usage_milli, target_milli, (spec, ready), DEFAULT) == expected


@pytest.mark.parametrize(
    ("replicas", "first_up"), [(9, 10), (10, 12), (20, 23), (30, 34), (50, 56), (100, 111), (500, 551)]
)
def test_required_workers_moves_up_only_beyond_a_tenth(replicas: int, first_up: int) -> None:
    asked = range(replicas + 1, first_up + 1)

    moved = [wanted for wanted in asked if by_average_value(wanted * 1000, 1000, replicas, DEFAULT) != replicas]

    assert moved == [first_up]


@pytest.mark.parametrize(("replicas", "first_down"), [(10, 8), (20, 17), (50, 44), (100, 89), (200, 179)])
def test_required_workers_moves_down_only_beyond_a_tenth(replicas: int, first_down: int) -> None:
    asked = range(replicas - 1, first_down - 1, -1)

    moved = [wanted for wanted in asked if by_average_value(wanted * 1000, 1000, replicas, DEFAULT) != replicas]

    assert moved == [first_down]


@pytest.mark.parametrize(("tolerance_ratio", "replicas", "first_up"), [(0.05, 20, 22), (0.02, 20, 21), (0.02, 50, 52)])
def test_a_smaller_tolerance_loses_fewer_steps(tolerance_ratio: float, replicas: int, first_up: int) -> None:
    tolerance = Tolerance(up_ratio=tolerance_ratio, down_ratio=tolerance_ratio)

    assert by_average_value(first_up * 1000, 1000, replicas, tolerance) == first_up
    assert by_average_value((first_up - 1) * 1000, 1000, replicas, tolerance) == replicas


@pytest.mark.parametrize(
    ("replicas", "wanted", "moves"),
    [
        pytest.param(9, 10, True, id="X-07 9 to 10 scales"),
        pytest.param(10, 11, True, id="X-07 10 to 11 scales: 1.1 is just over in floats"),
        pytest.param(11, 12, False, id="X-07 11 to 12 does not"),
        pytest.param(13, 14, False, id="X-07 13 to 14 does not"),
        pytest.param(10, 9, False, id="X-07 10 to 9 does not"),
        pytest.param(20, 18, False, id="X-07 20 to 18 does not"),
        pytest.param(50, 45, False, id="X-07 50 to 45 does not"),
        pytest.param(30, 34, True, id="X-07 30 to 34 scales"),
        pytest.param(30, 33, True, id="30 to 33 scales as well, by the same float"),
    ],
)
def test_the_tolerance_before_1_33(replicas: int, wanted: int, moves: bool) -> None:
    assert (by_average_value(wanted * 1000, 1000, replicas, OLDER) == wanted) is moves


@pytest.mark.parametrize(("replicas", "wanted"), [(10, 11), (30, 33)])
def test_since_1_33_exactly_a_tenth_is_within_the_tolerance(replicas: int, wanted: int) -> None:
    assert by_average_value(wanted * 1000, 1000, replicas, DEFAULT) == replicas


@given(replicas=st.integers(1, 599), wanted=st.integers(1, 599))
def test_a_tenth_of_padding_never_settles_below_what_is_required(replicas: int, wanted: int) -> None:
    assert by_average_value(wanted * 1100, 1000, replicas, DEFAULT) >= wanted


@given(replicas=st.integers(1, 999), wanted=st.integers(0, 999))
def test_tolerance_0_follows_every_integer(replicas: int, wanted: int) -> None:
    assert by_average_value(wanted * 1000, 1000, replicas, EXACT) == wanted


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        pytest.param([4000], 4000, id="one item is the usage"),
        pytest.param([3000, 4000], 7000, id="X-08 two items are added"),
        pytest.param([], None, id="an empty answer is no number"),
        pytest.param([-1000], 2**63 - 1, id="a negative sum reads as an overflow, and asks for everything"),
        pytest.param([2**63 - 1, 1], 2**63 - 1, id="an overflow asks for everything"),
    ],
)
def test_the_items_of_an_answer_are_added(items: list[int], expected: int | None) -> None:
    assert usage(items) == expected


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [("4", 4000), ("4400m", 4400), ("20.0004", 20_001), ("4k", 4_000_000), ("0", 0), ("2e3", 2_000_000), ("-1", -1000)],
)
def test_a_quantity_in_thousandths(quantity: str, expected: int) -> None:
    assert milli(quantity) == expected


@pytest.mark.parametrize("quantity", ["", "m", "NaN", "Infinity", "four", "4 4"])
def test_what_is_not_a_quantity_is_refused(quantity: str) -> None:
    with pytest.raises(ValueError, match="quantity"):
        milli(quantity)


def test_x_09_the_default_way_up_is_four_pods_or_double_every_15_s() -> None:
    assert settle(Hpa(max_workers=100), 3, [20, 20, 20, 20]) == [7, 14, 20, 20]


def test_syncs_within_one_period_share_its_allowance() -> None:
    assert settle(Hpa(max_workers=100), 3, [20] * 7, every_s=5) == [7, 7, 7, 14, 14, 14, 20]


def test_x_09_the_default_way_down_waits_300_s_for_the_highest_proposal() -> None:
    assert settle(Hpa(max_workers=100), 10, [4] * 22) == [*[10] * 20, 4, 4]


def test_the_highest_proposal_of_the_window_limits_the_way_down_and_the_size_found_is_the_first() -> None:
    hpa = Hpa(max_workers=100, behavior=Behavior(down=Direction(window_s=30, policies=DOWN.policies)))

    assert settle(hpa, 10, [4, 7, 4, 4, 4]) == [10, 10, 7, 4, 4]


def test_without_a_behavior_the_size_at_most_doubles_and_falls_after_300_s() -> None:
    hpa = Hpa(max_workers=100, behavior=None)

    assert settle(hpa, 3, [20, 20, 20]) == [6, 12, 20]
    assert settle(hpa, 1, [20]) == [4]
    assert settle(hpa, 10, [10, *[4] * 21]) == [*[10] * 21, 4]


def test_an_up_window_takes_the_lowest_proposal_in_it() -> None:
    hpa = Hpa(max_workers=100, behavior=Behavior(up=Direction(window_s=30, policies=UP.policies)))

    assert settle(hpa, 10, [10, 12, 14, 14]) == [10, 10, 12, 14]


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        pytest.param(Select.MAX, 8, id="Max takes the policy that allows more"),
        pytest.param(Select.MIN, 6, id="Min the one that allows less"),
        pytest.param(Select.DISABLED, 4, id="Disabled allows nothing"),
    ],
)
def test_select_policy_up(select: Select, expected: int) -> None:
    policies = (RatePolicy(kind="Pods", value=2), RatePolicy(kind="Percent", value=100))
    hpa = Hpa(max_workers=100, behavior=Behavior(up=Direction(window_s=0, policies=policies, select=select)))

    assert settle(hpa, 4, [50]) == [expected]


@pytest.mark.parametrize(
    ("select", "expected"), [(Select.MAX, 5), (Select.MIN, 8), (Select.DISABLED, 10)], ids=["Max", "Min", "Disabled"]
)
def test_select_policy_down(select: Select, expected: int) -> None:
    policies = (RatePolicy(kind="Pods", value=2), RatePolicy(kind="Percent", value=50))
    hpa = Hpa(max_workers=100, behavior=Behavior(down=Direction(window_s=0, policies=policies, select=select)))

    assert settle(hpa, 10, [1]) == [expected]


def test_percents_round_up_on_the_way_up_and_leave_more_on_the_way_down() -> None:
    tenth = (RatePolicy(kind="Percent", value=10),)
    behavior = Behavior(up=Direction(window_s=0, policies=tenth), down=Direction(window_s=0, policies=tenth))
    hpa = Hpa(max_workers=100, behavior=behavior)

    assert settle(hpa, 1, [50]) == [2]
    assert settle(hpa, 15, [1]) == [13]


def test_what_was_removed_counts_in_the_period_of_the_way_up() -> None:
    behavior = Behavior(up=Direction(window_s=0, policies=(RatePolicy(kind="Pods", value=1),)), down=AT_ONCE)
    hpa = Hpa(max_workers=100, behavior=behavior)

    assert settle(hpa, 10, [6, 20], every_s=5) == [6, 11]


def test_a_failed_metric_freezes_the_size() -> None:
    assert settle(Hpa(max_workers=100), 7, [None, None]) == [7, 7]


def test_min_and_max_hold_even_when_the_metric_fails() -> None:
    assert settle(Hpa(min_workers=3, max_workers=5), 1, [None]) == [3]
    assert settle(Hpa(min_workers=3, max_workers=5), 9, [None]) == [5]


def test_a_size_of_0_by_hand_disables_the_autoscaler() -> None:
    assert settle(Hpa(max_workers=100), 0, [5]) == [0]


def test_0_asks_for_the_minimum() -> None:
    assert settle(Hpa(min_workers=2, max_workers=9, behavior=Behavior(down=AT_ONCE)), 5, [0]) == [2]


@pytest.mark.parametrize(
    ("proposals", "expected"),
    [
        pytest.param([4, 9], 9, id="the largest of several metrics"),
        pytest.param([9, None], 9, id="a failed one does not stop an up"),
        pytest.param([4, None], None, id="but it stops a down"),
        pytest.param([None, None], None, id="all failed is no proposal"),
    ],
)
def test_several_metrics(proposals: list[int | None], expected: int | None) -> None:
    assert combine(proposals, 6) == expected


@given(
    start=st.integers(1, 50),
    proposals=st.lists(st.none() | st.integers(0, 1000), max_size=40),
    every_s=st.floats(1, 60),
)
def test_the_size_stays_within_its_bounds_and_its_memory_stays_small(
    start: int, proposals: list[int | None], every_s: float
) -> None:
    hpa = Hpa(min_workers=2, max_workers=40)
    memory, size = Memory(), start
    for turn, proposal in enumerate(proposals):
        size, memory = recommend(hpa, memory, size, proposal, turn * every_s)

        assert 2 <= size <= 40
        assert all(at_s >= turn * every_s - 300 for at_s, _ in memory.proposals or ())
