"""The workers that stages without a backlog of their own need. Their backlog waits at the source, if it is reported."""

import numpy as np

from adapter.core.partitions import whole
from adapter.core.policies.interface import PolicyInput
from adapter.core.samples import Array


def workers_of_full_stage(policy_input: PolicyInput) -> Array:
    """Workers with which the fullest stage carries its input, NaN without such a stage."""
    rules = policy_input.rules
    carry = policy_input.workers * policy_input.relayed_load_ratio / rules.target_utilization_ratio
    return whole(carry) + rules.min_spare_workers


def workers_of_busiest_subtask(policy_input: PolicyInput) -> Array:
    """Workers with which the busiest subtask carries its share, at most the present ones; NaN without such a stage.

    Where keys are uneven, it is full before the mean is, and holds back the sources. More workers may not relieve it.
    """
    workers, load = policy_input.workers, policy_input.busiest_load_ratio
    return np.minimum(whole(workers * load / policy_input.rules.target_utilization_ratio), workers)
