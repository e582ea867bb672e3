from datetime import UTC, datetime, timedelta

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from adapter.serving.frontproxy import ANONYMOUS, FrontProxy, Identity, front_proxy, identify, signed_by

PROXIES, CLIENTS = trustme.CA(), trustme.CA()
CLUSTER = FrontProxy(
    ca_pem=PROXIES.cert_pem.bytes().decode(),
    client_ca_pem=CLIENTS.cert_pem.bytes().decode(),
    allowed_names=("front-proxy-client",),
)
ALICE = [("X-Remote-User", "alice")]


def certificate(authority: trustme.CA = PROXIES, name: str = "front-proxy-client") -> bytes:
    leaf = authority.issue_cert(common_name=name)
    return x509.load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes()).public_bytes(Encoding.DER)


def test_the_aggregator_says_who_asks() -> None:
    headers = [
        ("x-remote-user", "alice"),
        ("x-remote-group", "a"),
        ("x-remote-group", "b,system:masters"),
        ("x-remote-extra-scopes%2ffoo", "1"),
        ("x-remote-extra-scopes%2ffoo", "2"),
    ]
    assert identify(CLUSTER, certificate(), headers) == Identity(
        "alice", ("a", "b,system:masters", "system:authenticated"), {"scopes/foo": ("1", "2")}
    )


def test_the_first_user_header_that_says_something_counts() -> None:
    settings = FrontProxy(ca_pem=CLUSTER.ca_pem, username_headers=("X-One", "X-Two"))
    found = identify(settings, certificate(), [("X-One", ""), ("X-Two", "bob")])
    assert found is not None
    assert found.user == "bob"


def test_auth_183_headers_without_a_certificate_are_nobody_s() -> None:
    assert identify(CLUSTER, None, ALICE) == ANONYMOUS


def test_auth_181_another_common_name_is_refused() -> None:
    assert identify(CLUSTER, certificate(name="mallory"), ALICE) is None


def test_an_empty_list_of_names_allows_every_name() -> None:
    settings = FrontProxy(ca_pem=CLUSTER.ca_pem)
    found = identify(settings, certificate(name="mallory"), ALICE)
    assert found is not None
    assert found.user == "alice"


def test_auth_184_a_certificate_of_the_client_ca_is_no_front_proxy() -> None:
    assert identify(CLUSTER, certificate(CLIENTS), ALICE) is None


def test_auth_175_a_front_proxy_that_names_nobody_is_refused() -> None:
    assert identify(CLUSTER, certificate(), []) is None


def test_before_the_settings_are_known_everybody_is_anonymous() -> None:
    assert identify(None, certificate(), ALICE) == ANONYMOUS


def test_a_cluster_without_front_proxy_accepts_none() -> None:
    assert identify(FrontProxy(), certificate(), ALICE) is None


def test_an_expired_certificate_is_refused_on_an_open_connection_too() -> None:
    now = datetime.now(UTC)
    assert signed_by(certificate(), CLUSTER.ca_pem, now) == "front-proxy-client"
    assert signed_by(certificate(), CLUSTER.ca_pem, now + timedelta(days=365 * 2000)) is None


def test_while_a_ca_is_rotated_both_are_accepted() -> None:
    new = trustme.CA()
    both = CLUSTER.ca_pem + new.cert_pem.bytes().decode()
    now = datetime.now(UTC)
    assert signed_by(certificate(new), both, now) == "front-proxy-client"
    assert signed_by(certificate(PROXIES), both, now) == "front-proxy-client"
    assert signed_by(certificate(PROXIES), new.cert_pem.bytes().decode(), now) is None


def test_the_settings_are_read_from_the_config_map() -> None:
    data = {
        "client-ca-file": CLUSTER.client_ca_pem,
        "requestheader-client-ca-file": CLUSTER.ca_pem,
        "requestheader-allowed-names": '["front-proxy-client"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
    }
    assert front_proxy(data) == CLUSTER


def test_a_cluster_may_have_no_front_proxy() -> None:
    assert front_proxy({"client-ca-file": CLUSTER.client_ca_pem}).ca_pem == ""


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ({"requestheader-client-ca-file": "nonsense"}, "requestheader-client-ca-file: expected PEM certificates"),
        ({"requestheader-allowed-names": "front"}, "requestheader-allowed-names: expected a JSON array of strings"),
        ({"requestheader-allowed-names": "[1]"}, "requestheader-allowed-names: expected a JSON array of strings"),
        ({"requestheader-client-ca-file": CLUSTER.ca_pem}, "requestheader-username-headers: expected at least one"),
    ],
)
def test_settings_that_cannot_be_read_name_their_key(data: dict[str, str], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        front_proxy(data)
