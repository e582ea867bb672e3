"""`dataflow`: streaming autoscaling in Cloud Dataflow (Fahndrich, QCon London 2016; S3-06..17)."""

import numpy as np

from adapter.core.partitions import next_down, next_up, whole
from adapter.core.policies.interface import (
    PolicyInput,
    PolicyResult,
    catch_up,
    drains_in_time,
    keep_up,
    keeps_pace,
    lasting_backlog_time,
    positive_growth,
)
from adapter.core.samples import first_known


def size(policy_input: PolicyInput) -> PolicyResult:
    """Up to the next quantum above keep-up + catch-up, down one quantum if the CPU allows it, otherwise unchanged.

    The slides name the order of goals (no growth, short backlog time, reasonable CPU; S3-05) but no numbers for the
    first two: growth_noise_ratio and short_backlog_time_s stand for them.
    """
    rules, workers = policy_input.rules, policy_input.workers
    needed, extra = keep_up(policy_input), catch_up(policy_input)
    growing = positive_growth(policy_input) > 0
    short = lasting_backlog_time(policy_input) <= rules.short_backlog_time_s

    quanta = rules.quanta.astype(np.int64)
    parts = first_known(policy_input.partitions, policy_input.most_workers)  # S3-13: one disk for each machine at most
    total = whole(needed + extra)  # above every quantum a bound limits it
    larger = np.maximum(np.maximum(next_up(total, parts, quanta), total), workers)
    smaller = next_down(workers, parts, quanta)
    cpu_there = workers * policy_input.utilization_ratio / np.maximum(smaller, 1.0)
    fits = cpu_there < rules.down_cpu_limit_ratio - 1e-9  # strictly below (S3-22, X-11)

    wanted = np.select(
        [
            np.isnan(needed + extra),
            growing | ~(short | drains_in_time(policy_input)),
            short & fits & keeps_pace(policy_input),
        ],
        [np.nan, larger, smaller],
        workers,
    )
    return PolicyResult(wanted_workers=wanted, keep_up_workers=needed, catch_up_workers=extra, needed_workers=wanted)
