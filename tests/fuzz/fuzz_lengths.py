"""How many examples a test tries."""

import os

from hypothesis import HealthCheck, settings

# Of the tests that ask in process; 0 in the test command. Those over sockets try fewer, in proportion.
LONG = int(os.environ.get("FUZZ_EXAMPLES", "0"))


def examples(number: int, share: float = 1.0) -> settings:
    """So many in the test command, and this share of FUZZ_EXAMPLES in a long run."""
    most = max(1, int(LONG * share)) if LONG else number
    return settings(max_examples=most, suppress_health_check=list(HealthCheck), deadline=None)
