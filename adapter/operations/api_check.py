"""Read a metric through the cluster's API, as the HPA controller does, and say who answered."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from adapter.apiserver.cluster_api import ClusterApi
from adapter.errors import AdapterError, plain
from adapter.serving.metric_api import CUSTOM, EXTERNAL_GROUP_VERSION

METRIC = "required_workers"
KIND = "deployments.apps"  # of the objects that stand for workloads
_CUSTOM_GROUP_VERSION = f"{CUSTOM}/v1beta2"
_NO_NUMBER = (400, 404, 503)  # the adapter's answers without a number; each says why

Get = Callable[[str], tuple[int, Any]]  # path -> status and document; a text is no document of Kubernetes


@dataclass(frozen=True, slots=True)
class _Api:
    """A version of a metrics API. name: of METRIC in its discovery."""

    version: str
    name: str

    def path(self, namespace: str, workload: str) -> str:
        """The path of the metric of a workload."""
        root = f"/apis/{self.version}/namespaces/{quote(namespace, safe='')}"
        if self.version == _CUSTOM_GROUP_VERSION:
            return f"{root}/{KIND}/{quote(workload, safe='')}/{METRIC}"
        return f"{root}/{METRIC}?labelSelector={quote(f'workload={workload}', safe='')}"


APIS = {
    "external": _Api(EXTERNAL_GROUP_VERSION, METRIC),
    "custom": _Api(_CUSTOM_GROUP_VERSION, f"{KIND}/{METRIC}"),
}


def check(apis: Sequence[str], workload: str, kubeconfig: str | None) -> Iterator[str]:
    """A sentence for each API in turn. Raises AdapterError at the first that the adapter does not answer.

    apis: names of APIS. workload: as namespace/name. kubeconfig: None for the service account of the pod.
    """
    namespace, slash, name = workload.partition("/")
    if not (slash and namespace and name) or "/" in name:
        raise AdapterError(f"expected a workload as namespace/name, such as shop/orders, got {workload!r}")
    cluster = ClusterApi(kubeconfig, "--kubeconfig")
    try:
        for each in apis:
            yield _check_discovery(cluster.get, APIS[each])
            yield _check_metric(cluster.get, APIS[each], namespace, name)
    finally:
        cluster.close()


def _check_discovery(get: Get, api: _Api) -> str:
    path = f"/apis/{api.version}"
    status, document = get(path)
    if status == 404:
        raise AdapterError(
            f"{path}: no APIService serves it; set apiService.external.create or apiService.custom.create"
        )
    if status != 200:
        hint = "read the condition Available of `kubectl describe apiservice`"
        raise AdapterError(f"{path}: {status} {_message(document)}; {hint}")
    if api.name not in _values(document, "resources", "name"):
        raise AdapterError(
            f"{path}: another adapter answers, it lists no {api.name}; "
            "read the Service of `kubectl get apiservices`, and keep one owner of the group"
        )
    return f"{path}: the cluster lists {api.name}"


def _check_metric(get: Get, api: _Api, namespace: str, name: str) -> str:
    path = api.path(namespace, name)
    status, document = get(path)
    if status == 200 and (numbers := _values(document, "items", "value")):
        return f"{METRIC} of {namespace}/{name} is {plain(', '.join(numbers))}"
    if status in _NO_NUMBER and isinstance(document, dict):
        return f"{METRIC} of {namespace}/{name} has no number yet: {_message(document)}"
    raise AdapterError(f"{path}: {status} {_message(document)}")


def _values(document: object, field: str, key: str) -> list[str]:
    """A text of each object in a list of a document. Go writes an empty list as null."""
    found = document.get(field) if isinstance(document, dict) else None
    return [str(each.get(key)) for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _message(document: object) -> str:
    """The message of a Status; kube-apiserver's proxy answers with plain text."""
    text = document.get("message", "") if isinstance(document, dict) else str(document)
    return plain(str(text).strip()) or "without a message"
