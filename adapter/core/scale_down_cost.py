"""When fewer workers pay: what a smaller size would have saved by now, against what a rescale is worth.

Nobody knows how long a low load lasts. Who changes once staying has cost as much as changing would have is never much
worse than one who knows (the ski-rental rule of online algorithms: Karlin et al., Competitive snoopy caching, 1988).
So a deep fall is followed soon and a shallow one late, and wavering not at all.
"""

from dataclasses import dataclass

import numpy as np

from adapter.core.samples import Array

DOWNS_DOUBLE = 4.0  # so many downs of the last day make the next one twice as dear
REGRETTED_WITHIN_S = 1800.0
REGRET_DOWNS = 2.0  # a down that was taken back so soon counts for so many more: it paid two changes for little


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """The running part of the window, shape (workloads,). age_s: since it began; width_s: of each part."""

    largest_workers: Array
    age_s: Array
    width_s: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The size asked for, since_s ago; shape (workloads,)."""

    current_workers: Array
    since_s: Array


def paying_workers(peaks: Array, running: Bucket, here: Place, worth_s: Array) -> Array:
    """The least size that would have saved worth_s since it was enough; the present one where none has yet.

    peaks: shape (buckets, workloads), the largest size needed in each closed part of the window, oldest first, NaN
    before the first. worth_s: seconds of the whole job's work, so a quarter of the workers saves them in four times
    as long.
    """
    current, largest, span_s = here.current_workers, running.largest_workers, running.age_s
    least = current
    for closed in (None, *peaks[::-1]):
        if closed is not None:
            largest, span_s = np.maximum(largest, closed), span_s + running.width_s
        share = 1 - np.divide(largest, current, out=np.full(len(current), np.nan), where=current > 0)
        pays = share * np.fmin(span_s, here.since_s) >= worth_s
        least = np.where(pays, np.fmin(least, largest), least)
    return least
