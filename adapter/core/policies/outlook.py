"""The expected backlog at the present size and after a change, step by step through the horizon."""

from dataclasses import dataclass

import numpy as np

from adapter.core.policies import LEAST_HORIZON_S
from adapter.core.policies.interface import PolicyInput
from adapter.core.rates import Mask
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array, first_known
from adapter.core.scale_down_cost import backlog_after_rescale_s
from adapter.core.signals import HORIZON_S, drain_time

_STEPS = 30
_LEAST_PAUSES = 10.0
_LEAST_RATE = 1e-9  # records/s, instead of a division by 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """The result of `look_ahead`, of shape (stages,): seconds from now, HORIZON_S for never."""

    late: Mask  # without a change the backlog exceeds the target when new workers could process, or it never ends
    keep_behind_s: Array  # the longest backlog time without a change
    keep_after_s: Array  # when it is reached
    change_behind_s: Array  # the longest backlog time with a change
    caught_up_s: Array  # when the backlog is gone after a change


class _Job:
    """The backlog of a job, step by step."""

    def __init__(self, backlog: Array, capacity: Array) -> None:
        self.backlog, self._capacity = backlog, capacity
        self.longest_s, self.longest_at_s = self.behind_s(), np.zeros_like(backlog)
        self.empty_at_s = np.where(backlog > 0, np.nan, 0.0)

    def step(self, at_s: Array, arrived: Array, able: Array) -> None:
        """One step that ends at at_s. arrived, able: the records that arrive, and that the workers could process."""
        self.backlog = np.maximum(self.backlog + arrived - able, 0.0)
        behind_s = self.behind_s()
        longer = behind_s > self.longest_s
        self.longest_s = np.where(longer, behind_s, self.longest_s)
        self.longest_at_s = np.where(longer, at_s, self.longest_at_s)
        self.empty_at_s = np.where(self.backlog > 0, np.nan, np.fmin(self.empty_at_s, at_s))

    def behind_s(self) -> Array:
        """The backlog time now."""
        return self.backlog / np.maximum(self._capacity, _LEAST_RATE)


def horizon_s(rules: RuleColumns) -> Array:
    """How far `look_ahead` looks, seconds."""
    return np.maximum(np.maximum(rules.forecast_horizon_s, _LEAST_PAUSES * rules.rescale_pause_s), LEAST_HORIZON_S)


def look_ahead(policy_input: PolicyInput, highest: Array, capacity: Array, changed_capacity: Array) -> Projection:
    """The backlog at the present capacity and at another one, records/s each.

    The input changes evenly from the present rate to the forecast. A change keeps the present capacity until its
    workers have started. Then the job pauses, processes the records since the last checkpoint again, and warms up.
    After the horizon the forecast rate goes on.
    """
    rules, present = policy_input.rules, policy_input.input_rate_records_per_s
    step_s = horizon_s(rules) / _STEPS
    starts_s, ends_s = rules.worker_start_s, rules.worker_start_s + rules.rescale_pause_s
    again = present * (backlog_after_rescale_s(rules) - rules.rescale_pause_s)
    keep = _Job(policy_input.backlog_records, capacity)
    change = _Job(policy_input.backlog_records + again, changed_capacity)
    late = np.zeros(len(present), dtype=bool)
    for number in range(1, _STEPS + 1):
        at_s = number * step_s
        arrived = step_s * (present + (highest - present) * (number - 0.5) / _STEPS)
        keep.step(at_s, arrived, capacity * step_s)
        late |= (keep.behind_s() > rules.backlog_time_target_s) & ((at_s >= ends_s) | (number == _STEPS))
        old_s = np.clip(starts_s - (at_s - step_s), 0.0, step_s)
        new_s = np.clip(at_s - ends_s, 0.0, step_s)
        change.step(at_s, arrived, capacity * old_s + changed_capacity * new_s)
    beyond_s = horizon_s(rules) + drain_time(change.backlog, changed_capacity, highest)
    never_ends = np.minimum(policy_input.backlog_time_s, keep.behind_s()) > rules.short_backlog_time_s
    return Projection(
        late=late | (never_ends & ~policy_input.level),
        keep_behind_s=np.minimum(keep.longest_s, HORIZON_S),
        keep_after_s=keep.longest_at_s,
        change_behind_s=np.minimum(change.longest_s, HORIZON_S),
        caught_up_s=np.fmin(first_known(change.empty_at_s, beyond_s), HORIZON_S),
    )
