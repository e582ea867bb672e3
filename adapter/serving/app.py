"""HTTP for the metrics API and for the pipeline's publishing side; what is answered comes from elsewhere."""

import time
from collections.abc import Callable
from functools import cache
from http.client import METHOD_NOT_ALLOWED

import structlog
from flask import Flask, Response, g, request
from werkzeug.exceptions import HTTPException, NotFound

from adapter.serving import discovery, external, negotiation, parameters, records
from adapter.serving.frontproxy import ANONYMOUS, Headers, Identity
from adapter.serving.probes import Readiness, always_alive, probe
from adapter.serving.status import (
    Answer,
    Document,
    encode,
    failure,
    internal_error,
    method_not_allowed,
    no_such_resource,
    unauthorized,
)
from adapter.serving.store import Held, SnapshotStore
from adapter.serving.telemetry import CONTENT_TYPE, Telemetry
from adapter.serving.transport import SNAPSHOT_PATH, token_matches

Authenticate = Callable[[bytes | None, Headers], Identity | None]
Checks = Callable[[], dict[str, bool]]

_GROUP = f"/apis/{external.GROUP}"
_RESOURCES = f"/apis/{external.GROUP_VERSION}"
_METRIC = f"{_RESOURCES}/namespaces/<namespace>/<metric>"
# Clients that a person sits at get indented JSON, as from kube-apiserver.
_PEOPLE = ("curl", "Wget", "Mozilla")
# Every method has the route, for who may not ask is refused before how he asks.
_METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
_VERBS = {"GET": "list", "HEAD": "list", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}

_log = structlog.get_logger(__name__)


def create_app(
    store: SnapshotStore,
    *,
    authenticate: Authenticate | None,
    readiness: Readiness,
    telemetry: Telemetry,
    clock: Callable[[], float] = time.time,
) -> Flask:
    """The metrics API over what the store holds.

    authenticate: says who asks; None admits everybody and belongs on loopback only. clock: Unix seconds.
    """
    app = _bare_app("adapter.serving.api", telemetry)
    _add_probes(app, readiness, telemetry)
    _add_discovery(app)

    @app.before_request
    def admit() -> Response | None:
        refusal = None if authenticate is None else _refusal(authenticate)
        if refusal is None and request.method != "GET" and request.path.startswith("/apis/"):
            refusal = method_not_allowed()
        return None if refusal is None else _respond(refusal)

    def read_metric(namespace: str, metric: str) -> Response:
        g.metric = metric
        asked = negotiation.takes_json(_accept()) or parameters.question(namespace, metric, request.args)
        return _respond(asked if isinstance(asked, Answer) else external.answer(store.current, clock(), asked))

    app.add_url_rule(_METRIC, view_func=read_metric, methods=_METHODS)
    return app


def create_publisher_app(
    store: SnapshotStore,
    *,
    token_file: str | None,
    readiness: Readiness,
    telemetry: Telemetry,
    alive: Checks = always_alive,
) -> Flask:
    """The pipeline's side: `/v1/snapshot`, probes and `/metrics`.

    token_file: holds the bearer token that a snapshot costs; None gives it to everybody. alive: every check of
    liveness with whether it passes.
    """
    app = _bare_app("adapter.serving.publisher", telemetry)
    _add_probes(app, readiness, telemetry, alive)

    @app.get(SNAPSHOT_PATH)
    def snapshot() -> Response:
        return _respond(unauthorized()) if _lacks_token(token_file) else _published(store.current)

    return app


def add_records(app: Flask, store: SnapshotStore, record_of: records.RecordOf, *, token_file: str | None) -> None:
    """`/explain/<namespace>/<name>`, for the process in which the pipeline runs. token_file: as of the snapshot."""

    @app.get(f"{records.PATH}/<namespace>/<name>")
    def explain(namespace: str, name: str) -> Response:
        if _lacks_token(token_file):
            return _respond(unauthorized())
        return _respond(records.answer(store.current, record_of, f"{namespace}/{name}"))


def create_metrics_app(*, readiness: Readiness, telemetry: Telemetry) -> Flask:
    """Probes and `/metrics` alone, for a port of their own inside the cluster."""
    app = _bare_app("adapter.serving.metrics", telemetry)
    _add_probes(app, readiness, telemetry)
    return app


def _bare_app(name: str, telemetry: Telemetry) -> Flask:
    """Routes as Kubernetes has them (a slash at the end is fine, two are not one), errors as Status, all counted."""
    app = Flask(name, static_folder=None)
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False
    app.before_request(_start)
    app.after_request(lambda response: _finish(response, telemetry))
    app.register_error_handler(HTTPException, _http_error)
    # The top loop of a request: whatever went wrong, the caller gets a Status and the log gets the rest.
    app.register_error_handler(Exception, _crash)
    return app


def _start() -> None:
    g.started = time.perf_counter()
    g.metric = ""
    g.stranger = False


def _finish(response: Response, telemetry: Telemetry) -> Response:
    response.headers.setdefault("Cache-Control", "no-cache, private")
    if g.stranger:
        # The connection was made before its certificate was asked for, or accepted: the next one may fare better.
        response.headers["Connection"] = "close"
    telemetry.answered(g.metric, response.status_code, time.perf_counter() - g.started)
    return response


