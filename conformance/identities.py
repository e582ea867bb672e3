"""The certificates of every client of a recording and of the server, issued anew for each run."""

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NO_CERTIFICATE = "none"
FRONT_PROXY = "front-proxy-client"
_CLIENT_CA, _PROXY_CA, _UNKNOWN_CA, _SERVER_CA = "client-ca", "proxy-ca", "unknown-ca", "server-ca"
_Key = ec.EllipticCurvePrivateKey


@dataclass(frozen=True, slots=True)
class _Subject:
    """The holder of a certificate, and the authority that signs it. days: of validity, from yesterday."""

    authority: str
    common_name: str = ""
    organizations: tuple[str, ...] = ()
    usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.CLIENT_AUTH
    days: int = 365

    @property
    def name(self) -> x509.Name:
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in self.organizations]
        common = [x509.NameAttribute(NameOID.COMMON_NAME, self.common_name)] if self.common_name else []
        return x509.Name([*parts, *common])


_SERVER = _Subject(_SERVER_CA, "server", usage=ExtendedKeyUsageOID.SERVER_AUTH)
_CLIENTS = {
    "admin": _Subject(_CLIENT_CA, "admin", ("system:masters",)),
    "alice": _Subject(_CLIENT_CA, "alice"),
    "dev": _Subject(_CLIENT_CA, "dave", ("devs", "ops")),
    "nocn": _Subject(_CLIENT_CA, "", ("system:masters",)),
    "expired": _Subject(_CLIENT_CA, "alice", days=0),
    "servereku": _Subject(_CLIENT_CA, "alice", usage=ExtendedKeyUsageOID.SERVER_AUTH),
    "proxy": _Subject(_PROXY_CA, FRONT_PROXY),
    "badproxy": _Subject(_PROXY_CA, "someone-else"),
    "rogue": _Subject(_UNKNOWN_CA, "admin", ("system:masters",)),
}
# Certificates that fail in the TLS handshake.
UNVERIFIED = frozenset({"rogue", "expired", "servereku"})
NAMES = (NO_CERTIFICATE, *_CLIENTS)


@dataclass(frozen=True, slots=True)
class Identities:
    """Certificates and keys in a folder: `NAME.pem` and `NAME.key`."""

    folder: Path

    @property
    def client_cas(self) -> str:
        """The CA of client certificates, PEM."""
        return (self.folder / f"{_CLIENT_CA}.pem").read_text("ascii")

    @property
    def proxy_cas(self) -> str:
        """The CA of the front proxy, PEM."""
        return (self.folder / f"{_PROXY_CA}.pem").read_text("ascii")

    @property
    def serving(self) -> tuple[str, str]:
        """The files of the server's certificate and key."""
        return str(self.folder / "server.pem"), str(self.folder / "server.key")

    def context(self, identity: str) -> ssl.SSLContext:
        """The TLS settings of a client: it trusts the server's CA and presents its own certificate."""
        context = ssl.create_default_context(cafile=str(self.folder / f"{_SERVER_CA}.pem"))
        if identity != NO_CERTIFICATE:
            context.load_cert_chain(self.folder / f"{identity}.pem", self.folder / f"{identity}.key")
        return context


def issue(folder: Path) -> Identities:
    """Issue every certificate and write them into a folder."""
    authorities = {name: _write_authority(folder, name) for name in (_CLIENT_CA, _PROXY_CA, _UNKNOWN_CA, _SERVER_CA)}
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    for name, subject in {**_CLIENTS, "server": _SERVER}.items():
        extensions = (x509.ExtendedKeyUsage([subject.usage]), x509.SubjectAlternativeName(names))
        _write(folder / name, subject, authorities[subject.authority], extensions)
    return Identities(folder)


def _write_authority(folder: Path, name: str) -> _Key:
    flags = dict.fromkeys(("digital_signature", "content_commitment", "key_encipherment", "data_encipherment",
                           "key_agreement", "encipher_only", "decipher_only"), False)  # fmt: skip
    usage = x509.KeyUsage(key_cert_sign=True, crl_sign=True, **flags)
    extensions = (x509.BasicConstraints(ca=True, path_length=None), usage)
    return _write(folder / name, _Subject(name, name), None, extensions)


def _write(path: Path, subject: _Subject, signer: _Key | None, extensions: tuple[x509.ExtensionType, ...]) -> _Key:
    """Write `path`.pem and `path`.key. signer: the authority's key; None signs itself."""
    key, yesterday = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC) - timedelta(days=1)
    signer = signer or key
    issuer = _Subject(subject.authority, subject.authority).name
    builder = (
        x509.CertificateBuilder(issuer, subject.name, key.public_key(), x509.random_serial_number())
        .not_valid_before(yesterday)
        .not_valid_after(yesterday + timedelta(days=subject.days, hours=1))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
    certificate = builder.sign(signer, hashes.SHA256())
    path.with_suffix(".pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    path.with_suffix(".key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return key
