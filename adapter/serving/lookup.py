"""Find the workloads of a namespace by their labels."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import chain

from adapter.apiserver.selectors import Requirement, Selector
from adapter.apiserver.status import bad_request
from adapter.serving.snapshots.workloads import Candidate, LabelIndex, Namespace

# Labels compared for one answer, some 20 ms: five terms over 40 000 workloads.
MOST_COMPARISONS = 200_000
# Terms of a selector that are examined for the first that matches nothing.
MOST_TERMS = 10
# A comparison takes 10 to 300 us by the length of the name: an unknown name costs at most 30 ms of a thread.
MOST_COMPARED = 100
MOST_NAMES = 10


class Lookup:
    """Applies selectors to a namespace. stages: whether they may pick stages of workloads too.

    `workload=x` is one look-up in a dictionary. Another label needs the labels of all workloads, which are read once a
    snapshot.
    """

    def __init__(self, namespace: Namespace, *, stages: bool) -> None:
        self._namespace = namespace
        self._stages = stages

    def matching(self, selector: Selector) -> Sequence[Candidate]:
        """The workloads and stages that the selector picks. Raises StatusError (400) for too many label comparisons."""
        best = self._most_selective(selector)
        rest = tuple([term for term in selector.requirements if term is not best])
        if not rest:
            return self._candidates(best)
        some = self._size(best)
        if _comparisons(some, *rest) > MOST_COMPARISONS:  # before they are listed
            fix = "select one, for example with workload=NAME"
            raise bad_request(
                f"the selector needs {len(rest)} terms compared with the labels of {some} workloads: {fix}"
            )
        matches = Selector(rest).matches
        return [candidate for candidate in self._candidates(best) if matches(candidate.labels)]

    def near_miss(self, selector: Selector, where: str) -> str:
        """Why nothing matches: the first term that nothing satisfies, and the value nearest to it."""
        for term in selector.requirements[:MOST_TERMS]:
            if not self._satisfies(term):
                return f"{term} matches nothing {where}; {self._hint(term)}"
        return f"each of {selector} matches something {where}, but nothing matches all of it"

    def _most_selective(self, selector: Selector) -> Requirement | None:
        """The term whose index gives the fewest candidates; None without such a term."""
        indexed = [term for term in selector.requirements if term.operator == "in"]
        named = [term for term in indexed if term.key == "workload"]
        return named[0] if named else min(indexed, key=self._size, default=None)

    def _size(self, term: Requirement | None) -> int:
        """The number of candidates with one of the values of a term."""
        if term is None or term.key == "workload":
            return len(self._candidates(term))
        return sum(map(len, self._index_matches(term)))

    def _candidates(self, term: Requirement | None) -> Sequence[Candidate]:
        """The candidates with one of the values of a term; all without a term."""
        if term is None:
            return self._all.candidates
        if term.key == "workload":
            return self._namespace.candidates(term.values, stages=self._stages)
        return list(chain.from_iterable(self._index_matches(term)))

    def _index_matches(self, term: Requirement) -> Iterator[Sequence[Candidate]]:
        index = self._all.by(term.key)
        return (index.get(value, ()) for value in term.values)

    @property
    def _all(self) -> LabelIndex:
        return self._namespace.label_index(stages=self._stages)

    def _satisfies(self, term: Requirement) -> bool:
        if term.operator == "in":
            return self._size(term) > 0
        if _comparisons(len(self._all.candidates), term) > MOST_COMPARISONS:
            return True  # a better message is not worth the time
        return any(term.matches(candidate.labels) for candidate in self._all.candidates)

    def _hint(self, term: Requirement) -> str:
        """The nearest label or value of a term that matches nothing, otherwise those that exist."""
        if term.key != "workload" and term.key not in (keys := self._all.keys):
            near = nearest_name(term.key, keys)
            return f"nearest label is {near}" if near else f"labels are {shorten(sorted(keys))}"
        values = list(self._namespace.workloads if term.key == "workload" else self._all.by(term.key))
        near = nearest_name(term.values[0] if term.values else "", values)
        return f"nearest is {near}" if near else f"values are {shorten(values)}"


def _comparisons(candidates: int, *terms: Requirement) -> int:
    return candidates * sum(max(1, len(term.values)) for term in terms)


def nearest_name(word: str, names: Iterable[str]) -> str | None:
    """Find the name most similar to a word, or None. Of many names, only the alphabetical neighbours are compared."""
    ordered = sorted(names)
    start = max(0, bisect_left(ordered, word[:256]) - MOST_COMPARED // 2)
    found = get_close_matches(word[:256], ordered[start : start + MOST_COMPARED], n=1, cutoff=0.5)
    return found[0] if found else None


def shorten(names: Sequence[str]) -> str:
    """The first names, and the number of the others."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more
