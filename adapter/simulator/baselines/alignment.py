"""A size and a partition count -> the next size that shares the partitions better."""

import numpy as np

from adapter.core.samples import Array, IntArray

MODES = ("BALANCED", "EVENLY_SPREAD", "OFF")


class Alignment:
    """For L jobs the first size from a given one on that suits their partitions, looked up."""

    def __init__(self, partitions: Array, mode: str) -> None:
        """partitions: shape (L,); 0 or NaN is work that any worker can take. mode: of MODES.

        BALANCED takes a divisor of the partitions or a size whose share, in whole partitions, is less;
        EVENLY_SPREAD a divisor (FLIP-586; the latter is also the only way of the older autoscalers).
        """
        shared = np.nan_to_num(partitions).astype(int) if mode != "OFF" else np.zeros(len(partitions), dtype=int)
        counts, self._row = np.unique(shared, return_inverse=True)
        self._next: IntArray = np.zeros((len(counts), int(counts.max(initial=0)) + 1), dtype=np.int64)
        for row, count in enumerate(counts.tolist()):
            self._next[row, 1 : count + 1] = [_next(size, count, mode) for size in range(1, count + 1)]

    def upwards(self, sizes: Array) -> Array:
        """The first suitable size at or above each, shape (L,); the size itself where there is none."""
        place = np.clip(np.nan_to_num(sizes), 0, self._next.shape[1] - 1).astype(int)
        found = self._next[self._row, place].astype(np.float64)
        return np.where(found >= sizes, found, sizes)


def _next(size: int, partitions: int, mode: str) -> int:
    lighter = mode == "BALANCED"
    return next(
        count
        for count in range(size, partitions + 1)
        if partitions % count == 0 or (lighter and partitions // count < partitions // size)
    )
