"""The input that a scale-up is sized for, and whether the input is in a step whose size is not known yet."""

import numpy as np

from adapter.core.policies.interface import PolicyInput
from adapter.core.rates import Mask
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array, first_known
from adapter.core.scale_down_cost import warm_after_s

_MOST_RISEN = 2.0  # times the newest input; with 1.5, records were late in jobs with long pauses and late metrics
_STEP_RATIO = 1.25  # above what the tick before and the rise lead to; the usual headroom covers less
_RISE_S = 120.0  # the rise is expected to go on for so long: an input that doubles every 30 s is then no step


def input_to_carry(policy_input: PolicyInput, highest: Array) -> Array:
    """The input for which a scale-up is sized, so that one rescale is enough, records/s.

    After a step most of the rate window is old, so the newest rate counts. A rise is assumed to last until the next
    scale-up can take effect. A counter that rises in steps has no newest rate, and no rise.
    """
    most = np.fmax(highest * policy_input.rules.forecast_cap_ratio, policy_input.confirmed_input_rate_records_per_s)
    newest = np.minimum(policy_input.latest_input_rate_records_per_s, most)
    return np.fmax(highest, np.minimum(newest + expected_rise(policy_input), _MOST_RISEN * newest))


def is_in_step(policy_input: PolicyInput, highest: Array) -> Mask:
    """Whether the newest two rates may show only a part of a step of the input, so that the next tick shows more of it.

    An input that already rose as fast before is not in a step. After a missing sample, as while a job pauses, there is
    no newest rate, and the mean of the window may be that of a step.
    """
    newest, confirmed = policy_input.latest_input_rate_records_per_s, policy_input.confirmed_input_rate_records_per_s
    expected = confirmed + np.nan_to_num(policy_input.input_rise_records_per_s2) * _RISE_S
    return np.asarray(((newest > _STEP_RATIO * expected) & (highest < newest)) | policy_input.resumes)


def expected_rise(policy_input: PolicyInput) -> Array:
    """By how much the input rises until the next scale-up can take effect, records/s; 0 if unknown."""
    return np.nan_to_num(policy_input.input_rise_records_per_s2) * _lead_s(policy_input.rules)


def _lead_s(rules: RuleColumns) -> Array:
    """Seconds until the scale-up after this one can take effect."""
    return np.asarray(rules.worker_start_s + first_known(rules.cooldown_up_s, warm_after_s(rules)))
