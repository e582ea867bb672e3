"""The stand-in for the kubelet, the scheduler and the cluster's DNS, and for nothing else.

It binds every pod to the one node, runs its container's command as a real process (see pod.py), runs the readiness
probe, reports the pod's status, starts a dead container again, and lets a deleted pod go when its process has ended.
Service names resolve, through /etc/hosts, to the ready pods behind them.
"""

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from parts.controlplane import Api
from parts.pod import Pod

_NODE = "bench"
_LOOK_S = 0.3
_RESTART_S = 2.0


class Kubelet:
    """Runs the pods of all namespaces while it is entered. images: image without tag -> its entrypoint."""

    def __init__(self, api: Api, folder: Path, images: Mapping[str, Sequence[str]]) -> None:
        self._api = api
        self._folder = folder
        self._images = images
        self._pods: dict[str, Pod] = {}
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="kubelet")
        self.faults: list[str] = []

    def pods(self, namespace: str, prefix: str) -> list[Pod]:
        """The pods that run now, by the beginning of their name."""
        with self._lock:
            return [pod for pod in self._pods.values() if pod.namespace == namespace and pod.name.startswith(prefix)]

    def kill(self, pod: Pod, restart_after_s: float = _RESTART_S) -> None:
        """Ends the container at once with all its processes; it is started again after restart_after_s."""
        with self._lock:
            pod.start_at_s = time.monotonic() + restart_after_s
            pod.process.kill()

    def refresh(self, namespace: str, prefix: str) -> None:
        """Brings changed Secrets and ConfigMaps into the pods' files; a real kubelet does so within a minute or two."""
        for pod in self.pods(namespace, prefix):
            pod.refresh()

    def _run(self) -> None:
        while not self._stopping.wait(_LOOK_S):
            try:
                self._look()
            except (httpx.HTTPError, OSError) as error:  # the API comes back; the pods run on
                self.faults.append(repr(error))

    def _look(self) -> None:
        found = {item["metadata"]["uid"]: item for item in self._api.get("/api/v1/pods")["items"]}
        for uid, manifest in found.items():
            self._tend(uid, manifest)
        for uid in set(self._pods) - set(found):
            self._pods.pop(uid).process.stop(0)
        self._resolve()

    def _tend(self, uid: str, manifest: dict[str, Any]) -> None:
        if uid not in self._pods:
            self._admit(manifest)
            return
        pod = self._pods[uid]
        if "deletionTimestamp" in manifest["metadata"]:
            self._let_go(pod)
            return
        with self._lock:
            if not pod.process.running() and time.monotonic() > pod.start_at_s:
                pod.restarts += 1
                pod.start_at_s = time.monotonic() + _RESTART_S
                pod.start()
        self._report(pod)

    def _admit(self, manifest: dict[str, Any]) -> None:
        pod = Pod(self._api, manifest, self._folder, self._images)
        try:
            pod.start()
        except httpx.HTTPStatusError as error:  # a Secret or ConfigMap that is not there yet: the next look tries again
            self.faults.append(f"{pod.name}: {error}")
            return
        if not manifest["spec"].get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": _NODE}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod.name}, "target": target}
            self._api.ask("POST", f"{pod.path}/binding", body)
        pod.start_at_s = time.monotonic() + _RESTART_S
        with self._lock:
            self._pods[pod.uid] = pod

    def _report(self, pod: Pod) -> None:
        status = pod.status(pod.ready())
        if status == pod.patched:
            return
        kind = "application/strategic-merge-patch+json"
        self._api.ask("PATCH", f"{pod.path}/status", {"status": status}, kind)
        pod.patched = status

    def _let_go(self, pod: Pod) -> None:
        if not pod.end_of_grace():
            return
        pod.process.stop(0)
        self._api.ask("DELETE", pod.path, {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid}})
        with self._lock:
            del self._pods[pod.uid]

    def _resolve(self) -> None:
        lines = ["127.0.0.1 localhost"]
        for item in self._api.get("/apis/discovery.k8s.io/v1/endpointslices")["items"]:
            namespace = item["metadata"]["namespace"]
            service = item["metadata"]["labels"].get("kubernetes.io/service-name", "")
            for endpoint in item.get("endpoints") or []:
                if endpoint["conditions"].get("ready"):
                    name = f"{service}.{namespace}"
                    lines.append(f"{endpoint['addresses'][0]} {name}.svc {name} {name}.svc.cluster.local")
        for pod in self._pods.values():
            text = "\n".join([*lines, f"{pod.ip} {pod.name}", ""])
            if pod.hosts.read_text() != text:
                pod.hosts.write_text(text)  # in place: the pod's mount is of this very file

    def __enter__(self) -> Self:
        self._api.ask("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": _NODE}})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join(30)
        for pod in self._pods.values():
            pod.process.stop(0)
