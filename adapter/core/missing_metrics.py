"""What a decision uses while metrics are missing, so that the others show less than there is."""

import numpy as np

from adapter.core.policies.sizing import policy_has
from adapter.core.rates import Mask
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array
from adapter.core.stage_reports import misses_stage
from adapter.core.state import Fast

_FEWER_PARTITIONS_S = 600.0  # after a fall, the count before it lasts


def misses_metrics(fast: Fast, at_s: float, rules: RuleColumns) -> Mask:
    """Whether a stage ceased to report its load, or the partitions became fewer a short time ago.

    A policy that follows the partitions needs no load, and follows them down at once.
    """
    missing = misses_stage(fast.reports, at_s) | are_fewer(fast, at_s)
    return missing & ~policy_has("follows_partitions", rules)


def lasting_partitions(fast: Fast, partitions: Array, at_s: float, rules: RuleColumns) -> Array:
    """The count before a short time ago, where that was larger: some are not counted while a worker misses scrapes."""
    lasts = (at_s - fast.partitions_before_at_s < _FEWER_PARTITIONS_S) & ~policy_has("follows_partitions", rules)
    return np.where(lasts, np.fmax(partitions, fast.partitions_before), partitions)


def are_fewer(fast: Fast, at_s: float) -> Mask:
    """Whether the partitions became fewer a short time ago; a fall soon after another one does not count."""
    fewer: Mask = at_s - fast.partitions_fell_at_s < _FEWER_PARTITIONS_S
    return fewer
