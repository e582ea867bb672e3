"""The stand-in for a cluster's API, asked directly."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.request import Request, urlopen

import pytest

from conformance.cluster import HPA, Cluster, standing_in
from conformance.identities import issue

CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standing_in(issue(tmp_path_factory.mktemp("identities"))) as running:
        yield running


def asked(url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    sent = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, sent), timeout=5) as answer:  # noqa: S310  # the stand-in's own address
        return dict(json.load(answer))


def test_a_list_holds_what_one_is_told_alone(cluster: Cluster) -> None:
    """Servers in Go list and watch."""
    alone = asked(f"{cluster.url}{CONFIG_MAPS}/extension-apiserver-authentication")
    assert asked(f"{cluster.url}{CONFIG_MAPS}")["items"] == [alone]
    assert alone["data"]["requestheader-allowed-names"] == '["front-proxy-client"]'


def test_a_watch_begins(cluster: Cluster) -> None:
    with urlopen(f"{cluster.url}{CONFIG_MAPS}?watch=true", timeout=5) as answer:  # noqa: S310  # as above
        assert answer.status == 200


def test_the_good_token_is_the_hpa_controllers(cluster: Cluster) -> None:
    review = {"kind": "TokenReview", "spec": {"token": "good"}}
    url = f"{cluster.url}/apis/authentication.k8s.io/v1/tokenreviews"
    assert asked(url, review)["status"]["user"]["username"] == HPA


def test_every_review_is_noted(cluster: Cluster) -> None:
    review = {"kind": "SubjectAccessReview", "spec": {"user": "bob"}}
    url = f"{cluster.url}/apis/authorization.k8s.io/v1/subjectaccessreviews"
    assert asked(url, review)["status"] == {"allowed": False, "reason": "no RBAC policy matched"}
    assert cluster.access_of("bob") == [{"user": "bob"}]
