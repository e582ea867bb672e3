"""Make and read keys and certificates."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from adapter.apiserver.certificates import UNREADABLE, authorities, dns_names

# The clocks of nodes differ: a certificate is valid from this long before it is issued.
SKEW_S = 300.0
# A common name has at most 64 characters, fewer than a host may have. Clients read the alternative names.
_AUTHORITY, _LEAF = (
    x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in ("backlog-adapter-ca", "backlog-adapter")
)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def issued_s(self) -> float:
        """When it was issued, in Unix seconds."""
        return self.certificate.not_valid_before_utc.timestamp() + SKEW_S

    @property
    def ends_s(self) -> float:
        """When it expires, in Unix seconds."""
        return ends_s(self.certificate)

    def is_due(self, now_s: float) -> bool:
        """Whether two thirds of its life are over, or it is not valid yet: the clock of its issuer was ahead."""
        return not self.issued_s - SKEW_S <= now_s < self.issued_s + 2 / 3 * (self.ends_s - self.issued_s)

    def covers(self, host: str) -> bool:
        """Whether the certificate is for this host."""
        return host in dns_names(self.certificate)

    def key_pem(self) -> bytes:
        """The private key in PEM."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def ends_s(certificate: x509.Certificate) -> float:
    """When a certificate expires, in Unix seconds."""
    return certificate.not_valid_after_utc.timestamp()


def new_authority(now_s: float, life_s: float) -> KeyPair:
    """A CA with a new key."""
    key = ec.generate_private_key(ec.SECP256R1())
    draft = (
        _draft(key, key, (now_s - SKEW_S, now_s + life_s))
        .subject_name(_AUTHORITY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(certificates=True), critical=True)
    )
    return KeyPair(draft.sign(key, hashes.SHA256()), key)


def new_leaf(authority: KeyPair, host: str, now_s: float, life_s: float) -> KeyPair:
    """A server's certificate for a host, with a new key. It expires with its CA at the latest."""
    key = ec.generate_private_key(ec.SECP256R1())
    draft = (
        _draft(key, authority.key, (now_s - SKEW_S, min(now_s + life_s, authority.ends_s)))
        .subject_name(_LEAF)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
    )
    return KeyPair(draft.sign(authority.key, hashes.SHA256()), key)


def read_pair(certificate: bytes, key: bytes) -> KeyPair | None:
    """The first certificate of a PEM and its key; None if they are unreadable or do not belong together."""
    try:
        leaf, secret = x509.load_pem_x509_certificates(certificate)[0], load_pem_private_key(key, None)
        if isinstance(secret, ec.EllipticCurvePrivateKey) and leaf.public_key() == secret.public_key():
            return KeyPair(leaf, secret)
    except UNREADABLE:
        pass
    return None


def read_bundle(pem: bytes) -> tuple[x509.Certificate, ...]:
    """The certificates of a PEM; none if it is unreadable."""
    try:
        return authorities(pem.decode())
    except ValueError:
        return ()


def bundle_pem(certificates: Iterable[x509.Certificate]) -> bytes:
    """The certificates in one PEM."""
    return b"".join(each.public_bytes(Encoding.PEM) for each in certificates)


def _draft(
    key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey, valid_s: tuple[float, float]
) -> x509.CertificateBuilder:
    """What every certificate has. The key identifiers tell apart two CAs of one name."""
    begin, end = (datetime.fromtimestamp(each_s, UTC) for each_s in valid_s)
    return (
        x509.CertificateBuilder()
        .issuer_name(_AUTHORITY)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )


def _usage(*, certificates: bool) -> x509.KeyUsage:
    """A key that signs certificates alone, or handshakes alone."""
    return x509.KeyUsage(
        digital_signature=not certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=certificates,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
