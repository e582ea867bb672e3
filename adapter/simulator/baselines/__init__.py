"""Baselines: other autoscalers as formulas, over many jobs at once.

They read the same samples as our own policies, except the backlog of the worst partition, which no original reads. Some
read the busiest worker or the CPU instead, as their originals do.
"""

from dataclasses import dataclass
from typing import Protocol

from adapter.core.samples import Array
from adapter.simulator.hpa import Hpa

SYNC_S = 15.0  # of the HPA; the other baselines use the same period


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineInput:
    """The input of a baseline: the visible samples of L jobs at one tick, shape (L,), NaN where unknown.

    The counts are those of core.samples at sampled_at_s; workers and restarting are current, as in Kubernetes.
    """

    at_s: float  # of the tick
    sampled_at_s: Array  # when the counts were taken, metric_delay_s before the tick
    appended_records: Array
    processed_records: Array
    backlog_records: Array
    cpu_ratio: Array  # mean CPU of the workers
    busy_ratio: Array  # mean busy time of the workers
    busiest_ratio: Array  # busy time of the busiest worker
    spec_workers: Array
    ready_workers: Array
    restarting: Array  # from a change of the workers until the job processes records again


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSettings:
    """The settings that an operator of L jobs can make before a run, shape (L,)."""

    worker_capacity_records_per_s: Array
    partitions: Array
    max_workers: Array
    static_peak_workers: Array


class Baseline(Protocol):
    """A running autoscaler. Each call of `wanted` is one sync, 15 s after the last.

    hpa: the HPA that applies the proposals; None if the autoscaler sets the size itself.
    """

    @property
    def hpa(self) -> Hpa | None:
        """The HPA that applies the proposals, or None."""

    def wanted(self, seen: BaselineInput) -> Array:
        """The size that it sets now, or proposes to its HPA before windows and limits; shape (L,).

        NaN, no number, leaves the size as it is.
        """
