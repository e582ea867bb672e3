"""Certificates and headers -> who asks, in the aggregator's way and by the certificate alone."""

from collections.abc import Sequence
from ssl import DER_cert_to_PEM_cert

import pytest
from access_builders import CERTIFICATES, CLIENTS, CONFIG, NOW_S, PROXIES, SETTINGS, UNTIL_S, named
from hypothesis import given
from hypothesis import strategies as st

from adapter.apiserver.front_proxy import FrontProxy, HeaderNames, front_proxy, identify, user_in
from adapter.apiserver.identity import AUTHENTICATED, MASTERS, Identity
from adapter.apiserver.request import Headers

PROXY, ALICE = CERTIFICATES["proxy"], [("x-remote-user", "alice")]
_LEAF = CERTIFICATES["proxy"].replace(bytes.fromhex("a003020102"), bytes.fromhex("a003020101"), 1)
OF_VERSION_2 = DER_cert_to_PEM_cert(_LEAF)  # which no certificate has
NAMES = ["x-remote-user", "x-remote-uid", "x-remote-group", "x-remote-extra-a", "x-remote-extra-%2f", "x_remote_user"]


def wire(headers: Sequence[tuple[str, str]]) -> Headers:
    return tuple((name.encode(), value.encode("latin-1", "replace")) for name, value in headers)


def who(identity: str, *headers: tuple[str, str], settings: FrontProxy = SETTINGS) -> Identity | None:
    return identify(settings, CERTIFICATES[identity], user_in(settings.headers, wire(headers)), NOW_S)


def test_the_aggregator_names_the_user() -> None:
    found = who(
        "proxy",
        ("x-remote-user", "alice"),
        ("x-remote-uid", "7"),
        ("x-remote-group", "a"),
        ("x-remote-group", ""),
        ("x-remote-group", "b,system:masters"),
        ("x-remote-extra-scopes%2ffoo", "1"),
        ("x-remote-extra-scopes%2ffoo", "2"),
        ("x-remote-extra-%35%30%", ""),
    )
    extra = {"scopes/foo": ("1", "2"), "%35%30%": ("",)}
    assert found == Identity("alice", ("a", "b,system:masters", AUTHENTICATED), "7", extra)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([], (AUTHENTICATED,)),
        ([AUTHENTICATED, "a"], (AUTHENTICATED, "a")),
        (["system:unauthenticated"], ("system:unauthenticated",)),
        (["a", "a"], ("a", "a", AUTHENTICATED)),
    ],
    ids=["none", "authenticated", "unauthenticated", "both"],
)
def test_a_user_is_authenticated_unless_the_proxy_decided(groups: list[str], expected: tuple[str, ...]) -> None:
    """case 60: the aggregator's discovery user comes without groups, auth-189; ath-10388."""
    found = who("proxy", *ALICE, *(("x-remote-group", group) for group in groups))
    assert found is not None
    assert found.groups == expected


def test_the_anonymous_user_of_a_proxy_stays_without_the_group() -> None:
    assert who("proxy", ("x-remote-user", "system:anonymous")) == Identity("system:anonymous")


@pytest.mark.parametrize(
    ("headers", "user"),
    [
        ([("x-one", ""), ("x-two", "bob")], "bob"),
        ([("x-two", "bob"), ("x-one", "alice")], "alice"),
        ([("x-one", ""), ("x-one", "alice"), ("x-two", "bob")], "bob"),
    ],
    ids=["the other is empty", "in the order of the settings", "a header counts by its first line"],
)
def test_the_first_user_header_that_is_not_empty_is_used(headers: list[tuple[str, str]], user: str) -> None:
    settings = FrontProxy(ca_pem=PROXIES.pem, headers=HeaderNames(user=("x-one", "x-two")))
    found = who("proxy", *headers, settings=settings)
    assert found is not None
    assert found.user == user


def test_names_are_utf_8() -> None:
    found = who("proxy", ("x-remote-user", "jos\u00c3\u00a9"), ("x-remote-group", "\u00e9"))
    assert found is not None
    assert (found.user, found.groups[0]) == ("jos\u00e9", "\ufffd")


@pytest.mark.parametrize(
    ("identity", "headers"),
    [
        ("badproxy", ALICE),
        ("rogue", ALICE),
        ("proxy", []),
        ("proxy", [("x-remote-user", ""), ("x-remote-group", MASTERS)]),
        ("proxy", [("x_remote_user", "root")]),
    ],
    ids=["auth-181 another name", "auth-182 an unknown CA", "auth-175 no headers", "ath-10378 no user", "underscores"],
)
def test_a_rejected_certificate_has_no_identity(identity: str, headers: list[tuple[str, str]]) -> None:
    """case 58"""
    assert who(identity, *headers) is None


