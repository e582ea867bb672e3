"""The routes of this project: the metrics API, monitoring, and the snapshots and explanations of the pipeline."""

import threading
import time
from collections.abc import Callable
from functools import partial
from importlib.resources import files

from adapter.apiserver import discovery, probes
from adapter.apiserver.answer import Answer, Handler, Routes, exposition, json, matches, text, with_etag
from adapter.apiserver.negotiation import check_json
from adapter.apiserver.probes import PING, Checks
from adapter.apiserver.request import Request
from adapter.apiserver.status import unauthorized
from adapter.serving.metric_api import CustomProvider, ExternalProvider, api_groups
from adapter.serving.metric_reader import MetricReader
from adapter.serving.providers import ExternalMetrics, ObjectMetrics
from adapter.serving.snapshots import records
from adapter.serving.snapshots.records import RecordOf
from adapter.serving.snapshots.store import SnapshotStore
from adapter.serving.snapshots.transport import MESSAGE_TYPE, SNAPSHOT_PATH, TokenFile
from adapter.serving.telemetry import Telemetry

# A server without a snapshot waits this long, so that an upgrade that also restarts the pipeline keeps the old servers,
# which have numbers. Then it is ready without one: namespaces cannot be deleted while no server answers discovery.
FIRST_SNAPSHOT_S = 120.0
OPENAPI = files("adapter.serving").joinpath("openapi.json")


class Readiness:
    """The checks of `/readyz`.

    patience_s: after that the server is ready without a snapshot too. more: further checks by name.
    """

    def __init__(
        self,
        has_snapshot: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
        patience_s: float = FIRST_SNAPSHOT_S,
        more: Checks | None = None,
    ) -> None:
        self._more = more or {}
        self._has_snapshot = has_snapshot
        self._clock = clock
        self._patience_ends_s = clock() + patience_s
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Not ready from now on; requests are still answered."""
        self._stopping.set()

    def checks(self) -> Checks:
        """Every check by its name, in the order of `?verbose`."""
        return {
            **PING,
            **self._more,
            "first-snapshot": lambda: self._has_snapshot() or self._clock() >= self._patience_ends_s,
            "shutdown": lambda: not self._stopping.is_set(),
        }


def metric_routes(store: SnapshotStore) -> Routes:
    """The metrics API over the newest snapshot."""
    reader = MetricReader(store)
    return api_routes(ExternalMetrics(reader), ObjectMetrics(reader))


def api_routes(external: ExternalProvider, custom: CustomProvider) -> Routes:
    """Both groups of metrics, their discovery and description."""
    openapi = {"/openapi/v2": partial(_openapi, OPENAPI.read_bytes())}
    return {**discovery.routes(api_groups(external, custom)), **openapi}


def monitoring_routes(
    telemetry: Telemetry, readiness: Readiness, alive: Checks | None = None, token_file: str | None = None
) -> Routes:
    """`/metrics` and the probes.

    alive: what liveness checks besides that the server answers. token_file: for the token that `/metrics` requires;
    None admits every client.
    """
    checks = probes.routes(alive={**PING, **(alive or {})}, ready=readiness.checks())
    return {**_guarded_routes({"/metrics": exposition(telemetry.exposition)}, token_file), **checks}


def publisher_routes(store: SnapshotStore, record_of: RecordOf, token_file: str | None) -> Routes:
    """The snapshot and the explanations, for clients with the token in a file; None admits every client."""
    return _guarded_routes({SNAPSHOT_PATH: partial(_snapshot, store), **explain_routes(store, record_of)}, token_file)


def explain_routes(store: SnapshotStore, record_of: RecordOf) -> Routes:
    """`/explain/<namespace>/<name>`, in the process that runs the pipeline."""

    def explain(request: Request, namespace: str, name: str) -> Answer:
        return json(records.find(store.current, record_of, f"{namespace}/{name}"))

    return {f"{records.PATH}/<namespace>/<name>": explain}


def _guarded_routes(routes: Routes, token_file: str | None) -> Routes:
    if token_file is None:
        return routes
    token = TokenFile(token_file)
    return {path: _guard(read, token) for path, read in routes.items()}


def _guard(read: Handler, token: TokenFile) -> Handler:
    def answer(request: Request, **parts: str) -> Answer:
        if not token.matches(request.header(b"authorization")):
            raise unauthorized()
        return read(request, **parts)

    return answer


def _snapshot(store: SnapshotStore, request: Request) -> Answer:
    held = store.current
    if held is None:
        return text("no snapshot yet\n", 404)
    headers = {"ETag": held.etag, "Vary": "Accept-Encoding"}
    if matches(held.etag, request.header(b"if-none-match")):
        return Answer(304, b"", headers=headers)
    if "gzip" in request.header(b"accept-encoding"):
        return Answer(200, held.compressed, MESSAGE_TYPE, headers | {"Content-Encoding": "gzip"})
    return Answer(200, held.body, MESSAGE_TYPE, headers)


def _openapi(document: bytes, request: Request) -> Answer:
    check_json(request.header(b"accept"))
    return with_etag(request, document)
