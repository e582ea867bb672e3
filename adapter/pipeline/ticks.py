"""Time -> ticks: offsets of the stream are aligned Unix seconds, so that a replayed batch asks for the same past."""

from adapter.config import Timing


def aligned(now_s: float, tick_s: int) -> int:
    """The last whole tick at or before now_s."""
    return int(now_s // tick_s) * tick_s


def first_offset(now_s: float, timing: Timing) -> int:
    """Where a first start begins: warm_up_s ago, and at least one tick, so that the first batch decides something."""
    return aligned(now_s - max(timing.warm_up_s, timing.tick_s), timing.tick_s)


def next_offset(start_s: int, now_s: float, timing: Timing) -> int:
    """Where the batch after start_s ends: the present, at most most_ticks away, never before start_s.

    After an outage longer than a warm-up, what lies before the warm-up is skipped: reading it would delay the present.
    """
    present_s = aligned(now_s, timing.tick_s)
    most_s = timing.most_ticks * timing.tick_s
    begin_s = max(start_s, present_s - max(aligned(timing.warm_up_s, timing.tick_s), most_s))
    return max(start_s, min(present_s, begin_s + most_s))


def ticks_between(start_s: int, end_s: int, timing: Timing) -> range:
    """The ticks of the batch (start_s, end_s]: its newest most_ticks, in order; empty when start_s >= end_s."""
    begin_s = max(start_s, end_s - timing.most_ticks * timing.tick_s)
    return range(aligned(begin_s, timing.tick_s) + timing.tick_s, end_s + 1, timing.tick_s)
