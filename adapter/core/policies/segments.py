"""`segments`: as many readers as the stream has segments (Pravega with Flink and HPA, S2-01).

The stream scales itself by its own rates and the readers follow, so nothing but the count of segments is looked at
(S2-17): neither what the readers can carry nor what waits for them. Minimum, maximum and the wait before a down are the
HPA's (S2-02, S2-16) and bounds like any other. The count may vanish between two scalings of the stream (S2-18): then
the target is held, and after error_after_s there is none. segments_per_worker is 1, the demo's AverageValue.
"""

import numpy as np

from adapter.core.partitions import whole
from adapter.core.policies.interface import PolicyInput, PolicyResult


def size(policy_input: PolicyInput) -> PolicyResult:
    """Segments over segments a worker, in whole workers; NaN while the count is unknown, as a count of 0 is."""
    segments = np.where(policy_input.partitions >= 1, policy_input.partitions, np.nan)
    wanted = whole(segments / policy_input.rules.segments_per_worker)
    none = np.full_like(wanted, np.nan)
    return PolicyResult(wanted_workers=wanted, keep_up_workers=none, catch_up_workers=none, needed_workers=wanted)
