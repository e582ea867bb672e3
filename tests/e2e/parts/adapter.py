"""The adapter as a user installs it with helm, and its answers through the cluster."""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import httpx
import yaml

from adapter.core.decisions import Decision
from adapter.serving.snapshots.snapshot import decode
from parts.broker import Broker
from parts.controlplane import ControlPlane
from parts.direct import DirectClient
from parts.pravega import Pravega
from parts.process import UNVERIFIED_TLS, until
from parts.prometheus import Prometheus
from parts.service import EXTERNAL, VERSIONS, api_service

CHART = Path(__file__).parents[3] / "charts" / "backlog-adapter"
NAME = NAMESPACE = "backlog-adapter"
IMAGES = {"backlog-adapter-pipeline": ["backlog-adapter"], "backlog-adapter-serve": ["backlog-adapter"]}
TICK_S = 5
ERROR_AFTER_S = 60  # on a busy machine a tick of 5 s may take half a minute
WORKER_RECORDS_PER_S = 200
RULES = {
    "rate_window_s": 20,
    "stale_after_s": 15,
    "error_after_s": ERROR_AFTER_S,
    "settle_s": 10,
    "backlog_time_target_s": 30,
    "target_utilization_ratio": 0.8,
    "rescale_pause_s": 5,
    "warm_up_s": 20,
    "worker_start_s": 5,
    "down_window_s": 45,
    "cooldown_down_s": 45,
}
NO_SCALE_DOWN = {"down_window_s": 86_400}  # only a fault could change the size of a steady job
# A metric that always has a number, see the fixture clicks.
SEGMENTS = f"/apis/{EXTERNAL}/namespaces/default/segments?labelSelector=workload%3Dclicks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Systems:
    """The systems that an adapter reads besides the cluster."""

    broker: Broker | None = None
    prometheus: Prometheus | None = None
    pravega: Pravega | None = None


def values(systems: Systems) -> dict[str, Any]:
    """The chart's values for these systems, with seconds where a user has minutes."""
    sources: dict[str, Any] = {"cluster": {"kind": "kubernetes", "deadline_s": 2.0}}
    workloads: list[dict[str, Any]] = []
    if systems.broker is not None:
        address = systems.broker.bootstrap_servers
        sources["events"] = {"kind": "kafka", "bootstrap_servers": address, "deadline_s": 2.0}
        workloads += ({"name": name, "read": [_offsets(name)]} for name in ("orders", "invoices", "parcels"))
        workloads.append({"name": "returns", "read": [_offsets("returns")], "rules": NO_SCALE_DOWN})
    if systems.prometheus is not None:
        sources["metrics"] = {"kind": "prometheus", "url": systems.prometheus.url, "deadline_s": 2.0}
        workloads.append({"name": "payments", "read": [_series("payments")]})
        workloads.append({"name": "refunds", "read": [_series("refunds")], "rules": NO_SCALE_DOWN})
    if systems.pravega is not None:
        sources["streams"] = {"kind": "pravega", "url": systems.pravega.url, "deadline_s": 2.0}
        read = [{"source": "streams", "scope": "shop", "stream": "clicks"}]
        workloads.append({"name": "clicks", "read": read, "rules": {"policy": "segments", "down_window_s": 60}})
    config = {
        "sources": sources,
        "workloads": workloads,
        "rules": RULES,
        "timing": {"tick_s": TICK_S, "history_s": 60},
    }
    return {"config": config, "apiService": {"custom": {"create": True}}}


def _offsets(name: str) -> dict[str, Any]:
    return {"source": "events", "group": name, "topics": [name]}


def _series(name: str) -> dict[str, Any]:
    return {"source": "metrics", "preset": "kafka-exporter", "match": {"consumergroup": name}}


class RunningPod(Protocol):
    """A pod, on a node or in its stand-in."""

    @property
    def name(self) -> str: ...
    @property
    def ip(self) -> str: ...
    @property
    def restarts(self) -> int: ...


class Runtime(Protocol):
    """What runs the pods: parts.node.Node, or its stand-in parts.kubelet.Kubelet."""

    def pods(self, namespace: str, prefix: str) -> Sequence[Any]:
        """The current pods whose names begin with the prefix."""


