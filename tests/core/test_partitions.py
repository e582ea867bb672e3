"""Which worker counts are allowed, and the steps between them."""

from math import nan

import numpy as np
import pytest
from builders import column
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.partitions import (
    even_size,
    fewest_evenly_spread,
    fewest_workers,
    next_down,
    next_up,
    whole,
)
from adapter.core.rules import QUANTA

QUANTA_OF_60 = (4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 60)  # S3-14


def up(size, partitions, rule="relative"):
    return next_up(column(size), column(partitions), np.array([QUANTA.index(rule)]))[0]


def down(size, partitions, rule="relative"):
    return next_down(column(size), column(partitions), np.array([QUANTA.index(rule)]))[0]


def quanta(partitions, rule):
    """The sizes that next_up returns."""
    return tuple(sorted({int(up(size, partitions, rule)) for size in range(1, partitions + 1)}))


def listed(partitions, rule):
    """The quanta as the slides define them."""
    counts = range(1, partitions + 1)
    if rule == "none":
        return tuple(counts)
    few = [n for n in counts if -(-partitions // n) <= 15]
    return tuple(n for n in few if partitions % n == 0 or (rule == "relative" and is_even(partitions, n)))


def is_even(partitions, workers):
    fullest, emptiest = spread(partitions, workers)
    return fullest < 1.2 * emptiest


def test_s3_14_the_quanta_of_60_are_those_of_the_slide():
    assert quanta(60, "relative") == QUANTA_OF_60


@pytest.mark.parametrize(
    ("partitions", "allowed"),
    [(100, (7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 25, 50, 100)), (15, (1, 2, 3, 5, 15)), (1, (1,))],
)
def test_s3_15_the_relative_rule(partitions, allowed):
    assert quanta(partitions, "relative") == allowed


def test_s3_16_the_divisors_rule():
    assert quanta(100, "divisors") == (10, 20, 25, 50, 100)
    assert down(100, 100, "divisors") == 50
    assert quanta(60, "divisors") == (4, 5, 6, 10, 12, 15, 20, 30, 60)


def test_without_a_rule_every_count_is_allowed():
    assert quanta(4, "none") == (1, 2, 3, 4)


@pytest.mark.parametrize(("size", "expected"), [(1, 4), (4, 4), (11, 12), (13, 15), (31, 60), (60, 60), (99, 60)])
def test_s3_17_up_rounds_to_the_next_quantum_and_never_above_the_largest(size, expected):
    assert up(size, 60) == expected


@pytest.mark.parametrize(
    ("size", "expected"), [(60, 30), (30, 20), (14, 12), (10, 9), (5, 4), (4, 4), (3, 3), (200, 60)]
)
def test_s3_12_down_is_the_next_lower_quantum(size, expected):
    assert down(size, 60) == expected


@pytest.mark.parametrize("partitions", [0, 0.5, nan], ids=str)
def test_no_partitions_leave_one_worker(partitions):
    assert up(3, partitions) == 1


def test_an_unknown_size_stays_unknown():
    assert np.isnan(up(nan, 60))
    assert np.isnan(down(nan, 60))


@given(st.integers(1, 300), st.sampled_from(QUANTA), st.integers(0, 800).map(lambda half: half / 2))
def test_p_06_a_step_lands_on_the_next_quantum(partitions, rule, size):
    allowed = listed(partitions, rule)
    assert up(size, partitions, rule) == next((n for n in allowed if n >= size), partitions)
    assert down(size, partitions, rule) == next((n for n in reversed(allowed) if n < size), size)


@pytest.mark.parametrize(("rule", "expected"), [("relative", 66_666_667), ("divisors", 100_000_000), ("none", 7)])
def test_a_wrong_count_of_partitions_needs_no_more_memory(rule, expected):
    assert up(7, 1e9, rule) == expected
    assert down(expected, 1e9, rule) == (6 if rule == "none" else expected)


@given(st.lists(st.tuples(st.integers(1, 90), st.integers(1, 90), st.sampled_from(range(3))), min_size=2, max_size=6))
def test_each_row_has_its_own_partitions_and_rule(table):
    size, partitions, rule = (np.array(part) for part in zip(*table, strict=True))
    together = next_up(size.astype(float), partitions.astype(float), rule)
    assert together.tolist() == [up(s, p, QUANTA[r]) for s, p, r in table]


def spread(partitions, subtasks):
    """The partitions of the fullest and of the emptiest subtask."""
    return -(-partitions // subtasks), partitions // subtasks


@pytest.mark.parametrize(
    ("workers", "partitions", "slots", "expected"),
    [
        pytest.param(3, 8, 2, 4, id="S4-37 P=8 s=6 N=2"),
        pytest.param(20, 64, 1, 22, id="S4-37 P=64 s=20"),
        pytest.param(3, 8, 1, 4, id="S4-37 P=8 s=3"),
        pytest.param(4, 8, 1, 4, id="S4-37 P=8 s=4 is even"),
        pytest.param(1, 8, 1, 1, id="one subtask is even"),
        pytest.param(9, 8, 1, 9, id="more subtasks than partitions"),
        pytest.param(0, 8, 1, 0, id="no workers"),
        pytest.param(5, 0, 1, 5, id="no partitions"),
        pytest.param(5, nan, 1, 5, id="unknown partitions"),
    ],
)
def test_s4_37_the_fullest_subtask_gets_one_partition_less(workers, partitions, slots, expected):
    assert even_size(column(workers), column(partitions), column(slots))[0] == expected


def test_s4_36_three_workers_of_two_slots_may_differ_by_two_partitions_and_four_do_not():
    slots, partitions = 2, 8
    fullest, emptiest = spread(partitions, 3 * slots)
    assert slots * (fullest - emptiest) == 2
    workers = even_size(column(3), column(partitions), column(slots))[0]
    assert spread(partitions, workers * slots) == (1, 1)


@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 8))
def test_s4_37_no_fewer_workers_and_a_fullest_subtask_that_is_less_full(workers, partitions, slots):
    after = int(even_size(column(workers), column(partitions), column(slots))[0])
    (before, least), (fullest, _) = spread(partitions, workers * slots), spread(partitions, after * slots)
    assert after >= workers
    assert fullest <= before - 1 or before == least or before == 1


def even(workers, partitions, slots=1, target=0.75, high=0.9):
    return fewest_evenly_spread(column(workers), column(partitions), column(slots), column(target), column(high))[0]


@pytest.mark.parametrize(
    ("partitions", "workers", "expected"),
    [(8, 5, 8), (8, 4, 4), (8, 3, 3), (100, 35, 34), (100, 60, 50), (48, 14, 12), (1000, 35, 35)],
)
def test_drain_rounds_to_even_spread(partitions, workers, expected):
    assert even(workers, partitions) == expected


@pytest.mark.parametrize(
    ("high", "expected"),
    [(0.9, 13), (0.71, 15), (0.6, 17), (0.4, 25), (0.01, 100)],
    ids=["eight partitions are few enough", "seven", "six", "four", "one"],
)
def test_the_fullest_subtask_gets_as_many_partitions_less_as_its_limit_takes(high, expected):
    assert even(13, 100, target=9 / 13, high=high) == expected


@pytest.mark.parametrize(
    ("workers", "partitions", "slots", "expected"),
    [(3, 8, 2, 4), (9, 8, 1, 8), (9, 8, 2, 4), (0, 8, 1, 0), (5, 0, 1, 5), (5, nan, 1, 5), (nan, 8, 1, nan)],
)
def test_even_spread_ends_at_the_partitions_and_needs_to_know_them(workers, partitions, slots, expected):
    assert even(workers, partitions, slots) == pytest.approx(expected, nan_ok=True)


def test_s3_14_up_to_15_of_60_partitions_each_even_spread_gives_the_quanta_of_the_slide():
    assert {even(workers, 60) for workers in range(4, 61)} == set(QUANTA_OF_60)


@given(st.integers(1, 400), st.integers(1, 400), st.integers(1, 8), st.floats(0.1, 1), st.floats(0.1, 1))
def test_even_spread_keeps_the_fullest_subtask_below_the_limit(workers, partitions, slots, target, high):
    most = -(-partitions // slots)
    after = even(workers, partitions, slots, target, high)
    assert 1 <= after <= most
    if workers * slots <= partitions:
        fullest, _ = spread(partitions, int(after) * slots)
        assert target * workers * slots * fullest / partitions <= max(target, high) + 1e-6


@given(st.integers(1, 400), st.integers(1, 400), st.integers(1, 8))
def test_more_workers_never_become_fewer_by_even_spread(workers, partitions, slots):
    assert even(workers, partitions, slots) <= even(workers + 1, partitions, slots)


@pytest.mark.parametrize(
    ("partitions", "each", "expected"),
    [(8, 1, 8), (8, 2, 4), (8, 3, 3), (10, 10 / 3, 3), (8, 0.99, 8), (8, nan, nan), (nan, 2, nan)],
)
def test_s4_35_the_partitions_of_each_worker_limit_the_workers(partitions, each, expected):
    assert fewest_workers(column(partitions), column(each))[0] == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(("workers", "expected"), [(10.000000001, 10), (10.00001, 11), (10, 10), (9.5, 10), (0, 0)])
def test_x_10_float_noise_is_no_worker(workers, expected):
    assert whole(column(workers))[0] == expected
