"""The derived signals: times, the input rate, and which rates move."""

from math import nan

import numpy as np
import pytest
from builders import column

from adapter.core.signals import HORIZON_S, backlog_time, drain_time, input_rate, is_processing

TIMES = {
    "S0-03 S3-03: backlog / throughput": (180_000, 1000, 180),
    "S3-04: a small backlog can take long": (600, 1, 600),
    "X-01: nothing is processed, a day stands for ever": (50_000, 0, HORIZON_S),
    "X-01: longer than a day is a day": (1e9, 1, HORIZON_S),
    "X-02: idle": (0, 0, 0),
    "no backlog": (0, 1000, 0),
    "unknown backlog": (nan, 1000, nan),
    "unknown throughput": (5, nan, nan),
    "unknown throughput without a backlog": (0, nan, nan),
    "a throughput too small to divide by": (2.0**63, 5e-324, HORIZON_S),
}


@pytest.mark.parametrize(("backlog", "throughput", "expected"), TIMES.values(), ids=TIMES)
def test_backlog_time(backlog, throughput, expected):
    assert np.array_equal(backlog_time(column(backlog), column(throughput)), column(expected), equal_nan=True)


def test_x_12_bytes_over_bytes_is_the_same_time_as_records_over_records():
    assert backlog_time(column(250 * 180_000.0), column(250 * 1000.0)) == backlog_time(column(180_000), column(1000))


@pytest.mark.parametrize(
    ("backlog", "capacity", "arriving", "expected"),
    [(30_000, 2000, 1500, 60), (30_000, 1000, 1000, HORIZON_S), (30_000, 1000, 1500, HORIZON_S), (0, 1000, 1500, 0),
     (30_000, nan, 1500, nan)],
    ids=["S0-28 fourth step", "capacity equals input", "capacity below input", "nothing waits", "capacity unknown"],
)  # fmt: skip
def test_drain_time(backlog, capacity, arriving, expected):
    found = drain_time(column(backlog), column(capacity), column(arriving))
    assert np.array_equal(found, column(expected), equal_nan=True)


@pytest.mark.parametrize(
    ("throughput", "growth", "expected"), [(1000, 500, 1500), (1000, -500, 500), (1000, -1500, 0)],
    ids=["S3-02", "draining", "a backlog that was deleted is no negative input"],
)  # fmt: skip
def test_s3_02_input_rate_is_throughput_plus_growth(throughput, growth, expected):
    assert input_rate(column(throughput), column(growth)) == expected


def test_an_unknown_rate_does_not_move():
    assert is_processing(column(nan, 0, 1)).tolist() == [False, False, True]
