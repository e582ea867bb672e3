"""Values of stages -> a value of each workload, which depends only on the workload's own stages."""

from collections.abc import Sequence

import numpy as np

from adapter.core.rates import Mask
from adapter.core.samples import Array, IntArray


def smallest(values: Array, workload_index: IntArray, count: int) -> Array:
    """The smallest known value among each workload's stages; NaN where none is known.

    values: (stages,). workload_index: (stages,), the workload of each stage. count: how many workloads.
    """
    found = np.full(count, np.inf)
    known = np.isfinite(values)
    np.minimum.at(found, workload_index[known], values[known])
    return np.where(np.isinf(found), np.nan, found)


def largest(values: Array, workload_index: IntArray, count: int) -> Array:
    """The largest known value among each workload's stages; NaN where none is known."""
    return -smallest(-values, workload_index, count)


def every(holds: Mask, sized: Mask, workload_index: IntArray, count: int) -> Mask:
    """Whether a condition holds for all sized stages of each workload; False without a sized stage."""
    found = np.zeros(count, dtype=bool)
    found[workload_index[sized]] = True
    found[workload_index[sized & ~holds]] = False
    return found


def some(holds: Mask, workload_index: IntArray, count: int) -> Mask:
    """Whether a condition holds for a stage of each workload."""
    found = np.zeros(count, dtype=bool)
    found[workload_index[holds]] = True
    return found


def first_largest(keys: Sequence[Array], sized: Mask, workload_index: IntArray, count: int) -> IntArray:
    """The first sized stage with the largest keys of each workload, as an index; -1 without a sized stage.

    keys: each (stages,); a later one decides where the earlier ones are equal. An unknown value counts as the largest,
    because it makes the value of the workload unknown.
    """
    best = sized
    for values in keys:
        weight = np.where(np.isnan(values), np.inf, values)
        top = np.full(count, -np.inf)
        np.maximum.at(top, workload_index[best], weight[best])
        best = best & (weight == top[workload_index])
    first = np.full(count, len(workload_index), dtype=np.int64)
    np.minimum.at(first, workload_index[best], np.flatnonzero(best))
    return np.where(first == len(workload_index), -1, first)


def pick(values: Array, stage: IntArray) -> Array:
    """The value of one stage of each workload; NaN where the index is -1."""
    return np.where(stage >= 0, values[stage], np.nan)
