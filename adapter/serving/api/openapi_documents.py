"""The routes and kinds of this API -> its description, as OpenAPI 2.0 whole and as OpenAPI 3.0 in parts."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from adapter import __version__
from adapter.serving.api import custom, external, openapi_kinds
from adapter.serving.api.openapi_kinds import REFERENCE, name_of, reference
from adapter.serving.api.status import Document

_INFO = {"title": "backlog-adapter", "version": __version__}
_JSON = "application/json"
_MEDIA_TYPES = (_JSON, "application/yaml", "application/vnd.kubernetes.protobuf")

_ERRORS = {
    400: "A parameter is not understood.",
    401: "The credential is not accepted.",
    403: "The caller may not do this.",
    406: "None of the accepted media types is written here.",
    429: "Too many requests at once.",
    500: "An error of the server; its log says more.",
    503: "The number is not known at the moment, and why.",
    504: "The deadline of the request has passed.",
}
_ERRORS_OF_METRICS = _ERRORS | {
    404: "There is no such metric, or nothing that matches.",
    405: "A metric cannot be watched.",
    422: "Parameters that exclude each other.",
}
# Codes that come as plain text too: of an access review that failed, and of a deadline.
_PLAIN = (500, 504)


@dataclass(frozen=True, slots=True)
class _Operation:
    """A GET. document: which of the 3.0 documents describes it. kind: the name of the answer's schema."""

    path: str
    document: str
    name: str
    summary: str
    kind: str
    parameters: Sequence[Document] = ()
    media_types: Sequence[str] = _MEDIA_TYPES

    def errors(self) -> Mapping[int, str]:
        return _ERRORS_OF_METRICS if self.parameters else _ERRORS


def version_2() -> Document:
    """Everything, as `/openapi/v2` has it. An API server keeps the paths of each of its groups and drops the rest."""
    paths = {each.path: {"get": _operation_of_version_2(each)} for each in _operations()}
    return {"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": _in_version_2(openapi_kinds.schemas())}


def version_3() -> dict[str, Document]:
    """The documents below `/openapi/v3/`: one for each group and version, and one for each other root of paths."""
    documents: dict[str, Document] = {}
    for each in _operations():
        empty = {"openapi": "3.0.0", "info": _INFO, "paths": {}}
        documents.setdefault(each.document, empty)["paths"][each.path] = {"get": _operation_of_version_3(each)}
    return {name: document | _components(document) for name, document in documents.items()}


def _components(document: Document) -> Document:
    """The kinds that a document refers to, and those that they refer to."""
    kinds = openapi_kinds.schemas()
    found: dict[str, Document] = {}
    names = _referred_to(document)
    while names:
        found |= {name: kinds[name] for name in names}
        names = _referred_to(found) - found.keys()
    return {"components": {"schemas": dict(sorted(found.items()))}}


def _referred_to(document: Document) -> set[str]:
    return set(re.findall(rf'"{REFERENCE}([^"]+)"', msgspec.json.encode(document).decode()))


def _operation_of_version_3(operation: _Operation) -> Document:
    answer = _content(operation.media_types, reference(operation.kind))
    errors = {str(code): _error(code, summary) for code, summary in sorted(operation.errors().items())}
    return _head(operation) | {
        "parameters": list(operation.parameters),
        "responses": {"200": {"description": "The answer.", "content": answer}, **errors},
    }


def _error(code: int, summary: str) -> Document:
    plain = {"text/plain": {"schema": {"type": "string"}}} if code in _PLAIN else {}
    content = _content(_MEDIA_TYPES, reference(openapi_kinds.STATUS))
    return {"description": summary, "content": content | plain}


def _content(media_types: Iterable[str], schema: Document) -> Document:
    return {media_type: {"schema": schema} for media_type in media_types}


def _operation_of_version_2(operation: _Operation) -> Document:
    schemas = {"200": ("The answer.", operation.kind)}
    errors = {str(code): (text, openapi_kinds.STATUS) for code, text in sorted(operation.errors().items())}
    parameters = [{k: v for k, v in each.items() if k != "schema"} | each["schema"] for each in operation.parameters]
    responses = {
        code: {"description": text, "schema": _in_version_2(reference(kind))}
        for code, (text, kind) in (schemas | errors).items()
    }
    return _head(operation) | {
        # Swagger 2.0 tells no types by code, and errors have more of them.
        "produces": list(dict.fromkeys((*operation.media_types, *_MEDIA_TYPES, "text/plain"))),
        "parameters": parameters,
        "responses": responses,
    }


