"""The offsets of the stream: aligned Unix seconds, so that a repeated batch reads the same past."""

from datetime import UTC, datetime

from adapter.config import Timing
from adapter.errors import ClockError

# The offset before the first batch, whose warm-up ends with the batch: Spark does not store the offset where a first
# batch begins, so a repeated one could not find the same past from the present.
NO_OFFSET = 0

# Up to this difference the stream waits for the clock: a wait costs less than the loss of the learned state.
MOST_BEHIND_S = 300


def last_tick(now_s: float, tick_s: int) -> int:
    """The last whole tick at or before now_s."""
    return int(now_s // tick_s) * tick_s


def check_clock(start_s: int, now_s: float, timing: Timing) -> None:
    """Raise ClockError if a wrong clock has put start_s so far into the future that no tick would follow for long."""
    if start_s - now_s > max(MOST_BEHIND_S, 2 * timing.tick_s):
        raise ClockError(f"the newest tick is of {_utc(start_s)}, but the clock is at {_utc(now_s)}")


def next_offset(start_s: int, now_s: float, timing: Timing) -> int:
    """The end of the batch after start_s: the present, at most most_ticks after its start, never before start_s.

    The first batch begins history_s ago. After an outage longer than history_s, the stream skips the time before that,
    which would delay the present.
    """
    present_s, start_s = last_tick(now_s, timing.tick_s), start_s or _warm_up_start(now_s, timing)
    most_s = timing.most_ticks * timing.tick_s
    begin_s = max(start_s, present_s - max(last_tick(timing.history_s, timing.tick_s), most_s))
    return max(start_s, min(present_s, begin_s + most_s))


def ticks_between(start_s: int, end_s: int, timing: Timing) -> range:
    """The newest most_ticks ticks of the batch (start_s, end_s], in order; empty if start_s >= end_s."""
    begin_s = max(start_s or _warm_up_start(end_s, timing), end_s - timing.most_ticks * timing.tick_s)
    return range(last_tick(begin_s, timing.tick_s) + timing.tick_s, end_s + 1, timing.tick_s)


def _warm_up_start(end_s: float, timing: Timing) -> int:
    """history_s earlier, at least one tick, so that the first batch is not empty."""
    return last_tick(end_s - max(timing.history_s, timing.tick_s), timing.tick_s)


def _utc(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
