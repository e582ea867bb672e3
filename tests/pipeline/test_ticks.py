import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.config import Timing
from adapter.errors import ClockError
from adapter.pipeline.ticks import NO_OFFSET, check_clock, next_offset, ticks_between

TIMING = Timing(tick_s=15, history_s=60, most_ticks=4)


def test_a_first_start_reads_the_warm_up() -> None:
    assert list(ticks_between(NO_OFFSET, next_offset(NO_OFFSET, 1_000.9, TIMING), TIMING)) == [945, 960, 975, 990]


def test_without_a_warm_up_the_present_tick_is_read() -> None:
    timing = Timing(tick_s=15, history_s=0, most_ticks=4)
    assert list(ticks_between(NO_OFFSET, next_offset(NO_OFFSET, 1_000.9, timing), timing)) == [990]


def test_a_long_warm_up_is_read_in_several_batches_from_its_start() -> None:
    timing = Timing(tick_s=15, history_s=90, most_ticks=4)
    end_s = next_offset(NO_OFFSET, 1_000.9, timing)
    assert list(ticks_between(NO_OFFSET, end_s, timing)) == [915, 930, 945, 960]
    assert list(ticks_between(end_s, next_offset(end_s, 1_000.9, timing), timing)) == [975, 990]


@pytest.mark.parametrize(
    ("now_s", "expected"),
    [
        pytest.param(1_004.9, [], id="nothing before the next tick"),
        pytest.param(1_005.0, [1_005], id="the next tick once it is there"),
        pytest.param(1_050.0, [1_005, 1_020, 1_035, 1_050], id="missed ticks together"),
        pytest.param(1_065.0, [1_020, 1_035, 1_050, 1_065], id="after a longer outage the newest ticks"),
        pytest.param(9_000.0, [8_955, 8_970, 8_985, 9_000], id="after a long outage no more than a warm-up"),
        pytest.param(500.0, [], id="nothing while the clock runs behind"),
    ],
)
def test_a_batch_ends_at_the_present_or_after_the_most_ticks(now_s: float, expected: list[int]) -> None:
    assert list(ticks_between(990, next_offset(990, now_s, TIMING), TIMING)) == expected


@given(st.integers(0, 10**6), st.lists(st.floats(0, 10**6), max_size=20), st.integers(1, 60), st.integers(1, 30))
def test_no_clock_makes_a_tick_come_twice_or_out_of_order(
    start_s: int, clock_s: list[float], tick_s: int, most_ticks: int
) -> None:
    timing = Timing(tick_s=tick_s, history_s=100, most_ticks=most_ticks)
    seen, offset_s = [], NO_OFFSET
    for now_s in (start_s, *clock_s):
        end_s = next_offset(offset_s, now_s, timing)
        batch = list(ticks_between(offset_s, end_s, timing))
        assert len(batch) <= most_ticks
        seen += batch
        offset_s = end_s
    assert seen == sorted(set(seen))
    assert all(at_s % tick_s == 0 for at_s in seen)


@pytest.mark.parametrize("tick_s", [15, 300])
def test_a_stream_waits_for_a_clock_that_is_a_little_behind_its_newest_tick(tick_s: int) -> None:
    timing = Timing(tick_s=tick_s, history_s=60, most_ticks=4)
    check_clock(10_000, 10_000 - max(300, 2 * tick_s), timing)


def test_a_clock_that_is_far_behind_the_newest_tick_is_reported_with_both_times() -> None:
    with pytest.raises(ClockError) as raised:
        check_clock(1_900_000_000, 1_767_225_600.5, TIMING)
    assert str(raised.value) == (
        "the newest tick is of 2030-03-17 17:46:40 UTC, but the clock is at 2026-01-01 00:00:00 UTC"
    )
