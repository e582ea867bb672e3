"""Replaces the kubelet, the scheduler and the cluster's DNS.

It binds every pod to the one node, runs the command of its container as a real process (see pod.py), runs the readiness
probe, reports the status of the pod, restarts a container that ended, and removes a deleted pod when its process has
ended. The names of Services resolve to their ready pods through /etc/hosts.
"""

import math
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from parts.controlplane import Api
from parts.pod import Pod
from parts.process import Loop

_NODE = "node"
_SYNC_S = 0.3
_RESTART_S = 2.0
_EXPECTED = (httpx.HTTPError, OSError)  # the API is away for a moment; a Secret or a pod does not exist


class Kubelet(Loop):
    """Runs the pods of all namespaces. log: its errors, and the containers that ended by themselves."""

    # images: image without tag -> entrypoint.
    def __init__(self, api: Api, folder: Path, images: Mapping[str, Sequence[str]]) -> None:
        super().__init__(_SYNC_S)
        self._api = api
        self._folder = folder
        self.log = folder / "kubelet.log"
        self._images = images
        self._pods: dict[str, Pod] = {}
        self._names = ""
        self._lock = threading.Lock()

    def pods(self, namespace: str, prefix: str) -> list[Pod]:
        """The current pods whose names begin with the prefix."""
        with self._lock:
            return [pod for pod in self._pods.values() if pod.namespace == namespace and pod.name.startswith(prefix)]

    @contextmanager
    def killed(self, pod: Pod) -> Iterator[None]:
        """Kills every process of the container, and restarts the container after the block."""
        with self._lock:
            pod.start_at_s = math.inf
            pod.process.kill()
        try:
            yield
        finally:
            pod.start_at_s = 0.0

    def refresh(self, namespace: str, prefix: str) -> None:
        """Updates the files of Secrets and ConfigMaps in the pods; a real kubelet takes up to two minutes."""
        for pod in self.pods(namespace, prefix):
            with self._lock:  # the pod may be restarting
                pod.refresh()

    def step(self) -> None:
        self._attempt("pods", self._sync)

    def _attempt(self, name: str, act: Callable[..., None], *arguments: object) -> None:
        """Logs an error, so that one pod does not stop the others; the next sync retries."""
        try:
            act(*arguments)
        except _EXPECTED as error:
            self._note(f"{name}: {error!r}")
        except Exception:  # of one pod, whatever it is
            self._note(f"{name}: {traceback.format_exc()}")

    def _note(self, text: str) -> None:
        with self.log.open("a") as log:
            log.write(f"{time.ctime()} {text}\n")

    def _sync(self) -> None:
        found = {item["metadata"]["uid"]: item for item in self._api.get("/api/v1/pods")["items"]}
        for uid, manifest in found.items():
            self._attempt(manifest["metadata"]["name"], self._sync_pod, uid, manifest)
        for uid in set(self._pods) - set(found):
            self._pods[uid].process.stop(0)
            self._forget(uid)
        self._attempt("names", self._resolve)

    def _sync_pod(self, uid: str, manifest: dict[str, Any]) -> None:
        pod = self._pods.get(uid) or Pod(self._api, manifest, self._folder, self._images)
        if "deletionTimestamp" in manifest["metadata"]:
            self._remove(pod)
        elif uid in self._pods:
            self._restart(pod)
            self._report(pod)
        else:
            self._admit(pod)

    def _admit(self, pod: Pod) -> None:
        if not pod.manifest["spec"].get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": _NODE}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod.name}, "target": target}
            self._api.request("POST", f"{pod.path}/binding", body)
        pod.resolve(self._names)  # a server that does not find the pipeline waits before it retries
        pod.start()  # last: a pod that started is always in self._pods
        pod.start_at_s = time.monotonic() + _RESTART_S
        with self._lock:
            self._pods[pod.uid] = pod

    def _restart(self, pod: Pod) -> None:
        with self._lock:
            if pod.process.running() or time.monotonic() < pod.start_at_s:
                return
            self._note(f"{pod.name}: the container ended with {pod.process.child.returncode}, it restarts")
            pod.start_at_s = time.monotonic() + _RESTART_S
            pod.start()
            pod.restarts += 1

    def _forget(self, uid: str) -> None:
        with self._lock:
            self._pods.pop(uid, None)

    def _report(self, pod: Pod) -> None:
        status = pod.status(pod.ready())
        if status == pod.patched:
            return
        kind = "application/strategic-merge-patch+json"
        self._api.request("PATCH", f"{pod.path}/status", {"status": status}, kind)
        pod.patched = status

    def _remove(self, pod: Pod) -> None:
        if not pod.has_terminated():
            return
        pod.process.stop(0)
        self._api.request("DELETE", pod.path, {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid}})
        self._forget(pod.uid)

    def _resolve(self) -> None:
        lines = []
        for item in self._api.get("/apis/discovery.k8s.io/v1/endpointslices")["items"]:
            namespace = item["metadata"]["namespace"]
            service = item["metadata"]["labels"].get("kubernetes.io/service-name", "")
            for endpoint in item.get("endpoints") or []:
                if endpoint["conditions"].get("ready"):
                    name = f"{service}.{namespace}"
                    lines.append(f"{endpoint['addresses'][0]} {name}.svc {name} {name}.svc.cluster.local\n")
        self._names = "".join(lines)
        for pod in self._pods.values():
            pod.resolve(self._names)

    def start(self) -> None:
        """Registers the node and starts to run pods."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._api.request("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": _NODE}})
        super().start()

    def stop(self) -> None:
        """Ends every pod."""
        super().stop()
        for pod in self._pods.values():
            pod.process.stop(0)
