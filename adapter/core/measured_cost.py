"""The parameters with what rescales did cost, and whether that is known."""

from dataclasses import replace

import numpy as np

from adapter.core.policies.sizing import where
from adapter.core.rates import Mask
from adapter.core.rescale_stop import RescaleCost
from adapter.core.rule_columns import RuleColumns
from adapter.core.rules import Rules
from adapter.core.samples import first_known

_DEFAULTS = Rules()


def with_measured_cost(rules: RuleColumns, cost: RescaleCost) -> RuleColumns:
    """The parameters with what rescales did cost, for a policy that weighs it (S1).

    A delay and a warm-up that an operator has set stay: they made fewer records late than measured ones.
    """
    learns = where("waits_until_warm", rules.policy)
    delay, warm_up = learns & _delay_unset(rules), learns & _warm_up_unset(rules)
    return replace(
        rules,
        rescale_pause_s=np.where(learns, first_known(cost.pause_s, rules.rescale_pause_s), rules.rescale_pause_s),
        metric_delay_s=np.where(delay, first_known(cost.delay_s, rules.metric_delay_s), rules.metric_delay_s),
        warm_up_s=np.where(warm_up, first_known(cost.warm_up_s, rules.warm_up_s), rules.warm_up_s),
    )


def slow_time_unknown(rules: RuleColumns, cost: RescaleCost) -> Mask:
    """Whether the time from a rescale until the rates show warm workers is neither set nor measured."""
    unknown = (_delay_unset(rules) & np.isnan(cost.delay_s)) | (_warm_up_unset(rules) & np.isnan(cost.warm_up_s))
    return where("waits_until_warm", rules.policy) & unknown


def _delay_unset(rules: RuleColumns) -> Mask:
    unset: Mask = rules.metric_delay_s == _DEFAULTS.metric_delay_s
    return unset


def _warm_up_unset(rules: RuleColumns) -> Mask:
    unset: Mask = rules.warm_up_s == _DEFAULTS.warm_up_s
    return unset
