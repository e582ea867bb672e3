"""`pairs`: one worker for two partitions. The policy that test_adding_a_policy.py adds to a copy of the program."""

import numpy as np

from adapter.core.partitions import whole
from adapter.core.policies.interface import PolicyInput, PolicyResult


def size(policy_input: PolicyInput) -> PolicyResult:
    """Half as many workers as partitions, in whole workers; NaN while the partitions are unknown."""
    wanted = whole(policy_input.partitions / 2)
    none = np.full_like(wanted, np.nan)
    return PolicyResult(wanted_workers=wanted, keep_up_workers=none, catch_up_workers=none, needed_workers=wanted)
