"""Find the samples that a source repeats after a gap.

A Prometheus that restarts answers with the last samples before its stop, for up to 5 minutes. They look new, and the
next sample would seem to have all the progress of the gap.
"""

from dataclasses import replace

import numpy as np

from adapter.core.ingest import without_points
from adapter.core.rates import Mask, ends_gap
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array, first_known
from adapter.core.stage_samples import StageSamples, has_load
from adapter.core.state import Fast


def with_repetition(fast: Fast, now: StageSamples, rules: RuleColumns) -> Fast:
    """The state without the points before a gap that ends, and with the last tick that may repeat one of them."""
    at_s, before_s = fast.at_s[-1], fast.at_s[-2:-1].max(initial=-np.inf)
    gap_s, rarely_read = at_s - fast.seen_at_s, ~ends_gap(np.isfinite(first_known(fast.processed, fast.reported)))
    # Without a missed tick there is no gap, however far the ticks are apart. The points before a longer gap are gone.
    rarely_read &= gap_s <= rules.rate_window_s
    ends = has_load(now) & (fast.seen_at_s < before_s) & (gap_s > rules.rate_window_s / 2) & ~rarely_read
    lasts = (fast.repeated_at_s == fast.seen_at_s) & ~_moved(fast.processed) & ~_moved(fast.appended)
    repeats = ends | (has_load(now) & lasts)
    fast = without_points(fast, ends & (fast.at_s < at_s)[:, None])
    return replace(fast, repeated_at_s=np.where(repeats, at_s, fast.repeated_at_s))


def since_repetition(fast: Fast) -> Mask:
    """Which points are newer than the last repetition; all while it lasts, because an idle job looks the same."""
    older = fast.at_s[:, None] <= fast.repeated_at_s
    return np.asarray(~older | (fast.repeated_at_s == fast.at_s[-1]))


def _moved(counter: Array) -> Mask:
    """Whether a counter exceeds an earlier point. There is none from before the gap, and ticks may be missing."""
    return np.asarray(counter[-1] > np.fmin.reduce(counter[:-1], axis=0, initial=np.nan))
