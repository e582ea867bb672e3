"""A Kubernetes control plane: etcd, kube-apiserver and kube-controller-manager, with kubectl and helm."""

import json
import ssl
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from bench.tool_folder import tools
from parts import frontproxy
from parts.certificates import Authority, write_key_pair
from parts.process import HOST, UNVERIFIED_TLS, CommandError, Part, Process, free_port, until

# Without the node and pod controllers, which would evict the pods of the stand-in for the kubelet.
STAND_IN_CONTROLLERS = (
    "horizontal-pod-autoscaler-controller", "deployment-controller", "replicaset-controller",
    "serviceaccount-controller", "serviceaccount-token-controller", "namespace-controller",
    "endpointslice-controller", "disruption-controller", "root-ca-certificate-publisher-controller",
    "garbage-collector-controller", "statefulset-controller", "persistentvolumeclaim-protection-controller",
)  # fmt: skip
HPA_SYNC_S = 5
SERVICES = "10.0.0"  # the first three numbers of the addresses of Services
_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")


@dataclass(frozen=True, slots=True)
class User:
    """A user of the cluster with a client certificate."""

    name: str
    certificate: tuple[Path, Path]  # certificate, key
    kubeconfig: Path


class Api:
    """A client of the Kubernetes API for one user: JSON in, JSON out. Raises httpx.HTTPStatusError."""

    def __init__(self, url: str, ca: Path, certificate: tuple[Path, Path]) -> None:
        context = ssl.create_default_context(cafile=ca)
        context.load_cert_chain(*certificate)
        self._client = httpx.Client(base_url=url, verify=context, timeout=15)
        self.host = httpx.URL(url)

    def request(self, method: str, path: str, body: object = None, kind: str = "application/json") -> Any:
        """Sends one request and returns the body of the answer."""
        content = None if body is None else json.dumps(body)
        answer = self._client.request(method, path, content=content, headers={"Content-Type": kind})
        answer.raise_for_status()
        return answer.json()

    def get(self, path: str, *, accept: str = "application/json", **parameters: str) -> Any:
        """Reads one object or list."""
        answer = self._client.get(path, params=parameters or None, headers={"Accept": accept})
        answer.raise_for_status()
        return answer.json()

    def raw(self, path: str, **parameters: str) -> httpx.Response:
        """The answer with any status."""
        return self._client.get(path, params=parameters or None)

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()


