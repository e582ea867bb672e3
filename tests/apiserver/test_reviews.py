"""SubjectAccessReviews: their requests and the use of their answers."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from access_builders import Clock

from adapter.apiserver.attributes import attributes
from adapter.apiserver.cache import LONGEST_TEXT
from adapter.apiserver.cluster_api import ClusterApi, RetryPolicy
from adapter.apiserver.identity import ANONYMOUS, AUTHENTICATED, MASTERS, Identity
from adapter.apiserver.reviews import AccessRequest, Reviews, Verdict, spec
from adapter.errors import SourceError
from conformance.cluster import DENIED, Cluster

E = "/apis/external.metrics.k8s.io/v1beta1"
C = "/apis/custom.metrics.k8s.io/v1beta1"
ALICE = Identity("alice", (AUTHENTICATED,))
WHO = {"user": "alice", "groups": [AUTHENTICATED]}
METRIC = attributes("GET", f"{E}/namespaces/default/m")
REQUEST = AccessRequest(ALICE, METRIC)
LISTED = {
    "namespace": "default",
    "verb": "list",
    "group": "external.metrics.k8s.io",
    "version": "v1beta1",
    "resource": "m",
}
GOT = {
    "namespace": "ns",
    "verb": "get",
    "group": "custom.metrics.k8s.io",
    "version": "v1beta1",
    "resource": "pods",
    "subresource": "some-metric",
    "name": "*",
}


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", f"{E}/namespaces/default/m", {"resourceAttributes": LISTED}),
        ("POST", f"{E}/namespaces/default/m", {"resourceAttributes": LISTED | {"verb": "create"}}),
        ("GET", f"{C}/namespaces/ns/pods/*/some-metric", {"resourceAttributes": GOT}),
        ("GET", E, {"nonResourceAttributes": {"path": E, "verb": "get"}}),
        ("POST", "/version", {"nonResourceAttributes": {"path": "/version", "verb": "post"}}),
    ],
    ids=["case 61 external", "auth-185 another method", "auth-187 custom", "auth-165 discovery", "any path"],
)
def test_the_review_has_the_same_attributes_as_in_go(method: str, path: str, expected: dict[str, Any]) -> None:
    assert spec(AccessRequest(ALICE, attributes(method, path))) == expected | WHO


def test_the_review_has_the_whole_identity() -> None:
    identity = Identity("alice", ("a", AUTHENTICATED), "7", {"z": ("1", "2"), "a/b": ("",)})
    found = spec(AccessRequest(identity, METRIC))
    extra = {"z": ["1", "2"], "a/b": [""]}
    assert found == {
        "resourceAttributes": LISTED,
        "user": "alice",
        "uid": "7",
        "groups": list(identity.groups),
        "extra": extra,
    }


@pytest.fixture
def reviews(api: ClusterApi, clock: Clock) -> Iterator[Reviews]:
    opened = Reviews(api, RetryPolicy(deadline_s=5.0, first_pause_s=0.001), clock)
    yield opened
    opened.close()


def test_the_cluster_decides(reviews: Reviews, cluster: Cluster) -> None:
    assert reviews.verdict(*REQUEST) == Verdict(True)
    denied = AccessRequest(Identity("bob"), METRIC)
    assert reviews.verdict(*denied) == Verdict(False, DENIED)
    assert cluster.specs() == [spec(REQUEST), spec(denied)]


@pytest.mark.parametrize(
    "other",
    [
        AccessRequest(Identity("bob", (AUTHENTICATED,)), METRIC),
        AccessRequest(Identity("alice"), METRIC),
        AccessRequest(Identity("alice", (AUTHENTICATED,), "7"), METRIC),
        AccessRequest(Identity("alice", (AUTHENTICATED,), "", {"a": ("b",)}), METRIC),
        AccessRequest(ALICE, attributes("GET", f"{E}/namespaces/other/m")),
        AccessRequest(ALICE, attributes("POST", f"{E}/namespaces/default/m")),
    ],
    ids=["user", "groups", "uid", "extra", "namespace", "verb"],
)
def test_another_identity_or_attribute_is_another_review(reviews: Reviews, cluster: Cluster, other: Any) -> None:
    reviews.verdict(*REQUEST)
    reviews.verdict(*other)
    assert cluster.count("SubjectAccessReview") == 2


def test_users_that_differ_in_extra_alone_have_different_hashes() -> None:
    """As those of the tokens of one service account do. Equal hashes would make look-ups slow."""
    extras = [{"authentication.kubernetes.io/credential-id": (f"JTI={number}",)} for number in range(500)]
    assert len({hash(Identity("alice", (AUTHENTICATED,), "7", extra)) for extra in extras}) == 500
    assert hash(Identity("a", extra={"b": (), "c": ()})) == hash(Identity("a", extra={"c": (), "b": ()}))


def test_the_answer_to_a_very_long_request_is_not_cached(reviews: Reviews, cluster: Cluster) -> None:
    request = AccessRequest(ALICE, attributes("GET", f"{E}/namespaces/default/{'m' * LONGEST_TEXT}"))
    assert [reviews.verdict(*request).allowed for _ in range(2)] == [True, True]
    assert cluster.count("SubjectAccessReview") == 2


def test_the_answer_for_a_user_with_many_groups_is_cached(reviews: Reviews, cluster: Cluster) -> None:
    """A directory may give a user hundreds of groups, each named by a UUID."""
    user = Identity("alice", tuple(str(UUID(int=number)) for number in range(200)))
    for _ in range(3):
        reviews.verdict(user, METRIC)
    assert cluster.count("SubjectAccessReview") == 1


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (b"[]", "expected a SubjectAccessReview"),
        (b'"allowed"', "expected a SubjectAccessReview"),
        (b"{}", "expected a SubjectAccessReview"),
        (b'{"status":{}}', "expected a SubjectAccessReview"),
        (b'{"status":{"allowed":"true"}}', "expected a SubjectAccessReview"),
        (b'{"status":{"allowed":1}}', "expected a SubjectAccessReview"),
        (b'{"status":{"allowed":true,"denied":true}}', "allows or denies, got one that does both"),
    ],
)
def test_an_answer_that_does_not_decide_allows_nothing(
    reviews: Reviews, cluster: Cluster, body: bytes, cause: str
) -> None:
    cluster.failures.append((201, body))
    with pytest.raises(SourceError, match=cause):
        reviews.verdict(*REQUEST)


def test_a_denial_needs_no_reason(reviews: Reviews, cluster: Cluster) -> None:
    cluster.failures.append((201, b'{"status":{"allowed":false,"denied":true}}'))
    assert reviews.verdict(*REQUEST) == Verdict(False, "")


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_a_bare_probe_needs_no_review(reviews: Reviews, cluster: Cluster, path: str) -> None:
    """case 54, auth-166"""
    assert reviews.verdict(ANONYMOUS, attributes("GET", path)).allowed
    assert cluster.reviews == []


@pytest.mark.parametrize("path", ["/livez/ping", "/healthz/", "/metrics", "/version", "/apis", "/", E])
def test_other_paths_need_a_review_except_for_masters(reviews: Reviews, cluster: Cluster, path: str) -> None:
    """case 56, auth-178"""
    assert reviews.verdict(Identity("bob", (MASTERS,)), attributes("GET", path)).allowed
    assert cluster.reviews == []
    assert not reviews.verdict(ANONYMOUS, attributes("GET", path)).allowed


def test_a_verdict_is_used_for_ten_seconds(reviews: Reviews, cluster: Cluster, clock: Clock) -> None:
    """case 62"""
    for user in ("alice", "bob"):
        with ThreadPoolExecutor(20) as threads:
            list(threads.map(lambda _: reviews.verdict(Identity(user), METRIC), range(100)))  # noqa: B023  # the pool ends within the turn
    clock.now_s += 9.9
    reviews.verdict(Identity("alice"), METRIC)
    assert cluster.count("SubjectAccessReview") == 2
    clock.now_s += 0.2
    reviews.verdict(Identity("alice"), METRIC)
    assert cluster.count("SubjectAccessReview") == 3
