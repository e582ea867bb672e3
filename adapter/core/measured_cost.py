"""Replace the configured cost of a rescale with the measured one."""

from dataclasses import replace

import numpy as np

from adapter.core.policies.sizing import policy_has
from adapter.core.rates import Mask
from adapter.core.rescale_stop import RescaleCost
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array, first_known
from adapter.core.scale_down_cost import backlog_after_rescale_s

_LONGEST_TARGET_S = 180.0  # well below the 300 s after which the comparisons count a record as late
_MOST_PAUSES = 4.0  # of the configured pause: a job that stops for longer after a rescale may be stuck


def with_measured_cost(rules: RuleColumns, cost: RescaleCost, shown_s: Array) -> RuleColumns:
    """The rules with the measured cost of a rescale, for a policy that weighs it (S1).

    A start, a delay and a warm-up that are set stay, because they made fewer records late than measured ones.
    Until the pause is measured, the pause of the rescale in progress counts if it is longer than the configured one.
    Otherwise its backlog would look like load.
    shown_s: the longest stop of that rescale so far, NaN without a rescale; shape (workloads,).
    """
    learns = policy_has("waits_until_warm", rules)
    shown_s = np.minimum(shown_s, _MOST_PAUSES * rules.rescale_pause_s)
    start, delay, warm_up = rules.measures_start == 1, rules.measures_delay == 1, rules.measures_warm_up == 1
    measured = replace(
        rules,
        rescale_pause_s=np.where(
            learns, first_known(cost.pause_s, np.fmax(rules.rescale_pause_s, shown_s)), rules.rescale_pause_s
        ),
        worker_start_s=np.where(start, first_known(cost.start_s, rules.worker_start_s), rules.worker_start_s),
        metric_delay_s=np.where(delay, first_known(cost.delay_s, rules.metric_delay_s), rules.metric_delay_s),
        warm_up_s=np.where(warm_up, first_known(cost.warm_up_s, rules.warm_up_s), rules.warm_up_s),
    )
    return replace(measured, backlog_time_target_s=_target_s(measured))


def _target_s(rules: RuleColumns) -> Array:
    """The target of the backlog time; unset, at least the backlog of a rescale, which a scale-up would only exchange.

    Late samples show a backlog that has grown since, so their delay lowers what the backlog of a rescale allows.
    """
    own_s = np.minimum(backlog_after_rescale_s(rules) - rules.metric_delay_s, _LONGEST_TARGET_S)
    return np.where(
        rules.measures_target == 1, np.fmax(rules.backlog_time_target_s, own_s), rules.backlog_time_target_s
    )


def slow_time_unknown(rules: RuleColumns, cost: RescaleCost) -> Mask:
    """Whether the delay or the warm-up after a rescale is neither set nor measured, for a policy that measures them."""
    delay, warm_up = np.isnan(cost.delay_s), np.isnan(cost.warm_up_s)
    unknown: Mask = ((rules.measures_delay == 1) & delay) | ((rules.measures_warm_up == 1) & warm_up)
    return unknown
