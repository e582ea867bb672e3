"""An API group that a server outside the pods owns."""

from typing import Any

from parts.process import HOST


def api_service_at(port: int, group_version: str, name: str, namespace: str = "default") -> list[dict[str, Any]]:
    """An APIService whose Service leads to HOST:port; its certificate is not verified."""
    group, version = group_version.split("/")
    meta, ports = {"name": name, "namespace": namespace}, [{"name": "https", "port": port}]
    slice_meta = {**meta, "labels": {"kubernetes.io/service-name": name}}
    spec = {
        "group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 100,
        "service": {**meta, "port": port}, "insecureSkipTLSVerify": True,
    }  # fmt: skip
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": ports}},
        {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": slice_meta, "addressType": "IPv4",
         "endpoints": [{"addresses": [HOST], "conditions": {"ready": True}}], "ports": ports},
        {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
         "metadata": {"name": f"{version}.{group}"}, "spec": spec},
    ]  # fmt: skip
