"""Certificates, settings and requests that the tests of access are built from."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from adapter.apiserver.front_proxy import FrontProxy, HeaderNames
from adapter.apiserver.request import Request

FROM_S, UNTIL_S = 1_700_000_000.0, 2_000_000_000.0  # when the certificates count
NOW_S = 1_800_000_000.0
METRIC = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/my-external-metric?labelSelector=foo%3Dbar"
DISCOVERY = "/apis/external.metrics.k8s.io/v1beta1"
FOR_CLIENTS = (ExtendedKeyUsageOID.CLIENT_AUTH,)


@dataclass
class Clock:
    now_s: float = 1000.0

    def __call__(self) -> float:
        return self.now_s


@dataclass(frozen=True)
class Authority:
    """A CA, with the extensions of its own certificate, when that counts, and who signed it: itself by default."""

    name: str
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    extensions: tuple[x509.ExtensionType, ...] = (x509.BasicConstraints(ca=True, path_length=None),)
    span: tuple[float, float] = (FROM_S, UNTIL_S)
    issuer: "Authority | None" = None

    @property
    def subject(self) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name)])

    @cached_property
    def pem(self) -> str:
        made = _certificate(self.issuer or self, self.subject, self.key, self.extensions, self.span)
        return made.public_bytes(Encoding.PEM).decode()

    def issue(
        self,
        subject: x509.Name,
        usages: Sequence[x509.ObjectIdentifier] = FOR_CLIENTS,
        span: tuple[float, float] = (FROM_S, UNTIL_S),
        also: Sequence[x509.ExtensionType] = (),
    ) -> bytes:
        extensions = [*([x509.ExtendedKeyUsage(usages)] if usages else []), *also]
        key = ec.generate_private_key(ec.SECP256R1())
        return _certificate(self, subject, key, extensions, span).public_bytes(Encoding.DER)


def _certificate(
    issuer: Authority,
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    extensions: Sequence[x509.ExtensionType],
    span: tuple[float, float],
) -> x509.Certificate:
    from_s, until_s = (datetime.fromtimestamp(each, UTC) for each in span)
    builder = x509.CertificateBuilder(issuer.subject, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(from_s).not_valid_after(until_s)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(issuer.key, SHA256())


def named(common_name: str, *organizations: str) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


CLIENTS, PROXIES, STRANGERS = Authority("clients"), Authority("proxies"), Authority("strangers")
CERTIFICATES = {
    "none": None,
    "admin": CLIENTS.issue(named("admin", "system:masters")),
    "alice": CLIENTS.issue(named("alice")),
    "dev": CLIENTS.issue(named("dave", "devs", "ops")),
    "proxy": PROXIES.issue(named("front-proxy-client")),
    "badproxy": PROXIES.issue(named("someone-else")),
    "rogue": STRANGERS.issue(named("admin", "system:masters")),
}
CONFIG = {
    "client-ca-file": CLIENTS.pem,
    "requestheader-client-ca-file": PROXIES.pem,
    "requestheader-allowed-names": '["front-proxy-client"]',
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-uid-headers": '["X-Remote-Uid"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
}
SETTINGS = FrontProxy(
    ca_pem=CONFIG["requestheader-client-ca-file"],
    client_ca_pem=CONFIG["client-ca-file"],
    allowed_names=("front-proxy-client",),
    headers=HeaderNames(uid=("x-remote-uid",)),
)


def request(identity: str = "none", uri: str = METRIC, *, method: str = "GET", **headers: str | list[str]) -> Request:
    """A request with one of CERTIFICATES. headers: names with underscores for dashes; a list is sent a line a value."""
    lines = [
        (name.replace("_", "-"), value)
        for name, values in headers.items()
        for value in (values if isinstance(values, list) else [values])
    ]
    return of_lines(method, uri, lines, CERTIFICATES[identity])


def of_lines(method: str, uri: str, lines: Sequence[tuple[str, str]], certificate: bytes | None = None) -> Request:
    """A request from its parts as a client writes them."""
    path, _, query = uri.partition("?")
    headers = tuple((name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in lines)
    return Request(method, path, query, headers, certificate)
