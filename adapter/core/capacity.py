"""What one worker carries, seen while it had always more to do than it could."""

from dataclasses import dataclass

import numpy as np

from adapter.core.rates import Mask
from adapter.core.samples import Array, first_known

_BLEND = 0.3  # a new observation weighs so much: three or four make up for a wrong first one
_SAME_RATIO = 0.02  # smaller changes are noise, and would rewrite the slow state every tick


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Whether throughput is what the workers can do, not what they were given; shape (stages,).

    saturated: the backlog never ended within the window (S4-11 benchmarks in the same way). overtaken: the input
    outran the workers; it may have begun to in mid-window, so such a look only raises what is known.
    """

    saturated: Mask
    overtaken: Mask


def learn(known: Array, throughput: Array, workers: Array, proof: Proof) -> Array:
    """The capacity table of one point: records/s a worker, after this tick. known: what was held, NaN for nothing."""
    counts = (proof.saturated | proof.overtaken) & (throughput > 0) & (workers > 0)
    seen = np.where(counts, throughput / np.where(workers > 0, workers, 1.0), np.nan)
    blended = known + _BLEND * (seen - known)
    better = np.where(proof.saturated, blended, np.fmax(known, seen))
    better = np.where(np.isnan(known), seen, better)
    moved = np.isnan(known) | (np.abs(better - known) > _SAME_RATIO * known)
    return np.where(counts & moved, better, known)


def utilization(measured: Array, throughput: Array, backlog: Array, capacity: Array) -> Array:
    """Busy share of the workers: as measured, else throughput / capacity, else NaN.

    capacity: of all workers. Who has nothing to do is idle, whatever he could carry.
    """
    estimated = np.where(capacity > 0, throughput / np.where(capacity > 0, capacity, 1.0), np.nan)
    idle = (throughput <= 0) & (backlog <= 0)
    return first_known(measured, np.where(idle, 0.0, estimated))
