"""Authentication and authorization with real certificates over real TLS, and the reviews that the cluster receives."""

from collections.abc import Iterator

import pytest

from conformance.cluster import HPA
from conformance.recording import Outcome, Request
from conformance.server import Running, run_server

DISCOVERY = "/apis/external.metrics.k8s.io/v1beta1"
METRIC = f"{DISCOVERY}/namespaces/default/my-external-metric"
KEYS = ("verb", "resource", "subresource", "name")
OF_PODS = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/*/some-metric"


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with run_server() as server:
        yield server


def get(running: Running, identity: str = "none", target: str = METRIC, **headers: str) -> Outcome:
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return running.client.send(Request("GET", target, identity, pairs))


def code(outcome: Outcome) -> int | None:
    return None if outcome is None else outcome.status


def message(outcome: Outcome) -> str:
    assert outcome is not None
    return str(outcome.document["message"])


@pytest.mark.parametrize(
    ("identity", "headers", "expected"),
    [
        pytest.param("none", {}, 403, id="case 52, auth-164: an anonymous client"),
        pytest.param("none", {"Authorization": "Bearer good"}, 200, id="auth-172: a good token"),
        pytest.param("none", {"Authorization": "Bearer bad"}, 401, id="case 55, auth-171: a bad token"),
        pytest.param("none", {"Authorization": "Bearer boom"}, 401, id="case 55, auth-173: a review that fails"),
        pytest.param("none", {"Authorization": "Basic Zm9vOmJhcg=="}, 403, id="auth-174: another scheme"),
        pytest.param("proxy", {}, 401, id="auth-175: the front proxy without a user"),
        pytest.param("proxy", {"X-Remote-User": "alice"}, 200, id="case 56, auth-176: the front proxy for alice"),
        pytest.param("proxy", {"X-Remote-User": "bob"}, 403, id="case 56, auth-177: the front proxy for bob"),
        pytest.param("badproxy", {"X-Remote-User": "alice"}, 401, id="case 58, auth-181: another common name"),
        pytest.param("rogue", {"X-Remote-User": "alice"}, None, id="case 58, auth-182: an unknown CA"),
        pytest.param("expired", {}, None, id="a certificate that has expired"),
        pytest.param("servereku", {}, None, id="a certificate that is for servers"),
        pytest.param("none", {"X-Remote-User": "alice"}, 403, id="case 58, auth-183: headers without a certificate"),
        pytest.param("alice", {}, 200, id="a client's certificate"),
        pytest.param("dev", {}, 403, id="a client without a right"),
    ],
)
def test_each_identity_has_its_verdict(
    running: Running, identity: str, headers: dict[str, str], expected: int | None
) -> None:
    """None: the handshake fails."""
    assert code(get(running, identity, **headers)) == expected


def test_a_denied_user_reads_what_he_may_not_do_case_56(running: Running) -> None:
    text = message(get(running, "proxy", **{"X-Remote-User": "bob"}))
    assert 'User "bob" cannot list resource "my-external-metric"' in text
    assert text.endswith('in the namespace "default": no RBAC policy matched')


@pytest.mark.parametrize("path", ["/apis", DISCOVERY, "/metrics", "/openapi/v2", "/livez/ping"])
def test_an_anonymous_client_sees_no_discovery_case_53(running: Running, path: str) -> None:
    assert message(get(running, target=path)).startswith(f'forbidden: User "system:anonymous" cannot get path "{path}"')


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_a_probe_needs_no_credential_but_a_bad_one_is_refused_case_54(running: Running, path: str) -> None:
    assert code(get(running, target=path)) == 200
    assert code(get(running, target=path, Authorization="Bearer bad")) == 401


def test_a_master_is_served_without_a_review_case_56(running: Running) -> None:
    headers = {"X-Remote-User": "carol", "X-Remote-Group": "system:masters"}
    assert code(get(running, "proxy", **headers)) == 200
    assert running.cluster.access_of("carol") == []


def test_no_one_is_served_while_reviews_fail_case_57(running: Running) -> None:
    """auth-179"""
    assert code(get(running, "proxy", **{"X-Remote-User": "boom"})) == 500


def test_a_client_certificate_overrides_identity_headers_case_59(running: Running) -> None:
    """auth-184"""
    get(running, "dev", OF_PODS, **{"X-Remote-User": "root", "X-Remote-Group": "system:masters"})
    assert running.cluster.access_of("root") == []
    assert set(running.cluster.access_of("dave")[-1]["groups"]) == {"devs", "ops", "system:authenticated"}


def test_the_aggregator_is_authenticated_without_a_group_case_60(running: Running) -> None:
    """auth-189"""
    assert code(get(running, "proxy", DISCOVERY, **{"X-Remote-User": "system:kube-aggregator"})) == 200
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
def test_an_access_review_names_the_metric_case_61(running: Running, uri: str, expected: dict[str, str]) -> None:
    get(running, "proxy", uri, **{"X-Remote-User": "dora"})
    reviewed = running.cluster.access_of("dora")[-1]["resourceAttributes"]
    assert {key: value for key, value in reviewed.items() if value and key in KEYS} == expected


def test_a_hundred_requests_cause_one_review_case_62(running: Running) -> None:
    request = Request("GET", METRIC, "proxy", (("X-Remote-User", "system:aggregator"),))
    assert {code(outcome) for outcome in running.client.send_all([request] * 100)} == {200}
    assert len(running.cluster.access_of("system:aggregator")) == 1


def test_a_token_is_reviewed_for_its_owner(running: Running) -> None:
    """auth-172"""
    assert code(get(running, target=OF_PODS, Authorization="Bearer good")) == 200
    assert "system:serviceaccounts:kube-system" in running.cluster.access_of(HPA)[-1]["groups"]


def test_a_crash_is_a_status_and_keeps_the_connection_case_76(running: Running) -> None:
    """err-102"""
    crash = Request("GET", f"{DISCOVERY}/namespaces/default/panic", "admin")
    failed, after = running.client.send_all([crash, Request("GET", "/livez", "admin")])
    assert (code(failed), code(after)) == (500, 200)
    assert "the source failed" not in message(failed)
