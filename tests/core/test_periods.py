"""Periods without decisions, in their time zone."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.periods import Period

EVERY_DAY = tuple(range(7))
MONDAY, SUNDAY = (0,), (6,)


def at_s(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("begin", "end", "days", "moment", "holds"),
    [
        pytest.param(120, 180, EVERY_DAY, "2026-01-05 01:59:59", False, id="a second before"),
        pytest.param(120, 180, EVERY_DAY, "2026-01-05 02:00:00", True, id="its start"),
        pytest.param(120, 180, EVERY_DAY, "2026-01-05 02:59:59", True, id="a second before its end"),
        pytest.param(120, 180, EVERY_DAY, "2026-01-05 03:00:00", False, id="its end"),
        pytest.param(120, 180, SUNDAY, "2026-01-05 02:30:00", False, id="another day"),
        pytest.param(1320, 360, MONDAY, "2026-01-05 23:00:00", True, id="over midnight, before it"),
        pytest.param(1320, 360, MONDAY, "2026-01-06 05:59:00", True, id="over midnight, after it"),
        pytest.param(1320, 360, MONDAY, "2026-01-05 05:59:00", False, id="over midnight, the morning before"),
        pytest.param(1320, 360, SUNDAY, "2026-01-05 05:59:00", True, id="from Sunday to Monday"),
        pytest.param(1320, 360, MONDAY, "2026-01-06 12:00:00", False, id="over midnight, at noon"),
        pytest.param(0, 0, MONDAY, "2026-01-05 23:59:59", True, id="a whole day"),
        pytest.param(0, 0, MONDAY, "2026-01-06 00:00:00", False, id="the day after a whole day"),
    ],
)
def test_a_period_is_active_from_its_begin_to_its_end(
    begin: int, end: int, days: tuple[int, ...], moment: str, holds: bool
):
    assert Period(days=days, begin_min=begin, end_min=end).holds(at_s(moment)) is holds


@pytest.mark.parametrize(
    ("moment", "holds"),
    [
        pytest.param("2026-01-15 21:00:00", True, id="22:00 in winter"),
        pytest.param("2026-01-15 20:59:00", False, id="21:59 in winter"),
        pytest.param("2026-07-15 20:00:00", True, id="22:00 in summer"),
        pytest.param("2026-07-15 19:59:00", False, id="21:59 in summer"),
    ],
)
def test_a_period_follows_the_time_of_its_zone(moment: str, holds: bool):
    night = Period(days=EVERY_DAY, begin_min=1320, end_min=360, zone="Europe/Berlin")
    assert night.holds(at_s(moment)) is holds


@given(st.integers(0, 2_000_000_000), st.integers(0, 1439), st.integers(0, 1439))
def test_either_a_period_or_the_rest_of_the_day_is_active(moment: int, begin: int, end: int):
    one = Period(days=EVERY_DAY, begin_min=begin, end_min=end)
    rest = Period(days=EVERY_DAY, begin_min=end, end_min=begin)
    assert begin == end or one.holds(moment) is not rest.holds(moment)
