"""Which worker counts suit the partitions: scaling quanta (S3-13..17), even spread (S4-36, S4-37), and their limits."""

import numpy as np

from adapter.core.samples import Array, IntArray, first_known

_MOST_PER_WORKER = 15  # S3-15: with more partitions than this a worker is overloaded
_EVEN_PER_WORKER = 6  # S3-15: from here on, one partition more is less than 1.2 times as many
_NOISE = 1e-9


def next_up(size: Array, partitions: Array, rule: IntArray) -> Array:
    """The smallest quantum at or above size (S3-17); the largest quantum if size exceeds all.

    rule: an index into QUANTA, "relative" (S3-15, reproduces S3-14's table), "divisors" (S3-16) or "none" (every
    count). The partitions themselves are the largest quantum. All of the shape (rows,).
    """
    first, last, exact = _quanta(partitions, rule)
    near, largest = np.maximum(np.ceil(size), first), exact[0]
    found = np.minimum(np.where(near <= last, near, largest), np.where(exact >= size, exact, largest).min(axis=0))
    return np.where(np.isnan(size), np.nan, found)


def next_down(size: Array, partitions: Array, rule: IntArray) -> Array:
    """The largest quantum below size (S3-12); size itself if there is none. Arguments as in next_up."""
    first, last, exact = _quanta(partitions, rule)
    near = np.minimum(np.ceil(size) - 1, last)
    below = np.fmax.reduce(np.where(exact < size, exact, np.nan), axis=0)
    return first_known(np.fmax(np.where(near >= first, near, np.nan), below), size)


def even_size(workers: Array, partitions: Array, slots: Array) -> Array:
    """Whole workers, rounded up until the fullest subtask has one partition less (S4-37).

    Unchanged if the spread is even, if no subtask has more than one partition, or if the partitions are unknown.
    slots: subtasks that a worker runs in parallel. All of the shape (rows,).
    """
    parts, spread = _positive(partitions), _positive(workers * slots)
    fullest = whole(parts / spread)
    even = (fullest <= 1) | (np.abs(parts - fullest * spread) <= _NOISE)
    return first_known(np.where(even, workers, fewest_workers(parts, fullest - 1, slots)), workers)


def fewest_evenly_spread(
    workers: Array, partitions: Array, slots: Array, target_ratio: Array, high_ratio: Array
) -> Array:
    """The fewest workers over which the partitions spread as evenly as over `workers`.

    The fullest subtask limits the throughput. If it would be busier than high_ratio while the average is target_ratio,
    more workers take partitions from it until it is not, or until it has one. The result may be slightly below
    `workers` and never exceeds the partitions. It is `workers` if the partitions are unknown. This is S4-37 with a
    limit instead of a rule.
    workers: whole. slots: as in even_size. All of the shape (rows,).
    """
    parts, spread = _positive(partitions), _positive(workers * slots)
    fullest = whole(parts / spread)
    allowed = np.minimum(fullest, np.floor(high_ratio / np.maximum(target_ratio, _NOISE) * parts / spread + _NOISE))
    return first_known(fewest_workers(parts, allowed, slots), workers)


def imbalance_ratio(subtasks: Array, partitions: Array) -> Array:
    """The partitions of the fullest subtask / those of the mean one, at least 1; NaN if unknown."""
    parts, spread = _positive(partitions), _positive(subtasks)
    return np.maximum(whole(parts / spread) * spread / parts, 1.0)


def fewest_workers(partitions: Array, each: Array, slots: Array | float = 1.0) -> Array:
    """The fewest workers whose subtasks take `each` partitions or fewer, but at least one (S4-35); NaN when unknown.

    slots: subtasks that a worker runs in parallel.
    """
    return whole(whole(partitions / np.maximum(each, 1.0)) / slots)


def whole(workers: Array) -> Array:
    """The number of workers rounded up, except for float noise (X-10)."""
    return np.ceil(workers - _NOISE)


def _positive(values: Array) -> Array:
    return np.where(values > 0, values, np.nan)


def _quanta(partitions: Array, rule: IntArray) -> tuple[Array, Array, Array]:
    """The ends of the range in which every count is a quantum, and the counts that divide the partitions, or NaN.

    A list of the quanta would be as long as the partitions, which may be wrong by any factor.
    """
    parts = np.floor(np.fmax(partitions, 1.0))
    first: Array = np.choose(rule, [np.ceil(parts / _MOST_PER_WORKER), np.inf, 1.0])
    last: Array = np.choose(rule, [np.floor(parts / _EVEN_PER_WORKER), -np.inf, parts])
    each = np.arange(1.0, _MOST_PER_WORKER + 1)[:, None]
    return first, last, np.where(parts % each == 0, parts / each, np.nan)