def _http_error(error: HTTPException) -> Response:
    if isinstance(error, NotFound):
        return _unknown_path()
    if error.code == METHOD_NOT_ALLOWED:
        return _respond(method_not_allowed())
    return _respond(failure(error.code or 500, error.name.replace(" ", ""), error.description or error.name))


def _crash(error: Exception) -> Response:
    _log.error("a request failed", path=request.path, exc_info=error)
    return _respond(internal_error())


def _unknown_path() -> Response:
    if request.path.startswith(f"{_GROUP}/"):
        return _respond(no_such_resource())
    return _respond(Answer(200 if request.path == "/" else 404, discovery.path_list(), indented=True))


def _add_probes(app: Flask, readiness: Readiness, telemetry: Telemetry, alive: Checks = always_alive) -> None:
    def text(name: str, checks: dict[str, bool]) -> Response:
        code, body = probe(name, checks, verbose="verbose" in request.args)
        return Response(body, code, {"X-Content-Type-Options": "nosniff"}, content_type="text/plain; charset=utf-8")

    app.add_url_rule("/healthz", "healthz", lambda: text("healthz", alive()))
    app.add_url_rule("/livez", "livez", lambda: text("livez", alive()))
    app.add_url_rule("/readyz", "readyz", lambda: text("readyz", readiness.checks()))
    app.add_url_rule("/metrics", "metrics", lambda: Response(telemetry.exposition(), content_type=CONTENT_TYPE))


def _add_discovery(app: Flask) -> None:
    def groups() -> Response:
        if negotiation.takes_aggregated(_accept()):
            return _aggregated()
        return _document(discovery.group_list(int(request.environ.get("SERVER_PORT", 0))))

    def add(path: str, name: str, view: Callable[[], Response]) -> None:
        app.add_url_rule(path, name, view, methods=_METHODS)

    add("/apis", "groups", groups)
    add(_GROUP, "group", lambda: _document(discovery.group()))
    add(_RESOURCES, "resources", lambda: _document(discovery.resource_list()))


def _document(document: Document) -> Response:
    return _respond(negotiation.takes_json(_accept()) or Answer(200, document))


@cache
def _aggregated_body() -> tuple[bytes, str]:
    body = encode(discovery.aggregated())
    return body, discovery.etag(body)


def _aggregated() -> Response:
    body, etag = _aggregated_body()
    headers = {"Cache-Control": "public", "ETag": etag, "Vary": "Accept"}
    if etag in request.headers.get("If-None-Match", ""):
        return Response(b"", 304, headers)
    return Response(body, 200, headers, content_type=discovery.AGGREGATED)


def _accept() -> str:
    return request.headers.get("Accept", "")


def _respond(answer: Answer) -> Response:
    body = encode(answer.document, indented=answer.indented or _wants_indented())
    response = Response(body, answer.code, content_type="application/json")
    if answer.code == 403:
        response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def _wants_indented() -> bool:
    asked = request.args.get("pretty")
    if asked:
        return asked in ("1", "t", "T", "true", "TRUE", "True")
    return request.headers.get("User-Agent", "").startswith(_PEOPLE)


def _refusal(authenticate: Authenticate) -> Answer | None:
    """401 for a credential that is not accepted, 403 for a stranger who asks for more than discovery and probes."""
    # The raw headers: WSGI would join several groups with commas, and take X_Remote_User for X-Remote-User.
    scope = request.environ.get("asgi.scope", {})
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope.get("headers", ())]
    identity = authenticate(scope.get("peer_certificate"), headers)
    g.stranger = identity is None or identity == ANONYMOUS
    if identity is None:
        return unauthorized()
    return _forbidden() if identity == ANONYMOUS and _is_guarded() else None


def _is_guarded() -> bool:
    return request.path.startswith((f"{_RESOURCES}/namespaces", "/metrics"))


def _forbidden() -> Answer:
    user = f'User "{ANONYMOUS.user}"'
    reason = "no certificate of the cluster's front proxy"
    values = request.view_args or {}
    if "metric" not in values:
        message = f'forbidden: {user} cannot {request.method.lower()} path "{request.path}": {reason}'
        return failure(403, "Forbidden", message, {})
    metric, verb = values["metric"], _VERBS.get(request.method, request.method.lower())
    message = (
        f'{metric}.{external.GROUP} is forbidden: {user} cannot {verb} resource "{metric}" in API group '
        f'"{external.GROUP}" in the namespace "{values["namespace"]}": {reason}'
    )
    return failure(403, "Forbidden", message, {"group": external.GROUP, "kind": metric})


def _lacks_token(token_file: str | None) -> bool:
    return token_file is not None and not token_matches(token_file, request.headers.get("Authorization", ""))


def _published(held: Held | None) -> Response:
    if held is None:
        return Response("no snapshot yet\n", 404, content_type="text/plain; charset=utf-8")
    headers = {"ETag": held.etag, "Vary": "Accept-Encoding"}
    if request.headers.get("If-None-Match") == held.etag:
        return Response(b"", 304, headers)
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        return Response(held.compressed, 200, headers | {"Content-Encoding": "gzip"}, content_type="application/json")
    return Response(held.body, 200, headers, content_type="application/json")
