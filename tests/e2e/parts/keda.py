"""KEDA: its operator and its metrics server beside a control plane, as the owner of external.metrics.k8s.io."""

import shlex
from contextlib import ExitStack
from pathlib import Path

import httpx

from bench.tool_folder import tools
from parts.certificates import Authority
from parts.controlplane import ControlPlane
from parts.process import HOST, Part, Process, free_port, until
from parts.service import EXTERNAL, api_service_at

TOOL = "keda-2.21.0"


class Keda(Part):
    """The operator and the metrics server of KEDA."""

    # hosts: a hosts file with the names of the cluster's Services. trusted_ca: the CA of the sources that KEDA reads.
    def __init__(self, plane: ControlPlane, folder: Path, hosts: Path, trusted_ca: bytes) -> None:
        self._plane = plane
        self._folder = folder
        self._hosts = hosts
        self._certs, self._cas = folder / "certs", folder / "ca"
        for each in (self._certs, self._cas):
            each.mkdir(parents=True)
        (self._cas / "ca.crt").write_bytes(trusted_ca)
        authority = Authority(self._certs, "ca")
        certificate, key = authority.issue("keda", addresses=(HOST,))
        certificate.rename(self._certs / "tls.crt")
        key.rename(self._certs / "tls.key")
        self._started = ExitStack()

    def start(self) -> None:
        """Installs the resource types, starts both programs, and claims external.metrics.k8s.io."""
        crds = tools() / TOOL / "crd"
        self._plane.kubectl("apply", "--server-side", "-f", str(crds))
        established = ("wait", "--for=condition=Established", "--timeout=60s", "-f", str(crds))
        until(lambda: self._plane.kubectl(*established), 60, "KEDA's resource types are established")
        self._plane.kubectl("create", "namespace", "keda")
        metrics, health, own = (f"{HOST}:{free_port()}" for _ in range(3))
        operator = self._program(
            "operator", f"--metrics-service-bind-address={metrics}", f"--health-probe-bind-address={health}",
            f"--metrics-bind-address={own}", f"--ca-dir={self._cas}",
        )  # fmt: skip
        operator.ready(lambda: httpx.get(f"http://{health}/readyz", timeout=2).is_success)
        config, port = self._plane.admin.kubeconfig, free_port()
        self._program(
            "adapter", f"--metrics-service-address={metrics}", f"--secure-port={port}", f"--port={free_port()}",
            f"--tls-cert-file={self._certs}/tls.crt", f"--tls-private-key-file={self._certs}/tls.key",
            *(f"--{each}-kubeconfig={config}" for each in ("lister", "authentication", "authorization")),
        )  # fmt: skip
        self._plane.apply(*api_service_at(port, EXTERNAL, "keda"))
        until(lambda: self._plane.api.raw(f"/apis/{EXTERNAL}").is_success, 60, "KEDA serves external.metrics.k8s.io")

    def _program(self, name: str, *options: str) -> Process:
        # KEDA uses the DNS names of the cluster.
        command = [str(tools() / TOOL / name), f"--cert-dir={self._certs}", *options]
        script = f"mount --bind {shlex.quote(str(self._hosts))} /etc/hosts && exec {shlex.join(command)}"
        namespace = dict.fromkeys(("POD_NAMESPACE", "KEDA_CLUSTER_OBJECT_NAMESPACE"), "keda")
        env = {"KUBECONFIG": str(self._plane.admin.kubeconfig), "WATCH_NAMESPACE": "", **namespace}
        isolated = ["unshare", "--mount", "sh", "-c", script]
        return self._started.enter_context(Process(f"keda-{name}", isolated, self._folder, env))

    def stop(self) -> None:
        """Ends both programs."""
        self._started.close()
