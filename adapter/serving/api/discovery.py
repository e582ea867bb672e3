"""What this API serves, as Kubernetes' discovery documents: built once, answered from memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from adapter.serving.api import custom, external
from adapter.serving.api.custom import ObjectMetric
from adapter.serving.api.negotiation import AGGREGATED_JSON, JSON
from adapter.serving.api.status import JSON_CONTENT, Answer, Document, encode
from adapter.serving.api.stored import Stored

# Of each group the first version is announced and preferred, as Go servers do; the others are served all the same.
_VERSIONS = {custom.GROUP: custom.VERSIONS, external.GROUP: (external.VERSION,)}

# A client of Kubernetes 1.26 takes an empty list for a failure.
_NO_EXTERNAL = "externalmetrics"
_NO_CUSTOM = ObjectMetric("pods", "custommetrics")


@dataclass(frozen=True)
class Discovery:
    """The documents for the metrics that are listed; one is made anew when those change.

    external, custom: in the order they are listed in; the signals, never every workload, so that no list grows with
    the fleet. paths: what this server answers besides `/apis...`.
    """

    external: Sequence[str]
    custom: Sequence[ObjectMetric]
    paths: Sequence[str]

    def group_list(self, port: int) -> Document:
        """`/apis`: the groups, with the port this server listens on."""
        addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": f":{port}"}]
        groups = [_names(name) | {"serverAddressByClientCIDRs": addresses} for name in _VERSIONS]
        return {"kind": "APIGroupList", "groups": groups}

    def group(self, name: str) -> Document | None:
        """`/apis/<group>`; None for a group that is not served."""
        return {"kind": "APIGroup", "apiVersion": "v1"} | _names(name) if name in _VERSIONS else None

    def resource_list(self, group: str, version: str) -> Document | None:
        """`/apis/<group>/<version>`: the metrics; None for what is not served."""
        if version not in _VERSIONS.get(group, ()):
            return None
        resources = self._custom_resources if group == custom.GROUP else self._external_resources
        names = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/{version}"}
        return names | {"resources": resources}

    def aggregated(self) -> Document:
        """`/apis` as aggregated discovery v2. Filled: an empty one hides every metric from `kubectl api-resources`.

        The newest version of a group first: Kubernetes sorts versions of equal priority so.
        """
        resources = {custom.GROUP: self._aggregated_custom(), external.GROUP: self._aggregated_external()}
        items = [
            {
                "metadata": {"name": group},
                "versions": [
                    {"version": version, "resources": resources[group], "freshness": "Current"}
                    for version in reversed(versions)
                ],
            }
            for group, versions in _VERSIONS.items()
        ]
        return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}

    def aggregated_answer(self, if_none_match: str, media_type: str = JSON) -> Answer:
        """`aggregated`, or 304 for an API server that has it already; it asks every minute.

        media_type: what it will be written in; the validator is the same for all.
        """
        is_known = if_none_match == self._aggregated.headers["Etag"]  # as a whole, as Go's servers compare it
        answer = self._aggregated.answer(if_none_match if is_known else "")
        if answer.code == 304 or media_type == JSON:
            return answer
        headers = {name: value for name, value in answer.headers.items() if name != "Content-Type"}
        return Answer(200, self.aggregated(), headers=headers)

    def path_list(self) -> Document:
        """Every path that answers, sorted: the answer to `/`, and to a path nobody serves."""
        return {"paths": self._paths}

    def path_list_answer(self, code: int) -> Answer:
        """`path_list`, in JSON whatever the caller accepts."""
        return Answer(code, body=self._path_list, headers=JSON_CONTENT)

    @cached_property
    def _external_resources(self) -> list[Document]:
        return [_resource(name, "ExternalMetricValueList") for name in self._external]

    @cached_property
    def _custom_resources(self) -> list[Document]:
        return [
            _resource(f"{each.resource}/{each.metric}", "MetricValueList") | {"namespaced": each.namespaced}
            for each in self._custom
        ]

    @cached_property
    def _aggregated(self) -> Stored:
        headers = {"Content-Type": AGGREGATED_JSON.content_type, "Cache-Control": "public", "Vary": "Accept"}
        return Stored.of(encode(self.aggregated()), headers)

    @cached_property
    def _paths(self) -> list[str]:
        groups = [f"/apis/{group}" for group in _VERSIONS]
        versions = [f"/apis/{group}/{version}" for group, served in _VERSIONS.items() for version in served]
        return sorted({"/apis", *groups, *versions, *self.paths})

    @cached_property
    def _path_list(self) -> bytes:
        return encode(self.path_list(), indented=True)

    @property
    def _external(self) -> Sequence[str]:
        return self.external or (_NO_EXTERNAL,)

    @property
    def _custom(self) -> Sequence[ObjectMetric]:
        return self.custom or (_NO_CUSTOM,)

    def _aggregated_external(self) -> list[Document]:
        response = _response_kind("ExternalMetricValueList")
        # A resource stands once in a version, whatever the plain list repeats.
        return [_parent(name, response, namespaced=True, verbs=["get"]) for name in dict.fromkeys(self._external)]

    def _aggregated_custom(self) -> list[Document]:
        """The metrics as subresources of what they are of, which has no kind here: it is not served."""
        parents: dict[str, Document] = {}
        for each in dict.fromkeys(self._custom):
            absent = _parent(each.resource, _response_kind(""), namespaced=each.namespaced, verbs=[])
            parent = parents.setdefault(each.resource, absent | {"subresources": []})
            response = _response_kind("MetricValueList")
            parent["subresources"].append({"subresource": each.metric, "responseKind": response, "verbs": ["get"]})
        return list(parents.values())


def _names(group: str) -> Document:
    version = _VERSIONS[group][0]
    announced = {"groupVersion": f"{group}/{version}", "version": version}
    return {"name": group, "versions": [announced], "preferredVersion": announced}


def _resource(name: str, kind: str) -> Document:
    return {"name": name, "singularName": "", "namespaced": True, "kind": kind, "verbs": ["get"]}


def _response_kind(kind: str) -> Document:
    return {"group": "", "version": "", "kind": kind}


def _parent(name: str, response_kind: Document, *, namespaced: bool, verbs: list[str]) -> Document:
    return {
        "resource": name,
        "responseKind": response_kind,
        "scope": "Namespaced" if namespaced else "Cluster",
        "singularResource": "",
        "verbs": verbs,
    }
