"""`varga`: an HPA with two metrics, utilization and relative lag change (Varga, Balassi, Kiss 2021; S1-10..20).

Only the paper's beginning is known; formulas and numbers are those of its re-implementation (S1-12..18).
varga_utilization_ratio is the largest of the three targets it tried (S1-15), the target of the lag change is 1.

- At and below lag_threshold_records the lag has no say (S1-13), nor has it for a stage that is held back by what is
  downstream (S1-19, S1-18). The threshold is a count in the backlog's own unit: of records, unless bytes are counted.
- Where utilization is unknown the lag decides alone, and as HPA with half its metrics it never goes down.
- Nothing waits for what drains: at full utilization it asks for workers / target again and again until idleness shows.
- The wait after a change (S1-17) and the window of downs (S1-18) are a gate and a bound, as of every policy: a metric
  that reads 0 meanwhile would have an HPA go to its minimum. HPA's own tolerance applies after it (X-07).
"""

import numpy as np

from adapter.core.partitions import whole
from adapter.core.policies.interface import PolicyInput, PolicyResult
from adapter.core.signals import gated_lag_change, relative_lag_change


def size(policy_input: PolicyInput) -> PolicyResult:
    """The larger of workers * lag change and workers * utilization / target, at least one (S1-16).

    A workload scaled to zero stays there until something waits.
    """
    rules, workers = policy_input.rules, policy_input.workers
    change = relative_lag_change(policy_input.throughput_records_per_s, policy_input.growth_records_per_s)
    gated = gated_lag_change(change, policy_input.backlog_records, rules.lag_threshold_records)
    lag = np.where(policy_input.bottleneck, gated, -1.0)
    busy = policy_input.utilization_ratio / rules.varga_utilization_ratio

    asked = whole(workers * np.maximum(lag, np.where(np.isnan(busy), 1.0, busy)))
    least = np.where((workers > 0) | (policy_input.backlog_records > 0), 1.0, 0.0)
    wanted = np.maximum(asked, least)
    return PolicyResult(
        wanted_workers=wanted,
        keep_up_workers=workers * change,
        catch_up_workers=np.full_like(wanted, np.nan),
        needed_workers=wanted,
    )
