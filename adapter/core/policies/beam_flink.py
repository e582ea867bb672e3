"""`beam-flink`: the autoscaler for Beam jobs on Flink (Beam blog, part 3; S0-06..16)."""

import numpy as np

from adapter.core.partitions import whole
from adapter.core.policies.interface import (
    PolicyInput,
    PolicyResult,
    catch_up,
    drains_in_time,
    keep_up,
    keeps_pace,
    lasting_backlog_time,
)


def size(policy_input: PolicyInput) -> PolicyResult:
    """Up if far behind or hot, down if calm and cool, otherwise unchanged (S0-10, S0-11, S0-14).

    The text gives no size for a hot stage without backlog: the formula then returns the present workers. The limit of
    the utilization after a scale-down is missing, too: it is down_cpu_desired_ratio (S0-13).
    """
    rules, workers, cpu = policy_input.rules, policy_input.workers, policy_input.utilization_ratio
    needed, extra = keep_up(policy_input), catch_up(policy_input)
    larger = np.maximum(whole(needed + extra), workers)  # S0-08; its maximum is a bound
    # S0-12: the smallest size whose utilization workers / size * cpu stays within the limit
    smaller = np.clip(whole(workers * cpu / rules.down_cpu_desired_ratio), np.minimum(1.0, workers), workers)

    late = (policy_input.backlog_time_s > rules.up_backlog_time_s) | (cpu > rules.up_cpu_ratio)
    up = late & ~drains_in_time(policy_input)  # otherwise a stage that catches up at full speed would grow further
    calm = keeps_pace(policy_input) & (lasting_backlog_time(policy_input) < rules.short_backlog_time_s)
    down = calm & (cpu < rules.down_cpu_ratio)
    wanted = np.select([np.isnan(needed + extra), up, down], [np.nan, larger, smaller], workers)
    return PolicyResult(wanted_workers=wanted, keep_up_workers=needed, catch_up_workers=extra, needed_workers=wanted)
