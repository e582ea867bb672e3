"""The metrics API: whatever an API server or an HPA asks, answered in one place."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Protocol

import structlog

from adapter.serving.access.identity import Identity
from adapter.serving.api import attributes, custom, external, parameters, rendering
from adapter.serving.api.attributes import Attributes
from adapter.serving.api.custom import CustomProvider, ObjectQuestion
from adapter.serving.api.documents import Documents
from adapter.serving.api.external import ExternalProvider, ExternalQuestion
from adapter.serving.api.negotiation import EXTERNAL, check_acceptable, negotiate
from adapter.serving.api.rendering import Response
from adapter.serving.api.request import MustWait, Request
from adapter.serving.api.routes import ExternalRoute, ObjectRoute, Route, route
from adapter.serving.api.status import (
    Answer,
    Refusal,
    bad_request,
    internal_error,
    method_not_allowed,
    no_such_resource,
)
from adapter.serving.api.values import Value

# Another adapter's answer to a request; raises MustWait where it may not be waited for.
Forward = Callable[[Request], Answer]

_log = structlog.get_logger(__name__)


class Access(Protocol):
    """Who asks, and whether they may."""

    def admit(self, request: Request, attributes: Attributes) -> Identity:
        """Who asks. Raises Refusal where that is not allowed, MustWait where it has to be asked."""


class Answered(Value, frozen=True):
    """A request with the response to it. identity: who asks, None where it was not found out. route: None for what is
    no metric."""

    request: Request
    identity: Identity | None
    route: Route | None
    response: Response


# Told of each response once, when it is handed to its caller, and how many seconds that took.
Account = Callable[[Answered, float], None]


def tell_nobody(answered: Answered, took_s: float) -> None:
    """For a server that keeps no account."""


@dataclass(frozen=True)
class MetricsApi:
    """Answers requests. elsewhere: by group, who has the metrics that are not ours."""

    external: ExternalProvider
    custom: CustomProvider
    access: Access
    documents: Documents
    elsewhere: Mapping[str, Forward] = field(default_factory=dict)
    account: Account = tell_nobody

    def respond(self, request: Request) -> Response:
        """As `answered`, for a caller who has the response when this returns: it is accounted for."""
        began_s = perf_counter()
        answered = self.answered(request)
        self.account(answered, perf_counter() - began_s)
        return answered.response

    def answered(self, request: Request) -> Answered:
        """The response, whatever is wrong with the request, to be accounted for by whoever hands it on.

        Raises MustWait where it has to be waited for and the request is not patient.
        """
        found, identity = route(request.path), None
        try:
            identity = self._admitted(request)
            response = rendering.respond(request, self._answer(request, found))
        except Refusal as refusal:
            response = rendering.respond(request, refusal.answer)
        except MustWait:
            raise
        except Exception as error:
            # The top loop of a request: the caller gets a Status, and the log gets the rest.
            _log.error("a request failed", uri=request.uri[:200], exc_info=error)
            response = rendering.respond(request, internal_error())
        return Answered(request, identity, found, response)

    def _admitted(self, request: Request) -> Identity:
        asked = attributes.of_request(request)
        parameters.check_timeout(request.query, watching=asked.verb == "watch")
        return self.access.admit(request, asked)

    def _answer(self, request: Request, found: Route | None) -> Answer:
        if found is None:
            return self.documents.answer(request) or self._nothing_there(request)
        if request.method != "GET":
            return method_not_allowed()
        check_acceptable(request.header("accept"), EXTERNAL.representations)
        if isinstance(found, ExternalRoute):
            return self._of_external(request, found)
        return self._of_objects(request, found)

    def _of_external(self, request: Request, found: ExternalRoute) -> Answer:
        forward = self.elsewhere.get(external.GROUP)
        if forward is not None and not self.external.has(found.metric):
            return forward(request)
        selector = parameters.external_selector(request.query)
        negotiate(request.header("accept"), EXTERNAL)
        question = ExternalQuestion(found.namespace, found.metric, selector, request.patient)
        return Answer(200, external.listing(self.external.read(question)))

    def _of_objects(self, request: Request, found: ObjectRoute) -> Answer:
        if not found.metric:
            return bad_request("invalid request path")
        forward = self.elsewhere.get(custom.GROUP)
        if forward is not None and not self.custom.has(found.resource, found.metric):
            return forward(request)
        selector, metric_selector = parameters.object_selectors(request.query, found.name)
        question = ObjectQuestion(
            found.namespace, found.resource, found.name, found.metric, selector, metric_selector, request.patient
        )
        return Answer(200, custom.listing(found.version, question, self.custom.read(question)))

    def _nothing_there(self, request: Request) -> Answer:
        if request.path.startswith((f"/apis/{external.GROUP}/", f"/apis/{custom.GROUP}/")):
            return no_such_resource()
        return self.documents.path_list(request)
