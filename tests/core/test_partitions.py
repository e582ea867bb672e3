"""Which worker counts are allowed, and the steps between them."""

from math import nan

import numpy as np
import pytest
from builders import column
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.partitions import next_down, next_up, quanta
from adapter.core.rules import QUANTA

# S3-14: machines -> how many of 60 disks a machine may have
TABLE_OF_60 = {
    4: {15}, 5: {12}, 6: {10}, 7: {8, 9}, 8: {7, 8}, 9: {6, 7}, 10: {6}, 12: {5}, 15: {4}, 20: {3}, 30: {2}, 60: {1},
}  # fmt: skip


def up(size, partitions, rule="relative"):
    return next_up(column(size), column(partitions), np.array([QUANTA.index(rule)]))[0]


def down(size, partitions, rule="relative"):
    return next_down(column(size), column(partitions), np.array([QUANTA.index(rule)]))[0]


def test_s3_14_the_quanta_of_60_are_those_of_the_slide():
    assert quanta(60, "relative") == tuple(TABLE_OF_60)


@pytest.mark.parametrize(("machines", "disks"), TABLE_OF_60.items())
def test_s3_13_s3_14_disks_on_each_machine(machines, disks):
    assert {60 // machines, -(-60 // machines)} == disks


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


@given(st.integers(1, 300), st.sampled_from(QUANTA))
def test_all_partitions_is_always_a_quantum(partitions, rule):
    assert quanta(partitions, rule)[-1] == partitions


@given(st.integers(1, 300), st.sampled_from(QUANTA), st.integers(1, 400))
def test_p_06_a_step_lands_on_a_quantum(partitions, rule, size):
    allowed = quanta(partitions, rule)
    assert up(size, partitions, rule) in allowed
    assert down(size, partitions, rule) in (*allowed, float(size))


@given(st.lists(st.tuples(st.integers(1, 90), st.integers(1, 90), st.sampled_from(range(3))), min_size=2, max_size=6))
def test_each_row_has_its_own_partitions_and_rule(table):
    size, partitions, rule = (np.array(part) for part in zip(*table, strict=True))
    together = next_up(size.astype(float), partitions.astype(float), rule)
    assert together.tolist() == [up(s, p, QUANTA[r]) for s, p, r in table]
