"""Certificate authorities and certificates for the control plane."""

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# Python 3.13 refuses a CA that does not state it.
_CA_USAGE = x509.KeyUsage(
    key_cert_sign=True, crl_sign=True, digital_signature=False, content_commitment=False, key_encipherment=False,
    data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
)  # fmt: skip


def write_key(key: ec.EllipticCurvePrivateKey, path: Path) -> Path:
    """Writes the private key as PEM and returns the path."""
    plain = serialization.NoEncryption()
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return path


def write_key_pair(folder: Path, name: str) -> tuple[Path, Path]:
    """Creates a key pair: (public, private)."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = folder / f"{name}.pub"
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    public.write_bytes(key.public_key().public_bytes(serialization.Encoding.PEM, form))
    return public, write_key(key, folder / f"{name}.key")


class Authority:
    """A certificate authority; its certificate is at `path`."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = _subject(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.path = folder / f"{name}.crt"
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        draft = _draft(self._name, self._key).add_extension(constraints, critical=True)
        draft = draft.add_extension(_CA_USAGE, critical=True).add_extension(identifier, critical=False)
        self._write(draft, self.path)

    def issue(self, name: str, group: str | None = None, addresses: tuple[str, ...] = ()) -> tuple[Path, Path]:
        """A certificate for a client, and for a server with these addresses or names: (certificate, key)."""
        key = ec.generate_private_key(ec.SECP256R1())
        usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH])
        # Distinguishes the CA from the one that it replaces, which has the same name.
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        draft = _draft(_subject(name, group), key).add_extension(usages, critical=False)
        draft = draft.add_extension(signer, critical=False)
        if addresses:
            alternatives = x509.SubjectAlternativeName([_alternative(address) for address in addresses])
            draft = draft.add_extension(alternatives, critical=False)
        path = self._folder / f"{name.replace(':', '-')}.crt"
        self._write(draft, path)
        return path, write_key(key, path.with_suffix(".key"))

    def _write(self, draft: x509.CertificateBuilder, path: Path) -> None:
        signed = draft.issuer_name(self._name).sign(self._key, hashes.SHA256())
        path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))


def _alternative(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def _subject(name: str, group: str | None = None) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _draft(subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=2))
    )
