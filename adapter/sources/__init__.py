"""Edge in: the counts of other systems as rows. One system a module, one protocol for past and present."""

from dataclasses import dataclass
from typing import Protocol

FAULT = "fault"  # the signal of a row that says why there is no number; its text is the sentence
EVERY = "*"  # the workload of a fault that speaks of all workloads of its source


@dataclass(frozen=True, slots=True)
class Row:
    """One value that was seen.

    at_s: Unix seconds of the tick it belongs to (a whole tick between start_s and end_s of the call).
    workload: "namespace/name".
    stage: an operator of the workload, "" for the whole of it.
    signal: a name of core.samples.STAGE_SIGNALS, WORKLOAD_SIGNALS or OVERRIDES, or FAULT.
    value: never NaN or infinite (leave the row out, or say FAULT); 0.0 with FAULT.
    text: the sentence of a FAULT, else "".
    """

    at_s: int
    workload: str
    stage: str
    signal: str
    value: float
    text: str = ""


class Source(Protocol):
    """Reads one system. Opened inside the executor's task, never pickled; closed at its end."""

    def samples(self, start_s: int, end_s: int, step_s: int) -> list[Row]:
        """What was seen at start_s, start_s + step_s, ... end_s (all included), in any order.

        A source without a past answers for end_s alone, and only while end_s is less than one step old.
        Raises SourceError when the system does not answer within the source's deadline.
        A fault of single workloads is a FAULT row, not an exception.
        """

    def close(self) -> None:
        """Release connections."""
