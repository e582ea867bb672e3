"""The points of the window after a change of the partitions or of the source whose counters they are."""

from dataclasses import replace
from typing import Any

import numpy as np

from adapter.core.rates import Mask
from adapter.core.samples import Array, first_known
from adapter.core.state import Fast, WorkloadFacts

# Field of Fast -> signal.
POINTS = {
    "processed": "processed_records",
    "appended": "appended_records",
    "backlog": "backlog_records",
    "partition": "highest_partition_backlog_records",
    "reported": "throughput_records_per_s",
}
PARTITION_SUMS = ("processed", "appended", "backlog", "partition")
_OTHER_ORIGINS = ("uncommitted_partitions", "processed_source", "appended_source")
_FEW_RATIO = 0.1  # of the partitions


def counted_share(before: WorkloadFacts, now: WorkloadFacts, most: Array) -> Array:
    """The factor from the last count of the partitions to this one if scrapes missed a few; 1 without a change.

    Each scrape misses some workers of a large job, and the partitions of those are not counted. Added partitions bring
    no backlog. NaN if the counters are of other partitions or of another source.
    most: the largest count since the points were dropped. All have the shape (workloads,).
    """
    other = np.any([_differs(getattr(now, name), getattr(before, name)) for name in _OTHER_ORIGINS], axis=0)
    was, count = before.partitions, first_known(now.partitions, before.partitions)
    near = (np.abs(count - was) <= _FEW_RATIO * np.maximum(count, was)) | (most - count <= _FEW_RATIO * most)
    few = (was > 0) & (count <= most) & near
    share = np.where(few, count, 1.0) / np.where(few, was, 1.0)
    return np.where(other | (_differs(count, was) & ~few), np.nan, share)


def move_points(fast: Fast, share: Array) -> Fast:
    """Drop points whose counters cover other partitions; rescale a backlog gauge if few partitions are missing.

    share: as of counted_share, of shape (stages,).
    """
    is_gauge = np.isnan(first_known(fast.processed, fast.appended)).all(axis=0)
    kept = (share == 1) | (np.isfinite(share) & is_gauge)
    points: dict[str, Any] = {name: np.where(kept, getattr(fast, name), np.nan) for name in PARTITION_SUMS}
    # Records are whole: a rounding error must not look like a rise.
    points["backlog"] = np.where(share == 1, fast.backlog, np.rint(points["backlog"] * share))
    return replace(fast, **points)


def _differs(now: Array, before: Array) -> Mask:
    differs: Mask = np.isfinite(now) & (now != before)
    return differs
