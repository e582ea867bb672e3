"""The fold alone: one tick of core.engine.advance, and the size of its state."""

import time
from collections.abc import Iterator

from adapter.core.engine import advance
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.core.state import EMPTY, State, encode_fast, encode_slow
from bench.figures import Figure
from bench.workloads import Workloads

COUNTS = (1_000, 40_000)
TICK_S = 15
BOOK = RuleBook(by_workload={}, by_fleet=(Rules(rate_window_s=4 * TICK_S),))  # five points in the window
WARM_UP_TICKS = 8
TICKS = 100


def figures() -> Iterator[Figure]:
    """Milliseconds per tick and bytes per workload, for each size of fleet."""
    for count in COUNTS:
        state, took_ms = _measure_ticks(Workloads(count))
        points = len(state.fast.at_s)
        yield Figure(f"{count} workloads, {points} points: a tick", tuple(took_ms), "ms")
        yield Figure(f"{count} workloads: fast state a workload", (len(encode_fast(state)) / count,), "bytes")
        yield Figure(f"{count} workloads: slow state a workload", (len(encode_slow(state)) / count,), "bytes")


def _measure_ticks(workloads: Workloads) -> tuple[State, list[float]]:
    """The last state, and the milliseconds of each tick after the warm-up."""
    state, took_ms = EMPTY, []
    for tick in range(WARM_UP_TICKS + TICKS):
        samples = workloads.samples(1_000_000 + tick * TICK_S)
        began_s = time.perf_counter()
        state, _ = advance(state, samples, BOOK)
        took_ms.append((time.perf_counter() - began_s) * 1000)
    return state, took_ms[WARM_UP_TICKS:]
