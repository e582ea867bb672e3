"""Clients accept the CAs that Go accepts, with every version of Python."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from kubernetes.client.configuration import Configuration

from adapter.client_tls import client_context
from adapter.errors import SourceError
from adapter.kubeconfig import api_client

ROOT = trustme.CA()
BETWEEN = ROOT.create_child_ca()


def named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def plain_ca(folder: Path) -> tuple[str, trustme.Blob]:
    """A CA as of `openssl req -x509`, without key identifier and keyUsage, and the certificate and key of a server."""
    ca_key, key, now = (
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP256R1()),
        datetime.now(UTC),
    )

    def signed(name: str, public: ec.EllipticCurvePublicKey, extension: x509.ExtensionType) -> bytes:
        builder = x509.CertificateBuilder(named("ca"), named(name), public, x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(1)).not_valid_after(now + timedelta(1))
        return builder.add_extension(extension, critical=False).sign(ca_key, SHA256()).public_bytes(Encoding.PEM)

    ca = folder / "ca.crt"
    ca.write_bytes(signed("ca", ca_key.public_key(), x509.BasicConstraints(ca=True, path_length=None)))
    leaf = signed("server", key.public_key(), x509.SubjectAlternativeName([x509.DNSName("localhost")]))
    return str(ca), trustme.Blob(leaf + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def intermediate_ca(folder: Path) -> tuple[str, trustme.Blob]:
    BETWEEN.cert_pem.write_to_path(folder / "ca.crt")
    return str(folder / "ca.crt"), BETWEEN.issue_cert("localhost").private_key_and_cert_chain_pem


def other_ca(folder: Path) -> tuple[str, trustme.Blob]:
    ROOT.cert_pem.write_to_path(folder / "ca.crt")
    return str(folder / "ca.crt"), trustme.CA().issue_cert("localhost").private_key_and_cert_chain_pem


def connect(client: ssl.SSLContext, server_pem: trustme.Blob) -> None:
    """A handshake in memory. Raises ssl.SSLCertVerificationError if the client refuses the certificate."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with server_pem.tempfile() as file:
        server.load_cert_chain(file)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while ends:
        for end in list(ends):
            try:
                end.do_handshake()
                ends.remove(end)
            except ssl.SSLWantReadError:
                continue


@pytest.fixture(autouse=True)
def _as_from_python_3_13_on(monkeypatch):
    """The default context of newer versions of Python refuses more than that of older ones."""
    create = ssl.create_default_context

    def strict(**files):
        context = create(**files)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)


@pytest.mark.parametrize("certificates", [plain_ca, intermediate_ca])
def test_a_client_accepts_the_cas_that_go_accepts(tmp_path, certificates):
    ca_file, server_pem = certificates(tmp_path)
    connect(client_context(ca_file), server_pem)


def test_a_client_refuses_a_certificate_of_another_ca(tmp_path):
    ca_file, server_pem = other_ca(tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(client_context(ca_file), server_pem)


@pytest.mark.parametrize("certificates", [plain_ca, intermediate_ca])
def test_a_client_of_the_kubernetes_api_accepts_them_too(tmp_path, certificates):
    settings = Configuration()
    settings.ssl_ca_cert, server_pem = certificates(tmp_path)
    pool = api_client("cluster", settings).rest_client.pool_manager.connection_pool_kw
    connect(pool["ssl_context"], server_pem)
    assert "ca_certs" not in pool, "urllib3 would add the file again, and an old CA would stay"


def test_insecure_skip_tls_verify_of_a_kubeconfig_verifies_nothing(tmp_path):
    settings = Configuration()
    settings.verify_ssl = False
    context = api_client("cluster", settings).rest_client.pool_manager.connection_pool_kw["ssl_context"]
    connect(context, other_ca(tmp_path)[1])
    assert context.verify_mode is ssl.CERT_NONE


def test_an_unusable_ca_is_an_error_with_the_file(tmp_path):
    settings = Configuration()
    settings.ssl_ca_cert = str(tmp_path / "ca.crt")
    (tmp_path / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\n")
    with pytest.raises(SourceError, match=r"cluster: expected certificates in .*/ca\.crt"):
        api_client("cluster", settings)
