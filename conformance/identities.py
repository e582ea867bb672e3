"""The certificates of everybody who asks, and of the server, made anew for each run."""

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

NOBODY = "none"
FRONT_PROXY = "front-proxy-client"
_DAY = timedelta(days=1)
_SIGNS = x509.KeyUsage(
    key_cert_sign=True,
    crl_sign=True,
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True, slots=True)
class _Issued:
    """A certificate with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def key_pem(self) -> bytes:
        # Not encrypted: it lives for one run.
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@dataclass(frozen=True, slots=True)
class _Holder:
    """Whom a certificate names, and what for. days: from yesterday on."""

    common_name: str
    organizations: tuple[str, ...] = ()
    usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.CLIENT_AUTH
    days: int = 365

    def name(self) -> x509.Name:
        parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in self.organizations]
        if self.common_name:
            parts.append(x509.NameAttribute(NameOID.COMMON_NAME, self.common_name))
        return x509.Name(parts)


# Who is named how in a recording, and which of the three authorities signed.
_CLIENTS = {
    "admin": _Holder("admin", ("system:masters",)),
    "alice": _Holder("alice"),
    "dev": _Holder("dave", ("devs", "ops")),
    "nocn": _Holder("", ("system:masters",)),
    "expired": _Holder("alice", days=0),
    "servereku": _Holder("alice", usage=ExtendedKeyUsageOID.SERVER_AUTH),
}
_PROXIES = {"proxy": _Holder(FRONT_PROXY), "badproxy": _Holder("someone-else")}
_STRANGERS = {"rogue": _Holder("admin", ("system:masters",))}
# Certificates that a TLS handshake does not verify.
UNVERIFIED = frozenset({"rogue", "expired", "servereku"})
NAMES = (NOBODY, *_CLIENTS, *_PROXIES, *_STRANGERS)


@dataclass(frozen=True, slots=True)
class Identities:
    """Everybody's certificates on disk. client_cas, proxy_cas: what the cluster tells, PEM."""

    folder: Path
    client_cas: str
    proxy_cas: str

    @property
    def serving(self) -> tuple[str, str]:
        """The server's certificate and key, as files."""
        return str(self.folder / "server.pem"), str(self.folder / "server.key")

    def context(self, identity: str) -> ssl.SSLContext:
        """How somebody connects: the server's authority is trusted, and a certificate presented where there is one."""
        context = ssl.create_default_context(cafile=str(self.folder / "server-ca.pem"))
        if identity != NOBODY:
            context.load_cert_chain(self.folder / f"{identity}.pem", self.folder / f"{identity}.key")
        return context


def issue(folder: Path) -> Identities:
    """Make every authority and certificate, and write them into a folder."""
    clients, proxies, strangers, servers = (
        _authority(f"{each}-ca") for each in ("client", "proxy", "stranger", "server")
    )
    issued = {name: _signed(holder, clients) for name, holder in _CLIENTS.items()}
    issued |= {name: _signed(holder, proxies) for name, holder in _PROXIES.items()}
    issued |= {name: _signed(holder, strangers) for name, holder in _STRANGERS.items()}
    issued["server"] = _signed(_Holder("server", usage=ExtendedKeyUsageOID.SERVER_AUTH), servers)
    issued["server-ca"] = servers
    for name, each in issued.items():
        (folder / f"{name}.pem").write_bytes(each.pem())
        (folder / f"{name}.key").write_bytes(each.key_pem())
    return Identities(folder, clients.pem().decode(), proxies.pem().decode())


def _authority(common_name: str) -> _Issued:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _Holder(common_name).name()
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = _builder(name, name, key, 365).add_extension(identifier, critical=False)
    for extension in (x509.BasicConstraints(ca=True, path_length=None), _SIGNS):
        builder = builder.add_extension(extension, critical=True)
    return _Issued(builder.sign(key, hashes.SHA256()), key)


def _signed(holder: _Holder, authority: _Issued) -> _Issued:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(holder.name(), authority.certificate.subject, key, holder.days)
    here = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    for extension in (x509.ExtendedKeyUsage([holder.usage]), here, signer):
        builder = builder.add_extension(extension, critical=False)
    return _Issued(builder.sign(authority.key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    yesterday = datetime.now(UTC) - _DAY
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(yesterday)
        .not_valid_after(yesterday + days * _DAY + timedelta(hours=1))
    )
