"""Discovery: the documents that list groups, versions and resources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from adapter.apiserver.answer import Answer, Handler, Routes, json, with_etag
from adapter.apiserver.negotiation import AGGREGATED, check_json, wants_aggregated
from adapter.apiserver.request import Request
from adapter.apiserver.status import Document


@dataclass(frozen=True, slots=True)
class Resource:
    """An entry of a version. name: plural, or `resource/subresource`. kind: of the response."""

    name: str
    kind: str
    namespaced: bool = True


@dataclass(frozen=True, slots=True)
class ApiGroup:
    """An API group. resources: of every version. versions: the preferred one first, with the routes below its path."""

    name: str
    resources: Sequence[Resource]
    versions: Mapping[str, Routes]


def routes(groups: Sequence[ApiGroup]) -> Routes:
    """The routes of discovery and of every group."""
    aggregated = msgspec.json.encode(aggregate(groups))
    found: dict[str, Handler] = {"/apis": partial(_root, json(group_list(groups)), aggregated)}
    for group in groups:
        found[f"/apis/{group.name}"] = partial(_plain, json({"kind": "APIGroup", "apiVersion": "v1"} | _group(group)))
        for version, resources in group.versions.items():
            path = f"/apis/{group.name}/{version}"
            found[path] = partial(_plain, json(resource_list(group, version)))
            found |= {f"{path}{route}": handler for route, handler in resources.items()}
    return found


def group_list(groups: Sequence[ApiGroup]) -> Document:
    """`/apis`."""
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(group) for group in groups]}


def resource_list(group: ApiGroup, version: str) -> Document:
    """`/apis/<group>/<version>`."""
    resources = [
        {"name": each.name, "singularName": "", "namespaced": each.namespaced, "kind": each.kind, "verbs": ["get"]}
        for each in group.resources
    ]
    names = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group.name}/{version}"}
    return {**names, "resources": resources}


def aggregate(groups: Sequence[ApiGroup]) -> Document:
    """`/apis` as aggregated discovery.

    Without its resources, `kubectl api-resources` would show no metric.
    """
    items = [
        {
            "metadata": {"name": group.name},
            "versions": [
                {"version": each, "resources": _aggregated_resources(group), "freshness": "Current"}
                for each in group.versions
            ],
        }
        for group in groups
    ]
    names = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2"}
    return {**names, "metadata": {}, "items": items}


def _aggregated_resources(group: ApiGroup) -> list[Document]:
    """Each resource once, with its subresources. The resource itself is not served."""
    found: dict[str, Document] = {}
    for each in dict.fromkeys(group.resources):
        name, _, subresource = each.name.partition("/")
        response = {"group": "", "version": "", "kind": each.kind}
        if not subresource:
            found[name] = _aggregated_resource(each, name, response, ["get"])
            continue
        empty = _aggregated_resource(each, name, response | {"kind": ""}, []) | {"subresources": []}
        listed = {"subresource": subresource, "responseKind": response, "verbs": ["get"]}
        found.setdefault(name, empty)["subresources"].append(listed)
    return list(found.values())


def _aggregated_resource(resource: Resource, name: str, response: Document, verbs: list[str]) -> Document:
    scope = "Namespaced" if resource.namespaced else "Cluster"
    return {"resource": name, "responseKind": response, "scope": scope, "singularResource": "", "verbs": verbs}


def _group(group: ApiGroup) -> Document:
    versions = [{"groupVersion": f"{group.name}/{version}", "version": version} for version in group.versions]
    return {"name": group.name, "versions": versions, "preferredVersion": versions[0]}


def _plain(document: Answer, request: Request) -> Answer:
    check_json(request.header(b"accept"))
    return document


def _root(document: Answer, aggregated: bytes, request: Request) -> Answer:
    if not wants_aggregated(request.header(b"accept")):
        return _plain(document, request)
    return with_etag(request, aggregated, AGGREGATED, {"Cache-Control": "public", "Vary": "Accept"})
