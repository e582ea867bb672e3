"""Report an input that contradicts the throughput and the backlog: it may be in bytes, or of other topics."""

import numpy as np

from adapter.core.formatting import rate
from adapter.core.observe import Tick
from adapter.core.samples import Array, first_known

_TIMES = 2.0  # what is processed or begins to wait; less may be the steps of commits
_LEAST_RECORDS = 1_000.0  # in a rate window
_LEAST_WINDOWS = 1.5  # of known backlogs; the points are of two


def contradicting_input(tick: Tick) -> dict[str, str]:
    """Report each workload whose input exceeds throughput and backlog growth in a rate window."""
    fast, rates, window_s = tick.state.fast, tick.rates, tick.stage_rules.rate_window_s
    arriving = np.fmin(rates.input_rate_records_per_s, _window_rate(tick, fast.appended))
    passing = np.fmax(rates.throughput_records_per_s, _window_rate(tick, fast.processed))
    grown = first_known(*fast.backlog[::-1]) - np.fmin.reduce(fast.backlog, axis=0)
    excess = arriving - passing - grown / window_s
    known_at_s = np.fmin.reduce(np.where(np.isfinite(fast.backlog), fast.at_s[:, None], np.nan), axis=0)
    wrong = (excess > (1 - 1 / _TIMES) * arriving) & (excess * window_s > _LEAST_RECORDS)
    wrong &= tick.at_s - known_at_s >= _LEAST_WINDOWS * window_s
    wrong &= np.isfinite(rates.throughput_records_per_s)  # unknown while a counter has just restarted from 0
    return {
        tick.state.slow.stages[place][0]: f"its input is {rate(arriving[place])} and its throughput "
        f"{rate(passing[place])}, but its backlog does not grow by the difference: check that all three count the same "
        "records, in the same unit"
        for place in np.flatnonzero(wrong)
    }


def _window_rate(tick: Tick, counter: Array) -> Array:
    """The rise of a counter over the rate window: after a step of the load, two rates show it at different times."""
    at_s, window_s = tick.state.fast.at_s[:, None], tick.stage_rules.rate_window_s
    first = np.fmin.reduce(np.where(at_s >= tick.at_s - window_s, counter, np.nan), axis=0)
    rate_records_per_s: Array = (counter[-1] - first) / window_s
    return rate_records_per_s
