"""Bearer tokens: how they are read, reviewed and cached."""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import structlog
from access_builders import Clock, of_lines

from adapter.apiserver.cluster_api import ClusterApi, RetryPolicy
from adapter.apiserver.identity import AUTHENTICATED, Identity
from adapter.apiserver.tokens import LONGEST, Tokens, bearer_token
from conformance.cluster import HPA, Cluster, status


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer good", "good"),
        ("bearer good", "good"),
        ("  BEARER good  ", "good"),
        ("Bearer good x", "good"),
        ("Bearer good,Bearer", "good,Bearer"),
        ("Bearer", None),
        ("Bearer ", None),
        ("Bearer  good", None),
        ("Bearer\tgood", None),
        ("Basic Zm9vOmJhcg==", None),
        ("Bearergood", None),
        ("good", None),
        ("", None),
    ],
)
def test_a_bearer_token_is_the_word_after_bearer(header: str, token: str | None) -> None:
    """auth-171, auth-174, ath-10401 to ath-10411"""
    assert bearer_token(of_lines("GET", "/", [("authorization", header)])) == token


def test_the_first_of_two_authorization_headers_is_used() -> None:
    assert bearer_token(of_lines("GET", "/", [("authorization", "Basic x"), ("authorization", "Bearer good")])) is None


GROUPS = ("system:serviceaccounts", "system:serviceaccounts:kube-system", AUTHENTICATED)


@pytest.fixture
def tokens(api: ClusterApi, clock: Clock) -> Iterator[Tokens]:
    opened = Tokens(api, RetryPolicy(deadline_s=5.0, first_pause_s=0.001), clock)
    yield opened
    opened.close()


def test_the_cluster_names_the_owner(tokens: Tokens, cluster: Cluster) -> None:
    """auth-172"""
    found = tokens.owner("good")
    assert found == Identity(HPA, GROUPS, "hpa-uid", {"pod": ("p",)})
    assert cluster.specs("TokenReview") == [{"token": "good"}]


def test_an_unknown_token_is_not_accepted(tokens: Tokens) -> None:
    """case 55, auth-171"""
    assert tokens.owner("bad") is None


def test_a_failed_review_is_tried_five_times_and_then_rejects(tokens: Tokens, cluster: Cluster) -> None:
    """case 55, auth-173: the fault is not cached"""
    cluster.failures += [status(500, "boom")] * 5
    assert tokens.owner("good") is None
    assert cluster.count("TokenReview") == 5
    assert tokens.owner("good") is not None


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"{}",
        b"<html>",
        b'{"status":{"authenticated":"true","user":{"username":"x"}}}',
        b'{"status":{"authenticated":true}}',
        b'{"status":{"authenticated":true,"user":{}}}',
        b'{"status":{"authenticated":true,"user":{"username":"x","groups":"system:masters"}}}',
        b'{"status":{"user":{"username":"x"}}}',
    ],
)
def test_a_review_without_a_username_rejects(tokens: Tokens, cluster: Cluster, body: bytes) -> None:
    cluster.failures += [(201, body)] * 5
    assert tokens.owner("good") is None


@pytest.mark.parametrize("code", [201, 403, 500])
def test_a_token_is_never_logged(tokens: Tokens, cluster: Cluster, caplog: pytest.LogCaptureFixture, code: int) -> None:
    cluster.failures += [(code, b"<html>")] * 5
    caplog.set_level(logging.DEBUG)
    with structlog.testing.capture_logs() as logs:
        tokens.owner("s3cr3t")
    assert logs
    assert "s3cr3t" not in f"{logs}{caplog.text}{vars(tokens)}"


@pytest.mark.parametrize("token", ["good", "bad"])
def test_a_review_is_used_for_ten_seconds(tokens: Tokens, cluster: Cluster, clock: Clock, token: str) -> None:
    with ThreadPoolExecutor(20) as threads:
        list(threads.map(lambda _: tokens.owner(token), range(100)))
    clock.now_s += 9.9
    tokens.owner(token)
    assert cluster.count("TokenReview") == 1
    clock.now_s += 0.2
    tokens.owner(token)
    assert cluster.count("TokenReview") == 2


@pytest.mark.parametrize("token", ["", "x" * (LONGEST + 1)], ids=["empty", "too long"])
def test_some_tokens_are_rejected_without_a_review(tokens: Tokens, cluster: Cluster, token: str) -> None:
    assert tokens.owner(token) is None
    assert cluster.reviews == []
