"""Which CA signed a client's certificate, and whom it names: the rules of Go's x509.Verify with usage clientAuth."""

import pytest
from access_builders import CLIENTS, FROM_S, NOW_S, PROXIES, UNTIL_S, Authority, named
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID

from adapter.apiserver.certificates import CREDENTIAL, UID, holder, subject

IS_CA = x509.BasicConstraints(ca=True, path_length=None)
FOR_SERVERS = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
NO_SIGNING = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=False,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


def subject_of(*attributes: tuple[x509.ObjectIdentifier, str]) -> x509.Name:
    return x509.Name([x509.NameAttribute(kind, value, _validate=False) for kind, value in attributes])


def test_a_certificate_of_the_ca_names_its_holder() -> None:
    """auth-184, ath-10431: common name, organizations as groups, and which certificate it was."""
    leaf = CLIENTS.issue(named("dave", "devs", "ops"))
    found = holder(leaf, CLIENTS.pem)
    assert found is not None
    assert found.common_name == "dave"
    assert found.client is not None
    assert (found.client.user, found.client.groups) == ("dave", ("devs", "ops", "system:authenticated"))
    assert found.client.extra[CREDENTIAL][0].startswith("X509SHA256=")
    assert len(found.client.extra[CREDENTIAL][0]) == len("X509SHA256=") + 64


@pytest.mark.parametrize(
    ("attributes", "user", "uid"),
    [
        ([(NameOID.COMMON_NAME, "first"), (NameOID.COMMON_NAME, "last")], "last", ""),
        ([(NameOID.COMMON_NAME, "alice"), (UID, "7")], "alice", "7"),
        ([(NameOID.ORGANIZATION_NAME, "system:masters")], None, None),
        ([(NameOID.COMMON_NAME, "")], None, None),
        ([(NameOID.COMMON_NAME, "alice"), (UID, "7"), (UID, "8")], None, None),
        ([(NameOID.COMMON_NAME, "alice"), (UID, "")], None, None),
    ],
    ids=["two names", "a uid", "no name", "an empty name", "two uids", "an empty uid"],
)
@pytest.mark.filterwarnings("ignore:Attribute's length must be:UserWarning")  # the library's, of the empty name
def test_the_subject_names_at_most_one_user(
    attributes: list[tuple[x509.ObjectIdentifier, str]], user: str | None, uid: str | None
) -> None:
    found = holder(CLIENTS.issue(subject_of(*attributes)), CLIENTS.pem)
    assert found is not None
    assert (None if found.client is None else found.client.user) == user
    assert (None if found.client is None else found.client.uid) == uid


@pytest.mark.parametrize(
    ("leaf", "authority"),
    [
        (CLIENTS.issue(named("alice")), PROXIES),
        (CLIENTS.issue(named("alice")), Authority("clients")),
        (CLIENTS.issue(named("alice"), [ExtendedKeyUsageOID.SERVER_AUTH]), CLIENTS),
        (CLIENTS.issue(named("alice")), Authority("clients", CLIENTS.key, ())),
        (CLIENTS.issue(named("alice")), Authority("clients", CLIENTS.key, (x509.BasicConstraints(False, None),))),
        (CLIENTS.issue(named("alice")), Authority("clients", CLIENTS.key, (IS_CA, NO_SIGNING))),
        (CLIENTS.issue(named("alice")), Authority("clients", CLIENTS.key, (IS_CA, FOR_SERVERS))),
        (b"", CLIENTS),
        (b"\x30\x03abc", CLIENTS),
    ],
    ids=[
        "another CA",
        "a CA of the same name",
        "for servers",
        "its CA has no constraints",
        "its CA is none",
        "its CA may not sign",
        "its CA is for servers",
        "no certificate",
        "bytes",
    ],
)
def test_a_certificate_that_does_not_count_has_no_holder(leaf: bytes, authority: Authority) -> None:
    assert holder(leaf, authority.pem) is None


@pytest.mark.parametrize("usages", [(), (ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,)], ids=["no usage", "any usage"])
def test_a_certificate_for_everything_is_one_for_clients(usages: tuple[x509.ObjectIdentifier, ...]) -> None:
    assert holder(CLIENTS.issue(named("alice"), usages), CLIENTS.pem) is not None


def test_a_certificate_in_the_bundle_itself_is_accepted() -> None:
    leaf = CLIENTS.issue(named("alice"))
    pem = x509.load_der_x509_certificate(leaf).public_bytes(Encoding.PEM).decode()
    assert holder(leaf, pem) is not None


def test_an_intermediate_ca_is_accepted_in_the_bundle_alone() -> None:
    """Go takes one from the handshake too; here only the leaf is known."""
    between = Authority("between", issuer=CLIENTS)
    leaf = between.issue(named("alice"))
    assert holder(leaf, CLIENTS.pem) is None
    assert holder(leaf, CLIENTS.pem + between.pem) is not None


@pytest.mark.parametrize("is_first", [True, False], ids=["the first", "the second"])
def test_the_key_decides_between_two_cas_of_one_name(is_first: bool) -> None:
    old, new = Authority("clients", span=(FROM_S, NOW_S - 1)), Authority("clients")
    bundle = old.pem + new.pem if is_first else new.pem + old.pem
    by_old, by_new = holder(old.issue(named("alice")), bundle), holder(new.issue(named("alice")), bundle)
    assert by_old is not None
    assert by_new is not None
    assert [by_old.is_valid_at(NOW_S), by_new.is_valid_at(NOW_S)] == [False, True]


def test_a_certificate_with_an_unsupported_name_type_is_rejected() -> None:
    of_x400 = x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, bytes.fromhex("3004a3023000"))
    assert holder(CLIENTS.issue(named("alice"), also=(of_x400,)), CLIENTS.pem) is None


def test_both_cas_are_accepted_during_a_rotation() -> None:
    new = Authority("clients")
    both = CLIENTS.pem + new.pem
    assert holder(CLIENTS.issue(named("alice")), both) is not None
    assert holder(new.issue(named("alice")), both) is not None
    assert holder(CLIENTS.issue(named("alice")), new.pem) is None


@pytest.mark.parametrize(
    ("span", "ca_span", "counts"),
    [
        ((FROM_S, UNTIL_S), (FROM_S, UNTIL_S), True),
        ((FROM_S, NOW_S - 1), (FROM_S, UNTIL_S), False),
        ((NOW_S + 1, UNTIL_S), (FROM_S, UNTIL_S), False),
        ((FROM_S, UNTIL_S), (FROM_S, NOW_S - 1), False),
    ],
    ids=["both", "expired", "not yet", "its CA has expired"],
)
def test_a_certificate_is_valid_while_it_and_its_ca_are_valid(
    span: tuple[float, float], ca_span: tuple[float, float], counts: bool
) -> None:
    authority = Authority("old", span=ca_span)
    found = holder(authority.issue(named("alice"), span=span), authority.pem)
    assert found is not None
    assert found.is_valid_at(NOW_S) is counts


def test_a_ca_that_is_renewed_with_its_key_replaces_the_old_one() -> None:
    old = Authority("clients", CLIENTS.key, span=(FROM_S, NOW_S - 1))
    found = holder(CLIENTS.issue(named("alice")), old.pem + CLIENTS.pem)
    assert found is not None
    assert found.is_valid_at(NOW_S)


def test_the_subject_of_a_rejected_certificate_can_be_read() -> None:
    assert subject(CLIENTS.issue(named("alice", "devs"))) == "CN=alice,O=devs"
    assert subject(b"nonsense") == "unreadable"
