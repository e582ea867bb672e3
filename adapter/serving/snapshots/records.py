"""The record of one decision, which the pipeline sends to `explain`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from adapter import __version__
from adapter.apiserver.status import not_found, unavailable
from adapter.core.decisions import Decision
from adapter.core.messages import sentence
from adapter.serving.lookup import nearest
from adapter.serving.snapshots.store import Held

PATH = "/explain"
# The newest decision of a workload with the numbers it was made from; None where there is none.
RecordOf = Callable[[str], tuple[Decision, Mapping[str, float | None]] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A decision, its sentence, and all it was made from: name -> number, None unknown.

    version: the release that decided; another one may decide otherwise from the same numbers.
    """

    version: str
    decision: Decision
    sentence: str
    record: Mapping[str, float | None]


def find(held: Held | None, record_of: RecordOf, workload: str) -> Record:
    """The record of "namespace/name". Raises StatusError: 404 with the nearest name, 503 while nothing is decided."""
    if held is None:
        raise unavailable("nothing is decided yet: Spark needs some 15 s to start; the pipeline's log says more")
    found = record_of(workload)
    if found is not None:
        decision, numbers = found
        return Record(version=__version__, decision=decision, sentence=sentence(decision), record=numbers)
    names = [f"{namespace}/{name}" for namespace, of in held.namespaces.items() for name in of.workloads]
    if workload in names:
        raise unavailable(f"the last tick made no decision for {workload}; the next one may")
    near = nearest(workload, names)
    hint = f"; did you mean {near!r}?" if near else f"; {len(names)} workloads are known"
    raise not_found(f"there is no workload {workload!r}{hint}")


def decode(body: bytes) -> Record:
    """JSON as a record. Raises ValueError when it is none of this release."""
    try:
        found = msgspec.json.decode(body, type=Record)
    except msgspec.DecodeError as error:
        raise ValueError(f"not a record: {error}") from error
    if found.version != __version__:
        raise ValueError(f"a record of release {found.version}, this is {__version__}")
    return found
