"""The Flask application of an aggregated API server: routes, access and errors."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import msgspec
import structlog
from flask import Flask, Response, g, request
from flask import Request as FlaskRequest
from flask.sessions import SecureCookieSession, SessionInterface, SessionMixin
from werkzeug.exceptions import HTTPException
from werkzeug.routing import MapAdapter, Rule

from adapter.apiserver import answer
from adapter.apiserver.access import Access
from adapter.apiserver.answer import Answer, Handler, Routes
from adapter.apiserver.identity import LOCAL, Identity
from adapter.apiserver.request import Request, from_environ
from adapter.apiserver.status import StatusError, internal_error, method_not_allowed, no_such_resource

_ALWAYS = [("Cache-Control", "no-cache, private"), ("X-Content-Type-Options", "nosniff")]

_EMPTY_SESSION = SecureCookieSession()

_log = structlog.get_logger(__name__)


class RequestOutcome(msgspec.Struct, frozen=True):
    """A request and the code of its response.

    identity: None if authentication failed. metric: the route's variable of that name, "" without it.
    """

    request: Request
    identity: Identity | None
    metric: str
    code: int
    took_s: float


Observer = Callable[[RequestOutcome], None]


class _GetRule(Rule):
    """A route for GET alone; werkzeug adds HEAD."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.methods = (self.methods or set()) - {"HEAD"}


class _NoSession(SessionInterface):
    """Flask would prepare a cookie at each request."""

    def open_session(self, app: Flask, request: FlaskRequest) -> SessionMixin:
        return _EMPTY_SESSION

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:
        """Nothing: clients have no session."""


class _App(Flask):
    url_rule_class = _GetRule
    session_interface = _NoSession()

    def create_url_adapter(self, request: FlaskRequest | None) -> MapAdapter | None:
        """Match the path alone: routes do not depend on the host, which Flask would parse twice."""
        if request is None:
            return None
        return self.url_map.bind("localhost", path_info=request.path, default_method=request.method)


def create_app(routes: Routes, *, access: Access | None = None, observe: Observer | None = None) -> Flask:
    """An application that answers these routes.

    access: decides on every request, also on one without a route; None admits all, for routes that check a token, or
    that everybody may read. observe: called after each request, unless the server has answered the client meanwhile
    (`adapter.is_answered` of the WSGI environment).
    """
    app = _App(__name__, static_folder=None)
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False
    for rule, handler in routes.items():
        app.add_url_rule(rule, rule, _view(handler), methods=["GET"], provide_automatic_options=False)
    app.before_request(_admission(access))
    if observe is not None:
        app.after_request(_observation(observe))
    app.register_error_handler(StatusError, _status)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _unhandled_error)
    return app


class _Call:
    """The state of one request. `flask.g` holds it as one attribute: each access to that proxy takes a microsecond."""

    __slots__ = ("began_s", "identity", "metric", "request")

    def __init__(self, received: Request) -> None:
        self.began_s = perf_counter()
        self.request = received
        self.identity: Identity | None = None
        self.metric = ""


def _admission(access: Access | None) -> Callable[[], None]:
    def admit() -> None:
        g.call = call = _Call(from_environ(request.environ))
        call.identity = LOCAL if access is None else access.admit(call.request)

    return admit


def _observation(observe: Observer) -> Callable[[Response], Response]:
    def after(response: Response) -> Response:
        if request.environ.get("adapter.is_answered", bool)():
            return response  # the client has its 504 already, which the server counted
        call: _Call = g.call
        took_s = perf_counter() - call.began_s
        observe(RequestOutcome(call.request, call.identity, call.metric, response.status_code, took_s))
        return response

    return after


def _view(handler: Handler) -> Callable[..., Response]:
    def view(**parts: str) -> Response:
        call: _Call = g.call
        call.metric = parts.get("metric", "")
        return _response(handler(call.request, **parts))

    return view


def _response(found: Answer) -> Response:
    headers = [("Content-Type", found.content_type), *_ALWAYS]
    if found.headers:
        headers = [*{**dict(headers), **found.headers}.items()]
    return Response(found.body, found.code, headers)


def _status(error: StatusError) -> Response:
    return _response(answer.json(error.document, error.code, error.headers))


def _http_error(error: HTTPException) -> Response:
    """werkzeug's errors: no route, or another method. Flask makes a 500 of an exception after the handler."""
    return _status({404: no_such_resource, 405: method_not_allowed}.get(error.code or 500, internal_error)())


def _unhandled_error(error: Exception) -> Response:
    """An unforeseen exception: the client gets a Status, and the log gets the traceback."""
    _log.error("a request failed", path=request.path, exc_info=error)
    return _status(internal_error())
