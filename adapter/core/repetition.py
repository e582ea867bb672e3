"""Find the samples that a source repeats after a gap.

A Prometheus that restarts answers with the last samples before its stop, for up to 5 minutes. They look new, and the
next sample would seem to have all the progress of the gap.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from adapter.core.rates import Mask, ends_gap
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array, first_known
from adapter.core.stage_samples import StageSamples, has_load
from adapter.core.state import Fast
from adapter.core.window_points import PARTITION_SUMS

_COUNTERS = ("processed", "appended")
_REPEATED_TICKS = 1.5  # a repeated sample may be newer than the last one before the gap, by up to a tick


def with_repetition(fast: Fast, now: StageSamples, rules: RuleColumns) -> Fast:
    """The state without the points before a gap that ends, and with the last ticks that may repeat one of them.

    Points before the gap stay if each counter rose by more than a repeated sample can, or stands still as before.
    Those of the input stay if its own counter does so, because input goes on while the job is down.
    """
    loaded, ends = has_load(now), has_load(now) & _ends(fast, rules)
    counters = [getattr(fast, name) for name in _COUNTERS]
    returned = np.array([ends & _was_missing(counter) & np.isfinite(counter[-1]) for counter in counters])
    stands_still, progressed = np.array([_progress(counter) for counter in counters]).swapaxes(0, 1)
    trusted = returned & (stands_still | progressed)
    kept = returned.any(axis=0) & (trusted | ~returned).all(axis=0)
    input_trusted = trusted[_COUNTERS.index("appended")]
    points: dict[str, Any] = {}
    for name in PARTITION_SUMS:
        values, stay = getattr(fast, name), kept | input_trusted if name == "appended" else kept
        old = (fast.at_s < fast.at_s[-1])[:, None] & ends & ~stay & _was_missing(values)
        points[name] = np.where(old, np.nan, values)
    # The counters of a stage may be of two exporters, which are not scraped at the same time.
    for name, back, rose in zip(_COUNTERS, returned, progressed, strict=True):
        counter, was_s = points[name], getattr(fast, f"{name}_repeated_at_s")
        repeats = (back & ~rose) | (loaded & (was_s == fast.seen_at_s) & ~_moved(counter))
        points[f"{name}_repeated_at_s"] = np.where(repeats & np.isfinite(counter[-1]), fast.at_s[-1], was_s)
    return replace(fast, **points)


def since_repetition(at_s: Array, counter: Array, repeated_at_s: Array) -> Mask:
    """Which points are newer than the last repetition; all while it lasts, because an idle job looks the same."""
    newest_s = np.fmax.reduce(np.where(np.isfinite(counter), at_s[:, None], np.nan), axis=0, initial=np.nan)
    return np.asarray(~(at_s[:, None] <= repeated_at_s) | (repeated_at_s >= newest_s))


def _ends(fast: Fast, rules: RuleColumns) -> Mask:
    """Whether this tick would end a gap if it has a load."""
    before_s = fast.at_s[-2:-1].max(initial=-np.inf)
    gap_s = fast.at_s[-1] - fast.seen_at_s
    rarely_read = ~ends_gap(np.isfinite(first_known(fast.processed, fast.reported)))
    # Without a missed tick there is no gap, however far the ticks are apart. The points before a longer gap are gone.
    rarely_read &= gap_s <= rules.rate_window_s
    return np.asarray((fast.seen_at_s < before_s) & (gap_s > rules.rate_window_s / 2) & ~rarely_read)


def _was_missing(values: Array) -> Mask:
    return np.asarray(np.isnan(values[-2:-1]).all(axis=0))


def _moved(counter: Array) -> Mask:
    """Whether a counter exceeds an earlier point. There is none from before the gap, and ticks may be missing."""
    return np.asarray(counter[-1] > np.fmin.reduce(counter[:-1], axis=0, initial=np.nan))


def _progress(counter: Array) -> tuple[Mask, Mask]:
    """Whether a counter stands still as before the gap, and whether it rose by too much for a repeated sample."""
    rise = counter[-1] - np.fmax.reduce(counter[:-1], axis=0, initial=np.nan)
    usual = np.fmax.reduce(np.diff(counter[:-1], axis=0), axis=0, initial=np.nan)
    return (rise == 0) & (usual == 0), rise > _REPEATED_TICKS * usual
