"""The metrics API groups, and APIServices, also of servers that do not run in a pod."""

from typing import Any

from parts.process import HOST

EXTERNAL = "external.metrics.k8s.io/v1beta1"
CUSTOM = ("custom.metrics.k8s.io/v1beta1", "custom.metrics.k8s.io/v1beta2")
VERSIONS = (EXTERNAL, *CUSTOM)


def api_service(group_version: str) -> str:
    """The API path of the APIService of a group and version."""
    group, version = group_version.split("/")
    return f"/apis/apiregistration.k8s.io/v1/apiservices/{version}.{group}"


def api_service_of(group_version: str, **service: Any) -> dict[str, Any]:
    """An APIService without verification of its certificate. service: the fields of its reference to a Service."""
    group, version = group_version.split("/")
    spec = {
        "group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 100,
        "service": service, "insecureSkipTLSVerify": True,
    }  # fmt: skip
    meta = {"name": f"{version}.{group}"}
    return {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": meta, "spec": spec}


def api_service_at(port: int, group_version: str, name: str) -> list[dict[str, Any]]:
    """An APIService whose Service leads to HOST:port."""
    meta, ports = {"name": name, "namespace": "default"}, [{"name": "https", "port": port}]
    slice_meta = {**meta, "labels": {"kubernetes.io/service-name": name}}
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": ports}},
        {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": slice_meta, "addressType": "IPv4",
         "endpoints": [{"addresses": [HOST], "conditions": {"ready": True}}], "ports": ports},
        api_service_of(group_version, **meta, port=port),
    ]  # fmt: skip
