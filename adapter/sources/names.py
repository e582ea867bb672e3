"""Names found in other systems -> names a label selector can ask for."""

import re
from functools import lru_cache

LONGEST = 63  # characters of a Kubernetes label value

_FOREIGN = re.compile(r"[^A-Za-z0-9_.-]")


@lru_cache(maxsize=65_536)  # a fleet's names come again every tick
def slug(name: str) -> str:
    """The label value nearest to a name: foreign characters become "-", at most 63, alphanumeric at both ends.

    Returns "" when nothing alphanumeric is left. Two names may share one slug: whoever calls must notice.
    """
    return _FOREIGN.sub("-", name).strip("-_.")[:LONGEST].rstrip("-_.")