def _head(operation: _Operation) -> Document:
    tag = operation.document.removeprefix("apis/")
    return {"tags": [tag], "description": operation.summary, "operationId": operation.name}


def _in_version_2(value: Any) -> Any:
    """A schema without what OpenAPI 2.0 has no word for; an API server would not write the cluster's description in
    protobuf any more if it stayed in."""
    if isinstance(value, list):
        return [_in_version_2(each) for each in value]
    if isinstance(value, dict):
        return {key: _in_version_2(each) for key, each in value.items() if key != "nullable"}
    return value.replace(REFERENCE, "#/definitions/") if isinstance(value, str) else value


def _query(name: str, summary: str, kind: str = "string") -> Document:
    return {"name": name, "in": "query", "description": summary, "schema": {"type": kind}}


def _in_path(name: str, summary: str) -> Document:
    return {"name": name, "in": "path", "required": True, "description": summary, "schema": {"type": "string"}}


_PARAMETERS = (
    _query("labelSelector", "Which series, or which objects, by their labels."),
    _query("fieldSelector", "metadata.name or metadata.namespace."),
    _query("limit", "Has no effect: every item is given.", "integer"),
    _query("resourceVersion", "Has no effect: numbers have no versions."),
    _query("resourceVersionMatch", "Wants a resourceVersion beside it."),
    _query("watch", "A metric cannot be watched."),
    _query("timeout", "The longest time to wait for the answer, as in 5s."),
    _query("pretty", "Whether JSON is indented.", "boolean"),
)
_PARAMETERS_OF_OBJECTS = (
    *_PARAMETERS,
    _query("metricLabelSelector", "Which series of an object, by their labels."),
)
_NAMESPACE = _in_path("namespace", "The namespace.")
_OBJECT = (
    _in_path("resource", "The resource, with its group unless it is a core one, as in deployments.apps."),
    _in_path("name", "The object, or * for all that labelSelector picks."),
    _in_path("subresource", "The metric."),
)


@cache
def _operations() -> Sequence[_Operation]:
    """Under the paths and names that Go servers give them, so that a client made from their description fits."""
    release = _Operation(
        "/version/", "version", "getCodeVersion", "The release.", openapi_kinds.RELEASE, media_types=(_JSON,)
    )
    groups = _Operation("/apis/", "apis", "getAPIVersions", "The groups.", openapi_kinds.GROUPS)
    of_custom = _of_group(custom.GROUP, custom.VERSIONS)
    return (release, groups, *of_custom, *_of_group(external.GROUP, (external.VERSION,)))


def _of_group(group: str, versions: Sequence[str]) -> Iterator[_Operation]:
    root, name = f"apis/{group}", "".join(word.capitalize() for word in group.split(".")[:2])
    yield _Operation(f"/{root}/", root, f"get{name}APIGroup", "The versions.", openapi_kinds.GROUP)
    for version in versions:
        root, named = f"apis/{group}/{version}", f"{name}{version.capitalize()}"
        yield _Operation(f"/{root}/", root, f"get{named}APIResources", "The metrics.", openapi_kinds.RESOURCES)
        yield from _of_objects(root, named, version) if group == custom.GROUP else [_of_series(root, named)]


def _of_series(root: str, named: str) -> _Operation:
    path = f"/{root}/namespaces/{{namespace}}/{{resource}}"
    kind = name_of(external.GROUP, external.VERSION, "ExternalMetricValueList")
    parameters = (_NAMESPACE, _in_path("resource", "The metric."), *_PARAMETERS)
    return _Operation(path, root, f"list{named}ExternalMetricValue", "The values of a metric.", kind, parameters)


def _of_objects(root: str, named: str, version: str) -> Iterator[_Operation]:
    kind = name_of(custom.GROUP, version, "MetricValueList")
    for path, name, summary, parameters in (
        ("{resource}/{name}/{subresource}", "list{}MetricValue", "Of objects that have no namespace.", _OBJECT),
        (
            "namespaces/{namespace}/{resource}/{name}/{subresource}",
            "list{}NamespacedMetricValue",
            "Of objects in a namespace.",
            (_NAMESPACE, *_OBJECT),
        ),
        (
            "namespaces/{namespace}/metrics/{name}",
            "read{}MetricValueForNamespace",
            "Of a namespace.",
            (_NAMESPACE, _in_path("name", "The metric.")),
        ),
    ):
        everything = (*parameters, *_PARAMETERS_OF_OBJECTS)
        yield _Operation(f"/{root}/{path}", root, name.format(named), summary, kind, everything)
