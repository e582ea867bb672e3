"""What is known of the capacity of the present workers and of other sizes."""

from dataclasses import dataclass

import numpy as np

from adapter.core.capacity import CARRIED, Table, capacity_ratio, confidence_at, rate_at, size_for
from adapter.core.policies.interface import PolicyInput
from adapter.core.rates import Mask
from adapter.core.samples import Array

_ENOUGH = 1e12  # records/s, for an unknown capacity: no backlog is expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The capacity of the present workers and of other sizes; every array has the shape (stages,)."""

    table: Table
    exponent: Array
    capacity_ratio: Array  # the present capacity relative to the table
    proven: Mask  # more is known than a lower bound
    present_records_per_s: Array  # of the present workers, proven or not
    assumed_records_per_s: Array  # the same, but _ENOUGH if it is not proven; 0 without workers

    def rate(self, workers: Array) -> Array:
        """The capacity of a number of workers, records/s."""
        return rate_at(self.table, workers, self.exponent) * self.capacity_ratio

    def size(self, rate: Array) -> Array:
        """The workers that carry a rate, not rounded."""
        return size_for(self.table, rate / self.capacity_ratio, self.exponent)


def known_capacity(policy_input: PolicyInput) -> Capacity:
    """The table and the exponent, corrected by what the present workers process."""
    table, exponent, workers = policy_input.table, policy_input.rules.scaling_exponent, policy_input.workers
    rate = rate_at(table, workers, exponent)
    now = capacity_ratio(rate, policy_input.throughput_records_per_s, policy_input.saturated)
    proven = confidence_at(table, workers) > CARRIED
    return Capacity(
        table=table,
        exponent=exponent,
        capacity_ratio=now,
        proven=proven,
        present_records_per_s=rate * now,
        assumed_records_per_s=np.where(workers > 0, np.where(proven, rate * now, _ENOUGH), 0.0),
    )
