"""Authentication and authorization of requests, with a stand-in cluster."""

from collections.abc import Iterator
from functools import partial

import pytest
import structlog
from access_builders import CERTIFICATES, CONFIG, DISCOVERY, METRIC, NOW_S, UNTIL_S, Clock, of_lines, request
from hypothesis import example, given
from hypothesis import strategies as st

from adapter.apiserver.access import ClusterAccess as Access
from adapter.apiserver.access import LoopbackAccess
from adapter.apiserver.authentication_settings import AuthenticationSettings, read_settings
from adapter.apiserver.cluster_api import ClusterApi, RetryPolicy
from adapter.apiserver.identity import ANONYMOUS, AUTHENTICATED, LOCAL, MASTERS, Identity, is_unauthenticated
from adapter.apiserver.request import Request
from adapter.apiserver.reviews import Reviews
from adapter.apiserver.status import StatusError
from adapter.apiserver.tokens import Tokens
from adapter.errors import SourceError
from conformance.cluster import DENIED, HPA, Cluster, run_cluster, status

QUICK = RetryPolicy(deadline_s=5.0, first_pause_s=0.001)
BOB = {"x_remote_user": "bob"}
ALICE = {"x_remote_user": "alice"}


def opened(api: ClusterApi, settings: AuthenticationSettings | None = None, clock: Clock | None = None) -> Access:
    if settings is None:
        settings = AuthenticationSettings(partial(read_settings, api))
        settings.refresh()
    moment = clock or Clock()
    return Access(settings, Tokens(api, QUICK, moment), Reviews(api, QUICK, moment), lambda: NOW_S)


@pytest.fixture
def access(api: ClusterApi, clock: Clock) -> Iterator[Access]:
    made = opened(api, clock=clock)
    yield made
    made.close()


def admitted(access: Access, sent: Request) -> Identity:
    return access.admit(sent)


def refused(access: Access, sent: Request) -> StatusError:
    with pytest.raises(StatusError) as raised:
        admitted(access, sent)
    return raised.value


def test_an_anonymous_metric_is_forbidden_with_the_cluster_s_reason(access: Access) -> None:
    """case 52, auth-164"""
    answer = refused(access, request())
    message = (
        'my-external-metric.external.metrics.k8s.io is forbidden: User "system:anonymous" cannot list resource '
        f'"my-external-metric" in API group "external.metrics.k8s.io" in the namespace "default": {DENIED}'
    )
    assert (answer.code, answer.message) == (403, message)
    assert answer.headers == {"Connection": "close"}


def test_anonymous_discovery_is_forbidden_too(access: Access) -> None:
    """case 53, auth-165"""
    answer = refused(access, request(uri=DISCOVERY))
    assert answer.message == f'forbidden: User "system:anonymous" cannot get path "{DISCOVERY}": {DENIED}'


@pytest.mark.parametrize(
    "sent",
    [
        request(authorization="Bearer bad"),
        request("badproxy", **ALICE),
        request("rogue", **ALICE),
        request("proxy"),
        request("badproxy", authorization="Bearer bad", **ALICE),
    ],
    ids=["auth-171", "auth-181", "auth-182", "auth-175", "bad beside bad"],
)
def test_a_credential_that_is_not_accepted_is_a_401(access: Access, sent: Request) -> None:
    """cases 55, 58"""
    answer = refused(access, sent)
    assert (answer.code, answer.message) == (401, "Unauthorized")
    assert answer.headers == {"Connection": "close"}


@pytest.mark.parametrize(
    ("sent", "user"),
    [
        (request("badproxy", authorization="Bearer good", **ALICE), HPA),
        (request("rogue", authorization="Bearer good"), HPA),
        (request("proxy", authorization="Bearer good"), HPA),
        (request("alice", authorization="Bearer bad"), "alice"),
        (request("proxy", authorization="Bearer bad", **ALICE), "alice"),
        (request("alice", **BOB), "alice"),
    ],
    ids=["ath-10419", "ath-10420", "ath-10421", "ath-10417", "ath-10423", "case 59 auth-184"],
)
def test_one_accepted_credential_is_enough(access: Access, sent: Request, user: str) -> None:
    assert admitted(access, sent).user == user


def test_cached_identity_headers_do_not_authenticate_another_client(access: Access) -> None:
    """case 59"""
    headers: dict[str, str | list[str]] = {"x_remote_group": MASTERS, **ALICE}
    assert MASTERS in admitted(access, request("proxy", **headers)).groups
    assert refused(access, request("dev", **headers)).message.startswith("my-external-metric")
    assert refused(access, request("badproxy", **headers)).code == 401
    assert refused(access, request("none", **headers)).code == 403


