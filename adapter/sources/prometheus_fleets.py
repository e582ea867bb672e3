"""Label values of series -> the names of a fleet's workloads."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from adapter.sources.names import MOST_WORKLOADS, slug

Labels = tuple[str, str]  # namespace, name


@dataclass
class FleetNames:
    """The names of one call. All series are added before the first name is read.

    Two label values may have the same workload name, such as orders and orders-. Then only the label value that equals
    the name is read, or none if no value does, so that a stray name does not stop a workload.
    """

    _labels: dict[tuple[int, str], dict[Labels, None]] = field(default_factory=dict)  # fleet, workload
    _names: dict[tuple[int, Labels], str] = field(default_factory=dict)

    def add(self, fleet: int, labels: Labels) -> str:
        """Add the label values of a series. Returns their fault, "" without one."""
        if (fleet, labels) in self._names:
            return ""
        parts = [slug(part) for part in labels]
        workload = "/".join(parts)
        if not all(parts):
            return f"{'/'.join(labels)} has no character that a Kubernetes label value allows; rename it"
        if (fleet, workload) not in self._labels and len(self._labels) >= MOST_WORKLOADS:
            return f"more than {MOST_WORKLOADS} workloads; narrow match"
        self._labels.setdefault((fleet, workload), {})[labels] = None
        self._names[fleet, labels] = workload
        return ""

    def workloads(self, fleet: int, labels: Labels) -> tuple[str, ...]:
        """The workload of label values, () without one."""
        workload = self._names.get((fleet, labels))
        if workload is None:
            return ()
        return (workload,) if self._owner(fleet, workload) in (labels, None) else ()

    def collisions(self) -> Iterator[tuple[str, bool, str]]:
        """Each workload name with several label values, whether one of them owns it, and the fault."""
        for (fleet, workload), labels in self._labels.items():
            if len(labels) > 1:
                names = " and ".join("/".join(each) for each in labels)
                is_owned = self._owner(fleet, workload) is not None
                fix = f"only {workload} is read; rename the other" if is_owned else "rename one"
                yield workload, is_owned, f"{names} have the same workload name; {fix}"

    def of_fleet(self, fleet: int) -> set[str]:
        """The workloads of a fleet."""
        return {workload for index, workload in self._labels if index == fleet}

    def _owner(self, fleet: int, workload: str) -> Labels | None:
        """The label values that are the name, or the only ones; None if there are several and none is."""
        labels = self._labels[fleet, workload]
        if len(labels) == 1:
            return next(iter(labels))
        namespace, _, name = workload.partition("/")
        return (namespace, name) if (namespace, name) in labels else None
