"""Client certificates and identity headers -> an identity, as kube-apiserver's aggregator sends them."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from adapter.apiserver.cache import ByteCache, weight
from adapter.apiserver.certificates import authorities, holder
from adapter.apiserver.identity import Identity, add_authenticated
from adapter.apiserver.request import Headers

_MALFORMED_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CACHE_BYTES = 4 * 2**20  # some 1 000 users with ten such headers each


@dataclass(frozen=True, slots=True)
class HeaderNames:
    """The headers in which the aggregator names the user: names and prefixes in lower case."""

    user: tuple[str, ...] = ("x-remote-user",)
    uid: tuple[str, ...] = ()
    group: tuple[str, ...] = ("x-remote-group",)
    extra: tuple[str, ...] = ("x-remote-extra-",)


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """How clients authenticate, from ConfigMap kube-system/extension-apiserver-authentication.

    ca_pem: signs the aggregator's certificate. client_ca_pem: signs the other client certificates of the cluster. A
    certificate counts for its own CA alone. allowed_names: common names of the aggregator, empty for any.
    """

    ca_pem: str = ""
    client_ca_pem: str = ""
    allowed_names: tuple[str, ...] = ()
    headers: HeaderNames = HeaderNames()


def front_proxy(data: Mapping[str, str]) -> FrontProxy:
    """Read the data of the ConfigMap. Raises ValueError with the key that cannot be read."""
    settings = FrontProxy(
        ca_pem=_bundle(data, "requestheader-client-ca-file"),
        client_ca_pem=_bundle(data, "client-ca-file"),
        allowed_names=_names(data, "requestheader-allowed-names"),
        headers=HeaderNames(
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


class IdentityHeaders:
    """Reads the identity headers of requests, and caches the result: a few controllers send most requests.

    The cache depends on these headers alone; the certificate is checked at each request.
    """

    def __init__(self, names: HeaderNames) -> None:
        self.names = names
        prefixes = (*names.user, *names.uid, *names.group, *names.extra)
        self._prefixes = tuple(prefix.encode("latin-1", "replace") for prefix in prefixes)
        self._cache: ByteCache[Headers, tuple[Identity | None]] = ByteCache(_CACHE_BYTES)

    def identity(self, headers: Headers) -> Identity | None:
        """The user that the headers name; None if they name none."""
        prefixes = self._prefixes
        picked = tuple([pair for pair in headers if pair[0].startswith(prefixes)])
        found = self._cache.get(picked)
        if found is None:
            found = (user_in(self.names, picked),)
            self._cache.put(picked, found, weight(text for pair in picked for text in pair))
        return found[0]


def identify(settings: FrontProxy, certificate: bytes, named: Identity | None, now_s: float) -> Identity | None:
    """The user of a request with a client certificate; None if the certificate is not accepted.

    A front proxy's certificate makes the headers count; it comes first, in case one CA signs both kinds. Any other
    certificate names its own user, and the headers are ignored. certificate: DER, verified in the handshake against
    the CAs of both kinds. named: by the headers.
    """
    if named is not None and _is_front_proxy(settings, certificate, now_s):
        return named
    found = holder(certificate, settings.client_ca_pem)
    return found.client if found is not None and found.is_valid_at(now_s) else None


def _is_front_proxy(settings: FrontProxy, certificate: bytes, now_s: float) -> bool:
    found = holder(certificate, settings.ca_pem)
    if found is None or not found.is_valid_at(now_s):
        return False
    return not settings.allowed_names or found.common_name in settings.allowed_names


def user_in(names: HeaderNames, headers: Headers) -> Identity | None:
    """The user that the headers name; None if they name none. X_Remote_User is another header than X-Remote-User."""
    lines = [(name.decode("latin-1"), header_text(value)) for name, value in headers]
    user = _first(lines, names.user)
    if not user:
        return None
    groups = tuple(value for name in names.group for key, value in lines if key == name and value)
    extra: dict[str, tuple[str, ...]] = {}
    for prefix in names.extra:
        for name, value in lines:
            if name.startswith(prefix):
                key = _extra_key(name[len(prefix) :])
                extra[key] = (*extra.get(key, ()), value)
    return add_authenticated(Identity(user, groups, _first(lines, names.uid), extra))


def _extra_key(encoded: str) -> str:
    """The percent-decoded key, or the text itself where an escape is malformed, as kube-apiserver reads it."""
    return encoded if _MALFORMED_ESCAPE.search(encoded) else unquote(encoded, errors="replace")


def _first(lines: list[tuple[str, str]], names: tuple[str, ...]) -> str:
    """The first line of the first of these headers that is not empty."""
    firsts = (next((value for key, value in lines if key == name), "") for name in names)
    return next(filter(None, firsts), "")


def header_text(value: bytes) -> str:
    """A header's value as UTF-8, in which Kubernetes writes names."""
    return value.strip().decode("utf-8", "replace")
