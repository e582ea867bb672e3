"""Every request -> who asks, where he may."""

import time
from collections.abc import Callable
from dataclasses import replace

import structlog

from adapter.errors import SourceError
from adapter.serving.access import frontproxy, impersonation
from adapter.serving.access.certificates import subject
from adapter.serving.access.frontproxy import FrontProxy
from adapter.serving.access.identity import ANONYMOUS, LOCAL, Identity, is_stranger
from adapter.serving.access.review_spec import asked
from adapter.serving.access.reviews import Decision, Reviews, needs_none
from adapter.serving.access.settings import AuthenticationSettings
from adapter.serving.access.tokens import Tokens, presented
from adapter.serving.api.attributes import Attributes, forbidden
from adapter.serving.api.request import Request
from adapter.serving.api.status import Refusal, bad_request, internal_server_error, unauthorized

# What keeps this server listed, answered to everybody until it is known how callers are recognised.
_OPEN = ("/apis", "/healthz", "/livez", "/openapi", "/readyz", "/version")
_NO_SNIFFING = {"X-Content-Type-Options": "nosniff"}
_CLOSE = {"Connection": "close"}
_MOST_TOLD = 256

_log = structlog.get_logger(__name__)


class Everybody:
    """Admits all, which belongs on loopback."""

    def admit(self, request: Request, attributes: Attributes) -> Identity:
        """Always the same local user, with every right."""
        return LOCAL


class Access:
    """Asks who calls, then whether he may, in the order of Go's servers (apiserver, DefaultBuildHandlerChain).

    clock: Unix seconds, for the validity of certificates.
    """

    def __init__(
        self, settings: AuthenticationSettings, tokens: Tokens, reviews: Reviews, clock: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._tokens = tokens
        self._reviews = reviews
        self._clock = clock
        self._told: set[bytes] = set()

    def admit(self, request: Request, attributes: Attributes) -> Identity:
        """Who asks, or whom he impersonates.

        Raises Refusal: 401 for a credential that is not accepted, 403 for what he may not, 400 for impersonation of
        nobody, 500 where the cluster does not say. Raises MustWait where the cluster has to be asked and the request
        is not patient. A stranger is told to close his connection: it was made before its certificate was asked for,
        or accepted, and the next one may fare better.
        """
        settings = self._settings.current
        if settings is None and _is_open(attributes):
            return ANONYMOUS
        identity = self._identity(settings, request)
        if settings is None and identity is ANONYMOUS:
            raise _refusal(attributes, identity, f"how callers are recognised is unknown: {self._settings.fault}")
        identity = self._impersonated(identity, request)
        try:
            decision = self._decision(identity, attributes, request)
        except SourceError as error:
            raise Refusal(internal_server_error(request.uri, error.cause)) from error
        if not decision.allowed:
            raise _refusal(attributes, identity, decision.reason)
        return identity

    def close(self) -> None:
        """Ask the cluster nothing more."""
        self._tokens.close()
        self._reviews.close()

    def _identity(self, settings: FrontProxy | None, request: Request) -> Identity:
        """Who the first credential that is accepted says; ANONYMOUS without any. A bad one beside a good one does not
        matter."""
        certificate = None if settings is None else request.certificate
        if settings is not None and certificate is not None:
            known = frontproxy.identify(settings, certificate, request.headers, self._clock())
            if known is not None:
                return known
        tokens = presented(request.headers)
        for token in tokens:
            owner = self._tokens.owner(token, patient=request.patient)
            if owner is not None:
                return owner
        if certificate is None and not tokens:
            return ANONYMOUS
        if certificate is not None:
            self._doubt(certificate)
        raise Refusal(replace(unauthorized(), headers=_CLOSE))

    def _doubt(self, certificate: bytes) -> None:
        """Perhaps the settings are old; if not, somebody should know, once."""
        self._settings.doubt()
        if certificate in self._told:
            return
        if len(self._told) >= _MOST_TOLD:
            self._told.clear()
        self._told.add(certificate)
        hint = "expected a front proxy's of an allowed name, with user headers, or a client's with a common name"
        _log.warning("a client certificate is refused", name=subject(certificate), hint=hint)

    def _impersonated(self, identity: Identity, request: Request) -> Identity:
        """Whom he wants to be, where each part of that is allowed. Where the cluster does not say, it is not."""
        try:
            wishes = impersonation.wishes(request.headers)
        except ValueError as error:
            raise Refusal(replace(bad_request(str(error)), headers=_NO_SNIFFING)) from error
        for wish in wishes:
            try:
                decision = self._decision(identity, wish, request)
            except SourceError:
                decision = Decision(False)
            if not decision.allowed:
                raise _refusal(wish, identity, decision.reason)
        return impersonation.identity_of(wishes) if wishes else identity

    def _decision(self, identity: Identity, attributes: Attributes, request: Request) -> Decision:
        if needs_none(identity, attributes):
            return Decision(True)
        question = asked(identity, attributes, request.query)
        # The widest first: every HPA has a selector of its own, and one answer does for all of them.
        decision = self._reviews.decide(question.widest, patient=request.patient)
        if decision.allowed or question.widest == question:
            return decision
        return self._reviews.decide(question, patient=request.patient)


def _is_open(attributes: Attributes) -> bool:
    if attributes.is_resource or attributes.verb != "get":
        return False
    return attributes.path in _OPEN or attributes.path.startswith(tuple(f"{path}/" for path in _OPEN))


def _refusal(attributes: Attributes, identity: Identity, reason: str) -> Refusal:
    answer = forbidden(attributes, identity.user, reason)
    return Refusal(replace(answer, headers={**answer.headers, **_CLOSE}) if is_stranger(identity) else answer)