class ControlPlane(Part):
    """Ready when the API answers, its bootstrap roles exist and the controllers run."""

    # controllers: those that run; `*` is all of them, which a real node needs.
    def __init__(self, folder: Path, controllers: Sequence[str] = STAND_IN_CONTROLLERS) -> None:
        self.folder = folder
        self._controllers = controllers
        self._pki = folder / "pki"
        self._pki.mkdir(parents=True)
        self._etcd_url = f"http://{HOST}:{free_port()}"
        self.port = free_port()
        self.url = f"https://{HOST}:{self.port}"
        self.server_ca = Authority(self._pki, "server-ca")
        self.client_ca = Authority(self._pki, "client-ca")
        self.front_proxy = frontproxy.FrontProxy(self._pki / "front-proxy")
        self._account_public, self._account_private = write_key_pair(self._pki, "service-account")
        self.admin = self.user("admin", "system:masters")
        self._programs = ExitStack()
        self.api = self.api_of(self.admin)

    def start(self) -> None:
        """Starts the programs in order, each when the one before is ready."""
        self._start_etcd()
        self._start_apiserver()
        self._start_controller_manager(self.user("system:kube-controller-manager").kubeconfig)

    def stop(self) -> None:
        """Ends the programs in reverse order."""
        self._programs.close()

    def user(self, name: str, group: str | None = None) -> User:
        """Creates a user without rights of its own, in this group."""
        certificate = self.client_ca.issue(name, group)
        return User(name, certificate, self._write_kubeconfig(name, certificate))

    def api_of(self, user: User) -> Api:
        """An API client for this user."""
        api = Api(self.url, self.server_ca.path, user.certificate)
        self._programs.callback(api.close)
        return api

    def log(self, program: str) -> str:
        """The log of one of the programs."""
        return (self.folder / f"{program}.log").read_text(errors="replace")

    def kubectl(self, *arguments: str, stdin: str | None = None, user: User | None = None) -> str:
        """The output of kubectl for the administrator or this user. Raises CommandError."""
        program = tools() / "controlplane-1.36.3" / "kubectl"
        kubeconfig = (user or self.admin).kubeconfig
        return _run([str(program), f"--kubeconfig={kubeconfig}", *arguments], self.folder, stdin)

    def helm(self, *arguments: str) -> str:
        """The output of helm. Raises CommandError."""
        program = tools() / "helm-4.3.1" / "helm"
        return _run([str(program), f"--kubeconfig={self.admin.kubeconfig}", *arguments], self.folder, None)

    def apply(self, *manifests: dict[str, Any]) -> None:
        """kubectl apply of these objects."""
        self.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(manifests))

    def _program(self, name: str, *options: str) -> Process:
        command = [tools() / "controlplane-1.36.3" / name, *options]
        return self._programs.enter_context(Process(name, command, self.folder))

    def _start_etcd(self) -> None:
        peer = f"http://{HOST}:{free_port()}"
        program = self._program(
            "etcd", f"--data-dir={self.folder}/etcd", "--unsafe-no-fsync", "--log-level=warn",
            f"--listen-client-urls={self._etcd_url}", f"--advertise-client-urls={self._etcd_url}",
            f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}",
        )  # fmt: skip
        program.ready(lambda: httpx.get(f"{self._etcd_url}/health", timeout=2).status_code == 200)

    def _start_apiserver(self) -> None:
        certificate, key = self.server_ca.issue("kube-apiserver", addresses=(HOST, f"{SERVICES}.1", *_NAMES))
        kubelet_client = self.client_ca.issue("kube-apiserver-kubelet-client", "system:masters")
        proxy = self.front_proxy
        program = self._program(
            "kube-apiserver", f"--etcd-servers={self._etcd_url}", f"--secure-port={self.port}",
            f"--bind-address={HOST}", f"--advertise-address={HOST}", f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}", f"--client-ca-file={self.client_ca.path}",
            f"--service-account-key-file={self._account_public}",
            f"--service-account-signing-key-file={self._account_private}",
            "--service-account-issuer=https://kubernetes.default.svc", "--authorization-mode=Node,RBAC",
            f"--kubelet-client-certificate={kubelet_client[0]}", f"--kubelet-client-key={kubelet_client[1]}",
            f"--kubelet-certificate-authority={self.server_ca.path}",
            "--kubelet-preferred-address-types=InternalIP", "--enable-admission-plugins=NodeRestriction",
            f"--service-cluster-ip-range={SERVICES}.0/24", f"--requestheader-client-ca-file={proxy.cas}",
            f"--requestheader-allowed-names={frontproxy.NAME}", "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={proxy.certificate}", f"--proxy-client-key-file={proxy.key}",
            "--enable-aggregator-routing=true", "--vmodule=dynamic_serving_content=2",
        )  # fmt: skip
        program.ready(lambda: self.api.raw("/readyz").text == "ok")
        # The controller manager exits if its roles do not exist yet.
        until(self._has_bootstrap_roles, 180, "the bootstrap roles exist")

    def _has_bootstrap_roles(self) -> bool:
        role = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings/system::{}"
        names = ("extension-apiserver-authentication-reader", "leader-locking-kube-controller-manager")
        return all(self.api.raw(role.format(name)).status_code == 200 for name in names)

    def _start_controller_manager(self, kubeconfig: Path) -> None:
        port = free_port()
        program = self._program(
            "kube-controller-manager", f"--kubeconfig={kubeconfig}", f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            f"--service-account-private-key-file={self._account_private}", f"--root-ca-file={self.server_ca.path}",
            "--use-service-account-credentials=true", "--leader-elect=false", f"--bind-address={HOST}",
            f"--secure-port={port}", f"--horizontal-pod-autoscaler-sync-period={HPA_SYNC_S}s",
            f"--controllers={','.join(self._controllers)}",
        )  # fmt: skip
        health = f"https://{HOST}:{port}/healthz"
        program.ready(lambda: httpx.get(health, verify=UNVERIFIED_TLS, timeout=2).text == "ok")
        until(
            lambda: self.api.raw("/api/v1/namespaces/default/serviceaccounts/default").is_success,
            180,
            "the default account exists",
        )

    def _write_kubeconfig(self, user: str, certificate: tuple[Path, Path]) -> Path:
        public, key = map(str, certificate)
        path = self.folder / f"{certificate[0].stem}.kubeconfig"
        cluster = {"server": self.url, "certificate-authority": str(self.server_ca.path)}
        content = {
            "apiVersion": "v1", "kind": "Config", "current-context": "e2e",
            "clusters": [{"name": "e2e", "cluster": cluster}],
            "users": [{"name": user, "user": {"client-certificate": public, "client-key": key}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": user}}],
        }  # fmt: skip
        path.write_text(yaml.safe_dump(content))
        return path


def _run(command: list[str], folder: Path, stdin: str | None) -> str:
    # A separate home: no cache or plugin of the developer is used.
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=360, check=False,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    if done.returncode != 0:
        raise CommandError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout
