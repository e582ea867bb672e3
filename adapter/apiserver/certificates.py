"""A client certificate -> its holder, if a CA of a bundle signed it.

The rules are those of Go's `x509.Verify` with the usage clientAuth, as far as they distinguish CAs. The handshake has
verified the rest, critical extensions and name constraints, against all CAs together.

Among CAs of one name, the key that verifies the signature decides. OpenSSL tries only one of them in the handshake: the
one that the certificate's authority key identifier names, otherwise the first. So two CAs of one name, as during a
rotation, need key identifiers; Kubernetes and Go write them into every certificate.

Only the leaf is available here. An intermediate CA must be in the bundle; Go also accepts one that the client sends.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from adapter.apiserver.identity import Identity, add_authenticated

CREDENTIAL = "authentication.kubernetes.io/credential-id"  # the key in `extra` of the certificate's fingerprint
UID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")  # in a subject: the user's uid
_FOR_CLIENTS = {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}

_Extension = TypeVar("_Extension", bound=x509.ExtensionType)


# What cryptography raises for bytes that are no certificate, or a malformed one.
_OF_X509 = (x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType)
UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm, *_OF_X509)


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of a certificate.

    client: the user that the certificate itself names, None if it names none. validity_periods: as (from, until) in
    Unix seconds, one for each CA that signed it.
    """

    common_name: str
    client: Identity | None
    validity_periods: tuple[tuple[float, float], ...]

    def is_valid_at(self, now_s: float) -> bool:
        """Whether certificate and CA are valid at that time."""
        return any(from_s <= now_s <= until_s for from_s, until_s in self.validity_periods)


def authorities(bundle: str) -> tuple[x509.Certificate, ...]:
    """The CAs of a PEM bundle, which may be empty. Raises ValueError."""
    try:
        return tuple(x509.load_pem_x509_certificates(bundle.encode())) if bundle.strip() else ()
    except UNREADABLE as error:
        raise ValueError(error) from error


_cached_authorities = lru_cache(maxsize=8)(authorities)


@lru_cache(maxsize=256)  # a connection carries many requests and one certificate; a signature costs 0.1 ms
def holder(certificate: bytes, bundle: str) -> Holder | None:
    """The holder of a certificate (DER); None if no CA of the bundle (PEM) signed it for a client."""
    try:
        leaf = x509.load_der_x509_certificate(certificate)
        signers = [ca for ca in _cached_authorities(bundle) if _signed(ca, leaf)]
        if not signers or not _serves_clients(leaf):
            return None
        names = _values(leaf, NameOID.COMMON_NAME)
        return Holder(names[-1] if names else "", _client(leaf), tuple(_span(leaf, ca) for ca in signers))
    except UNREADABLE:
        return None


def subject(certificate: bytes) -> str:
    """The subject of a certificate (DER), unverified, for a message."""
    try:
        return x509.load_der_x509_certificate(certificate).subject.rfc4514_string()
    except UNREADABLE:
        return "unreadable"


def has_signed(authority: x509.Certificate, leaf: x509.Certificate) -> bool:
    """Whether a CA signed a certificate."""
    try:
        leaf.verify_directly_issued_by(authority)
    except (InvalidSignature, UnsupportedAlgorithm, TypeError, ValueError):  # another key, kind of key or issuer
        return False
    return True


def dns_names(certificate: x509.Certificate) -> list[str]:
    """The host names of a certificate. Clients ignore the common name."""
    try:
        names = _extension(certificate, x509.SubjectAlternativeName)
    except UNREADABLE:
        return []
    return [] if names is None else names.get_values_for_type(x509.DNSName)


def _signed(ca: x509.Certificate, leaf: x509.Certificate) -> bool:
    return ca == leaf or (_may_sign(ca) and _serves_clients(ca) and has_signed(ca, leaf))


def _may_sign(ca: x509.Certificate) -> bool:
    constraints = _extension(ca, x509.BasicConstraints)
    usage = _extension(ca, x509.KeyUsage)
    is_ca = ca.version is x509.Version.v1 if constraints is None else constraints.ca
    return is_ca and (usage is None or usage.key_cert_sign)


def _serves_clients(certificate: x509.Certificate) -> bool:
    usages = _extension(certificate, x509.ExtendedKeyUsage)
    return usages is None or not _FOR_CLIENTS.isdisjoint(usages)


def _client(leaf: x509.Certificate) -> Identity | None:
    """The user that the subject names: common name, organizations as groups, and at most one uid."""
    names, uids = _values(leaf, NameOID.COMMON_NAME), _values(leaf, UID)
    if not names or not names[-1] or len(uids) > 1 or uids == [""]:
        return None
    groups = tuple(_values(leaf, NameOID.ORGANIZATION_NAME))
    extra = {CREDENTIAL: (f"X509SHA256={leaf.fingerprint(SHA256()).hex()}",)}
    return add_authenticated(Identity(names[-1], groups, uids[0] if uids else "", extra))


def _values(leaf: x509.Certificate, kind: x509.ObjectIdentifier) -> list[str]:
    return [str(attribute.value) for attribute in leaf.subject.get_attributes_for_oid(kind)]


def _extension(certificate: x509.Certificate, kind: type[_Extension]) -> _Extension | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _span(leaf: x509.Certificate, ca: x509.Certificate) -> tuple[float, float]:
    both = (leaf, ca)
    from_s = max(each.not_valid_before_utc.timestamp() for each in both)
    return from_s, min(each.not_valid_after_utc.timestamp() for each in both)
