"""The rules of each workload, by its name, its fleet or a match."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

from adapter.core.rules import Rules

_DEFAULTS = Rules()


@dataclass(frozen=True, slots=True)
class MatchedRules:
    """The rules of the workloads of a fleet that match."""

    match: Callable[[str], bool]  # whether "namespace/name" matches
    rules: Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleBook:
    """The rules of each workload. Configured workloads are known before they have a sample, discovered ones are not."""

    by_workload: Mapping[str, Rules]  # "namespace/name" -> its rules
    by_fleet: tuple[Rules, ...] = ()  # the rules of discovered workloads, by the index of their fleet
    by_match: tuple[tuple[MatchedRules, ...], ...] = ()  # by the same index: the first match replaces the fleet's rules

    def of(self, workload: str, fleet: int | None) -> Rules:
        """The rules of one workload; the defaults if the book has neither its name nor its fleet."""
        if (own := self.by_workload.get(workload)) is not None:
            return own
        if fleet is None or fleet >= len(self.by_fleet):
            return _DEFAULTS
        matched = self.by_match[fleet] if self.by_match else ()
        return next((each.rules for each in matched if each.match(workload)), self.by_fleet[fleet])

    def every(self) -> Iterable[Rules]:
        """All rules of the book; equal ones may repeat."""
        return (*self.by_workload.values(), *self.by_fleet, *(each.rules for each in chain(*self.by_match)))
