"""Impersonate-* headers -> whom a request is judged by, and what its caller needs to be allowed for that."""

import re
from collections.abc import Iterator

from adapter.serving.access.frontproxy import extra_key, text
from adapter.serving.access.identity import ANONYMOUS, UNAUTHENTICATED, Identity, authenticated
from adapter.serving.api.attributes import Attributes
from adapter.serving.api.request import Headers

PREFIX = "impersonate-"
_EXTRA = "impersonate-extra-"
_LABEL = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_ACCOUNT = re.compile(rf"system:serviceaccount:(?P<namespace>{_LABEL}):(?P<name>{_LABEL}(?:\.{_LABEL})*)")
_KINDS = {"groups": "Group", "userextras": "UserExtra", "uids": "UID"}


def wishes(headers: Headers) -> tuple[Attributes, ...]:
    """What the caller wants to be, as the attributes to be reviewed, one by one; empty for a caller who wants nothing.

    Raises ValueError, in Kubernetes' words, where that is something of somebody without naming whom.
    """
    wanted = [pair for pair in headers if pair[0].startswith(PREFIX)]
    if not wanted:
        return ()
    user = text(next((value for name, value in wanted if name == "impersonate-user"), ""))
    rest = [*_groups(wanted), *_extra(wanted), *_uid(wanted)]
    if rest and not user:
        raise ValueError(f"requested [{' '.join(map(_reference, rest))}] without impersonating a user")
    return (_user(user), *rest) if user else ()


def _wish(resource: str, name: str, group: str = "", namespace: str = "", subresource: str = "") -> Attributes:
    version = "v1" if group else ""
    return Attributes("impersonate", "", True, group, version, namespace, resource, subresource, name)


def _user(name: str) -> Attributes:
    account = _ACCOUNT.fullmatch(name)
    if account is None or len(account["namespace"]) > 63 or len(account["name"]) > 253:
        return _wish("users", name)
    return _wish("serviceaccounts", account["name"], namespace=account["namespace"])


def _groups(wanted: Headers) -> Iterator[Attributes]:
    return (_wish("groups", text(value)) for name, value in wanted if name == "impersonate-group")


def _extra(wanted: Headers) -> Iterator[Attributes]:
    for name, value in wanted:
        if name.startswith(_EXTRA):
            yield _wish("userextras", text(value), "authentication.k8s.io", subresource=extra_key(name[len(_EXTRA) :]))


def _uid(wanted: Headers) -> Iterator[Attributes]:
    first = next((value for name, value in wanted if name == "impersonate-uid"), "")
    return (_wish("uids", text(value), "authentication.k8s.io") for value in [first] if value)


def _reference(wish: Attributes) -> str:
    """As Go prints an ObjectReference: kind, namespace, name, uid, apiVersion, resourceVersion, fieldPath."""
    version = f"{wish.group}/{wish.version}" if wish.group else ""
    return f"{{{_KINDS[wish.resource]}  {wish.name}  {version}  {wish.subresource}}}"


def identity_of(granted: tuple[Attributes, ...]) -> Identity:
    """Whom the wishes make, once every one is granted. A service account has its groups unless groups are named."""
    first = granted[0]
    groups = _names(granted, "groups")
    user = first.name
    if first.resource == "serviceaccounts":
        user = f"system:serviceaccount:{first.namespace}:{first.name}"
        groups = groups or ("system:serviceaccounts", f"system:serviceaccounts:{first.namespace}")
    if user == ANONYMOUS.user and UNAUTHENTICATED not in groups:
        groups = (*groups, UNAUTHENTICATED)
    extra: dict[str, tuple[str, ...]] = {}
    for wish in granted:
        if wish.resource == "userextras":
            extra[wish.subresource] = (*extra.get(wish.subresource, ()), wish.name)
    return authenticated(Identity(user, groups, "".join(_names(granted, "uids")), extra))


def _names(granted: tuple[Attributes, ...], resource: str) -> tuple[str, ...]:
    return tuple(wish.name for wish in granted if wish.resource == resource)
