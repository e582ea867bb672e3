"""The workloads of a snapshot: found by name and label, and read when they are found."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from adapter.core.decisions import Decision, StageSignals
from adapter.serving.snapshots.columns import Entries, Entry, entries_of

# Workloads between two pauses: 40 000 in one go would delay the threads that answer requests.
_IN_A_ROW = 2_000


@dataclass(frozen=True)  # no slots: the entry is built once, when it is read
class Candidate:
    """One thing a selector may pick: a workload, or a stage of it."""

    labels: Mapping[str, str]  # what the selector matches
    entries: Entries
    row: int  # of the workload among the entries
    place: int | None = None  # of the stage among those of the workload; None for the workload itself

    @cached_property
    def entry(self) -> Entry:
        """All that is known of the workload."""
        return self.entries.entry(self.row)

    @cached_property
    def stage(self) -> StageSignals | None:
        """What is known of the stage, None for a whole workload."""
        return None if self.place is None else self.entry.stages[self.place]

    @property
    def workload(self) -> str:
        """Its namespace/name."""
        return self.entry.decision.workload

    @property
    def decision(self) -> Decision:
        """Of the whole workload."""
        return self.entry.decision


class Labelled:
    """What a selector may pick. keys: of all labels. The index of a label is built when it is first used."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self.candidates = candidates
        self.keys = frozenset[str]().union(*(candidate.labels for candidate in candidates))
        self._indexes: dict[str, Mapping[str, Sequence[Candidate]]] = {}

    def by(self, key: str) -> Mapping[str, Sequence[Candidate]]:
        """Value of the label -> its candidates. An unknown label adds no index."""
        if key not in self.keys:
            return {}
        if key not in self._indexes:
            made: dict[str, list[Candidate]] = {}
            for candidate in self.candidates:
                if (value := candidate.labels.get(key)) is not None:
                    made.setdefault(value, []).append(candidate)
            self._indexes[key] = dict(sorted(made.items()))
        return self._indexes[key]


class Namespace:
    """The workloads of one namespace by name, sorted. Candidates are kept until the next snapshot: an HPA has several
    metrics, and a workload may have several HPAs."""

    def __init__(self, entries: Entries | None = None, workloads: Mapping[str, int] | None = None) -> None:
        self._entries = entries or entries_of(0.0, ())
        self.workloads = workloads or {}  # name -> its row among the entries
        self._found: dict[str, tuple[Candidate, ...]] = {}
        self._labelled: dict[bool, Labelled] = {}

    def candidates(self, names: Iterable[str], *, stages: bool) -> list[Candidate]:
        """The workloads of these names, with their stages if wanted; unknown names are left out."""
        found = [self._found.get(name) or self._read(name) for name in names if name in self.workloads]
        return [picked for whole, *parts in found for picked in (whole, *parts)] if stages else [f[0] for f in found]

    def labelled(self, *, stages: bool) -> Labelled:
        """All of them, by label. To read the labels of 40 000 takes some 0.1 s, once a snapshot."""
        if stages not in self._labelled:
            self._labelled[stages] = Labelled(self.candidates(self.workloads, stages=stages))
        return self._labelled[stages]

    def _read(self, name: str) -> tuple[Candidate, ...]:
        row = self.workloads[name]
        labels = self._entries.labels(row) | {"workload": name}
        # `stage` would be a label only stages have, whatever the configuration says.
        whole = {label: value for label, value in labels.items() if label != "stage"}
        stages = [labels | {"stage": stage} for stage in self._entries.stage_names(row)]
        found = (
            Candidate(dict(sorted(whole.items())), self._entries, row),
            *(Candidate(dict(sorted(each.items())), self._entries, row, place) for place, each in enumerate(stages)),
        )
        self._found[name] = found
        return found


def by_namespace(entries: Entries) -> dict[str, Namespace]:
    """The workloads of each namespace."""
    found: dict[str, dict[str, int]] = {}
    for row, workload in enumerate(entries.workloads):
        if row % _IN_A_ROW == 0:
            time.sleep(0)  # lets another thread run
        namespace, _, name = workload.partition("/")
        found.setdefault(namespace, {})[name] = row
    return {namespace: Namespace(entries, workloads) for namespace, workloads in found.items()}
