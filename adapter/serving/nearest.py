"""Suggest names: the nearest to an unknown one, and a list that is not too long."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

# A comparison takes 10 to 300 us by the length of the name: an unknown name costs at most 30 ms of a thread.
MOST_COMPARED = 100
MOST_NAMES = 10


def nearest(word: str, names: Iterable[str]) -> str | None:
    """The name most like the word, or None. Of very many names, only the alphabetical neighbours are compared."""
    ordered = sorted(names)
    start = max(0, bisect_left(ordered, word[:256]) - MOST_COMPARED // 2)
    found = get_close_matches(word[:256], ordered[start : start + MOST_COMPARED], n=1, cutoff=0.5)
    return found[0] if found else None


def shortened(names: Sequence[str]) -> str:
    """The first names, and the number of the others."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more
