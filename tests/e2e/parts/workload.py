"""A streaming job in the cluster: a topic, its load, a Deployment of workers, and the HPA that scales it."""

import math
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from examples.demo import worker
from parts.adapter import WORKER_RECORDS_PER_S
from parts.broker import Broker
from parts.controlplane import ControlPlane
from parts.load import Load
from parts.process import Part, until

PARTITIONS = 12
# Replicas for 300 records/s: two at 200 records/s a worker. The adapter rightly asks for up to four if it measured the
# first worker while that worker joined its consumer group.
REPLICAS_FOR_300 = range(2, 5)
MANIFESTS = Path(__file__).parents[3] / "hpa"
_RATE_OVER_S = 10.0


def autoscaler(hpa: str, name: str) -> dict[str, Any]:
    """A manifest of hpa/ with the name of this workload."""
    text = (MANIFESTS / hpa).read_text()
    for example in ("orders", "clicks", "flink-taskmanager"):
        text = text.replace(example, name)
    manifest: dict[str, Any] = yaml.safe_load(text)
    return manifest


@dataclass(frozen=True, slots=True)
class Observation:
    """The state of a workload, read without the adapter."""

    at_s: float
    replicas: int  # spec.replicas of the Deployment
    backlog_records: int
    throughput_records_per_s: float | None

    @property
    def backlog_time_s(self) -> float | None:
        """Backlog over throughput, None while the throughput is zero or unknown."""
        return self.backlog_records / self.throughput_records_per_s if self.throughput_records_per_s else None


@dataclass
class Workload(Part):
    """A topic, its load, its workers, and the HPA that scales them."""

    name: str  # of the topic, the consumer group, the Deployment and the HPA
    broker: Broker
    plane: ControlPlane
    folder: Path
    hpa: str = "kafka-consumer.yaml"  # a manifest of hpa/
    observations: list[Observation] = field(default_factory=list)
    _committed: deque[tuple[float, int]] = field(default_factory=deque)  # time, sum of the committed offsets
    _started: ExitStack = field(default_factory=ExitStack)

    @property
    def path(self) -> str:
        """The API path of the Deployment."""
        return f"/apis/apps/v1/namespaces/default/deployments/{self.name}"

    def start(self) -> None:
        """Creates the topic, the Deployment and the HPA, without load."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.broker.create_topic(self.name, PARTITIONS)
        self.load = self._started.enter_context(Load(self.folder, self.broker.bootstrap_servers, self.name, PARTITIONS))
        self.plane.apply(*self._manifests())
        self.scale_with(self.hpa)
        self._started.callback(self.plane.kubectl, "delete", "deployment,hpa", self.name, "--wait=false")

    def stop(self) -> None:
        """Deletes the Deployment and the HPA, and writes a log of the observations."""
        lines = [
            f"{time.ctime(each.at_s)} {each.replicas:3} {each.backlog_records:7} {each.backlog_time_s}"
            for each in self.observations
        ]
        (self.folder / "observed.log").write_text("\n".join(["time, replicas, backlog, backlog time", *lines, ""]))
        self._started.close()

    def scale_with(self, hpa: str) -> None:
        """Replaces the HPA by this manifest of hpa/."""
        self.plane.apply(autoscaler(hpa, self.name))

    def observe(self) -> Observation:
        """Reads the state and appends it to the observations."""
        at_s = time.time()
        self._committed.append((at_s, sum(self.broker.committed_offsets(self.name, self.name).values())))
        while self._committed[-1][0] - self._committed[0][0] > _RATE_OVER_S:
            self._committed.popleft()
        (first_s, first), (last_s, last) = self._committed[0], self._committed[-1]
        rate = (last - first) / (last_s - first_s) if last_s - first_s > _RATE_OVER_S / 2 else None
        spec = self.plane.api.get(self.path)["spec"]["replicas"]
        self.observations.append(Observation(at_s, spec, self.broker.backlog_records(self.name, self.name), rate))
        return self.observations[-1]

    def watch(self, condition: Callable[[Observation], object], within_s: float, what: str) -> Observation:
        """Observes every second until the condition is true, and returns that observation."""

        def fulfilled() -> Observation | None:
            now = self.observe()
            return now if condition(now) else None

        found = until(fulfilled, within_s, f"{self.name}: {what}", every_s=1.0)
        assert found is not None
        return found

    def longest_backlog_time_s(self, since_s: float, over_s: float) -> float:
        """The longest backlog time of the last over_s; infinite if one is unknown or since_s is more recent."""
        now_s = self.observations[-1].at_s
        seen = [each for each in self.observations if each.at_s >= since_s]
        if now_s - seen[0].at_s < over_s:
            return math.inf
        times = [each.backlog_time_s for each in seen if each.at_s >= now_s - over_s]
        return max(math.inf if each is None else each for each in times)

    def condition(self, kind: str) -> dict[str, str]:
        """A condition of the HPA; empty while the HPA has none."""
        return next((item for item in self._hpa_status().get("conditions", []) if item["type"] == kind), {})

    def current_metrics(self) -> list[dict[str, Any]]:
        """status.currentMetrics of the HPA."""
        found: list[dict[str, Any]] = self._hpa_status().get("currentMetrics", [])
        return found

    def _hpa_status(self) -> dict[str, Any]:
        path = f"/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/{self.name}"
        status: dict[str, Any] = self.plane.api.get(path)["status"]
        return status

    def rescales(self) -> list[int]:
        """The sizes in the events of the HPA."""
        return [int(message.split(";")[0].removeprefix("New size: ")) for message in self.rescale_events()]

    def rescale_events(self) -> list[str]:
        """The messages of the HPA's rescale events: the size, and the metric that caused it."""
        events = self.plane.api.get("/api/v1/namespaces/default/events")["items"]
        return [
            e["message"]
            for e in events
            if e["involvedObject"]["name"] == self.name and e["reason"] == "SuccessfulRescale"
        ]

    def replica_owners(self) -> set[tuple[str, str]]:
        """(manager, subresource) of each field owner of spec.replicas of the Deployment."""
        fields = self.plane.api.get(self.path)["metadata"]["managedFields"]
        owned = [item for item in fields if "f:replicas" in item["fieldsV1"].get("f:spec", {})]
        return {(item["manager"], item.get("subresource", "")) for item in owned}

    def _manifests(self) -> list[dict[str, Any]]:
        container = {"image": "worker:1", "command": [sys.executable, worker.__file__, *self._arguments()]}
        return [self._deployment(container)]

    def _arguments(self) -> list[str]:
        """The arguments of examples/demo/worker.py."""
        return [self.broker.bootstrap_servers, self.name, self.name, str(WORKER_RECORDS_PER_S)]

    def _deployment(self, container: dict[str, Any], **pod: Any) -> dict[str, Any]:
        labels = {"app": self.name}
        pod |= {"containers": [{"name": "worker", **container}], "terminationGracePeriodSeconds": 10}
        template = {"metadata": {"labels": labels}, "spec": pod}
        # No replicas: only the HPA sets them.
        spec = {"selector": {"matchLabels": labels}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": self.name}, "spec": spec}
