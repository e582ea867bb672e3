"""A name that is not there -> the one that was probably meant."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

# Comparing is slow, 10 to 300 us a name by its length: whoever asks wrongly costs 30 ms of a thread at most.
MOST_COMPARED = 100
MOST_NAMES = 10


def nearest(word: str, names: Iterable[str]) -> str | None:
    """The name most like the word, or None. Of very many names only the neighbours in the alphabet are compared.

    names: each once; those that are sorted already cost least.
    """
    ordered = sorted(names)
    start = max(0, bisect_left(ordered, word[:256]) - MOST_COMPARED // 2)
    found = get_close_matches(word[:256], ordered[start : start + MOST_COMPARED], n=1, cutoff=0.5)
    return found[0] if found else None


def listed(names: Sequence[str]) -> str:
    """The first of the names, and how many more there are."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more
