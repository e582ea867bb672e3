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
    missing = misses_stage(fast.reports, at_s) | _are_fewer(fast, at_s)
    return missing & ~policy_has("follows_partitions", rules)


def lasting_partitions(fast: Fast, partitions: Array, at_s: float, rules: RuleColumns) -> Array:
    """The count before a short time ago, where that was larger: some are not counted while a worker misses scrapes."""
    before = np.where(policy_has("follows_partitions", rules), np.nan, partitions_before(fast, at_s))
    return np.where(before > partitions, before, partitions)


def partitions_before(fast: Fast, at_s: float) -> Array:
    """The count before the last fall of the partitions, NaN if it is too long ago."""
    return np.where(at_s - fast.partitions_before_at_s < _FEWER_PARTITIONS_S, fast.partitions_before, np.nan)


def _are_fewer(fast: Fast, at_s: float) -> Mask:
    fewer: Mask = at_s - fast.partitions_fell_at_s < _FEWER_PARTITIONS_S
    return fewer