def test_an_expired_aggregator_certificate_is_rejected(api: ClusterApi) -> None:
    settings, now_s = AuthenticationSettings(lambda: CONFIG), Clock(UNTIL_S)
    settings.refresh()
    access = Access(settings, Tokens(api), Reviews(api), now_s)
    assert admitted(access, request("proxy", **ALICE)).user == "alice"
    now_s.now_s += 1
    assert refused(access, request("proxy", **ALICE)).code == 401
    access.close()


def test_other_settings_read_other_headers(api: ClusterApi) -> None:
    read = dict(CONFIG)
    settings = AuthenticationSettings(lambda: read)
    access = opened(api, settings)
    settings.refresh()
    headers: dict[str, str] = {"x_user": "bob", **ALICE}
    assert admitted(access, request("proxy", **headers)).user == "alice"
    read["requestheader-username-headers"] = '["X-User"]'
    settings.refresh()
    assert '"bob"' in refused(access, request("proxy", **headers)).message
    access.close()


def test_a_token_beside_an_accepted_certificate_is_not_reviewed(access: Access, cluster: Cluster) -> None:
    admitted(access, request("proxy", authorization="Bearer good", **ALICE))
    assert cluster.count("TokenReview") == 0


@pytest.mark.parametrize(
    "user", ["bob", "system:anonymous"], ids=["a known user", "an anonymous user that the aggregator names"]
)
def test_a_403_leaves_a_connection_with_a_certificate_open(access: Access, user: str) -> None:
    """The aggregator shares 25 connections among all users."""
    answer = refused(access, request("proxy", x_remote_user=user))
    assert answer.code == 403
    assert "Connection" not in answer.headers


def test_identity_headers_without_certificate_are_anonymous(access: Access) -> None:
    """case 58, auth-183"""
    answer = refused(access, request(x_remote_user="alice", x_remote_group=MASTERS))
    assert answer.code == 403
    assert '"system:anonymous"' in answer.message


def test_selectors_of_many_hpas_cost_one_review(access: Access, cluster: Cluster) -> None:
    for number in range(50):
        admitted(access, request("proxy", uri=f"{METRIC}?labelSelector=workload%3Djob-{number}", **ALICE))
    assert cluster.count("SubjectAccessReview") == 1


def unknown() -> dict[str, str]:
    raise SourceError("kubernetes", "https://10.0.0.7:6443: connection refused")


def test_a_post_is_forbidden_before_the_settings_are_known(api: ClusterApi) -> None:
    access = opened(api, AuthenticationSettings(unknown))
    assert refused(access, request(uri=DISCOVERY, method="POST")).code == 403
    access.close()


def test_a_token_needs_no_settings(api: ClusterApi) -> None:
    access = opened(api, AuthenticationSettings(unknown))
    assert admitted(access, request(authorization="Bearer good")).user == HPA
    assert refused(access, request(authorization="Bearer bad")).code == 401
    access.close()


def test_certificates_count_once_the_settings_are_known(api: ClusterApi) -> None:
    settings = AuthenticationSettings(partial(read_settings, api))
    access = opened(api, settings)
    assert refused(access, request("proxy", **ALICE)).code == 403
    settings.refresh()
    assert admitted(access, request("proxy", **ALICE)).user == "alice"
    access.close()


def test_a_rejected_certificate_is_logged_once(access: Access) -> None:
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            refused(access, request("badproxy", **ALICE))
    assert [log["name"] for log in logs] == ["CN=someone-else"]
    needed = "user headers and a common name that requestheader-allowed-names lists"
    assert logs[0]["hint"] == f"the front proxy needs {needed}; other clients need a common name"


def test_each_cause_of_a_failed_handshake_is_logged_once_with_the_first_client(access: Access) -> None:
    expired, unknown = "certificate has expired", "unable to get local issuer certificate"
    with structlog.testing.capture_logs() as logs:
        for number in range(300):
            access.on_rejected(expired, f"10.0.0.{number}")
            access.on_rejected(unknown, f"10.0.1.{number}")
    assert [(log["cause"], log["client"]) for log in logs] == [(expired, "10.0.0.0"), (unknown, "10.0.1.0")]


def test_a_cause_that_lasts_is_logged_once_an_hour(api: ClusterApi) -> None:
    clock = Clock()
    settings = AuthenticationSettings(partial(read_settings, api))
    access = Access(settings, Tokens(api, QUICK), Reviews(api, QUICK), clock)
    with structlog.testing.capture_logs() as logs:
        for client in range(5):
            access.on_rejected("certificate has expired", f"10.0.0.{client}")
            clock.now_s += 1800.0
    access.close()
    assert [log["client"] for log in logs] == ["10.0.0.0", "10.0.0.2", "10.0.0.4"]


