"""The stand-in for the kubelet, the scheduler and the cluster's DNS, and for nothing else.

It binds every pod to the one node, runs its container's command as a real process (see pod.py), runs the readiness
probe, reports the pod's status, starts a dead container again, and lets a deleted pod go when its process has ended.
Service names resolve, through /etc/hosts, to the ready pods behind them.
"""

import math
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from parts.controlplane import Api
from parts.pod import Pod

_NODE = "bench"
_LOOK_S = 0.3
_RESTART_S = 2.0
_FORESEEN = (httpx.HTTPError, OSError)  # the API comes back; a Secret, or a pod, is not there yet or not any more


class Kubelet:
    """Runs the pods of all namespaces while it is entered. images: image without tag -> its entrypoint.

    log: what it could not do, and which container has ended by itself.
    """

    def __init__(self, api: Api, folder: Path, images: Mapping[str, Sequence[str]]) -> None:
        self._api = api
        self._folder = folder
        self.log = folder / "kubelet.log"
        self._images = images
        self._pods: dict[str, Pod] = {}
        self._names = ""
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="kubelet")

    def pods(self, namespace: str, prefix: str) -> list[Pod]:
        """The pods that run now, by the beginning of their name."""
        with self._lock:
            return [pod for pod in self._pods.values() if pod.namespace == namespace and pod.name.startswith(prefix)]

    @contextmanager
    def killed(self, pod: Pod) -> Iterator[None]:
        """Ends the container at once with all its processes; at the end of the block it is started again."""
        with self._lock:
            pod.start_at_s = math.inf
            pod.process.kill()
        try:
            yield
        finally:
            pod.start_at_s = 0.0

    def refresh(self, namespace: str, prefix: str) -> None:
        """Brings changed Secrets and ConfigMaps into the pods' files; a real kubelet does so within a minute or two."""
        for pod in self.pods(namespace, prefix):
            with self._lock:  # it may be starting again
                pod.refresh()

    def _run(self) -> None:
        while not self._stopping.wait(_LOOK_S):
            self._attempt("pods", self._look)

    def _attempt(self, name: str, act: Callable[..., None], *arguments: object) -> None:
        """The trouble of one pod is not that of the others, and the next look tries again."""
        try:
            act(*arguments)
        except _FORESEEN as error:
            self._note(f"{name}: {error!r}")
        except Exception:  # whatever it is, it is the trouble of one pod
            self._note(f"{name}: {traceback.format_exc()}")

    def _note(self, text: str) -> None:
        with self.log.open("a") as log:
            log.write(f"{time.ctime()} {text}\n")

    def _look(self) -> None:
        found = {item["metadata"]["uid"]: item for item in self._api.get("/api/v1/pods")["items"]}
        for uid, manifest in found.items():
            self._attempt(manifest["metadata"]["name"], self._tend, uid, manifest)
        for uid in set(self._pods) - set(found):
            self._pods[uid].process.stop(0)
            self._forget(uid)
        self._attempt("names", self._resolve)

    def _tend(self, uid: str, manifest: dict[str, Any]) -> None:
        pod = self._pods.get(uid) or Pod(self._api, manifest, self._folder, self._images)
        if "deletionTimestamp" in manifest["metadata"]:
            self._let_go(pod)
        elif uid in self._pods:
            self._keep_alive(pod)
            self._report(pod)
        else:
            self._admit(pod)

    def _admit(self, pod: Pod) -> None:
        if not pod.manifest["spec"].get("nodeName"):
            target = {"apiVersion": "v1", "kind": "Node", "name": _NODE}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod.name}, "target": target}
            self._api.ask("POST", f"{pod.path}/binding", body)
        pod.resolve(self._names)  # a server that does not find the pipeline at once waits before it tries again
        pod.start()  # last: what is started is known
        pod.start_at_s = time.monotonic() + _RESTART_S
        with self._lock:
            self._pods[pod.uid] = pod

    def _keep_alive(self, pod: Pod) -> None:
        with self._lock:
            if pod.process.running() or time.monotonic() < pod.start_at_s:
                return
            self._note(f"{pod.name}: its container ended with {pod.process.child.returncode}, it is started again")
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
        self._api.ask("PATCH", f"{pod.path}/status", {"status": status}, kind)
        pod.patched = status

    def _let_go(self, pod: Pod) -> None:
        if not pod.end_of_grace():
            return
        pod.process.stop(0)
        self._api.ask("DELETE", pod.path, {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid}})
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

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._api.ask("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": _NODE}})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join(120)
        for pod in self._pods.values():
            pod.process.stop(0)
