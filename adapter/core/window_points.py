"""The points of the window, after other partitions or another source make up their sums."""

from dataclasses import replace
from typing import Any

import numpy as np

from adapter.core.rates import Mask
from adapter.core.samples import Array, first_known
from adapter.core.state import Fast

# Field of Fast -> signal.
POINTS = {
    "processed": "processed_records",
    "appended": "appended_records",
    "backlog": "backlog_records",
    "partition": "highest_partition_backlog_records",
    "reported": "throughput_records_per_s",
}
_PARTITION_SUMS = ("processed", "appended", "backlog", "partition")
_FEW_RATIO = 0.1  # of the partitions


def move_points(fast: Fast, moved: Mask, before: Array, now: Array) -> Fast:
    """The state without the points of other partitions or sources. A few partitions scale the backlog of a gauge.

    Each scrape misses some workers of a large job, and the partitions of those are not counted.
    moved: where they changed. before, now: partitions. All have the shape (stages,).
    """
    few = (before > 0) & (np.abs(now - before) <= _FEW_RATIO * np.maximum(now, before))
    scaled = few & np.isnan(first_known(fast.processed, fast.appended)).all(axis=0)
    points: dict[str, Any] = {name: np.where(moved & ~scaled, np.nan, getattr(fast, name)) for name in _PARTITION_SUMS}
    share = np.where(scaled, now, 1.0) / np.where(scaled, before, 1.0)
    # Records are whole: a rounding error must not look like a rise.
    points["backlog"] = np.where(share != 1, np.rint(fast.backlog * share), points["backlog"])
    return replace(fast, **points)
