"""The backlog of a consumer that commits more rarely than it is read: what it has processed since does not wait."""

import numpy as np

from adapter.core.rates import Mask
from adapter.core.samples import Array


def waiting_records(backlog: Array, processed: Array) -> Array:
    """The backlog at each point without what accumulates between two commits; NaN where it is unknown.

    backlog, and processed, the counter of processed records: shape (points, rows), oldest first, NaN where not usable.
    """
    return np.where(commits_in_steps(backlog, processed), _backlog_at_commits(backlog, processed), backlog)


def commit_age_s(at_s: Array, backlog: Array, processed: Array) -> Array:
    """How old the last committed record is at each point; NaN if it was appended before the first point.

    It stays the same while each member of a group commits at its own time, whether the input rises or falls. In a full
    job it rises. It is NaN for a counter that stands still, which is a sawtooth. Shapes as in waiting_records.
    """
    appended = np.where((np.diff(processed, axis=0) <= 0).any(axis=0), np.nan, backlog + processed)
    age_s, rows = np.full(appended.shape, np.nan), np.arange(appended.shape[1])
    for point in range(1, len(at_s)):
        low = np.where(appended[:point] <= processed[point], np.arange(point)[:, None], -1).max(axis=0)
        before, after = appended[low, rows], appended[low + 1, rows]
        share = (processed[point] - before) / np.where(after == before, np.inf, after - before)
        when_s = at_s[low] + share * (at_s[low + 1] - at_s[low])
        age_s[point] = np.where(low >= 0, at_s[point] - when_s, np.nan)
    return age_s


def commits_in_steps(backlog: Array, processed: Array) -> Mask:
    """Whether the counter stands still between steps, while records arrive; shape (rows,).

    A single interruption is no step. A counter that stands still with the input is scraped rarely, and its backlog is
    of the same time. A backlog that the steps do not lower is read apart from the counter, or grows faster than the
    steps lower it.
    """
    rose = np.diff(processed, axis=0) > 0
    stands = (np.diff(processed, axis=0) <= 0) & (np.diff(backlog, axis=0) > 0)
    stops = stands[:1].sum(axis=0) + (stands[1:] & ~stands[:-1]).sum(axis=0)
    alone = ~(rose[1:] & rose[:-1]).any(axis=0)
    falls = np.where(rose, np.diff(backlog, axis=0), 0.0).sum(axis=0) <= 0
    steps: Mask = rose.any(axis=0) & falls & ((stops > 1) | ((stops == 1) & alone))
    return steps


def _backlog_at_commits(backlog: Array, processed: Array) -> Array:
    """The records that certainly waited at the last commit, at the points that show no commit; NaN before the first.

    A commit was after the point before the one that shows it: what was appended until then waited, unless it is
    committed. The members of a consumer group may commit at the same time, and be read at two points.
    """
    rose = np.vstack([np.zeros_like(processed[:1]), np.diff(processed, axis=0)]) > 0
    once, twice = (_shift(backlog + processed, points) for points in (1, 2))
    before = np.where(rose & (_shift(rose, 1) == 1), twice, once)
    last = np.maximum.accumulate(np.where(rose, np.arange(len(rose))[:, None], 0), axis=0)
    waited = np.maximum(np.take_along_axis(before, last, axis=0) - processed, 0.0)
    return np.where(rose, np.nan, waited)


def _shift(values: Array | Mask, points: int) -> Array:
    """The values of some points earlier; NaN where there are none."""
    return np.vstack([np.full((points, values.shape[1]), np.nan), values])[: len(values)]