def test_failed_handshakes_do_not_repeat_the_log_of_a_rejected_certificate(access: Access) -> None:
    with structlog.testing.capture_logs() as logs:
        refused(access, request("badproxy", **ALICE))
        for number in range(300):
            access.on_rejected("certificate has expired", f"10.0.0.{number}")
        refused(access, request("badproxy", **ALICE))
    assert [log.get("name") for log in logs] == ["CN=someone-else", None]


def test_the_memory_of_logged_certificates_is_bounded(access: Access) -> None:
    """So the first of 301 is logged again."""
    requests = [of_lines("GET", METRIC, (), b"%d" % number) for number in range(300)]
    with structlog.testing.capture_logs() as logs:
        for sent in (*requests, requests[0]):
            refused(access, sent)
    assert len(logs) == 301


def test_a_cluster_that_never_answers_delays_no_other_request(api: ClusterApi, cluster: Cluster) -> None:
    cluster.silent = True
    settings = AuthenticationSettings(lambda: CONFIG)
    settings.refresh()
    short = RetryPolicy(deadline_s=0.2)
    access = Access(settings, Tokens(api, short), Reviews(api, short), lambda: NOW_S)
    assert refused(access, request("proxy", **ALICE)).code == 500
    assert refused(access, request(authorization="Bearer good")).code == 401
    assert admitted(access, request("proxy", uri="/livez", **ALICE)).user == "alice"
    assert admitted(access, request("admin")).user == "admin"
    access.close()


@pytest.mark.parametrize(
    ("identity", "unauthenticated"),
    [
        (ANONYMOUS, True),
        (Identity("alice", (AUTHENTICATED,)), False),
        (Identity("bob", ("system:unauthenticated",)), True),
        (LOCAL, False),
    ],
)
def test_an_identity_without_a_credential_is_unauthenticated(identity: Identity, unauthenticated: bool) -> None:
    assert is_unauthenticated(identity) is unauthenticated


# Header names and values that identify somebody in a valid request, or that ask for a privilege.
HEADER_NAMES = [
    *("authorization", "x-remote-user", "x-remote-group", "x-remote-extra-a", "x-remote-uid", "upgrade", "connection"),
    *("impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-%", "sec-websocket-protocol"),
]
HEADER_VALUES = st.text(st.characters(max_codepoint=255)) | st.sampled_from(
    [MASTERS, "alice", "bob", "Bearer bad", "websocket", "system:anonymous"]
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    with run_cluster(CONFIG, tmp_path_factory.mktemp("shared")) as cluster:
        api = ClusterApi(cluster.kubeconfig)
        made = opened(api)
        yield made
        made.close()
        api.close()


@pytest.mark.parametrize("certificate", ["none", "badproxy", "rogue"])
@given(lines=st.lists(st.tuples(st.sampled_from(HEADER_NAMES), HEADER_VALUES), max_size=6))
@example(lines=[("x-remote-user", "alice")])
@example(lines=[("x-remote-group", MASTERS), ("x-remote-user", "bob")])
@example(lines=[("impersonate-user", "alice"), ("impersonate-group", MASTERS)])
def test_no_combination_of_headers_without_a_credential_grants_access(
    shared: Access, lines: list[tuple[str, str]], certificate: str
) -> None:
    assert refused(shared, of_lines("GET", METRIC, lines, CERTIFICATES[certificate])).code in (401, 403)


def test_a_cluster_that_cannot_review_makes_it_a_500_and_never_a_200(access: Access, cluster: Cluster) -> None:
    """case 57, auth-179"""
    cluster.failures += [status(500, "subject access review failed")] * 5
    answer = refused(access, request("proxy", **ALICE))
    assert (answer.code, answer.reason) == (500, "InternalError")
    assert answer.message.endswith("the access review failed: subject access review failed")


@pytest.mark.parametrize("host", ["localhost", "LocalHost:8080", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:6443"])
def test_a_server_on_loopback_answers_the_names_of_loopback(host: str) -> None:
    assert LoopbackAccess().admit(request(host=host)) is LOCAL


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "::1", "[::2]"],
)
def test_a_server_on_loopback_refuses_every_other_name(host: str) -> None:
    with pytest.raises(StatusError, match="expected localhost") as raised:
        LoopbackAccess().admit(request(host=host))
    assert (raised.value.code, raised.value.reason) == (403, "Forbidden")
