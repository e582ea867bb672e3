"""A Flink job in reactive mode whose TaskManagers are the pods of a Deployment."""

import shlex
from dataclasses import dataclass, field
from typing import Any

from parts.discovery import Discovery
from parts.flink import METRICS_PORT, MICROSECONDS_A_RECORD, PLUGINS, TASK_MANAGER, JobManager, Program, RunningTimes
from parts.kubelet import Kubelet
from parts.workload import Observation, Workload

MAX_WORKERS = 5  # half a gigabyte each


@dataclass
class FlinkWorkload(Workload):
    """A job in reactive mode; the replicas of the Deployment are its parallelism."""

    discovery: Discovery = field(kw_only=True)
    kubelet: Kubelet = field(kw_only=True)
    hpa: str = "flink-reactive.yaml"
    max_replicas: int | None = MAX_WORKERS

    def start(self) -> None:
        """Starts the JobManager, then what every workload has."""
        self._program = Program(self.folder / "flink")
        job = (self.broker.bootstrap_servers, self.name, str(MICROSECONDS_A_RECORD))
        self.manager = JobManager(self._program, *job)
        self.running_times = RunningTimes(self.manager)
        self.started.enter_context(self.manager)
        self.started.enter_context(self.running_times)
        super().start()

    def stop(self) -> None:
        """Also writes the pauses of the job."""
        lines = [f"{before} -> {after}: {pause_s:.1f} s" for before, after, pause_s in self.running_times.pauses()]
        (self.folder / "pauses.log").write_text("\n".join([*lines, ""]))
        super().stop()

    def read_state(self) -> Observation:
        """Also tells Prometheus the current pods."""
        pods = [f"{pod.ip}:{METRICS_PORT}" for pod in self.kubelet.pods("default", f"{self.name}-")]
        self.discovery.write(self.name, [self.manager.metrics_address, *pods])
        return super().read_state()

    def manifests(self) -> list[dict[str, Any]]:
        command = self._program.command(TASK_MANAGER, "224m")
        # The pod's address, which the JobManager connects to.
        script = f"exec {shlex.join(command)} -D taskmanager.host=$POD_IP"
        env = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
        env += [{"name": key, "value": value} for key, value in PLUGINS.items()]
        return [self.target_with({"image": "flink:1", "command": ["sh", "-c", script], "env": env})]
