"""A bearer token -> whose it is, as a TokenReview of the cluster's API says."""

import base64
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from adapter.errors import SourceError
from adapter.serving.access.answers import Answers, Terms
from adapter.serving.access.asking import Persistence, ask
from adapter.serving.access.cluster import SOURCE, ClusterApi
from adapter.serving.access.frontproxy import text
from adapter.serving.access.identity import Identity, authenticated
from adapter.serving.access.kept import weight
from adapter.serving.api.request import Headers

PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
PERSISTENCE = Persistence(deadline_s=5.0)
LONGEST = 16_384  # characters; a service account's token has about 1 000, one with hundreds of groups 8 000

_IN_WEBSOCKETS = "base64url.bearer.authorization.k8s.io."
_UNREADABLE = ""  # a token nobody accepts


class _User(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class _Status(msgspec.Struct):
    """`authenticated` is absent when it is false, and `audiences` are those of the API server, for none were asked."""

    authenticated: bool = False
    user: _User | None = None


class _Review(msgspec.Struct):
    status: _Status


@dataclass(frozen=True, slots=True)
class _Verdict:
    owner: Identity | None

    @property
    def texts(self) -> Iterator[str]:
        return iter(()) if self.owner is None else self.owner.texts


def presented(headers: Headers) -> tuple[str, ...]:
    """The tokens of a request in the order they are tried, one that cannot be read among them as one that fails.

    Another scheme than Bearer, and Bearer with nothing behind it, are no credential.
    """
    return tuple(token for token in (_bearer(headers), _of_websocket(headers)) if token is not None)


def _bearer(headers: Headers) -> str | None:
    given = next((value for name, value in headers if name == "authorization"), "")
    scheme, _, rest = given.strip().partition(" ")
    return (text(rest.partition(" ")[0]) or None) if scheme.lower() == "bearer" else None


def _of_websocket(headers: Headers) -> str | None:
    """The token among the subprotocols of a request to become a WebSocket, where a browser has to put it."""
    if not any(name == "upgrade" and value.lower() == "websocket" for name, value in headers):
        return None
    if not any(name == "connection" and "upgrade" in value.lower() for name, value in headers):
        return None
    protocols = list(_protocols(headers))
    tokens = [protocol for protocol in protocols if protocol.startswith(_IN_WEBSOCKETS)]
    if not tokens or tokens == [_IN_WEBSOCKETS]:
        return None
    # One must remain for the answer to choose.
    return _UNREADABLE if len(tokens) > 1 or len(protocols) == 1 else _decoded(tokens[0].removeprefix(_IN_WEBSOCKETS))


def _protocols(headers: Headers) -> Iterator[str]:
    for name, value in headers:
        if name == "sec-websocket-protocol":
            yield from (protocol.strip() for protocol in value.split(","))


def _decoded(encoded: str) -> str:
    try:
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4), "-_", validate=True).decode()
    except ValueError:
        return _UNREADABLE


class Tokens:
    """Owners of tokens, each remembered for ten seconds, and so is that a token has none. Tokens themselves are
    neither kept nor logged.

    clock: monotonic seconds.
    """

    def __init__(
        self, api: ClusterApi, persistence: Persistence = PERSISTENCE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._api = api
        self._persistence = persistence
        terms = Terms("token reviews", persistence.deadline_s)
        self._answers: Answers[bytes, _Verdict] = Answers(terms, lambda _, verdict: weight(verdict.texts), clock)
        self._secret = secrets.token_bytes(32)

    def owner(self, token: str, *, patient: bool) -> Identity | None:
        """Whose it is; None for a token that is not accepted, and where that cannot be found out. Raises MustWait."""
        if not 0 < len(token) <= LONGEST:
            return None
        key = blake2b(token.encode("utf-8", "replace"), key=self._secret, digest_size=32).digest()
        try:
            return self._answers.get(key, lambda ends_s: self._asked(token, ends_s), patient=patient).owner
        except SourceError:
            return None

    def close(self) -> None:
        """Ask nothing more."""
        self._answers.close()

    def _asked(self, token: str, ends_s: float) -> _Verdict:
        body = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": {"token": token}}
        what = "post tokenreviews.authentication.k8s.io"
        answer = ask(lambda left_s: self._api.post(PATH, body, left_s), what, self._persistence, ends_s)
        try:
            status = msgspec.convert(answer, _Review).status
        except msgspec.ValidationError as error:
            raise SourceError(SOURCE, f"expected a TokenReview: {error}") from error
        return _Verdict(_owner(status.user or _User()) if status.authenticated else None)


def _owner(user: _User) -> Identity:
    if not user.username:
        raise SourceError(SOURCE, "expected a username in a TokenReview that accepts")
    extra = {key: tuple(values) for key, values in (user.extra or {}).items()}
    return authenticated(Identity(user.username, tuple(user.groups or ()), user.uid, extra))
