"""Pravega's scaling events, from the controller's REST interface -> the number of segments at each tick."""

import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import quote

import httpx

from adapter.config import Config, PravegaReading, PravegaSource, Tls
from adapter.errors import SourceError
from adapter.sources import FAULT, Row
from adapter.sources.segments import Event, Policy, events, policy, segments_at

_BEFORE_MS = 60_000  # the controller's clock may differ from ours
_CONNECTIONS = 8  # a hundred streams take 0.7 s of a controller on the same machine


@dataclass(frozen=True, slots=True)
class Reading:
    """One workload and the stream it reads."""

    workload: str
    scope: str
    stream: str


def readings(config: Config, name: str) -> tuple[Reading, ...]:
    """What the configuration reads from the Pravega source of that name."""
    return tuple(
        Reading(f"{workload.namespace}/{workload.name}", reading.scope, reading.stream)
        for workload in config.workloads
        for reading in workload.read
        if isinstance(reading, PravegaReading) and reading.source == name
    )


class _NoAnswerError(Exception):
    """Why one stream has no number."""


class PravegaReader:
    """Reads one Pravega controller. It has a past: the scaling events of a stream's whole life."""

    def __init__(
        self, name: str, settings: PravegaSource, readings: tuple[Reading, ...], client: httpx.Client | None = None
    ) -> None:
        self._name = name
        self._url = settings.url.rstrip("/")
        self._deadline_s = settings.deadline_s
        self._ends_s = 0.0
        self._readings = readings
        self._client = client or httpx.Client(verify=_trusted(name, settings.tls), trust_env=False)

    def samples(self, start_s: int, end_s: int, step_s: int) -> list[Row]:
        """The segments in force at each tick, signal `partitions`; one request a stream."""
        ticks = range(start_s, end_s + 1, step_s)
        self._ends_s = time.monotonic() + self._deadline_s
        try:
            with ThreadPoolExecutor(_CONNECTIONS) as pool:
                answers = list(pool.map(lambda reading: self._rows(reading, ticks), self._readings))
        except httpx.TransportError as error:
            cause = str(error) or type(error).__name__
            raise SourceError(
                self._name, f"no answer from {self._url} within {self._deadline_s:g} s: {cause}"
            ) from error
        return [row for rows in answers for row in rows]

    def policy(self, scope: str, stream: str) -> Policy:
        """How Pravega scales the stream. Raises SourceError when it cannot tell."""
        self._ends_s = time.monotonic() + self._deadline_s
        try:
            return policy(self._get(scope, stream, ""))
        except (_NoAnswerError, ValueError, httpx.TransportError) as error:
            raise SourceError(self._name, f"scaling policy of stream {scope}/{stream}: {error}") from error

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _rows(self, reading: Reading, ticks: range) -> list[Row]:
        try:
            history = self._history(reading, ticks)
        except _NoAnswerError as unknown:
            return [_fault(reading, ticks, str(unknown))]
        except ValueError as error:
            return [_fault(reading, ticks, f"not a list of scaling events: {error}")]
        return rows(reading, history, ticks)

    def _history(self, reading: Reading, ticks: range) -> list[Event]:
        """Events of the ticks; the first is the one in force when they begin. Without any, of the whole life."""
        to_ms = ticks[-1] * 1000 + _BEFORE_MS
        for from_ms in (max(0, ticks[0] * 1000 - _BEFORE_MS), 0):
            query = f"/scaling-events?from={from_ms}&to={to_ms}"
            if found := events(self._get(reading.scope, reading.stream, query)):
                return found
        return []

    def _get(self, scope: str, stream: str, rest: str) -> bytes:
        path = f"/v1/scopes/{quote(scope, safe='')}/streams/{quote(stream, safe='')}"
        left_s = max(0.001, self._ends_s - time.monotonic())
        answer = self._client.get(f"{self._url}{path}{rest}", timeout=left_s)
        if answer.status_code in (401, 403):
            raise SourceError(self._name, f"{self._url} answered {answer.status_code}: it wants a user, check tls")
        if answer.status_code == 404:
            raise _NoAnswerError("it does not exist (deleted?)")
        if answer.status_code != 200:
            raise _NoAnswerError(f"the controller answered {answer.status_code}")
        return answer.content


def rows(reading: Reading, history: list[Event], ticks: range) -> list[Row]:
    """One row a tick with the segments in force then; a fault when the last tick has none. history is oldest first."""
    counts = {at_s: segments_at(history, at_s) for at_s in ticks}
    found = [Row(at_s, reading.workload, "", "partitions", float(n)) for at_s, n in counts.items() if n]
    if not counts[ticks[-1]]:
        found.append(_fault(reading, ticks, "it has no segments yet (created a moment ago?)"))
    return found


def _fault(reading: Reading, ticks: range, why: str) -> Row:
    return Row(ticks[-1], reading.workload, "", FAULT, 0.0, f"stream {reading.scope}/{reading.stream}: {why}")


def _trusted(name: str, tls: Tls) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=tls.ca_file)
        if tls.cert_file is not None:
            context.load_cert_chain(tls.cert_file, tls.key_file)
    except OSError as error:
        raise SourceError(name, f"tls: {tls.ca_file or tls.cert_file}: {error}") from error
    return context
