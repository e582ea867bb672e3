"""The expected backlog at the present size and after a change, step by step through the horizon."""

from dataclasses import dataclass

import numpy as np

from adapter.core.policies import LEAST_HORIZON_S
from adapter.core.policies.interface import PolicyInput
from adapter.core.rates import Mask
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array
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
    number = np.arange(1, _STEPS + 1)[:, None]
    at_s = number * step_s
    arrived = step_s * (present + (highest - present) * (number - 0.5) / _STEPS)
    old_s, new_s = np.clip(starts_s - (at_s - step_s), 0.0, step_s), np.clip(at_s - ends_s, 0.0, step_s)
    keep = _backlogs(policy_input.backlog_records, arrived - capacity * step_s)
    change = _backlogs(policy_input.backlog_records + again, arrived - capacity * old_s - changed_capacity * new_s)
    keep_s = keep / np.maximum(capacity, _LEAST_RATE)
    change_s = change / np.maximum(changed_capacity, _LEAST_RATE)
    late = (keep_s[1:] > rules.backlog_time_target_s) & ((at_s >= ends_s) | (number == _STEPS))
    never_ends = np.minimum(policy_input.backlog_time_s, keep_s[-1]) > rules.short_backlog_time_s
    beyond_s = horizon_s(rules) + drain_time(change[-1], changed_capacity, highest)
    return Projection(
        late=late.any(axis=0) | (never_ends & ~policy_input.level),
        keep_behind_s=np.minimum(np.fmax.reduce(keep_s), HORIZON_S),
        keep_after_s=step_s * np.nan_to_num(keep_s, nan=-np.inf).argmax(axis=0),
        change_behind_s=np.minimum(np.fmax.reduce(change_s), HORIZON_S),
        caught_up_s=np.fmin(np.where(change[-1] > 0, beyond_s, step_s * _steps_until_empty(change)), HORIZON_S),
    )


def _backlogs(first: Array, rises: Array) -> Array:
    """The backlog at the beginning and after each step, of shape (steps + 1, stages). It never falls below 0.

    rises: what arrives in each step - what the workers could process.
    """
    total = np.cumsum(np.vstack([first, rises]), axis=0)
    return total - np.minimum(np.minimum.accumulate(total), 0.0)


def _steps_until_empty(backlogs: Array) -> Array:
    """The number of steps after which no records wait until the end; the last of them is empty."""
    waits = backlogs > 0
    return np.where(waits.any(axis=0), len(waits) - waits[::-1].argmax(axis=0), 0)
