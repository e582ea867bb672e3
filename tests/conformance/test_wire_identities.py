"""Who is served: real certificates over real TLS, and what the cluster was asked about him."""

import json
from collections.abc import Iterator

import pytest

from conformance.cluster import HPA
from conformance.recording import Answered, Asked, Dropped, Outcome
from conformance.server import Running, started

DISCOVERY = "/apis/external.metrics.k8s.io/v1beta1"
METRIC = f"{DISCOVERY}/namespaces/default/my-external-metric"
OF_PODS = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/*/some-metric"


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with started([]) as server:
        yield server


def ask(running: Running, identity: str = "none", uri: str = METRIC, **headers: str) -> Outcome:
    given = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return running.caller.ask(Asked("GET", uri, identity, given))


def code(outcome: Outcome) -> int | None:
    return None if isinstance(outcome, Dropped) else outcome.status


def message(outcome: Outcome) -> str:
    assert isinstance(outcome, Answered)
    return str(json.loads(outcome.body or b"{}")["message"])


@pytest.mark.parametrize(
    ("identity", "headers", "expected"),
    [
        pytest.param("none", {}, 403, id="case 52, auth-164: nobody"),
        pytest.param("none", {"Authorization": "Bearer good"}, 200, id="auth-172: a good token"),
        pytest.param("none", {"Authorization": "Bearer bad"}, 401, id="case 55, auth-171: a bad token"),
        pytest.param("none", {"Authorization": "Bearer boom"}, 401, id="case 55, auth-173: a review that breaks"),
        pytest.param("none", {"Authorization": "Basic Zm9vOmJhcg=="}, 403, id="auth-174: another scheme"),
        pytest.param("proxy", {}, 401, id="auth-175: the front proxy for nobody"),
        pytest.param("proxy", {"X-Remote-User": "alice"}, 200, id="case 56, auth-176: the front proxy for alice"),
        pytest.param("proxy", {"X-Remote-User": "bob"}, 403, id="case 56, auth-177: the front proxy for bob"),
        pytest.param("badproxy", {"X-Remote-User": "alice"}, 401, id="case 58, auth-181: another common name"),
        pytest.param("rogue", {"X-Remote-User": "alice"}, None, id="case 58, auth-182: an unknown CA"),
        pytest.param("expired", {}, None, id="a certificate that has expired"),
        pytest.param("servereku", {}, None, id="a certificate that is for servers"),
        pytest.param("none", {"X-Remote-User": "alice"}, 403, id="case 58, auth-183: headers without a certificate"),
        pytest.param("alice", {}, 200, id="a client's certificate"),
        pytest.param("dev", {}, 403, id="a client without a right"),
        pytest.param("admin", {"Impersonate-User": "bob"}, 403, id="auth-190: a master as bob"),
    ],
)
def test_who_is_served(running: Running, identity: str, headers: dict[str, str], expected: int | None) -> None:
    """None: the handshake fails."""
    assert code(ask(running, identity, **headers)) == expected


def test_what_bob_may_not_is_told_him_case_56(running: Running) -> None:
    told = message(ask(running, "proxy", **{"X-Remote-User": "bob"}))
    assert 'User "bob" cannot list resource "my-external-metric"' in told
    assert told.endswith('in the namespace "default": no RBAC policy matched')


@pytest.mark.parametrize("path", ["/apis", DISCOVERY, "/version", "/metrics", "/openapi/v2", "/livez/ping"])
def test_nobody_sees_what_is_served_case_53(running: Running, path: str) -> None:
    assert message(ask(running, uri=path)).startswith(f'forbidden: User "system:anonymous" cannot get path "{path}"')


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_a_probe_needs_no_credential_but_a_bad_one_is_refused_case_54(running: Running, path: str) -> None:
    assert code(ask(running, uri=path)) == 200
    assert code(ask(running, uri=path, Authorization="Bearer bad")) == 401


def test_a_master_is_served_without_a_review_case_56(running: Running) -> None:
    headers = {"X-Remote-User": "carol", "X-Remote-Group": "system:masters"}
    assert code(ask(running, "proxy", **headers)) == 200
    assert running.cluster.access_of("carol") == []


def test_nobody_is_served_while_reviews_break_case_57(running: Running) -> None:
    """auth-179"""
    outcome = ask(running, "proxy", **{"X-Remote-User": "boom"})
    assert isinstance(outcome, Answered)
    assert outcome.status == 500
    assert outcome.headers["content-type"] == "text/plain; charset=utf-8"
    assert (outcome.body or b"").startswith(b'Internal Server Error: "/apis/external.metrics.k8s.io/')


def test_a_clients_certificate_says_who_he_is_whatever_his_headers_say_case_59(running: Running) -> None:
    """auth-184"""
    ask(running, "dev", OF_PODS, **{"X-Remote-User": "root", "X-Remote-Group": "system:masters"})
    assert running.cluster.access_of("root") == []
    assert set(running.cluster.access_of("dave")[-1]["groups"]) == {"devs", "ops", "system:authenticated"}


def test_the_aggregator_is_authenticated_without_a_group_case_60(running: Running) -> None:
    """auth-189"""
    assert code(ask(running, "proxy", DISCOVERY, **{"X-Remote-User": "system:kube-aggregator"})) == 200
    [review] = running.cluster.access_of("system:kube-aggregator")
    assert review["groups"] == ["system:authenticated"]
    assert review["nonResourceAttributes"] == {"path": DISCOVERY, "verb": "get"}


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        pytest.param(METRIC, {"verb": "list", "resource": "my-external-metric"}, id="external"),
        pytest.param(
            OF_PODS, {"verb": "get", "resource": "pods", "subresource": "some-metric", "name": "*"}, id="custom"
        ),
    ],
)
def test_the_cluster_is_asked_about_the_metric_case_61(running: Running, uri: str, expected: dict[str, str]) -> None:
    ask(running, "proxy", uri, **{"X-Remote-User": "dora"})
    asked = running.cluster.access_of("dora")[-1]["resourceAttributes"]
    told = {key: asked[key] for key in ("verb", "resource", "subresource", "name") if asked.get(key)}
    assert told == expected


def test_who_asks_a_hundred_times_is_reviewed_once_case_62(running: Running) -> None:
    asked = Asked("GET", METRIC, "proxy", (("X-Remote-User", "system:aggregator"),))
    assert {code(outcome) for outcome in running.caller.ask_in_turn(*[asked] * 100)} == {200}
    assert len(running.cluster.access_of("system:aggregator")) == 1


def test_a_token_is_reviewed_for_its_owner(running: Running) -> None:
    """auth-172"""
    assert code(ask(running, uri=OF_PODS, Authorization="Bearer good")) == 200
    assert "system:serviceaccounts:kube-system" in running.cluster.access_of(HPA)[-1]["groups"]


def test_a_crash_costs_neither_the_answer_nor_the_connection_case_76(running: Running) -> None:
    """err-102"""
    crash = Asked("GET", f"{DISCOVERY}/namespaces/default/panic", "admin")
    told, after = running.caller.ask_in_turn(crash, Asked("GET", "/livez", "admin"))
    assert (code(told), code(after)) == (500, 200)
    assert "panicked" not in message(told)