class Adapter:
    """An installed release."""

    def __init__(self, plane: ControlPlane, kubelet: Runtime, folder: Path) -> None:
        self._plane = plane
        self._kubelet = kubelet
        self._folder = folder
        self._certificate = f"{NAME}-tls"  # the Secret of serve

    def install(self, settings: dict[str, Any], versions: Iterable[str] = VERSIONS) -> None:
        """Runs helm install; returns when these versions are available and the first decisions are published."""
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / "values.yaml"
        file.write_text(yaml.safe_dump(settings))
        self._certificate = settings.get("tls", {}).get("serve", {}).get("existingSecret", self._certificate)
        options = ["--namespace", NAMESPACE, "--create-namespace", "--values", str(file)]
        self._plane.helm("install", NAME, str(CHART), *options)
        for version in versions:
            until(lambda version=version: self.is_available(version), 360, f"{version} is available")
        until(self.snapshot, 360, "the first decisions are published")

    def uninstall(self) -> None:
        """Runs helm uninstall; returns when its objects are gone."""
        self._plane.helm("uninstall", NAME, "--namespace", NAMESPACE, "--wait", "--timeout=300s")

    def upgrade(self, *options: str) -> None:
        """Runs helm upgrade with the same values and these options."""
        self._plane.helm("upgrade", NAME, str(CHART), "--namespace", NAMESPACE, "--reuse-values", *options)

    def is_available(self, version: str) -> bool:
        """Whether the APIService of a group and version is available."""
        return self.availability(version).get("status") == "True"

    def availability(self, version: str) -> dict[str, str]:
        """The condition Available of the APIService; empty while there is none."""
        conditions = self._plane.api.get(api_service(version)).get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == "Available"), {})

    def pipeline(self) -> RunningPod:
        """The pod of the pipeline. LookupError while there is none."""
        return self._kubelet.pods(NAMESPACE, "backlog-adapter-pipeline-")[0]

    def servers(self) -> list[RunningPod]:
        """The pods of serve."""
        pods = self._kubelet.pods(NAMESPACE, "backlog-adapter-")
        return [pod for pod in pods if not pod.name.startswith("backlog-adapter-pipeline-")]

    def secret(self, name: str) -> dict[str, bytes]:
        """The data of a Secret of the adapter's namespace."""
        found = self._plane.api.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/{name}")
        return {key: base64.b64decode(text) for key, text in found["data"].items()}

    def direct(self, server: RunningPod) -> DirectClient:
        """A client of one server, without the aggregator."""
        return DirectClient(server.ip, f"{NAME}.{NAMESPACE}.svc", self.secret(self._certificate)["ca.crt"].decode())

    def read(self, metric: str, workload: str) -> httpx.Response:
        """The cluster's answer to kubectl and the HPA controller."""
        path = f"/apis/{EXTERNAL}/namespaces/default/{metric}"
        return self._plane.api.raw(path, labelSelector=f"workload={workload}")

    def read_every_server(self, path: str) -> list[httpx.Response]:
        """The answer of each server; the aggregator would choose one of them."""
        return [self.direct(server).get(path, self._plane.admin.certificate) for server in self.servers()]

    def number(self, metric: str, workload: str) -> float:
        """The served number. ValueError with the message if there is none."""
        answer = self.read(metric, workload)
        if not answer.is_success:
            raise ValueError(answer.text)
        (item,) = answer.json()["items"]
        text: str = item["value"]
        return float(text[:-1]) / 1000 if text.endswith("m") else float(text.replace("k", "e3").replace("M", "e6"))

    def message(self, metric: str, workload: str) -> str:
        """The message of the Status; empty if a number is served."""
        answer = self.read(metric, workload)
        return "" if answer.is_success else str(answer.json()["message"])

    def snapshot(self) -> dict[str, Decision]:
        """The newest decisions of the pipeline, by workload."""
        token = self.secret(f"{NAME}-token")["token"].decode()
        url = f"https://{self.pipeline().ip}:8443/v1/snapshot"  # the address is not in the certificate
        answer = httpx.get(url, headers={"Authorization": f"Bearer {token}"}, verify=UNVERIFIED_TLS, timeout=10)
        answer.raise_for_status()
        return {entry.decision.workload: entry.decision for entry in decode(answer.content).entries}
