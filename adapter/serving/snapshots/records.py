"""The record of one decision on its way from the pipeline to who asks for an explanation."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

import msgspec

from adapter import __version__
from adapter.core.decisions import Decision
from adapter.core.messages import sentence
from adapter.serving.api.status import Answer, not_found, unavailable
from adapter.serving.signals.near import nearest
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


def answer(held: Held | None, record_of: RecordOf, workload: str) -> Answer:
    """The record of "namespace/name": 200, 404 with the nearest name, or 503 while nothing was decided."""
    if held is None:
        return unavailable("nothing was decided yet: Spark needs some 15 s to start; the pipeline's log tells more")
    found = record_of(workload)
    if found is not None:
        decision, numbers = found
        told = Record(version=__version__, decision=decision, sentence=sentence(decision), record=numbers)
        return Answer(200, asdict(told))
    names = [f"{namespace}/{name}" for namespace, of in held.namespaces.items() for name in of.workloads]
    if workload in names:
        return unavailable(f"{workload} was not decided at the last tick; the next one may")
    near = nearest(workload, names)
    hint = f"; did you mean {near!r}?" if near else f"; {len(names)} workloads are known"
    return not_found(f"there is no workload {workload!r}{hint}")


def decode(body: bytes) -> Record:
    """JSON as a record. Raises ValueError when it is none of this release."""
    try:
        found = msgspec.json.decode(body, type=Record)
    except msgspec.DecodeError as error:
        raise ValueError(f"not a record: {error}") from error
    if found.version != __version__:
        raise ValueError(f"a record of release {found.version}, this is {__version__}")
    return found
