"""The assignment of partitions to workers: partition p belongs to worker p mod n."""

import numpy as np

from adapter.core.rates import Mask
from adapter.core.samples import Array, IntArray


def worker_share(share: Array, pooled: Mask, workers: Array, slots: int) -> Array:
    """Share of the input that each worker receives, shape (L, slots); equal shares for a pooled job."""
    held = by_owner(share, owner(share.shape[1], np.where(pooled, 1, workers)), slots)
    alike = (np.arange(slots) < workers[:, None]) / np.maximum(workers, 1)[:, None]
    return np.where(pooled[:, None], alike, held)


def owner(partitions: int, workers: Array) -> IntArray:
    """The worker of each partition, shape (L, P)."""
    number: IntArray = np.arange(partitions) % np.maximum(workers, 1).astype(int)[:, None]
    return number


def by_owner(values: Array, owner: IntArray, slots: int) -> Array:
    """Sum the values of each worker's partitions, shape (L, P) -> (L, slots), slots >= workers."""
    jobs = len(values)
    slot = owner + np.arange(jobs)[:, None] * slots
    summed = np.bincount(slot.ravel(), values.ravel(), jobs * slots)
    return summed.astype(np.float64, copy=False).reshape(jobs, slots)  # without jobs, bincount returns integers
