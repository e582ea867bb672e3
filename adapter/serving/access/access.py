"""Every request -> who asks, where they may."""

import time
from collections.abc import Callable
from dataclasses import replace

import structlog

from adapter.errors import SourceError
from adapter.serving.access import frontproxy, impersonation
from adapter.serving.access.certificates import subject
from adapter.serving.access.frontproxy import FrontProxy, FrontProxyHeaders
from adapter.serving.access.identity import ANONYMOUS, LOCAL, Identity, is_stranger
from adapter.serving.access.review_spec import Asked, asked
from adapter.serving.access.reviews import ALLOWED, Decision, Reviews, needs_none
from adapter.serving.access.said import Said, Sayings
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
# The cause may name addresses, and this is read by anybody.
_UNKNOWN = "how callers are recognised is unknown: the log of this server has the cause"

_log = structlog.get_logger(__name__)


class Everybody:
    """Admits all, which belongs on loopback."""

    def admit(self, request: Request, attributes: Attributes) -> Identity:
        """Always the same local user, with every right."""
        return LOCAL


class Access:
    """Asks who calls, then whether they may, in the order of Go's servers (apiserver, DefaultBuildHandlerChain).

    clock: Unix seconds, for the validity of certificates.
    """

    def __init__(
        self, settings: AuthenticationSettings, tokens: Tokens, reviews: Reviews, clock: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._tokens = tokens
        self._reviews = reviews
        self._clock = clock
        self._sayings = Sayings(FrontProxyHeaders())
        self._told: set[bytes] = set()

    def admit(self, request: Request, attributes: Attributes) -> Identity:
        """Who asks, or whom they impersonate.

        Raises Refusal: 401 for a credential that is not accepted, 403 for what is not allowed, 400 for impersonation of
        nobody, 500 where the cluster does not say. Raises MustWait where the cluster has to be asked and the request
        is not patient. A stranger without a certificate is told to close the connection: it was made before its
        certificate was asked for, or accepted, and the next one may fare better.
        """
        settings = self._settings.current
        if settings is None and _is_open(attributes):
            return ANONYMOUS
        said = self._said(settings, request)
        identity = self._identity(settings, said, request)
        if settings is None and identity is ANONYMOUS:
            raise _refusal(attributes, identity, request, _UNKNOWN)
        if said.wanted:
            identity = self._impersonated(identity, said, request)
        self._check(identity, attributes, request)
        return identity

    def close(self) -> None:
        """Ask the cluster nothing more."""
        self._tokens.close()
        self._reviews.close()

    def _said(self, settings: FrontProxy | None, request: Request) -> Said:
        if settings is None or request.certificate is None:
            return Said(None, request.headers)
        sayings = self._sayings
        if sayings.names is not settings.headers:
            sayings = self._sayings = Sayings(settings.headers)
        return sayings.of(request.headers)

    def _identity(self, settings: FrontProxy | None, said: Said, request: Request) -> Identity:
        """Who the first credential that is accepted says; ANONYMOUS without any. A bad one beside a good one does not
        matter."""
        certificate = None if settings is None else request.certificate
        known = None
        if settings is not None and certificate is not None:
            known = frontproxy.identify(settings, certificate, said.named, self._clock())
        known = known or self._owner(request)
        if known is not None:
            return known
        if certificate is not None:
            self._doubt(certificate)
        elif not presented(request.headers):
            return ANONYMOUS
        raise Refusal(replace(unauthorized(), headers=_CLOSE))

    def _owner(self, request: Request) -> Identity | None:
        """Whose the first token is that is accepted."""
        owners = (self._tokens.owner(token, patient=request.patient) for token in presented(request.headers))
        return next((owner for owner in owners if owner is not None), None)

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

    def _impersonated(self, identity: Identity, said: Said, request: Request) -> Identity:
        """Whom the caller wants to be, where each part of that is allowed."""
        try:
            wishes = impersonation.wishes(said.wanted)
        except ValueError as error:
            raise Refusal(replace(bad_request(str(error)), headers=_NO_SNIFFING)) from error
        for wish in wishes:
            self._grant(identity, wish, request)
        return impersonation.identity_of(wishes) if wishes else identity

    def _grant(self, identity: Identity, wish: Attributes, request: Request) -> None:
        """Raises Refusal where that is not allowed, or the cluster does not say."""
        try:
            decision = self._decision(identity, wish, request)
        except SourceError:
            decision = Decision(False)
        if not decision.allowed:
            raise _refusal(wish, identity, request, decision.reason)

    def _check(self, identity: Identity, attributes: Attributes, request: Request) -> None:
        """Raises Refusal where that is not allowed."""
        try:
            decision = self._decision(identity, attributes, request)
        except SourceError as error:
            raise Refusal(internal_server_error(request.uri, error.cause)) from error
        if not decision.allowed:
            raise _refusal(attributes, identity, request, decision.reason)

    def _decision(self, identity: Identity, attributes: Attributes, request: Request) -> Decision:
        if needs_none(identity, attributes):
            return ALLOWED
        # The widest first: who may read everything may read what a selector picks. Every HPA has a selector of its own,
        # and one answer does for all of them.
        everything = Asked(identity, attributes)
        decision = self._reviews.decide(everything, patient=request.patient)
        if decision.allowed:
            return decision
        question = asked(identity, attributes, request.query)
        return decision if question == everything else self._reviews.decide(question, patient=request.patient)


def _is_open(attributes: Attributes) -> bool:
    if attributes.is_resource or attributes.verb != "get":
        return False
    return attributes.path in _OPEN or attributes.path.startswith(tuple(f"{path}/" for path in _OPEN))


def _refusal(attributes: Attributes, identity: Identity, request: Request, reason: str) -> Refusal:
    answer = forbidden(attributes, identity.user, reason)
    closes = request.certificate is None and is_stranger(identity)
    return Refusal(replace(answer, headers={**answer.headers, **_CLOSE}) if closes else answer)
