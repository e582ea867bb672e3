"""Authentication and authorization of every request."""

import re
import time
from collections.abc import Callable
from math import inf
from typing import Protocol

import structlog

from adapter.apiserver import front_proxy, probes
from adapter.apiserver.attributes import Attributes, attributes, forbidden
from adapter.apiserver.authentication_settings import AuthenticationSettings
from adapter.apiserver.certificates import subject
from adapter.apiserver.front_proxy import FrontProxy, HeaderNames, IdentityHeaders
from adapter.apiserver.identity import ANONYMOUS, LOCAL, Identity, is_unauthenticated
from adapter.apiserver.request import Request
from adapter.apiserver.reviews import Reviews
from adapter.apiserver.status import StatusError, internal_error, unauthorized
from adapter.apiserver.tokens import Tokens, bearer_token
from adapter.errors import SourceError

# Answered to everybody until the authentication settings are known, so that the API stays listed.
_OPEN = ("/apis", "/openapi", *probes.PATHS)
# The handshake of this connection may have preceded the CA of the client's certificate; the next one may succeed.
_CLOSE = {"Connection": "close"}
_MOST_LOGGED = 256  # certificates
_LOGGED_AGAIN_S = 3600.0  # a failure that lasts is in the log of each hour
LOOPBACK = "127.0.0.1"
_LOOPBACK_HOST = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d+)?", re.IGNORECASE | re.ASCII)
_LONGEST_HOST = 253
# Anybody may read this. The cause may contain addresses, so it is only in the log.
_NO_SETTINGS = "the authentication settings of the cluster are unknown: see the log of this server"

_log = structlog.get_logger(__name__)


class Access(Protocol):
    """Decides on every request."""

    def admit(self, request: Request) -> Identity:
        """The user of a request. Raises StatusError where the request is not allowed."""


class LoopbackAccess:
    """Admits the requests of this machine, for a server on loopback without authentication.

    A page of the Internet may point its own name at 127.0.0.1 (DNS rebinding). Its requests bear that name.
    """

    def admit(self, request: Request) -> Identity:
        """The local user, with every right. Raises StatusError (403) for any other host name than loopback's."""
        host = request.header(b"host")
        if not _LOOPBACK_HOST.fullmatch(host):
            expected = "expected localhost, 127.0.0.1 or [::1] as the host of the request"
            raise StatusError(403, "Forbidden", f"{expected}, got {host[:_LONGEST_HOST]!r}")
        return LOCAL


class ClusterAccess:
    """Authenticates by certificate, identity headers or token, and lets the cluster authorize.

    clock: Unix seconds, for the validity of certificates.
    """

    def __init__(
        self, settings: AuthenticationSettings, tokens: Tokens, reviews: Reviews, clock: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._tokens = tokens
        self._reviews = reviews
        self._clock = clock
        self._headers = IdentityHeaders(HeaderNames())
        self._logged: set[bytes] = set()  # rejected certificates
        self._logged_at_s: dict[str, float] = {}  # causes of failed handshakes

    def admit(self, request: Request) -> Identity:
        """The user of a request.

        Raises StatusError: 401 for a credential that is not accepted, 403 without the right, 500 if the cluster does
        not answer. Without a certificate both ask the client to close the connection.
        """
        settings, wanted = self._settings.current, attributes(request.method, request.path)
        if settings is None and _is_open(wanted):
            return ANONYMOUS
        identity = self._authenticate(settings, request)
        if settings is None and identity is ANONYMOUS:
            raise forbidden(wanted, identity.user, _NO_SETTINGS, _CLOSE)
        self._authorize(identity, wanted, request)
        return identity

    def on_rejected(self, cause: str, client: str) -> None:
        """Read the settings soon, as newer CAs may accept the certificate, and log each cause once an hour.

        Not each client: anybody can connect, and from many addresses. OpenSSL has a few dozen causes.
        """
        self._settings.refresh_soon()
        now_s = self._clock()
        if now_s - self._logged_at_s.get(cause, -inf) >= _LOGGED_AGAIN_S:
            self._logged_at_s[cause] = now_s
            ca = "a CA in ConfigMap kube-system/extension-apiserver-authentication"
            hint = f"expected a valid certificate, signed by {ca}"
            text = "a client certificate fails the TLS handshake; for an hour, others with this cause are only counted"
            _log.warning(text, cause=cause, client=client, hint=hint)

    def close(self) -> None:
        """Request no more reviews."""
        self._tokens.close()
        self._reviews.close()

    def _authenticate(self, settings: FrontProxy | None, request: Request) -> Identity:
        """The user of the first accepted credential; ANONYMOUS without any credential."""
        certificate = None if settings is None else request.certificate
        if settings is not None and certificate is not None:
            named = self._identity_headers(settings).identity(request.headers)
            identity = front_proxy.identify(settings, certificate, named, self._clock())
            if identity is not None:
                return identity
        token = bearer_token(request)
        owner = None if token is None else self._tokens.owner(token)
        if owner is not None:
            return owner
        if certificate is not None:
            self._reject(certificate)
        elif token is None:
            return ANONYMOUS
        raise unauthorized(_CLOSE)

    def _identity_headers(self, settings: FrontProxy) -> IdentityHeaders:
        headers = self._headers
        if headers.names is not settings.headers:
            headers = self._headers = IdentityHeaders(settings.headers)
        return headers

    def _reject(self, certificate: bytes) -> None:
        """Read the settings soon, as newer ones may allow its name, and log each certificate once."""
        self._settings.refresh_soon()
        if certificate not in self._logged:
            if len(self._logged) >= _MOST_LOGGED:
                self._logged.clear()
            self._logged.add(certificate)
            named = "a common name that requestheader-allowed-names lists"
            hint = f"the front proxy needs user headers and {named}; other clients need a common name"
            _log.warning("a client certificate is rejected", name=subject(certificate), hint=hint)

    def _authorize(self, identity: Identity, wanted: Attributes, request: Request) -> None:
        try:
            verdict = self._reviews.verdict(identity, wanted)
        except SourceError as error:
            raise internal_error(f"the access review failed: {error.cause}") from error
        if not verdict.allowed:
            closes = request.certificate is None and is_unauthenticated(identity)
            raise forbidden(wanted, identity.user, verdict.reason, _CLOSE if closes else None)


def _is_open(wanted: Attributes) -> bool:
    if wanted.is_resource or wanted.verb != "get":
        return False
    return wanted.path in _OPEN or wanted.path.startswith(tuple(f"{path}/" for path in _OPEN))
