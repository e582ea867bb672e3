"""Bearer tokens -> identities: TokenReviews of the cluster's API."""

import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from adapter.apiserver.cache import weight
from adapter.apiserver.cluster_api import SOURCE, ClusterApi, RetryPolicy, retry
from adapter.apiserver.front_proxy import header_text
from adapter.apiserver.identity import Identity, add_authenticated
from adapter.apiserver.request import Request
from adapter.apiserver.review_cache import CacheSettings, ReviewCache
from adapter.errors import SourceError

PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
RETRIES = RetryPolicy(deadline_s=5.0)
LONGEST = 16_384  # characters; a service account's token has about 1 000, one with hundreds of groups 8 000


class _User(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class _Status(msgspec.Struct):
    """What a TokenReview says of a token.

    `authenticated` is absent if false. The audiences are those of the API server: the request names none.
    """

    authenticated: bool = False
    user: _User | None = None


class _Review(msgspec.Struct):
    status: _Status


@dataclass(frozen=True, slots=True)
class _Owner:
    """The owner of a token. identity: None for a token that the cluster rejects."""

    identity: Identity | None

    @property
    def texts(self) -> Iterator[str]:
        return iter(()) if self.identity is None else self.identity.texts


def bearer_token(request: Request) -> str | None:
    """The bearer token of a request; None without one. Another scheme is no credential."""
    value = next((value for name, value in request.headers if name == b"authorization"), b"")
    scheme, _, rest = value.strip().partition(b" ")
    return (header_text(rest.partition(b" ")[0]) or None) if scheme.lower() == b"bearer" else None


class Tokens:
    """Looks up the owner of a token. The result is cached for ten seconds, also for a token without an owner.

    Only a keyed hash of a token is stored, and no token is logged. clock: monotonic seconds.
    """

    def __init__(
        self, api: ClusterApi, retries: RetryPolicy = RETRIES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._api = api
        self._retries = retries
        settings = CacheSettings("token reviews", retries.deadline_s)
        self._cache: ReviewCache[bytes, _Owner] = ReviewCache(settings, lambda _, owner: weight(owner.texts), clock)
        self._secret = secrets.token_bytes(32)

    def owner(self, token: str) -> Identity | None:
        """The owner; None for a token that is not accepted, or that cannot be reviewed."""
        if not 0 < len(token) <= LONGEST:
            return None
        key = blake2b(token.encode("utf-8", "replace"), key=self._secret, digest_size=32).digest()
        try:
            return self._cache.get(key, lambda ends_s: self._request(token, ends_s)).identity
        except SourceError:
            return None

    def close(self) -> None:
        """Request no more reviews."""
        self._cache.close()

    def _request(self, token: str, ends_s: float) -> _Owner:
        body = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": token}}
        answer = retry(lambda left_s: self._api.post(PATH, body, left_s), self._retries, ends_s)
        try:
            status = msgspec.convert(answer, _Review).status
        except msgspec.ValidationError as error:
            raise SourceError(SOURCE, f"expected a TokenReview: {error}") from error
        return _Owner(_identity(status.user or _User()) if status.authenticated else None)


def _identity(user: _User) -> Identity:
    if not user.username:
        raise SourceError(SOURCE, "expected a username in a TokenReview that accepts a token")
    extra = {key: tuple(values) for key, values in (user.extra or {}).items()}
    return add_authenticated(Identity(user.username, tuple(user.groups or ()), user.uid, extra))