def test_an_empty_list_of_names_allows_every_name() -> None:
    found = who("badproxy", *ALICE, settings=FrontProxy(ca_pem=PROXIES.pem))
    assert found is not None
    assert found.user == "alice"


def test_a_client_s_certificate_overrides_identity_headers() -> None:
    """case 59, auth-184"""
    found = who("dev", ("x-remote-user", "root"), ("x-remote-group", MASTERS))
    assert found is not None
    assert (found.user, found.groups) == ("dave", ("devs", "ops", AUTHENTICATED))


def test_a_certificate_is_accepted_for_its_own_ca_alone() -> None:
    swapped = FrontProxy(ca_pem=CLIENTS.pem, client_ca_pem=PROXIES.pem, allowed_names=("front-proxy-client",))
    found = who("proxy", *ALICE, settings=swapped)
    assert found is not None
    assert found.user == "front-proxy-client"


def test_identity_headers_count_first_where_both_cas_are_one() -> None:
    one = FrontProxy(ca_pem=PROXIES.pem, client_ca_pem=PROXIES.pem, allowed_names=("front-proxy-client",))
    by_headers, alone, other = (
        who(*case, settings=one) for case in (("proxy", *ALICE), ("proxy",), ("badproxy", *ALICE))
    )
    assert by_headers is not None
    assert alone is not None
    assert other is not None
    assert [by_headers.user, alone.user, other.user] == ["alice", "front-proxy-client", "someone-else"]


def test_an_expired_certificate_is_refused_on_an_open_connection_too() -> None:
    """ath-10427"""
    assert identify(SETTINGS, CERTIFICATES["alice"], None, UNTIL_S) is not None
    assert identify(SETTINGS, CERTIFICATES["alice"], None, UNTIL_S + 1) is None
    assert identify(SETTINGS, PROXY, user_in(SETTINGS.headers, wire(ALICE)), UNTIL_S + 1) is None


def test_a_cluster_without_cas_accepts_no_certificate() -> None:
    assert who("proxy", *ALICE, settings=FrontProxy()) is None


@given(st.sampled_from(["alice", "rogue", "badproxy"]), st.lists(st.tuples(st.sampled_from(NAMES), st.text())))
def test_identity_headers_count_from_a_front_proxy_alone(identity: str, headers: list[tuple[str, str]]) -> None:
    found = who(identity, *headers, ("x-remote-group", MASTERS))
    assert found is None or (found.user == "alice" and MASTERS not in found.groups)


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.text(st.characters(max_codepoint=255)))))
def test_a_front_proxy_s_headers_name_the_groups(headers: list[tuple[str, str]]) -> None:
    found = who("proxy", *headers)
    sent = [value for name, value in headers if name == "x-remote-group" and value]
    assert found is None or len(found.groups) in (len(sent), len(sent) + 1)


def test_the_settings_are_read_from_the_config_map() -> None:
    assert front_proxy(CONFIG | {"of-a-later-version": "ignored"}) == SETTINGS


def test_an_older_cluster_has_no_header_of_uids() -> None:
    older = {key: value for key, value in CONFIG.items() if key != "requestheader-uid-headers"}
    assert front_proxy(older).headers.uid == ()


def test_a_cluster_may_have_no_front_proxy() -> None:
    assert front_proxy({"client-ca-file": CLIENTS.pem}).ca_pem == ""


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ({"requestheader-client-ca-file": "nonsense"}, "requestheader-client-ca-file: expected PEM certificates"),
        ({"client-ca-file": "nonsense"}, "client-ca-file: expected PEM certificates"),
        ({"client-ca-file": CLIENTS.pem + OF_VERSION_2}, "client-ca-file: expected PEM certificates"),
        ({"requestheader-allowed-names": "front"}, "requestheader-allowed-names: expected a JSON array of strings"),
        (
            {"requestheader-allowed-names": "[" * 100_000},
            "requestheader-allowed-names: expected a JSON array of strings",
        ),
        ({"requestheader-allowed-names": "[1]"}, "requestheader-allowed-names: expected a JSON array of strings"),
        ({"requestheader-group-headers": '[" "]'}, "requestheader-group-headers: expected a JSON array of strings"),
        ({"requestheader-client-ca-file": PROXIES.pem}, "requestheader-username-headers: expected at least one"),
    ],
)
def test_settings_that_cannot_be_read_name_their_key(data: dict[str, str], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        front_proxy(data)


def test_a_certificate_may_have_any_subject() -> None:
    assert identify(SETTINGS, CLIENTS.issue(named("system:node:1", "system:nodes")), None, NOW_S) is not None
