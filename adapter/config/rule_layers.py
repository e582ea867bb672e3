"""The layers of rules that apply to a workload: its own, those of the first match, its fleet's, the file's."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapter.config.faults import Path
from adapter.config.patterns import WorkloadMatch


@dataclass(frozen=True, slots=True)
class Layer:
    """The settings of one `rules` mapping."""

    path: Path  # of the mapping
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RuleEntry:
    """A workload, or a fleet, whose workloads are known at run time."""

    own: Layer
    labels: Mapping[str, str]
    workload: str | None = None  # "namespace/name", None for a fleet


@dataclass(frozen=True, slots=True)
class MatchEntry:
    """An entry of `rules_by_match`."""

    own: Layer
    labels: Mapping[str, str]
    match: WorkloadMatch

    def may_match(self, entry: RuleEntry) -> bool:
        """Whether it matches a workload, or has the labels of a fleet."""
        fits = self.labels.items() <= entry.labels.items()  # a pattern takes longer
        return fits and (entry.workload is None or self.match(entry.workload))


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers that apply together, the strongest first."""

    layers: tuple[Layer, ...]
    match: WorkloadMatch | None = None  # which workloads of a fleet they apply to, None for all others

    def merged(self) -> dict[str, Any]:
        """Each setting, from the strongest layer that has it."""
        return {name: value for layer in reversed(self.layers) for name, value in layer.settings.items()}

    def strongest(self, names: Collection[str]) -> Layer:
        """The strongest layer with one of the settings; the weakest of all if they are defaults."""
        return next((layer for layer in self.layers if layer.settings.keys() & set(names)), self.layers[-1])


@dataclass(frozen=True, slots=True)
class RuleSources:
    """All `rules` mappings of a file."""

    workloads: Sequence[RuleEntry]
    fleets: Sequence[RuleEntry]
    matches: Sequence[MatchEntry]
    shared: Layer  # the file's own

    def layers(self, entry: RuleEntry) -> list[Layers]:
        """One for a workload. For a fleet, one for each match that may be the first, in their order, and the rest."""
        fitting = [each for each in self.matches if each.may_match(entry)]
        if entry.workload is None:
            matched = [
                Layers((each.own, entry.own, self.shared), each.match)
                for at, each in enumerate(fitting)
                if not any(before.match.covers(each.match) for before in fitting[:at])
            ]
            return [*matched, Layers((entry.own, self.shared))]
        return [Layers((entry.own, *(each.own for each in fitting[:1]), self.shared))]
