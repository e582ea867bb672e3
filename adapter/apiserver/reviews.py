"""Authorization: SubjectAccessReviews of the cluster's API."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from adapter.apiserver import probes
from adapter.apiserver.attributes import Attributes
from adapter.apiserver.cache import weight
from adapter.apiserver.cluster_api import SOURCE, ClusterApi, RetryPolicy, retry
from adapter.apiserver.identity import MASTERS, Identity
from adapter.apiserver.review_cache import CacheSettings, ReviewCache
from adapter.apiserver.status import Document
from adapter.errors import SourceError

PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
RETRIES = RetryPolicy(deadline_s=3.0)
_RESOURCE_FIELDS = ("namespace", "verb", "group", "version", "resource", "subresource", "name")


class AccessRequest(NamedTuple):
    """A user and the action that an access review decides on."""

    identity: Identity
    attributes: Attributes

    @property
    def texts(self) -> tuple[str, ...]:
        """Every string of it; the path contains the group and version."""
        what = self.attributes
        return (*self.identity.texts, what.path, what.namespace, what.resource, what.subresource, what.name)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The cluster's decision on one action. reason: of the cluster, often empty."""

    allowed: bool
    reason: str = ""


ALLOWED = Verdict(True)


class _Status(msgspec.Struct):
    allowed: bool
    denied: bool = False
    reason: str = ""


class _Review(msgspec.Struct):
    status: _Status


class Reviews:
    """Verdicts of the cluster, each cached for ten seconds: a revoked right ends so soon. clock: monotonic seconds."""

    def __init__(
        self, api: ClusterApi, retries: RetryPolicy = RETRIES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._api = api
        self._retries = retries
        settings = CacheSettings("access reviews", retries.deadline_s)
        self._cache: ReviewCache[AccessRequest, Verdict] = ReviewCache(
            settings, lambda key, _: weight(key.texts), clock
        )

    def verdict(self, identity: Identity, attributes: Attributes) -> Verdict:
        """Whether the user may do this. Masters and probes need no review. Raises SourceError.

        The kubelet sends no credential. Single checks, such as /livez/ping, need a right.
        """
        if MASTERS in identity.groups or (not attributes.is_resource and attributes.path in probes.PATHS):
            return ALLOWED
        access = AccessRequest(identity, attributes)
        return self._cache.get(access, lambda ends_s: self._request(access, ends_s))

    def close(self) -> None:
        """Request no more reviews."""
        self._cache.close()

    def _request(self, access: AccessRequest, ends_s: float) -> Verdict:
        body = {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec(access)}
        answer = retry(lambda left_s: self._api.post(PATH, body, left_s), self._retries, ends_s)
        try:
            status = msgspec.convert(answer, _Review).status
        except msgspec.ValidationError as error:
            raise SourceError(SOURCE, f"expected a SubjectAccessReview: {error}") from error
        if status.allowed and status.denied:
            raise SourceError(SOURCE, "expected a SubjectAccessReview that allows or denies, got one that does both")
        return Verdict(status.allowed, status.reason)


def spec(access: AccessRequest) -> Document:
    """The `spec` of the review, without empty fields."""
    identity, wanted = access
    if wanted.is_resource:
        fields = _without_empty({name: getattr(wanted, name) for name in _RESOURCE_FIELDS})
        what = {"resourceAttributes": fields}
    else:
        what = {"nonResourceAttributes": _without_empty({"path": wanted.path, "verb": wanted.verb})}
    extra = {key: list(values) for key, values in sorted(identity.extra.items())}
    user = {"user": identity.user, "groups": list(identity.groups), "extra": extra, "uid": identity.uid}
    return {**what, **_without_empty(user)}


def _without_empty(document: Document) -> Document:
    return {key: value for key, value in document.items() if value}
