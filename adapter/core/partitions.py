"""Which worker counts spread the input evenly: the scaling quanta of S3-13..17."""

from functools import lru_cache

import numpy as np

from adapter.core.rules import QUANTA
from adapter.core.samples import Array, IntArray

_MOST_PER_WORKER = 15  # S3-15: with more partitions than this a worker is overloaded
_MOST_UNEVEN = 1.2  # S3-15: the fullest worker may hold less than so many times the emptiest


@lru_cache(maxsize=1024)
def quanta(partitions: int, rule: str) -> tuple[int, ...]:
    """The allowed worker counts for so many partitions, ascending.

    rule: "relative" (S3-15, reproduces S3-14's table), "divisors" (S3-16), or "none" (every count).
    """
    counts = range(1, partitions + 1)
    if rule == "relative":
        return tuple(n for n in counts if -(-partitions // n) <= _MOST_PER_WORKER and _even(partitions, n))
    if rule == "divisors":
        return tuple(n for n in counts if partitions % n == 0 and partitions // n <= _MOST_PER_WORKER)
    return tuple(counts)


def _even(partitions: int, workers: int) -> bool:
    return -(-partitions // workers) < _MOST_UNEVEN * (partitions // workers)


def next_up(size: Array, partitions: Array, rule: IntArray) -> Array:
    """The smallest quantum at or above size (S3-17), the largest one above all of them."""
    return _pick(size, partitions, rule, "up")


def next_down(size: Array, partitions: Array, rule: IntArray) -> Array:
    """The largest quantum below size (S3-12); size itself below all of them."""
    return _pick(size, partitions, rule, "down")


def _pick(size: Array, partitions: Array, rule: IntArray, direction: str) -> Array:
    chosen = size.copy()
    whole = np.maximum(np.nan_to_num(partitions, nan=1.0), 1.0).astype(np.int64)
    groups, member = np.unique(whole * len(QUANTA) + rule, return_inverse=True)
    for group, (count, kind) in enumerate(divmod(number, len(QUANTA)) for number in groups.tolist()):
        rows = member == group
        allowed = np.array(quanta(count, QUANTA[kind]), dtype=np.float64)
        chosen[rows] = _choose(size[rows], allowed, direction)
    return chosen


def _choose(size: Array, allowed: Array, direction: str) -> Array:
    if direction == "up":
        place = np.searchsorted(allowed, size, side="left")
        return np.where(np.isnan(size), np.nan, allowed[np.minimum(place, len(allowed) - 1)])
    place = np.searchsorted(allowed, size, side="left") - 1
    return np.where(np.isnan(size) | (place < 0), size, allowed[np.maximum(place, 0)])
