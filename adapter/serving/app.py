"""Flask applications: the metrics API where an answer has to be waited for, and the pipeline's publishing side."""

from collections.abc import Callable

import structlog
from flask import Blueprint, Flask, Response, request
from werkzeug.exceptions import HTTPException, NotFound

from adapter.apiserver.client_certificate import client_certificate
from adapter.serving.api import rendering
from adapter.serving.api.documents import EXPOSITION
from adapter.serving.api.metrics_api import MetricsApi
from adapter.serving.api.probes import Probes
from adapter.serving.api.request import Request
from adapter.serving.api.status import Answer, failure, internal_error, unauthorized
from adapter.serving.api.stored import is_known
from adapter.serving.snapshots import records
from adapter.serving.snapshots.store import Held, SnapshotStore
from adapter.serving.snapshots.transport import MESSAGE_TYPE, SNAPSHOT_PATH, token_matches
from adapter.serving.telemetry import Telemetry

_log = structlog.get_logger(__name__)


def create_app(api: MetricsApi, *before: Blueprint) -> Flask:
    """The metrics API on threads that may wait. before: what has routes of its own."""
    app = _bare_app("adapter.serving.api")
    for blueprint in before:
        app.register_blueprint(blueprint)

    def patiently(asked: Request) -> rendering.Response:
        return api.respond(asked)

    _add_everything_else(app, patiently)
    return app


def create_publisher_app(
    store: SnapshotStore, *, token_file: str | None, probes: Probes, telemetry: Telemetry
) -> Flask:
    """The pipeline's side: `/v1/snapshot`, probes and `/metrics`.

    token_file: holds the bearer token that a snapshot costs; None gives it to everybody.
    """
    app = create_metrics_app(probes=probes, telemetry=telemetry)

    @app.get(SNAPSHOT_PATH)
    def snapshot() -> Response:
        return _of_answer(unauthorized()) if _lacks_token(token_file) else _published(store.current)

    return app


def add_records(app: Flask, store: SnapshotStore, record_of: records.RecordOf, *, token_file: str | None) -> None:
    """`/explain/<namespace>/<name>`, for the process in which the pipeline runs. token_file: as of the snapshot."""

    @app.get(f"{records.PATH}/<namespace>/<name>")
    def explain(namespace: str, name: str) -> Response:
        if _lacks_token(token_file):
            return _of_answer(unauthorized())
        return _of_answer(records.answer(store.current, record_of, f"{namespace}/{name}"))


def create_metrics_app(*, probes: Probes, telemetry: Telemetry) -> Flask:
    """Probes and `/metrics` alone, for a port of their own inside the cluster."""
    app = _bare_app("adapter.serving.metrics")

    @app.get("/metrics")
    def metrics() -> Response:
        return Response(telemetry.exposition(), content_type=EXPOSITION)

    paths = ("/metrics", *probes.paths())

    def probe(asked: Request) -> rendering.Response:
        return rendering.respond(asked, probes.answer(asked) or Answer(404, {"paths": sorted(paths)}, indented=True))

    _add_everything_else(app, probe)
    return app


def _bare_app(name: str) -> Flask:
    """Routes as Kubernetes has them (a slash at the end is fine, two are not one), errors as Status."""
    app = Flask(name, static_folder=None)
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False
    app.register_error_handler(HTTPException, _http_error)
    # The top loop of a request: whatever went wrong, the caller gets a Status and the log gets the rest.
    app.register_error_handler(Exception, _crash)
    return app


def _add_everything_else(app: Flask, respond: Callable[[Request], rendering.Response]) -> None:
    """Every path and every method that has no route of its own."""

    @app.before_request
    def everything_else() -> Response | None:
        # Not a route: those of Flask know no other methods, no upgrades, and no line feed in a path.
        if not isinstance(request.routing_exception, NotFound):
            return None
        request.routing_exception = None  # its traceback refers to the request, with all that was made for it
        return _sent(respond(_asked()))


def _asked() -> Request:
    scope = request.environ.get("asgi.scope")
    if scope is not None:
        query = scope["query_string"]
        uri = (scope["raw_path"] + b"?" + query if query else scope["raw_path"]).decode("utf-8", "replace")
        fields = [(name.decode("latin-1"), value.strip().decode("latin-1")) for name, value in scope["headers"]]
        return Request.of(scope["method"], uri, fields, client_certificate(request.environ))
    headers = [(name.lower(), value) for name, value in request.headers]
    return Request.of(request.method, request.full_path.removesuffix("?"), headers)


def _http_error(error: HTTPException) -> Response:
    return _of_answer(failure(error.code or 500, error.name.replace(" ", ""), error.description or error.name))


def _crash(error: Exception) -> Response:
    _log.error("a request failed", path=request.path, exc_info=error)
    return _of_answer(internal_error())


def _of_answer(answer: Answer) -> Response:
    return _sent(rendering.respond(_asked(), answer))


def _sent(response: rendering.Response) -> Response:
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers]
    return Response(response.body, response.code, headers)


def _lacks_token(token_file: str | None) -> bool:
    return token_file is not None and not token_matches(token_file, request.headers.get("Authorization", ""))


def _published(held: Held | None) -> Response:
    if held is None:
        return Response("no snapshot yet\n", 404, content_type="text/plain; charset=utf-8")
    headers = {"ETag": held.etag, "Vary": "Accept-Encoding"}
    if is_known(held.etag, request.headers.get("If-None-Match", "")):
        return Response(b"", 304, headers)
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        return Response(held.compressed, 200, headers | {"Content-Encoding": "gzip"}, content_type=MESSAGE_TYPE)
    return Response(held.body, 200, headers, content_type=MESSAGE_TYPE)
