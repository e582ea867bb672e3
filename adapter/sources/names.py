"""Names in other systems -> values that a Kubernetes label selector can match."""

import re
from functools import lru_cache
from hashlib import blake2b

LONGEST = 63  # characters of a Kubernetes label value
MOST_WORKLOADS = 50_000  # of all fleets of one source; `serve` accepts a snapshot of about 150 000

_FOREIGN = re.compile(r"[^A-Za-z0-9_.-]")


@lru_cache(maxsize=65_536)  # the names of a fleet come again every tick
def slug(name: str) -> str:
    """Convert a name to a valid label value: foreign characters become "-", at most 63, alphanumeric at both ends.

    Returns "" if nothing alphanumeric is left. Two names may have the same slug; the caller must detect that.
    """
    return _FOREIGN.sub("-", name).strip("-_.")[:LONGEST].rstrip("-_.")


@lru_cache(maxsize=65_536)
def stage_slug(name: str) -> str:
    """As slug(); a name that is too long ends in a hash, because the names of Flink's tasks may begin alike."""
    if len(name) <= LONGEST:
        return slug(name)
    digest = blake2b(name.encode(), digest_size=4).hexdigest()
    return f"{slug(name)[: LONGEST - len(digest) - 1]}-{digest}"
