"""Who has which partition of a job's input: partition p belongs to worker p mod n."""

import numpy as np

from adapter.core.rates import Mask
from adapter.core.samples import Array, IntArray


def worker_share(share: Array, pooled: Mask, workers: Array, slots: int) -> Array:
    """Share of the input that each worker receives, shape (L, slots); of a pooled job all are alike."""
    held = by_owner(share, owner(share.shape[1], np.where(pooled, 1, workers)), slots)
    alike = (np.arange(slots) < workers[:, None]) / np.maximum(workers, 1)[:, None]
    return np.where(pooled[:, None], alike, held)


def owner(partitions: int, workers: Array) -> IntArray:
    """The worker of each partition, shape (L, P)."""
    number: IntArray = np.arange(partitions) % np.maximum(workers, 1).astype(int)[:, None]
    return number


def by_owner(values: Array, owner: IntArray, slots: int) -> Array:
    """What each worker has of values, shape (L, P) -> (L, slots); there are no more workers than slots."""
    jobs = len(values)
    slot = owner + np.arange(jobs)[:, None] * slots
    summed = np.bincount(slot.ravel(), values.ravel(), jobs * slots)
    return summed.astype(np.float64, copy=False).reshape(jobs, slots)  # of no jobs numpy counts in integers
