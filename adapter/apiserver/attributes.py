"""A method and a path -> the attributes that an access review decides on."""

from collections.abc import Mapping

import msgspec

from adapter.apiserver.cache import cache
from adapter.apiserver.status import Document, StatusError

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OF_COLLECTIONS = {"get": "list", "delete": "deletecollection"}


class Attributes(msgspec.Struct, frozen=True):
    """What a request does.

    verb: of Kubernetes for a resource (get, list, create, ...), the method in lower case for another path.
    is_resource: whether group to name have a meaning; otherwise the path alone counts. An absent part is "".
    """

    verb: str
    path: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""


@cache(entries=4096, longest=256)
def attributes(method: str, path: str) -> Attributes:
    """Read method and path as kube-apiserver does (k8s.io/apiserver, RequestInfoFactory)."""
    segments = path.strip("/").split("/")
    if segments[0] != "apis" or len(segments) < 4:
        return Attributes(method.lower(), path)
    _, group, version, *rest = segments
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2:
            rest = rest[2:]
    resource, name, subresource = (*rest, "", "")[:3]
    verb = _VERBS.get(method, "")
    verb = verb if name else _OF_COLLECTIONS.get(verb, verb)
    return Attributes(verb, path, True, group, version, namespace, resource, subresource, name)


def forbidden(what: Attributes, user: str, reason: str, headers: Mapping[str, str] | None = None) -> StatusError:
    """403: the user lacks the right. reason: of the authorizer, may be empty."""
    message = f'{_subject(what)}: User "{user}" cannot {what.verb} {_object(what)}'
    parts = {"name": what.name, "group": what.group, "kind": what.resource}
    details: Document = {key: part for key, part in parts.items() if part}
    message = f"{message}: {reason}" if reason else message
    return StatusError(403, "Forbidden", message, details=details, headers=headers)


def _subject(what: Attributes) -> str:
    if not what.is_resource:
        return "forbidden"
    resource = f"{what.resource}.{what.group}"
    return f'{resource} "{what.name}" is forbidden' if what.name else f"{resource} is forbidden"


def _object(what: Attributes) -> str:
    if not what.is_resource:
        return f'path "{what.path}"'
    resource = f"{what.resource}/{what.subresource}" if what.subresource else what.resource
    where = f'in the namespace "{what.namespace}"' if what.namespace else "at the cluster scope"
    return f'resource "{resource}" in API group "{what.group}" {where}'
