"""Bearer tokens: which are presented, whose they are, and what is remembered of them."""

import base64
import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import structlog
from access_builders import Clock
from hypothesis import given
from hypothesis import strategies as st
from stand_in_cluster import HPA, StandInCluster, status

from adapter.serving.access.asking import Persistence
from adapter.serving.access.cluster import ClusterApi
from adapter.serving.access.identity import AUTHENTICATED, Identity
from adapter.serving.access.tokens import LONGEST, Tokens, presented
from adapter.serving.api.request import MustWait

PREFIX = "base64url.bearer.authorization.k8s.io."
UPGRADE = [("connection", "keep-alive, Upgrade"), ("upgrade", "WebSocket")]


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
    assert presented([("authorization", header)]) == (() if token is None else (token,))


def test_of_two_authorization_headers_the_first_counts() -> None:
    assert presented([("authorization", "Basic x"), ("authorization", "Bearer good")]) == ()


def encoded(token: bytes) -> str:
    return PREFIX + base64.urlsafe_b64encode(token).rstrip(b"=").decode()


@pytest.mark.parametrize(
    ("protocols", "tokens"),
    [
        ([f"v4.channel.k8s.io, {encoded(b'good')}"], ("good",)),
        (["v4.channel.k8s.io", encoded(b"a??>")], ("a??>",)),
        (["v4.channel.k8s.io"], ()),
        ([f"x,{PREFIX}"], ()),
        ([PREFIX], ()),
        ([encoded(b"good")], ("",)),
        ([f"x,{encoded(b'a')},{encoded(b'b')}"], ("",)),
        ([f"x,{PREFIX}!!!"], ("",)),
        ([f"x,{PREFIX}a"], ("",)),
        ([f"x,{encoded(bytes([255]))}"], ("",)),
    ],
    ids=["good", "two lines", "none", "empty", "empty alone", "alone", "two", "no base64", "half base64", "bytes"],
)
def test_a_websocket_brings_its_token_among_its_protocols(protocols: list[str], tokens: tuple[str, ...]) -> None:
    """ath-10426: one that cannot be read is one that fails"""
    lines = [("sec-websocket-protocol", protocol) for protocol in protocols]
    assert presented([*UPGRADE, *lines]) == tokens
    assert presented(lines) == ()
    assert presented([UPGRADE[0], *lines]) == ()
    assert presented([UPGRADE[1], *lines]) == ()


def test_both_tokens_are_tried_the_header_s_first() -> None:
    lines = [*UPGRADE, ("sec-websocket-protocol", f"x,{encoded(b'b')}"), ("authorization", "Bearer a")]
    assert presented(lines) == ("a", "b")


@given(st.lists(st.tuples(st.sampled_from(["authorization", "upgrade", "sec-websocket-protocol"]), st.text())))
def test_no_headers_are_too_much(headers: list[tuple[str, str]]) -> None:
    assert len(presented([*UPGRADE, *headers])) <= 2


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tokens(api: ClusterApi, clock: Clock) -> Iterator[Tokens]:
    opened = Tokens(api, Persistence(deadline_s=5.0, first_pause_s=0.001), clock)
    yield opened
    opened.close()


def test_the_cluster_says_whose_it_is(tokens: Tokens, cluster: StandInCluster) -> None:
    """auth-172"""
    found = tokens.owner("good", patient=True)
    assert found == Identity(HPA, ("system:serviceaccounts", AUTHENTICATED), "hpa-uid", {"pod": ("p",)})
    assert cluster.specs("TokenReview") == [{"token": "good"}]


def test_a_token_of_nobody_is_not_accepted(tokens: Tokens) -> None:
    """case 55, auth-171"""
    assert tokens.owner("bad", patient=True) is None


@pytest.mark.parametrize("token", ["good", "bad"])
def test_what_the_cluster_said_counts_for_ten_seconds(
    tokens: Tokens, cluster: StandInCluster, clock: Clock, token: str
) -> None:
    with pytest.raises(MustWait):
        tokens.owner(token, patient=False)
    with ThreadPoolExecutor(20) as threads:
        list(threads.map(lambda _: tokens.owner(token, patient=True), range(100)))
    clock.now_s += 9.9
    tokens.owner(token, patient=False)
    assert cluster.count("TokenReview") == 1
    clock.now_s += 0.2
    tokens.owner(token, patient=True)
    assert cluster.count("TokenReview") == 2


def test_a_cluster_that_fails_is_asked_five_times_and_then_nobody_is_accepted(
    tokens: Tokens, cluster: StandInCluster
) -> None:
    """case 55, auth-173; the fault is not remembered"""
    cluster.failures += [status(500, "boom")] * 5
    assert tokens.owner("good", patient=True) is None
    assert cluster.count("TokenReview") == 5
    assert tokens.owner("good", patient=True) is not None


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
def test_an_answer_that_names_nobody_accepts_nobody(tokens: Tokens, cluster: StandInCluster, body: bytes) -> None:
    cluster.failures += [(201, body)] * 5
    assert tokens.owner("good", patient=True) is None


@pytest.mark.parametrize("token", ["", "x" * (LONGEST + 1)], ids=["unreadable", "too long"])
def test_some_tokens_are_refused_without_asking(tokens: Tokens, cluster: StandInCluster, token: str) -> None:
    assert tokens.owner(token, patient=False) is None
    assert cluster.asked == []


def test_a_cluster_that_never_answers_costs_no_more_than_the_deadline(api: ClusterApi, cluster: StandInCluster) -> None:
    cluster.silent = True
    tokens = Tokens(api, Persistence(deadline_s=0.2))
    started_s = time.monotonic()
    assert tokens.owner("good", patient=True) is None
    assert time.monotonic() - started_s < 2
    tokens.close()


@pytest.mark.parametrize("code", [201, 403, 500])
def test_a_token_is_never_logged(
    tokens: Tokens, cluster: StandInCluster, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    cluster.failures += [(code, b"<html>")] * 5
    caplog.set_level(logging.DEBUG)
    with structlog.testing.capture_logs() as logs:
        tokens.owner("s3cr3t", patient=True)
    assert logs
    assert "s3cr3t" not in f"{logs}{caplog.text}{vars(tokens)}"
