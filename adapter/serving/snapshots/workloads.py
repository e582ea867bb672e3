"""The workloads of a snapshot: found by name and label, and read when they are found."""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from adapter.core.decisions import Decision, StageSignals
from adapter.serving.snapshots.snapshot import Entry, Key, Texts, Told, entry_of, key_of

# Entries that are looked at between two pauses: in one go, 40 000 would hold up whoever answers.
_IN_A_ROW = 64


@dataclass(frozen=True)  # no slots: what it says is read once, when it is asked
class Candidate:
    """One thing a selector may pick: a workload, or a stage of it.

    labels: what the selector sees. told: where the rest is read. place: of the stage among those of its entry, None for
    a workload. The rest raises ValueError where the entry cannot be read.
    """

    labels: Mapping[str, str]
    told: Told
    place: int | None = None

    @cached_property
    def entry(self) -> Entry:
        """All that is known of the workload."""
        return entry_of(self.told)

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
    """What a selector may pick. keys: every label that somebody has; one has an index once it is asked for."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self.candidates = candidates
        self.keys = frozenset[str]().union(*(candidate.labels for candidate in candidates))
        self._indexes: dict[str, Mapping[str, Sequence[Candidate]]] = {}

    def by(self, key: str) -> Mapping[str, Sequence[Candidate]]:
        """Value of the label -> who has it. A label that nobody has costs nothing and leaves nothing behind."""
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
    """The workloads of one namespace by name, sorted. What was read of them is kept, for an HPA has several metrics and
    a workload several HPAs; it goes with the snapshot."""

    def __init__(self, workloads: Mapping[str, Told] | None = None) -> None:
        self.workloads = workloads or {}
        self._found: dict[str, tuple[Candidate, ...]] = {}
        self._labelled: dict[bool, Labelled] = {}

    def candidates(self, names: Iterable[str], *, stages: bool) -> list[Candidate]:
        """Those of these names that are there, with their stages when asked for."""
        found = [self._found.get(name) or self._read(name) for name in names if name in self.workloads]
        return [picked for whole, *parts in found for picked in (whole, *parts)] if stages else [f[0] for f in found]

    def is_labelled(self, *, stages: bool) -> bool:
        """Whether the labels of all were read already."""
        return stages in self._labelled

    def labelled(self, *, stages: bool) -> Labelled:
        """All of them, by label. To read the labels of 40 000 takes some 0.1 s, once a snapshot."""
        if stages not in self._labelled:
            self._labelled[stages] = Labelled(self.candidates(self.workloads, stages=stages))
        return self._labelled[stages]

    def _read(self, name: str) -> tuple[Candidate, ...]:
        told = self.workloads[name]
        key = key_of(told)
        found = (_whole(key, told, name), *_stages(key, told, name))
        self._found[name] = found
        return found


def by_namespace(entries: Collection[Entry]) -> dict[str, Namespace]:
    """Where each entry is found. Raises ValueError where one does not say whose it is."""
    each: Iterable[Told] = entries.texts if isinstance(entries, Texts) else entries
    found: dict[str, dict[str, Told]] = {}
    for number, told in enumerate(each):
        if number % _IN_A_ROW == 0:
            time.sleep(0)  # lets another thread run
        namespace, _, name = key_of(told).decision.workload.partition("/")
        found.setdefault(namespace, {})[name] = told
    return {namespace: Namespace(workloads) for namespace, workloads in found.items()}


def _whole(key: Entry | Key, told: Told, name: str) -> Candidate:
    # `stage` would be a label only stages have, whatever the configuration says.
    own = {label: value for label, value in key.labels.items() if label != "stage"}
    return Candidate(dict(sorted((own | {"workload": name}).items())), told)


def _stages(key: Entry | Key, told: Told, name: str) -> list[Candidate]:
    names = [stage.stage for stage in key.stages]
    return [
        Candidate(dict(sorted((key.labels | {"workload": name, "stage": stage}).items())), told, place)
        for place, stage in enumerate(names)
    ]
