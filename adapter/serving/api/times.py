"""Times as the Kubernetes API writes them."""

from datetime import UTC, datetime
from functools import lru_cache


def rfc3339(at_s: float | None) -> str | None:
    """Unix seconds as RFC 3339 in UTC, whole seconds; None stays None."""
    return None if at_s is None else _written(int(at_s))


@lru_cache(maxsize=1024)  # a snapshot has one time for thousands of workloads
def _written(at_s: int) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
