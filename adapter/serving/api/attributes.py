"""A method and a path -> what is asked for, as the Kubernetes API reads them before it looks at anything else."""

from dataclasses import replace

from msgspec import structs

from adapter.serving.api import parameters
from adapter.serving.api.quoting import quoted
from adapter.serving.api.remembering import remembered
from adapter.serving.api.request import Request
from adapter.serving.api.status import Answer, Document, Refusal, failure, internal_server_error, without_markup
from adapter.serving.api.values import Value

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_SPECIAL_VERBS = ("proxy", "watch")
_OF_A_NAMESPACE = ("status", "finalize")


class Attributes(Value, frozen=True):
    """What an access review is told of a request.

    verb: of Kubernetes for a resource (get, list, create, ...), the method in lower case for another path.
    is_resource: whether group to name mean anything; else the path alone does. A part that is absent is "".
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


class NoResourceError(ValueError):
    """The path has a special verb and then nothing."""


def of_request(request: Request) -> Attributes:
    """What a request asks for; a list is a watch, or has a name, when its query says so. Raises Refusal."""
    try:
        found = attributes(request.method, request.path)
    except NoResourceError as error:
        fault = f"failed to create RequestInfo: {error}, {request.uri}"
        raise Refusal(internal_server_error(request.uri, fault)) from None
    query = request.query
    if found.verb != "list" or not ("watch" in query or "fieldSelector" in query):
        return found
    verb = "watch" if parameters.watches(query) else "list"
    return structs.replace(found, verb=verb, name=parameters.selected_name(query))


def attributes(method: str, path: str, watch: bool = False) -> Attributes:
    """What a method on a path asks for. watch: whether a list is one. Raises NoResourceError."""
    found = _read(path, method)
    return structs.replace(found, verb="watch") if watch and found.verb == "list" else found


@remembered(most=4096, longest=256)
def _read(path: str, method: str) -> Attributes:
    segments = path.strip("/").split("/")
    known = {"apis": 4, "api": 3}.get(segments[0])
    if known is None or len(segments) < known:
        return Attributes(method.lower(), path)
    group, version, *rest = segments[known - 3 :] if segments[0] == "apis" else ["", *segments[1:]]
    verb = _VERBS.get(method, "")
    if rest[0] in _SPECIAL_VERBS:
        verb, *rest = rest
        if not rest:
            raise NoResourceError("unable to determine kind and namespace from url")
    return _resource(Attributes(verb, path, True, group, version), rest)


def _resource(found: Attributes, segments: list[str]) -> Attributes:
    namespace = ""
    if segments[0] == "namespaces" and len(segments) > 1:
        namespace = segments[1]
        if len(segments) > 2 and segments[2] not in _OF_A_NAMESPACE:
            segments = segments[2:]
    resource, name, subresource = (*segments, "", "")[:3]
    if found.verb == "proxy":
        subresource = ""
    verb = found.verb if name else {"get": "list", "delete": "deletecollection"}.get(found.verb, found.verb)
    return structs.replace(found, verb=verb, namespace=namespace, resource=resource, name=name, subresource=subresource)


def forbidden(attributes: Attributes, user: str, reason: str) -> Answer:
    """403: the user may not. reason: of whoever decided, "" when none was given."""
    what = without_markup(f"User {quoted(user)} cannot {attributes.verb} {_object(attributes)}")
    message = f"{_subject(attributes)}: {what}: {reason}" if reason else f"{_subject(attributes)}: {what}"
    parts = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    details: Document = {key: part for key, part in parts.items() if part}
    answer = failure(403, "Forbidden", message, details)
    return replace(answer, headers={"X-Content-Type-Options": "nosniff"})


def _subject(attributes: Attributes) -> str:
    if not (attributes.resource or attributes.group):
        return "forbidden"
    resource = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    return f"{resource} {quoted(attributes.name)} is forbidden" if attributes.name else f"{resource} is forbidden"


def _object(attributes: Attributes) -> str:
    if not attributes.is_resource:
        return f"path {quoted(attributes.path)}"
    resource = attributes.resource
    if attributes.subresource:
        resource = f"{resource}/{attributes.subresource}"
    where = f"in the namespace {quoted(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    return f"resource {quoted(resource)} in API group {quoted(attributes.group)} {where}"
