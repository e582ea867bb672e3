"""Find the workloads of a namespace by their labels."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from adapter.apiserver.selectors import Requirement, Selector
from adapter.apiserver.status import bad_request
from adapter.serving.snapshots.workloads import Candidate, Labelled, Namespace

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
        """All that the selector picks. Raises StatusError (400) if too many labels would have to be compared."""
        some, rest = self._narrowed(selector)
        if not rest:
            return some
        if _comparisons(some, *rest) > MOST_COMPARISONS:
            raise bad_request(_too_costly(len(some), len(rest)))
        matches = Selector(rest).matches
        return [candidate for candidate in some if matches(candidate.labels)]

    def near_miss(self, selector: Selector, where: str) -> str:
        """Why nothing matches: the first term that nothing satisfies, and the value nearest to it."""
        for term in selector.requirements[:MOST_TERMS]:
            if not self._satisfies(term):
                return f"{term} matches nothing {where}; {self._nearest_to(term)}"
        return f"each of {selector} matches something {where}, but nothing matches all of it"

    def _narrowed(self, selector: Selector) -> tuple[Sequence[Candidate], tuple[Requirement, ...]]:
        """The smallest set that an index gives, and the terms that remain to be compared."""
        terms = selector.requirements
        indexed = [term for term in terms if term.operator == "in"]
        if not indexed:
            return self._all.candidates, terms
        workloads = [term for term in indexed if term.key == "workload"]
        best = workloads[0] if workloads else min(indexed, key=lambda term: len(self._with(term)))
        return self._with(best), tuple([term for term in terms if term is not best])

    def _with(self, term: Requirement) -> list[Candidate]:
        """The candidates with one of the values of a term."""
        if term.key == "workload":
            return self._namespace.candidates(term.values, stages=self._stages)
        index = self._all.by(term.key)
        return [candidate for value in term.values for candidate in index.get(value, ())]

    @property
    def _all(self) -> Labelled:
        return self._namespace.labelled(stages=self._stages)

    def _satisfies(self, term: Requirement) -> bool:
        if term.operator == "in":
            return bool(self._with(term))
        if _comparisons(self._all.candidates, term) > MOST_COMPARISONS:
            return True  # a better message is not worth the time
        return any(term.matches(candidate.labels) for candidate in self._all.candidates)

    def _nearest_to(self, term: Requirement) -> str:
        if term.key != "workload" and term.key not in (keys := self._all.keys):
            near = nearest(term.key, keys)
            return f"nearest label is {near}" if near else f"labels are {shortened(sorted(keys))}"
        values = list(self._namespace.workloads if term.key == "workload" else self._all.by(term.key))
        near = nearest(term.values[0] if term.values else "", values)
        return f"nearest is {near}" if near else f"values are {shortened(values)}"


def _comparisons(candidates: Sequence[Candidate], *terms: Requirement) -> int:
    return len(candidates) * sum(max(1, len(term.values)) for term in terms)


def _too_costly(some: int, terms: int) -> str:
    return (
        f"the selector needs {terms} terms compared with the labels of {some} workloads: "
        "select one, for example with workload=NAME"
    )


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
