"""Baselines: other autoscalers as formulas, over many jobs at once.

They see the samples that our own policies see, but for the backlog of the worst partition, which none of the originals
reads; some see the busiest worker or the CPU instead, as their originals do.
"""

from dataclasses import dataclass
from typing import Protocol

from adapter.core.samples import Array
from adapter.simulator.hpa import Hpa

SYNC_S = 15.0  # of the HPA; the other baselines use the same period


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What is visible of L jobs at one tick, shape (L,), NaN where it is not seen.

    at_s: seconds of the tick. sampled_at_s: when the counts were taken, metric_delay_s before.
    appended_records, processed_records, backlog_records: as in core.samples, of sampled_at_s.
    cpu_ratio: mean CPU of the workers; busy_ratio: mean busy time; busiest_ratio: of the busiest worker.
    spec_workers, ready_workers, restarting: as Kubernetes knows them now; restarting is true from a change until
    the job works again.
    """

    at_s: float
    sampled_at_s: Array
    appended_records: Array
    processed_records: Array
    backlog_records: Array
    cpu_ratio: Array
    busy_ratio: Array
    busiest_ratio: Array
    spec_workers: Array
    ready_workers: Array
    restarting: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSettings:
    """What an operator of L jobs knows and sets beforehand, shape (L,)."""

    worker_capacity_records_per_s: Array
    partitions: Array
    max_workers: Array
    static_peak_workers: Array


class Baseline(Protocol):
    """A running autoscaler. Every call is one sync, 15 s after the last.

    hpa: None for one that sets the size itself; else the HPA, of the same lanes, that decides on what it proposes.
    """

    @property
    def hpa(self) -> Hpa | None:
        """Through which HPA it works."""

    def wanted(self, seen: Observation) -> Array:
        """The size it sets now, or proposes to its HPA before windows and limits; shape (L,).

        NaN, no number, leaves the size as it is.
        """
