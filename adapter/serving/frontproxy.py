"""A client certificate and headers -> who asks, as kube-apiserver's aggregator tells it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import unquote

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

Headers = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks."""

    user: str
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


ANONYMOUS = Identity("system:anonymous", ("system:unauthenticated",))


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """How the aggregator is recognised, from ConfigMap kube-system/extension-apiserver-authentication.

    ca_pem: who signs its certificate. client_ca_pem: who signs the cluster's other client certificates, never a front
    proxy's. allowed_names: common names, empty = any.
    """

    ca_pem: str = ""
    client_ca_pem: str = ""
    allowed_names: tuple[str, ...] = ()
    username_headers: tuple[str, ...] = ("X-Remote-User",)
    group_headers: tuple[str, ...] = ("X-Remote-Group",)
    extra_prefixes: tuple[str, ...] = ("X-Remote-Extra-",)


def front_proxy(data: Mapping[str, str]) -> FrontProxy:
    """The settings in the ConfigMap's data. Raises ValueError naming the key that cannot be read."""
    settings = FrontProxy(
        ca_pem=_bundle(data, "requestheader-client-ca-file"),
        client_ca_pem=_bundle(data, "client-ca-file"),
        allowed_names=_names(data, "requestheader-allowed-names"),
        username_headers=_names(data, "requestheader-username-headers"),
        group_headers=_names(data, "requestheader-group-headers"),
        extra_prefixes=_names(data, "requestheader-extra-headers-prefix"),
    )
    if settings.ca_pem and not settings.username_headers:
        raise ValueError("requestheader-username-headers: expected at least one header name, got none")
    return settings


def _bundle(data: Mapping[str, str], key: str) -> str:
    pem = data.get(key, "")
    try:
        _certificates(pem)
    except ValueError as error:
        raise ValueError(f"{key}: expected PEM certificates: {error}") from error
    return pem


def _names(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    text = data.get(key) or "[]"
    try:
        names = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{key}: expected a JSON array of strings, got {text!r}") from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{key}: expected a JSON array of strings, got {text!r}")
    return tuple(names)


def identify(settings: FrontProxy | None, certificate: bytes | None, headers: Headers) -> Identity | None:
    """Who asks; ANONYMOUS without a certificate, whatever the headers say; None for a credential that is not accepted.

    certificate: the peer's, DER, from a handshake that verified it against some CA; here it is decided against which.
    """
    if settings is None or certificate is None:
        return ANONYMOUS
    name = signed_by(certificate, settings.ca_pem, datetime.now(UTC))
    if name is None or (settings.allowed_names and name not in settings.allowed_names):
        return None
    return _from_headers(settings, list(headers))


def _from_headers(settings: FrontProxy, headers: list[tuple[str, str]]) -> Identity | None:
    users = [value for header in settings.username_headers for value in _values(headers, header) if value]
    if not users:
        return None
    groups = [value for header in settings.group_headers for value in _values(headers, header)]
    extra: dict[str, tuple[str, ...]] = {}
    for prefix in settings.extra_prefixes:
        for name, value in headers:
            if name.lower().startswith(prefix.lower()):
                key = unquote(name[len(prefix) :].lower())
                extra[key] = (*extra.get(key, ()), value)
    return Identity(users[0], tuple(dict.fromkeys((*groups, "system:authenticated"))), extra)


def _values(headers: list[tuple[str, str]], wanted: str) -> list[str]:
    return [value for name, value in headers if name.lower() == wanted.lower()]


def signed_by(certificate: bytes, ca_pem: str, now: datetime) -> str | None:
    """The common name of a certificate (DER) that one of these CAs signed and that is valid now, else None."""
    leaf = _verified(certificate, ca_pem)
    if leaf is None or not leaf.not_before <= now <= leaf.not_after:
        return None
    return leaf.common_name


@dataclass(frozen=True, slots=True)
class _Leaf:
    common_name: str
    not_before: datetime
    not_after: datetime


@lru_cache(maxsize=256)  # a connection carries many requests and one certificate; a signature costs 0.1 ms
def _verified(certificate: bytes, ca_pem: str) -> _Leaf | None:
    leaf = x509.load_der_x509_certificate(certificate)
    for ca in _certificates(ca_pem):
        if _issued(leaf, ca):
            names = leaf.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
            return _Leaf(str(names[0].value) if names else "", leaf.not_valid_before_utc, leaf.not_valid_after_utc)
    return None


def _issued(leaf: x509.Certificate, ca: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(ca)
    except (InvalidSignature, TypeError, ValueError):  # another key, another kind of key, another issuer
        return False
    return True


def _certificates(pem: str) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(pem.encode()) if pem.strip() else []
