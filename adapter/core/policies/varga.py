"""`varga`: an HPA with two metrics, utilization and relative lag change (Varga, Balassi, Kiss 2021; S1-10..20).

Only the beginning of the paper is available; formulas and numbers are those of its re-implementation (S1-12..18).
varga_utilization_ratio is the largest of the three targets that it tried (S1-15). The target of the lag change is 1.

- The lag does not count at or below lag_threshold_records (S1-13), or for a backpressured stage (S1-19, S1-18). The
  threshold has the unit of the backlog: records, or bytes.
- Without a utilization the lag decides alone, and as in an HPA with half its metrics there is no scale-down.
- The policy does not wait for a backlog that drains: at full utilization the size is workers / target on each tick.
- The wait after a change (S1-17) and the scale-down window (S1-18) are a gate and a bound of every policy, because a
  metric of 0 in the meantime would make an HPA go to its minimum.
- A ratio within the HPA's tolerance of 1 changes nothing (X-07): tolerance_ratio.
"""

import numpy as np

from adapter.core.partitions import whole
from adapter.core.policies.interface import PolicyInput, PolicyResult
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array
from adapter.core.signals import gated_lag_change, relative_lag_change


def size(policy_input: PolicyInput) -> PolicyResult:
    """The larger of workers * lag change and workers * utilization / target, at least one (S1-16).

    A workload at zero stays there until there is a backlog.
    """
    rules, workers = policy_input.rules, policy_input.workers
    change = relative_lag_change(policy_input.throughput_records_per_s, policy_input.growth_records_per_s)
    gated = gated_lag_change(change, policy_input.backlog_records, rules.lag_threshold_records)
    lag = np.where(policy_input.bottleneck, gated, -1.0)
    busy = policy_input.utilization_ratio / rules.varga_utilization_ratio

    ratio = np.maximum(_with_tolerance(lag, rules), np.where(np.isnan(busy), 1.0, _with_tolerance(busy, rules)))
    sized = whole(workers * ratio)
    least = np.where((workers > 0) | (policy_input.backlog_records > 0), 1.0, 0.0)
    wanted = np.maximum(sized, least)
    return PolicyResult(
        wanted_workers=wanted,
        keep_up_workers=workers * change,
        catch_up_workers=np.full_like(wanted, np.nan),
        needed_workers=wanted,
    )


def _with_tolerance(ratio: Array, rules: RuleColumns) -> Array:
    """The ratio of a metric to its target as an HPA takes it."""
    return np.where(np.abs(ratio - 1.0) <= rules.tolerance_ratio, 1.0, ratio)
