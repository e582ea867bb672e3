"""Report counters that fall again and again: their stage has no rate until an operator removes the cause."""

import numpy as np

from adapter.core.observe import Tick
from adapter.core.samples import Array
from adapter.core.window_rates import FAR_WINDOWS

_CAUSES = (
    "either the job restarts again and again, or several sources report the same series; "
    "let the query select one of them"
)
_MANY = 3  # a job that restarts makes its counters fall once


def falling_counters(tick: Tick) -> dict[str, str]:
    """A sentence for each workload of which a counter fell _MANY times within the points of its window."""
    fast, names = tick.state.fast, tick.state.slow.workloads
    falls = tick.largest(np.maximum(_falls(fast.processed), _falls(fast.appended)))
    spans_s = FAR_WINDOWS * tick.rules.rate_window_s
    return {
        name: f"its counters fell {fell:.0f} times in {span_s:g} s: {_CAUSES}"
        for name, fell, span_s in zip(names, falls, spans_s, strict=True)
        if fell >= _MANY
    }


def _falls(counter: Array) -> Array:
    """How often each counter is lower than at the tick before. counter: shape (ticks, stages)."""
    falls: Array = (np.diff(counter, axis=0) < 0).sum(axis=0, dtype=np.float64)
    return falls
