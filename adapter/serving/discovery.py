"""What this API serves, as Kubernetes' discovery documents: built once, answered from memory."""

import hashlib
from functools import cache

from adapter.serving.external import GROUP, GROUP_VERSION, VERSION
from adapter.serving.metrics import METRICS
from adapter.serving.status import Document

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

_VERSION: Document = {"groupVersion": GROUP_VERSION, "version": VERSION}

# Every path that answers, for whoever asks for one that does not.
PATHS = (
    "/apis",
    f"/apis/{GROUP}",
    f"/apis/{GROUP_VERSION}",
    "/healthz",
    "/livez",
    "/metrics",
    "/readyz",
)


@cache
def group_list(port: int) -> Document:
    """`/apis`: the list of groups, with the port this server listens on."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": f":{port}"}]
    group = {"name": GROUP, "versions": [_VERSION], "preferredVersion": _VERSION}
    return {"kind": "APIGroupList", "groups": [group | {"serverAddressByClientCIDRs": addresses}]}


def group() -> Document:
    """`/apis/<group>`: its versions."""
    names: Document = {"kind": "APIGroup", "apiVersion": "v1", "name": GROUP}
    return names | {"versions": [_VERSION], "preferredVersion": _VERSION}


def resource_list() -> Document:
    """`/apis/<group>/<version>`: the metrics. The signals, not every workload: the list never grows with the fleet."""
    resources = [
        {
            "name": name,
            "singularName": "",
            "namespaced": True,
            "kind": "ExternalMetricValueList",
            "verbs": ["get"],
        }
        for name in METRICS
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": GROUP_VERSION, "resources": resources}


def aggregated() -> Document:
    """`/apis` as aggregated discovery v2. Filled: an empty one hides every metric from `kubectl api-resources`."""
    resources = [
        {
            "resource": name,
            "responseKind": {"group": "", "version": "", "kind": "ExternalMetricValueList"},
            "scope": "Namespaced",
            "singularResource": "",
            "verbs": ["get"],
        }
        for name in METRICS
    ]
    version = {"version": VERSION, "resources": resources, "freshness": "Current"}
    items = [{"metadata": {"name": GROUP}, "versions": [version]}]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def path_list() -> Document:
    """The answer to a path nobody serves."""
    return {"paths": list(PATHS)}


def etag(body: bytes) -> str:
    """A strong validator of a document."""
    return f'"{hashlib.sha512(body).hexdigest().upper()}"'
