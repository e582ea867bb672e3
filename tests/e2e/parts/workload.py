"""A streaming job in the cluster: a topic, its load, its workers, and the HPA that scales them."""

import math
import sys
import time
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from examples.demo import worker
from parts.adapter import WORKER_RECORDS_PER_S
from parts.broker import Broker
from parts.controlplane import ControlPlane
from parts.load import Load
from parts.scale_target import ScaleTarget

PARTITIONS = 12
# Replicas for 300 records/s: two at 200 records/s a worker. The adapter rightly asks for up to four if it measured the
# first worker while that worker joined its consumer group.
REPLICAS_FOR_300 = range(2, 5)
_RATE_OVER_S = 10.0


@dataclass(frozen=True, slots=True)
class Observation:
    """The state of a workload, read without the adapter."""

    at_s: float
    replicas: int  # spec.replicas of the scale target
    backlog_records: int
    throughput_records_per_s: float | None

    def __str__(self) -> str:
        return (
            f"{time.ctime(self.at_s)} {self.replicas} replicas, {self.backlog_records} records, {self.backlog_time_s} s"
        )

    @property
    def backlog_time_s(self) -> float | None:
        """Backlog over throughput, None while the throughput is zero or unknown."""
        return self.backlog_records / self.throughput_records_per_s if self.throughput_records_per_s else None


@dataclass
class Workload(ScaleTarget):
    """A topic, its load, its workers, and the HPA that scales them."""

    name: str  # of the topic, the consumer group, the scale target and the HPA
    broker: Broker
    plane: ControlPlane
    folder: Path
    hpa: str = "kafka-consumer.yaml"  # a manifest of hpa/
    kind: str = "Deployment"  # or StatefulSet
    max_replicas: int | None = None  # in place of that of the manifest
    observations: list[Observation] = field(default_factory=list)
    _committed: deque[tuple[float, int]] = field(default_factory=deque)  # time, sum of the committed offsets
    started: ExitStack = field(default_factory=ExitStack)

    def start(self) -> None:
        """Creates the topic, the scale target and the HPA, without load."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.broker.create_topic(self.name, PARTITIONS)
        self.load = self.started.enter_context(Load(self.folder, self.broker.bootstrap_servers, self.name, PARTITIONS))
        self.apply()

    def read_state(self) -> Observation:
        """Reads the state without the adapter."""
        at_s = time.time()
        self._committed.append((at_s, sum(self.broker.committed_offsets(self.name, self.name).values())))
        while self._committed[-1][0] - self._committed[0][0] > _RATE_OVER_S:
            self._committed.popleft()
        (first_s, first), (last_s, last) = self._committed[0], self._committed[-1]
        rate = (last - first) / (last_s - first_s) if last_s - first_s > _RATE_OVER_S / 2 else None
        return Observation(at_s, self.replicas(), self.broker.backlog_records(self.name, self.name), rate)

    def longest_backlog_time_s(self, since_s: float, over_s: float) -> float:
        """The longest backlog time of the last over_s; infinite if one is unknown or since_s is more recent."""
        now_s = self.observations[-1].at_s
        seen = [each for each in self.observations if each.at_s >= since_s]
        if now_s - seen[0].at_s < over_s:
            return math.inf
        times = [each.backlog_time_s for each in seen if each.at_s >= now_s - over_s]
        return max(math.inf if each is None else each for each in times)

    def manifests(self) -> list[dict[str, Any]]:
        container = {"image": "worker:1", "command": [sys.executable, worker.__file__, *self._arguments()]}
        return [self.target_with(container)]

    def _arguments(self) -> list[str]:
        """The arguments of examples/demo/worker.py."""
        return [self.broker.bootstrap_servers, self.name, self.name, str(WORKER_RECORDS_PER_S)]
