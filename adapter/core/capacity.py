"""What one worker carries, seen while it had always more to do than it could."""

import numpy as np

from adapter.core.rates import Mask
from adapter.core.samples import Array

_BLEND = 0.3  # a new observation weighs so much: three or four make up for a wrong first one
_SAME_RATIO = 0.02  # smaller changes are noise, and would rewrite the slow state every tick


def learn(known: Array, throughput: Array, workers: Array, saturated: Mask) -> Array:
    """The capacity table of one point: records/s a worker, after this tick.

    known: what was held, NaN when nothing was. saturated: True where the backlog never ended within the window, so
    that throughput is what the workers can do (S4-11 benchmarks in the same way).
    """
    counts = saturated & (throughput > 0) & (workers > 0)
    seen = np.where(counts, throughput / np.where(workers > 0, workers, 1.0), np.nan)
    blended = np.where(np.isnan(known), seen, known + _BLEND * (seen - known))
    moved = np.isnan(known) | (np.abs(blended - known) > _SAME_RATIO * known)
    return np.where(counts & moved, blended, known)


def utilization(measured: Array, throughput: Array, workers: Array, worker_capacity: Array) -> Array:
    """Busy share of the workers: as measured, else throughput / (workers * capacity), else NaN."""
    carried = workers * worker_capacity
    estimated = np.where(carried > 0, throughput / np.where(carried > 0, carried, 1.0), np.nan)
    return np.where(np.isnan(measured), estimated, measured)
