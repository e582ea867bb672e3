"""A streaming job in the cluster: a topic, its load, a Deployment of workers, and the HPA that scales it."""

import math
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from parts import worker
from parts.adapter import WORKER_RECORDS_PER_S
from parts.broker import Broker
from parts.controlplane import ControlPlane
from parts.load import Load
from parts.process import until

PARTITIONS = 12
# Replicas for 300 records/s: two at 200 records/s a worker. The adapter rightly asks for up to four if it measured the
# first worker while that worker joined its consumer group.
REPLICAS_FOR_300 = range(2, 5)
MANIFESTS = Path(__file__).parents[3] / "hpa"
_RATE_OVER_S = 10.0


def autoscaler(hpa: str, name: str) -> dict[str, Any]:
    """A manifest of ours as a user takes it: with his name in the place of those in it."""
    text = (MANIFESTS / hpa).read_text()
    for example in ("orders", "flink-taskmanager"):
        text = text.replace(example, name)
    manifest: dict[str, Any] = yaml.safe_load(text)
    return manifest


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a workload from outside the adapter. replicas: the Deployment's spec."""

    at_s: float
    replicas: int
    backlog_records: int
    throughput_records_per_s: float | None

    @property
    def backlog_time_s(self) -> float | None:
        """Backlog over throughput, None while nothing is known to be processed."""
        return self.backlog_records / self.throughput_records_per_s if self.throughput_records_per_s else None


@dataclass
class Workload:
    """Named as its topic, consumer group, Deployment and HPA.

    hpa: the manifest of ours that scales it. looks: what was seen, once a second while watched.
    """

    name: str
    broker: Broker
    plane: ControlPlane
    folder: Path
    hpa: str = "kafka-consumer.yaml"
    looks: list[Look] = field(default_factory=list)
    _done: deque[tuple[float, int]] = field(default_factory=deque)
    _started: ExitStack = field(default_factory=ExitStack)

    @property
    def path(self) -> str:
        """Its Deployment."""
        return f"/apis/apps/v1/namespaces/default/deployments/{self.name}"

    def __enter__(self) -> Self:
        self.broker.create_topic(self.name, PARTITIONS)
        self.load = self._started.enter_context(Load(self.folder, self.broker.bootstrap_servers, self.name, PARTITIONS))
        self.plane.apply(self._deployment())
        self.scale_with(self.hpa)
        self._started.callback(self.plane.kubectl, "delete", "deployment,hpa", self.name, "--wait=false")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lines = [
            f"{time.ctime(look.at_s)} {look.replicas:3} {look.backlog_records:7} {look.backlog_time_s}"
            for look in self.looks
        ]
        (self.folder / "looks.log").write_text("\n".join(["time, replicas, backlog, backlog time", *lines, ""]))
        self._started.close()

    def scale_with(self, hpa: str) -> None:
        """Gives it another manifest of ours."""
        self.plane.apply(autoscaler(hpa, self.name))

    def look(self) -> Look:
        """Looks once and remembers it."""
        at_s = time.time()
        self._done.append((at_s, sum(self.broker.committed_offsets(self.name, self.name).values())))
        while self._done[-1][0] - self._done[0][0] > _RATE_OVER_S:
            self._done.popleft()
        (first_s, first), (last_s, last) = self._done[0], self._done[-1]
        rate = (last - first) / (last_s - first_s) if last_s - first_s > _RATE_OVER_S / 2 else None
        spec = self.plane.api.get(self.path)["spec"]["replicas"]
        self.looks.append(Look(at_s, spec, self.broker.backlog_records(self.name, self.name), rate))
        return self.looks[-1]

    def watch(self, question: Callable[[Look], object], within_s: float, what: str) -> Look:
        """Looks every second until the question about the look is answered true."""

        def answered() -> Look | None:
            look = self.look()
            return look if question(look) else None

        found = until(answered, within_s, f"{self.name}: {what}", every_s=1.0)
        assert found is not None
        return found

    def longest_backlog_time_s(self, since_s: float, over_s: float) -> float:
        """The longest backlog time of the last over_s; infinite while unknown, or with less seen since then."""
        now_s = self.looks[-1].at_s
        seen = [look for look in self.looks if look.at_s >= since_s]
        if now_s - seen[0].at_s < over_s:
            return math.inf
        times = [look.backlog_time_s for look in seen if look.at_s >= now_s - over_s]
        return max(math.inf if each is None else each for each in times)

    def ready_replicas(self) -> int:
        """Workers that are ready."""
        ready: int = self.plane.api.get(self.path)["status"].get("readyReplicas", 0)
        return ready

    def condition(self, kind: str) -> dict[str, str]:
        """A condition of its HPA; empty while the HPA has none."""
        hpa = self.plane.api.get(f"/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/{self.name}")
        found = [item for item in hpa["status"].get("conditions", []) if item["type"] == kind]
        return found[0] if found else {}

    def current_metrics(self) -> list[dict[str, Any]]:
        """What its HPA says it was told at last."""
        hpa = self.plane.api.get(f"/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/{self.name}")
        found: list[dict[str, Any]] = hpa["status"].get("currentMetrics", [])
        return found

    def rescales(self) -> list[int]:
        """The sizes the HPA says it has set, by its events."""
        return [int(told.split(";")[0].removeprefix("New size: ")) for told in self.rescale_events()]

    def rescale_events(self) -> list[str]:
        """What the HPA says of them: the size, and which metric asked for it."""
        events = self.plane.api.get("/api/v1/namespaces/default/events")["items"]
        return [
            e["message"]
            for e in events
            if e["involvedObject"]["name"] == self.name and e["reason"] == "SuccessfulRescale"
        ]

    def replica_owners(self) -> set[tuple[str, str]]:
        """(who, through which subresource) has set spec.replicas of the Deployment."""
        fields = self.plane.api.get(self.path)["metadata"]["managedFields"]
        owned = [item for item in fields if "f:replicas" in item["fieldsV1"].get("f:spec", {})]
        return {(item["manager"], item.get("subresource", "")) for item in owned}

    def _deployment(self) -> dict[str, Any]:
        arguments = [self.broker.bootstrap_servers, self.name, self.name, str(WORKER_RECORDS_PER_S)]
        container = {"name": "worker", "image": "worker:1", "command": [sys.executable, worker.__file__, *arguments]}
        labels = {"app": self.name}
        pod = {"containers": [container], "terminationGracePeriodSeconds": 10}
        template = {"metadata": {"labels": labels}, "spec": pod}
        # No replicas: the HPA alone says how many.
        spec = {"selector": {"matchLabels": labels}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": self.name}, "spec": spec}
