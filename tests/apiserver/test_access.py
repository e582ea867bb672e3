"""Who is admitted, over a stand-in cluster: credentials, rights, and a cluster that does not answer."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import structlog
from access_builders import CERTIFICATES, CONFIG, DISCOVERY, METRIC, NOW_S, UNTIL_S, Clock, of_lines, request
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

RECORDED = Path(__file__).parents[1] / "data" / "wire" / "recorded.jsonl"
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
def clock() -> Clock:
    return Clock()


@pytest.fixture
def access(api: ClusterApi, clock: Clock) -> Iterator[Access]:
    made = opened(api, clock=clock)
    yield made
    made.close()


def admitted(access: Access, asking: Request) -> Identity:
    return access.admit(asking)


def refused(access: Access, asking: Request) -> StatusError:
    with pytest.raises(StatusError) as raised:
        admitted(access, asking)
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
    "asking",
    [
        request(authorization="Bearer bad"),
        request("badproxy", **ALICE),
        request("rogue", **ALICE),
        request("proxy"),
        request("badproxy", authorization="Bearer bad", **ALICE),
    ],
    ids=["auth-171", "auth-181", "auth-182", "auth-175", "bad beside bad"],
)
def test_a_credential_that_is_not_accepted_is_a_401(access: Access, asking: Request) -> None:
    """cases 55, 58"""
    answer = refused(access, asking)
    assert (answer.code, answer.message) == (401, "Unauthorized")
    assert answer.headers == {"Connection": "close"}


def test_a_cluster_that_cannot_review_a_token_makes_it_a_401(access: Access, cluster: Cluster) -> None:
    """case 55, auth-173"""
    cluster.failures += [status(500, "token review failed")] * 5
    assert refused(access, request(authorization="Bearer good")).code == 401
    assert cluster.count("TokenReview") == 5


@pytest.mark.parametrize(
    ("asking", "user"),
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
def test_a_credential_that_is_accepted_counts_whatever_else_fails(access: Access, asking: Request, user: str) -> None:
    assert admitted(access, asking).user == user


def test_cached_identity_headers_do_not_authenticate_another_client(access: Access) -> None:
    """case 59: not even when the same headers were read a moment ago."""
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


def test_a_token_beside_an_accepted_certificate_is_not_looked_at(access: Access, cluster: Cluster) -> None:
    admitted(access, request("proxy", authorization="Bearer good", **ALICE))
    assert cluster.count("TokenReview") == 0


@pytest.mark.parametrize(
    "user", ["bob", "system:anonymous"], ids=["a known user", "an anonymous user that the aggregator names"]
)
def test_a_403_leaves_a_connection_with_a_certificate_open(access: Access, user: str) -> None:
    """The aggregator has 25 of them, for everybody."""
    answer = refused(access, request("proxy", x_remote_user=user))
    assert answer.code == 403
    assert "Connection" not in answer.headers


def test_identity_headers_without_certificate_are_anonymous(access: Access) -> None:
    """case 58, auth-183"""
    answer = refused(access, request(x_remote_user="alice", x_remote_group=MASTERS))
    assert answer.code == 403
    assert '"system:anonymous"' in answer.message


def test_the_aggregator_s_user_without_groups_is_authenticated_in_the_review(access: Access, cluster: Cluster) -> None:
    """case 60, auth-189"""
    admitted(access, request("proxy", uri=DISCOVERY, x_remote_user="system:kube-aggregator"))
    assert cluster.specs() == [
        {
            "nonResourceAttributes": {"path": DISCOVERY, "verb": "get"},
            "user": "system:kube-aggregator",
            "groups": [AUTHENTICATED],
        }
    ]


def test_the_review_of_a_metric_is_a_list_of_it(access: Access, cluster: Cluster) -> None:
    """case 61"""
    admitted(access, request("proxy", x_remote_uid="7", x_remote_extra_a="b", **ALICE))
    assert cluster.specs() == [
        {
            "resourceAttributes": {
                "namespace": "default",
                "verb": "list",
                "group": "external.metrics.k8s.io",
                "version": "v1beta1",
                "resource": "my-external-metric",
            },
            "user": "alice",
            "groups": [AUTHENTICATED],
            "uid": "7",
            "extra": {"a": ["b"]},
        }
    ]


def test_selectors_of_many_hpas_cost_one_review(access: Access, cluster: Cluster) -> None:
    for number in range(50):
        admitted(access, request("proxy", uri=f"{METRIC}?labelSelector=workload%3Djob-{number}", **ALICE))
    assert cluster.count("SubjectAccessReview") == 1


def test_100_requests_of_one_user_cost_one_review(access: Access, cluster: Cluster, clock: Clock) -> None:
    """case 62"""
    with ThreadPoolExecutor(20) as threads:
        list(threads.map(lambda _: admitted(access, request("proxy", **ALICE)), range(100)))
    assert cluster.count("SubjectAccessReview") == 1
    clock.now_s += 10
    admitted(access, request("proxy", **ALICE))
    assert cluster.count("SubjectAccessReview") == 2


def unknown() -> dict[str, str]:
    raise SourceError("kubernetes", "https://10.0.0.7:6443: connection refused")


def test_before_the_settings_are_known_a_post_is_refused_too(api: ClusterApi) -> None:
    access = opened(api, AuthenticationSettings(unknown))
    assert refused(access, request(uri=DISCOVERY, method="POST")).code == 403
    access.close()


def test_a_token_needs_no_settings(api: ClusterApi) -> None:
    access = opened(api, AuthenticationSettings(unknown))
    assert admitted(access, request(authorization="Bearer good")).user == HPA
    assert refused(access, request(authorization="Bearer bad")).code == 401
    access.close()


def test_once_the_settings_are_known_they_count(api: ClusterApi) -> None:
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


def test_of_certificates_that_are_refused_a_bounded_number_is_remembered(access: Access) -> None:
    """Who is refused with one after the other fills no memory; the first may be told again."""
    refused_ones = [of_lines("GET", METRIC, (), b"%d" % number) for number in range(300)]
    with structlog.testing.capture_logs() as logs:
        for asking in (*refused_ones, refused_ones[0]):
            refused(access, asking)
    assert len(logs) == 301


def test_an_expired_certificate_is_a_401(api: ClusterApi) -> None:
    settings = AuthenticationSettings(lambda: CONFIG)
    settings.refresh()
    access = Access(settings, Tokens(api), Reviews(api), lambda: UNTIL_S + 1)
    assert refused(access, request("proxy", **ALICE)).code == 401
    access.close()


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


HEADERS = [
    *("authorization", "x-remote-user", "x-remote-group", "x-remote-extra-a", "x-remote-uid", "upgrade", "connection"),
    *("impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-%", "sec-websocket-protocol"),
]
VALUES = st.one_of(
    st.text(st.characters(max_codepoint=255)),
    st.sampled_from([MASTERS, "alice", "bob", "Bearer good", "Bearer bad", "websocket", "system:anonymous"]),
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    with run_cluster(CONFIG, tmp_path_factory.mktemp("shared")) as cluster:
        api = ClusterApi(cluster.kubeconfig)
        made = opened(api)
        yield made
        made.close()
        api.close()


# A review that breaks is a Status here; impersonation belongs to kube-apiserver.
ELSEWHERE = ("auth-179", "auth-190")


def recorded() -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in RECORDED.read_text("utf-8").splitlines()]
    return [row for row in rows if row["id"].startswith("auth-") and row["id"] not in ELSEWHERE]


@pytest.mark.parametrize("row", recorded(), ids=lambda row: row["id"])
def test_recorded(access: Access, cluster: Cluster, row: dict[str, Any]) -> None:
    """The visible rows auth-*: admitted where Go answers 200, else refused with the same document."""
    if row["note"] == "tokenreview 500":
        cluster.failures += [status(500, "token review failed")] * 5
    lines = [(name.lower(), value) for name, value in row["request_headers"].items()]
    asking = of_lines(row["method"], row["path"], lines, CERTIFICATES[row["identity"]])
    if row["status"] == 200:
        admitted(access, asking)
        return
    answer = refused(access, asking)
    assert (answer.code, answer.document) == (row["status"], json.loads(row["body"]))


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
