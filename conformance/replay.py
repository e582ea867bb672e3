"""Rows of a recording and a running server -> a verdict on each."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from functools import partial

from conformance import divergences
from conformance.asking import Caller
from conformance.comparing import differences
from conformance.recording import Row
from conformance.renaming import renamed

# Rows that wait, for a slow source or for reviews that fail, do not hold up the others.
_AT_ONCE = 8


class Kind(Enum):
    """What became of a row."""

    MATCHED = "same"
    LISTED = "listed"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one row. differences: to the recorded answer, and for a divergence that fails, to its own. divergence: the
    name under which the difference is listed."""

    row: Row
    kind: Kind
    differences: tuple[str, ...] = ()
    divergence: str = ""

    def __str__(self) -> str:
        what = f"{self.kind.value} as {self.divergence}" if self.divergence else self.kind.value
        return ": ".join(filter(None, (self.row.id, what, "; ".join(self.differences))))


def replay(rows: Sequence[Row], caller: Caller) -> Iterator[Verdict]:
    """Ask for every row, several at once; the verdicts come in the order of the rows."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from pool.map(partial(judge, caller=caller), renamed(rows, caller))


def judge(row: Row, caller: Caller) -> Verdict:
    """Ask for one row and compare."""
    ours = caller.ask(row.asked)
    found = differences(row.outcome, ours)
    if not found:
        return Verdict(row, Kind.MATCHED)
    for divergence in divergences.of(row):
        faults = divergence.faults(row, ours, caller)
        if not faults:
            return Verdict(row, Kind.LISTED, tuple(found), divergence.name)
        found += [f"as {divergence.name}: {fault}" for fault in faults]
    return Verdict(row, Kind.FAILED, tuple(found))


def summary(verdicts: Sequence[Verdict]) -> str:
    """How many of each kind."""
    matched, listed, failed = (sum(each.kind is kind for each in verdicts) for kind in Kind)
    return f"{matched} matched, {listed} listed divergences, {failed} failed"
