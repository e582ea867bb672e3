"""Round a size up to one that distributes the partitions evenly."""

import numpy as np

from adapter.core.samples import Array, IntArray


class Alignment:
    """A lookup table, for L jobs, of the next size that distributes their partitions evenly."""

    def __init__(self, partitions: Array, mode: str) -> None:
        """partitions: shape (L,); 0 or NaN where any worker can take any record.

        mode: OFF takes any size. EVENLY_SPREAD takes a divisor of the partitions, as older autoscalers do; BALANCED
        also takes a size that reduces the most partitions of a worker (FLIP-586).
        """
        shared = np.nan_to_num(partitions).astype(int) if mode != "OFF" else np.zeros(len(partitions), dtype=int)
        counts, self._row = np.unique(shared, return_inverse=True)
        self._next: IntArray = np.zeros((len(counts), int(counts.max(initial=0)) + 1), dtype=np.int64)
        for row, count in enumerate(counts.tolist()):
            self._next[row, 1 : count + 1] = [_next(size, count, mode) for size in range(1, count + 1)]

    def next_size(self, sizes: Array) -> Array:
        """The next suitable size, at least the given one, shape (L,); the given size where there is none."""
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
