"""Stand-ins for a kubelet and for the Flink Kubernetes Operator, where only the numbers of replicas matter."""

import contextlib
from pathlib import Path
from typing import Any

import httpx

from parts.controlplane import Api
from parts.process import Loop
from parts.scale_target import workload_resource

FLINK_CRD = Path(__file__).parents[2] / "data" / "crds" / "flinkdeployment.yaml"
_MERGE = "application/merge-patch+json"
_FLINK = "/apis/flink.apache.org/v1beta1"


class StandIns(Loop):
    """Reports every pod as ready without running it, and gives each FlinkDeployment its TaskManagers."""

    def __init__(self, api: Api) -> None:
        super().__init__(pause_s=0.5)
        self._api = api

    def step(self) -> None:
        with contextlib.suppress(httpx.HTTPError):  # the next step retries
            for pod in self._api.get("/api/v1/pods")["items"]:
                self._make_ready(pod)
            for deployment in self._api.get(f"{_FLINK}/flinkdeployments")["items"]:
                self._scale_task_managers(deployment)

    def _make_ready(self, pod: dict[str, Any]) -> None:
        if pod["status"].get("phase") == "Running":
            return
        meta = pod["metadata"]
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        with contextlib.suppress(httpx.HTTPStatusError):  # it was deleted meanwhile
            path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
            self._api.request("PATCH", path, {"status": status}, _MERGE)

    def _scale_task_managers(self, resource: dict[str, Any]) -> None:
        """As the operator does in standalone mode: a Deployment of TaskManagers, and the status for the HPA."""
        meta, replicas = resource["metadata"], resource["spec"]["taskManager"]["replicas"]
        name = f"{meta['name']}-taskmanager"
        wanted = {"taskManager": {"replicas": replicas, "labelSelector": f"app={name}"}}
        if resource.get("status") == wanted:
            return
        path = f"/apis/apps/v1/namespaces/{meta['namespace']}/deployments"
        if self._api.raw(f"{path}/{name}").status_code == httpx.codes.NOT_FOUND:
            self._api.request("POST", path, workload_resource(name, {}, replicas=replicas))
        self._api.request("PATCH", f"{path}/{name}", {"spec": {"replicas": replicas}}, _MERGE)
        own = f"{_FLINK}/namespaces/{meta['namespace']}/flinkdeployments/{meta['name']}/status"
        self._api.request("PATCH", own, {"status": wanted}, _MERGE)


def scale_target(kind: str, name: str, replicas: int) -> dict[str, Any]:
    """A Deployment, StatefulSet or FlinkDeployment whose pods need no node."""
    if kind == "FlinkDeployment":
        spec: dict[str, Any] = {"taskManager": {"replicas": replicas}}
        return {"apiVersion": "flink.apache.org/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    return workload_resource(name, {}, replicas=replicas, kind=kind)
