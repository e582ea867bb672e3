"""The scaling events of Pravega's controller -> the number of segments in each tick."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from urllib.parse import quote

import httpx
import pyarrow as pa

from adapter.config import Config, PravegaReading, PravegaSource
from adapter.errors import SourceError
from adapter.file_stamps import FileStamp
from adapter.http_body import ACCEPTED, BodyError, read_body
from adapter.sources.sample_table import SampleTable
from adapter.sources.scaling_policy import policy_text
from adapter.sources.segments import ScalingEvent, scaling_events, segments_at
from adapter.sources.tls import KEEPALIVE_S, tls_context, tls_stamps

_BEFORE_MS = 60_000  # the controller's clock may differ
_CONNECTIONS = 8  # a hundred streams take 0.7 s of a controller on the same machine


@dataclass(frozen=True, slots=True)
class StreamRead:
    """A workload and its stream."""

    workload: str
    scope: str
    stream: str


def stream_reads(config: Config, name: str) -> tuple[StreamRead, ...]:
    """The streams that the configuration reads from the Pravega source of that name."""
    return tuple(
        StreamRead(workload.id, reading.scope, reading.stream)
        for workload in config.workloads
        for reading in workload.read
        if isinstance(reading, PravegaReading) and reading.source == name
    )


class _UnknownError(Exception):
    """Why the segments of one stream are unknown."""


class _RefusedError(_UnknownError):
    """The controller does not admit this client."""


class _Unavailable(str):
    """Why the segments of one stream are unknown, if the controller did not answer or refused the request."""


class PravegaReader:
    """Reads one Pravega controller, which has the scaling events of a stream's whole life."""

    def __init__(
        self,
        name: str,
        settings: PravegaSource,
        reads: tuple[StreamRead, ...],
        transport: httpx.BaseTransport | None = None,  # for tests
    ) -> None:
        self._name = name
        self._tls = settings.tls
        self._url = settings.url.rstrip("/")
        self._deadline_s = settings.deadline_s
        self._deadline_at_s = 0.0
        self._reads = reads
        self._transport = transport
        self._client: httpx.Client | None = None
        self._tls_stamps: tuple[FileStamp, ...] = ()

    def samples(self, start_s: int, end_s: int, step_s: int) -> pa.Table:
        """The segments in force in each tick as the signal `partitions`, with one request a stream.

        Raises SourceError if the controller answers for no stream.
        """
        ticks = range(start_s, end_s + 1, step_s)
        self._deadline_at_s = time.monotonic() + self._deadline_s
        client = self._current_client()
        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            histories = list(pool.map(lambda read: self._history(client, read, ticks), self._reads))
        unanswered = [history for history in histories if isinstance(history, _Unavailable)]
        if unanswered and len(unanswered) == len(histories):
            raise SourceError(self._name, unanswered[0])
        table = SampleTable()
        for read, history in zip(self._reads, histories, strict=True):
            _add_segments(table, read, history, ticks)
        return table.finish()

    def scaling_policy(self, scope: str, stream: str) -> str:
        """How Pravega scales a stream at present. Raises SourceError if the controller does not tell."""
        self._deadline_at_s = time.monotonic() + self._deadline_s
        try:
            return policy_text(self._get(self._current_client(), scope, stream, ""))
        except (_UnknownError, ValueError, httpx.TransportError) as error:
            cause = str(error) or type(error).__name__
            raise SourceError(self._name, f"stream {scope}/{stream} of {self._url}: {cause}") from error

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _current_client(self) -> httpx.Client:
        """The client, opened anew after a TLS file has changed."""
        stamps = tls_stamps(self._tls)
        if stamps != self._tls_stamps:
            self.close()
        if self._client is None:
            verify = tls_context(self._name, self._url, self._tls)
            limits = httpx.Limits(keepalive_expiry=KEEPALIVE_S)
            self._client = httpx.Client(verify=verify, transport=self._transport, limits=limits, trust_env=False)
            self._tls_stamps = stamps
        return self._client

    def _history(self, client: httpx.Client, read: StreamRead, ticks: range) -> list[ScalingEvent] | str:
        """The events of the ticks, oldest first, or the reason why they are unknown."""
        try:
            return self._events(client, read, ticks)
        except _RefusedError as refused:
            return _Unavailable(refused)
        except (_UnknownError, BodyError) as unknown:
            return str(unknown)
        except ValueError as error:
            return f"not a list of scaling events: {error}"
        except httpx.TransportError as error:
            cause = str(error) or type(error).__name__
            return _Unavailable(f"no answer from {self._url} within {self._deadline_s:g} s: {cause}")

    def _events(self, client: httpx.Client, read: StreamRead, ticks: range) -> list[ScalingEvent]:
        """The first event is the one in force when the ticks begin. Without any, read the stream's whole life."""
        to_ms = ticks[-1] * 1000 + _BEFORE_MS
        for from_ms in (max(0, ticks[0] * 1000 - _BEFORE_MS), 0):
            query = f"/scaling-events?from={from_ms}&to={to_ms}"
            if events := scaling_events(self._get(client, read.scope, read.stream, query)):
                return events
        return []

    def _get(self, client: httpx.Client, scope: str, stream: str, rest: str) -> bytes:
        path = f"/v1/scopes/{quote(scope, safe='')}/streams/{quote(stream, safe='')}"
        left_s = self._deadline_at_s - time.monotonic()
        if left_s <= 0:
            raise httpx.ReadTimeout("the requests before it took too long")
        with client.stream("GET", f"{self._url}{path}{rest}", timeout=left_s, headers=ACCEPTED) as answer:
            self._check(answer.status_code)
            return read_body(answer, BytesIO(), self._deadline_at_s).getvalue()

    def _check(self, status: int) -> None:
        if status in (401, 403):
            fix = "allow this client to read the stream; tls.cert_file and tls.key_file are its only credentials"
            raise _RefusedError(f"{self._url} answered {status}: {fix}")
        if status == 404:
            raise _UnknownError("it does not exist (deleted?)")
        if status != 200:
            raise _UnknownError(f"the controller answered {status}")


def _add_segments(table: SampleTable, read: StreamRead, history: list[ScalingEvent] | str, ticks: range) -> None:
    """Add the segments of each tick, or a fault if they are unknown in the last one."""
    fault = history if isinstance(history, str) else ""
    counts = {} if isinstance(history, str) else {at_s: segments_at(history, at_s) for at_s in ticks}
    for at_s, count in counts.items():
        if count:
            table.add(at_s, read.workload, {"partitions": float(count)})
    if not counts.get(ticks[-1]):
        reason = fault or "it has no segments yet (created a moment ago?)"
        table.add_fault(ticks[-1], read.workload, f"stream {read.scope}/{read.stream}: {reason}")
