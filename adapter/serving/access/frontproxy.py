"""A client certificate and headers -> who asks, as kube-apiserver's aggregator and the cluster's own CA tell it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from adapter.serving.access.certificates import authorities, holder
from adapter.serving.access.identity import Identity, authenticated
from adapter.serving.api.request import Headers, is_well_formed


@dataclass(frozen=True, slots=True)
class FrontProxyHeaders:
    """Where the aggregator writes who asks: names and prefixes in lower case."""

    user: tuple[str, ...] = ("x-remote-user",)
    uid: tuple[str, ...] = ()
    group: tuple[str, ...] = ("x-remote-group",)
    extra: tuple[str, ...] = ("x-remote-extra-",)


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """How callers are recognised, from ConfigMap kube-system/extension-apiserver-authentication.

    ca_pem: who signs the aggregator's certificate. client_ca_pem: who signs the cluster's other client certificates;
    what one CA signed never counts for the other. allowed_names: common names of the aggregator, empty = any.
    """

    ca_pem: str = ""
    client_ca_pem: str = ""
    allowed_names: tuple[str, ...] = ()
    headers: FrontProxyHeaders = FrontProxyHeaders()


def front_proxy(data: Mapping[str, str]) -> FrontProxy:
    """The settings in the ConfigMap's data. Raises ValueError naming the key that cannot be read."""
    settings = FrontProxy(
        ca_pem=_bundle(data, "requestheader-client-ca-file"),
        client_ca_pem=_bundle(data, "client-ca-file"),
        allowed_names=_names(data, "requestheader-allowed-names"),
        headers=FrontProxyHeaders(
            user=_lower(data, "requestheader-username-headers"),
            uid=_lower(data, "requestheader-uid-headers"),
            group=_lower(data, "requestheader-group-headers"),
            extra=_lower(data, "requestheader-extra-headers-prefix"),
        ),
    )
    if settings.ca_pem and not settings.headers.user:
        raise ValueError("requestheader-username-headers: expected at least one header name, got none")
    return settings


def _bundle(data: Mapping[str, str], key: str) -> str:
    pem = data.get(key, "")
    try:
        authorities(pem)
    except ValueError as error:
        raise ValueError(f"{key}: expected PEM certificates: {error}") from error
    return pem


def _lower(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(name.lower() for name in _names(data, key))


def _names(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    text = data.get(key) or "[]"
    try:
        names = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{key}: expected a JSON array of strings, got {text[:80]!r}") from error
    if not isinstance(names, list) or not all(isinstance(name, str) and name.strip() for name in names):
        raise ValueError(f"{key}: expected a JSON array of strings, got {text[:80]!r}")
    return tuple(names)


def identify(settings: FrontProxy, certificate: bytes, told: Identity | None, now_s: float) -> Identity | None:
    """Who asks, None for a certificate that is not accepted.

    The front proxy is tried first, so that where both CAs are the same its headers count. Then the certificate speaks
    for itself, and the headers are anybody's. certificate: the peer's, DER, from a handshake that verified it against
    some CA; here it is decided against which. told: whom the headers name.
    """
    if told is not None and _is_front_proxy(settings, certificate, now_s):
        return told
    return _client(settings, certificate, now_s)


def _is_front_proxy(settings: FrontProxy, certificate: bytes, now_s: float) -> bool:
    found = holder(certificate, settings.ca_pem)
    if found is None or not found.counts_at(now_s):
        return False
    return not settings.allowed_names or found.common_name in settings.allowed_names


def _client(settings: FrontProxy, certificate: bytes, now_s: float) -> Identity | None:
    found = holder(certificate, settings.client_ca_pem)
    return found.client if found is not None and found.counts_at(now_s) else None


def named_by(names: FrontProxyHeaders, headers: Headers) -> Identity | None:
    """Whom the headers name, None where they name nobody. Names must match whole: X_Remote_User is another header."""
    user = _first(headers, names.user)
    if not user:
        return None
    groups = tuple(text(value) for name in names.group for key, value in headers if key == name and value)
    extra: dict[str, tuple[str, ...]] = {}
    for prefix in names.extra:
        for name, value in headers:
            if name.startswith(prefix):
                key = extra_key(name[len(prefix) :])
                extra[key] = (*extra.get(key, ()), text(value))
    return authenticated(Identity(user, groups, _first(headers, names.uid), extra))


def _first(headers: Headers, names: tuple[str, ...]) -> str:
    """The first value of the first header that says something; a header counts by its first line."""
    firsts = (next((value for key, value in headers if key == name), "") for name in names)
    return text(next(filter(None, firsts), ""))


def extra_key(written: str) -> str:
    """A key of `extra` from a header's name: percent-decoded, or as written where that is malformed."""
    return unquote(written, errors="replace") if is_well_formed(written) else written


def text(value: str) -> str:
    """A header's value as the cluster means it: HTTP carries bytes, which arrive as Latin-1, and names are UTF-8."""
    try:
        return value if value.isascii() else value.encode("latin-1").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return value
