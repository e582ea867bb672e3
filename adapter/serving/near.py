"""A name that is not there -> the one that was probably meant."""

from bisect import bisect_left
from collections.abc import Iterable
from difflib import get_close_matches

# Comparing is slow (about 20 us a name); whoever asks wrongly may not cost the others more than a few milliseconds.
MOST_COMPARED = 300


def nearest(word: str, names: Iterable[str]) -> str | None:
    """The name most like the word, or None. Of very many names only the neighbours in the alphabet are compared."""
    ordered = sorted(set(names))
    start = max(0, bisect_left(ordered, word[:256]) - MOST_COMPARED // 2)
    found = get_close_matches(word[:256], ordered[start : start + MOST_COMPARED], n=1, cutoff=0.5)
    return found[0] if found else None
