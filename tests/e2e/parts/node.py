"""A real node: containerd, kubelet, kube-scheduler, kube-proxy and the cluster's DNS.

tests/e2e/run-on-node gives it its namespaces, cgroups and images.
"""

import json
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.tool_folder import tools
from parts.cluster_dns import MANIFESTS, SERVER
from parts.controlplane import ControlPlane
from parts.process import HOST, Part, Process

NAME = "node-1"  # as the host name of tests/e2e/run-on-node
_CONFIGURATIONS = Path(__file__).parents[1] / "tools" / "node"
_SOCKET = "/run/containerd/containerd.sock"


@dataclass(frozen=True, slots=True)
class NodePod:
    """A pod on the node."""

    name: str
    namespace: str
    ip: str
    restarts: int


class Node(Part):
    """Ready when the kubelet is, and the names of Services resolve."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._plane = plane
        self._folder = folder
        self._programs = ExitStack()

    def start(self) -> None:
        """Starts the programs; containerd first, because the kubelet exits without it."""
        self._folder.mkdir(parents=True)
        containerd = self._program("containerd", "--config", str(_CONFIGURATIONS / "containerd.toml"))
        containerd.ready(lambda: _succeeds("ctr", "version"))
        scheduler = self._plane.user("system:kube-scheduler").kubeconfig
        self._kubernetes(
            "kube-scheduler", f"--kubeconfig={scheduler}", f"--authentication-kubeconfig={scheduler}",
            f"--authorization-kubeconfig={scheduler}", "--leader-elect=false", f"--bind-address={HOST}",
        )  # fmt: skip
        self._kubernetes("kube-proxy", f"--config={self._write('kube-proxy', self._proxy_settings())}")
        self._start_kubelet()
        self._plane.apply(*MANIFESTS)
        self._plane.kubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=180s")

    def stop(self) -> None:
        """Ends the programs. The containers end with the namespaces of this process."""
        self._programs.close()

    def pods(self, namespace: str, prefix: str = "") -> list[NodePod]:
        """The pods whose names begin with the prefix and that are not being deleted."""
        items = self._plane.api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
        alive = [item for item in items if "deletionTimestamp" not in item["metadata"]]
        return [_pod(item) for item in alive if item["metadata"]["name"].startswith(prefix)]

    def _program(self, name: str, *command: str, program: str | Path = "") -> Process:
        process = Process(name, [program or name, *command], self._folder)
        return self._programs.enter_context(process)

    def _kubernetes(self, name: str, *options: str) -> Process:
        return self._program(name, *options, program=tools() / "node-1.36.3" / name)

    def _start_kubelet(self) -> None:
        kubeconfig = self._plane.user(f"system:node:{NAME}", "system:nodes").kubeconfig
        kubelet = self._kubernetes(
            "kubelet", f"--config={self._write('kubelet', self._kubelet_settings())}", f"--kubeconfig={kubeconfig}",
            f"--hostname-override={NAME}", f"--node-ip={HOST}", "--root-dir=/var/lib/kubelet",
        )  # fmt: skip
        kubelet.ready(self._is_ready)

    def _is_ready(self) -> bool:
        conditions = self._plane.api.get(f"/api/v1/nodes/{NAME}")["status"].get("conditions", [])
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def _write(self, name: str, settings: dict[str, Any]) -> Path:
        file = self._folder / f"{name}.json"
        file.write_text(json.dumps(settings))
        return file

    def _kubelet_settings(self) -> dict[str, Any]:
        certificate, key = self._plane.server_ca.issue(NAME, addresses=(HOST, NAME))
        resolver = self._folder / "resolv.conf"
        resolver.write_text(f"nameserver {SERVER}\n")
        never = ("memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree")
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{_SOCKET}", "cgroupDriver": "cgroupfs", "failCgroupV1": False,
            "failSwapOn": False, "clusterDNS": [SERVER], "clusterDomain": "cluster.local",
            "resolvConf": str(resolver), "oomScoreAdj": 0,  # lower values need CAP_SYS_RESOURCE
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
                               "x509": {"clientCAFile": str(self._plane.client_ca.path)}},
            "authorization": {"mode": "Webhook"}, "tlsCertFile": str(certificate), "tlsPrivateKeyFile": str(key),
            # The machine is shared: a full disk is no reason to evict pods or to delete the images of the cache.
            "evictionHard": dict.fromkeys((*never, "pid.available"), "0%"),
            "imageGCHighThresholdPercent": 100, "imageMaximumGCAge": "0s",
        }  # fmt: skip

    def _proxy_settings(self) -> dict[str, Any]:
        kubeconfig = self._plane.user("system:kube-proxy").kubeconfig
        # Zeros leave the settings of the machine's connection tracking alone.
        conntrack = {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}
        return {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "nftables",
            "clusterCIDR": "10.244.0.0/16", "hostnameOverride": NAME,
            "clientConnection": {"kubeconfig": str(kubeconfig)}, "conntrack": conntrack,
        }  # fmt: skip


def _pod(item: dict[str, Any]) -> NodePod:
    meta, status = item["metadata"], item["status"]
    restarts = sum(each["restartCount"] for each in status.get("containerStatuses", []))
    return NodePod(meta["name"], meta["namespace"], status.get("podIP", ""), restarts)


def _succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
