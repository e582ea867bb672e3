"""Replay a recording against a running server."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum

from conformance import divergences
from conformance.client import Client
from conformance.compare import differences
from conformance.recording import Request, Row

# Slow rows do not delay the others.
_CONCURRENCY = 8


class Verdict(Enum):
    """The result of a row."""

    MATCHED = "matched"
    LISTED = "listed"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict on a row. divergence: the name of the listed divergence."""

    row: Row
    verdict: Verdict
    differences: tuple[str, ...] = ()
    divergence: str = ""

    def __str__(self) -> str:
        verdict = f"{self.verdict.value} as {self.divergence}" if self.divergence else self.verdict.value
        return ": ".join(filter(None, (self.row.id, verdict, "; ".join(self.differences))))


def replay(rows: Sequence[Row], client: Client) -> Iterator[Result]:
    """Send every row, several at once; results come in the order of the rows."""
    with ThreadPoolExecutor(_CONCURRENCY) as pool:
        yield from pool.map(lambda row: judge(row, client), rows)


def judge(row: Row, client: Client) -> Result:
    """Send the request of a row and compare the responses."""
    ours = client.send(_with_own_etag(row, client))
    found = tuple(differences(row.outcome, ours))
    if not found:
        return Result(row, Verdict.MATCHED)
    divergence = divergences.find(row, ours)
    return Result(row, Verdict.LISTED if divergence else Verdict.FAILED, found, divergence)


def _with_own_etag(row: Row, client: Client) -> Request:
    """The request; a client that has their document is taken to have ours."""
    if row.outcome is None or row.outcome.status != 304:
        return row.request
    first = client.send(row.request.with_header("if-none-match", ""))
    return row.request.with_header("if-none-match", "" if first is None else first.headers.get("etag", ""))


def summary(results: Sequence[Result]) -> str:
    """The number of rows of each verdict."""
    matched, listed, failed = (sum(each.verdict is verdict for each in results) for verdict in Verdict)
    return f"{matched} matched, {listed} listed divergences, {failed} failed"
