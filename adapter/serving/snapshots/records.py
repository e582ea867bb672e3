"""The record of one decision, which `explain` requests from the pipeline."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from adapter import __version__
from adapter.apiserver.status import not_found, unavailable
from adapter.core.decisions import Decision
from adapter.core.messages import sentence
from adapter.serving.lookup import nearest_name
from adapter.serving.snapshots.store import StoredSnapshot

PATH = "/explain"
# The newest decision of a workload and its inputs; None without a decision.
RecordOf = Callable[[str], tuple[Decision, Mapping[str, float | None]] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A decision, its sentence and its inputs."""

    version: str  # of the release that decided; another release may decide otherwise from the same inputs
    decision: Decision
    sentence: str
    record: Mapping[str, float | None]  # name of an input -> its number, None if unknown


def find(held: StoredSnapshot | None, record_of: RecordOf, workload: str) -> Record:
    """The record of "namespace/name". Raises StatusError: 404 with the nearest name, 503 before the first decision."""
    if held is None:
        raise unavailable("no decision yet: Spark needs about 20 s to start; see the pipeline's log")
    found = record_of(workload)
    if found is not None:
        decision, numbers = found
        return Record(version=__version__, decision=decision, sentence=sentence(decision), record=numbers)
    names = [f"{namespace}/{name}" for namespace, of in held.namespaces.items() for name in of.workloads]
    if workload in names:
        raise unavailable(f"the last tick has no decision for {workload}; retry after the next tick")
    near = nearest_name(workload, names)
    hint = f"; did you mean {near!r}?" if near else f"; {len(names)} workloads are known"
    raise not_found(f"there is no workload {workload!r}{hint}")


def decode(body: bytes) -> Record:
    """Decode JSON. Raises ValueError if it is not a record of this release."""
    try:
        found = msgspec.json.decode(body, type=Record)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a record: {error}") from error
    if found.version != __version__:
        raise ValueError(f"a record of release {found.version}, this is {__version__}")
    return found
