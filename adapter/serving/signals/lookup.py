"""The workloads of one namespace of a snapshot, found by their labels."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from adapter.serving.api.selectors import Requirement, Selector
from adapter.serving.api.status import Refusal, bad_request
from adapter.serving.signals.near import nearest
from adapter.serving.snapshots.store import Candidate, Namespace

# Labels compared for one answer: some 20 ms, which five terms over 40 000 workloads take.
MOST_COMPARISONS = 200_000
MOST_NAMES = 10
# Terms of a selector that are looked at to say which of them matches nothing.
MOST_TERMS = 10


class Lookup:
    """What a selector picks of a namespace. stages: whether it may pick stages of workloads too.

    `workload=x` costs a dictionary's look-up. Other labels have an index, made when one is first asked for, and for as
    long as the snapshot is held.
    """

    def __init__(self, namespace: Namespace, *, stages: bool) -> None:
        self._namespace = namespace
        self._stages = stages
        self._indexes: dict[str, Mapping[str, Sequence[Candidate]]] = {}

    def matching(self, selector: Selector) -> Sequence[Candidate]:
        """All that the selector picks. Raises Refusal (400) when to find it would keep others waiting."""
        some, rest = self._narrowed(selector)
        if not rest.requirements:
            return some
        if _comparisons(some, *rest.requirements) > MOST_COMPARISONS:
            raise Refusal(bad_request(_too_costly(len(some), len(rest.requirements))))
        return [candidate for candidate in some if rest.matches(candidate.labels)]

    def near_miss(self, selector: Selector, where: str) -> str:
        """Why nothing matched: the first term that nothing satisfies, and what is nearest to it."""
        for term in selector.requirements[:MOST_TERMS]:
            if not self._satisfies(term):
                return f"{term} matches nothing {where}; {self._nearest_to(term)}"
        return f"each of {selector} matches something {where}, but nothing matches all of it"

    def _narrowed(self, selector: Selector) -> tuple[Sequence[Candidate], Selector]:
        """The fewest that an index gives, and what is still to be compared."""
        listed = [term for term in selector.requirements if term.operator == "in"]
        if not listed:
            return self._everything, selector
        best = next((term for term in listed if term.key == "workload"), None)
        best = best or min(listed, key=lambda term: sum(map(len, self._with(term))))
        rest = Selector(tuple(term for term in selector.requirements if term is not best))
        if best.key == "workload":
            return self._namespace.candidates(best.values, stages=self._stages), rest
        return [candidate for found in self._with(best) for candidate in found], rest

    def _with(self, term: Requirement) -> list[Sequence[Candidate]]:
        index = self._index(term.key)
        return [index[value] for value in term.values if value in index]

    def _index(self, key: str) -> Mapping[str, Sequence[Candidate]]:
        """Value of the label -> who has it. A label that nobody has costs nothing and leaves nothing behind."""
        if key not in self._keys:
            return {}
        if key not in self._indexes:
            made: dict[str, list[Candidate]] = {}
            for candidate in self._everything:
                if (value := candidate.labels.get(key)) is not None:
                    made.setdefault(value, []).append(candidate)
            self._indexes[key] = dict(sorted(made.items()))
        return self._indexes[key]

    @cached_property
    def _everything(self) -> list[Candidate]:
        return self._namespace.candidates(None, stages=self._stages)

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset[str]().union(*(candidate.labels for candidate in self._everything))

    def _satisfies(self, term: Requirement) -> bool:
        if term.operator == "in":
            return bool(self._with(term))
        if _comparisons(self._everything, term) > MOST_COMPARISONS:
            return True  # nobody waits for a better message
        return any(term.matches(candidate.labels) for candidate in self._everything)

    def _nearest_to(self, term: Requirement) -> str:
        if term.key not in self._keys:
            near = nearest(term.key, self._keys)
            return f"nearest label is {near}" if near else f"labels are {', '.join(sorted(self._keys)[:MOST_NAMES])}"
        values = list(self._index(term.key))
        near = nearest(term.values[0] if term.values else "", values)
        return f"nearest is {near}" if near else f"values are {', '.join(values[:MOST_NAMES])}"


def _comparisons(candidates: Sequence[Candidate], *terms: Requirement) -> int:
    return len(candidates) * sum(max(1, len(term.values)) for term in terms)


def _too_costly(some: int, terms: int) -> str:
    return (
        f"{terms} terms of the selector would be compared with the labels of {some} workloads: "
        "select one, for example with workload=NAME"
    )
