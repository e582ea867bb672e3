"""`segments`: as many readers as the stream has segments (Pravega with Flink and HPA, S2-01).

The stream scales by its own rates and the readers follow, so only the count of segments matters (S2-17), and neither
the capacity nor the backlog. Minimum, maximum and the wait before a scale-down are the HPA's (S2-02, S2-16) and bounds
of every policy. If the count is missing between two scalings of the stream (S2-18), the target is held, and after
error_after_s there is none. segments_per_worker is 1, the demo's AverageValue; a worker reads one in each of its slots.
"""

import numpy as np

from adapter.core.partitions import whole
from adapter.core.policies.interface import PolicyInput, PolicyResult


def size(policy_input: PolicyInput) -> PolicyResult:
    """Segments / segments_per_worker, or its slots if more, in whole workers; NaN if the count is unknown or 0."""
    segments, rules = np.where(policy_input.partitions >= 1, policy_input.partitions, np.nan), policy_input.rules
    wanted = whole(segments / np.maximum(rules.segments_per_worker, rules.slots_per_worker))
    none = np.full_like(wanted, np.nan)
    return PolicyResult(wanted_workers=wanted, keep_up_workers=none, catch_up_workers=none, needed_workers=wanted)
