"""Flink in reactive mode: a JobManager that runs one job, and TaskManagers."""

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from bench.tool_folder import tools
from parts.process import HOST, LOG4J, Loop, Process, free_port

TOOL = "flink-2.3.0"
MICROSECONDS_A_RECORD = 5000  # a TaskManager processes a little less than 200 records/s
METRICS_PORT = 9249  # of each TaskManager, in its own network
_OPENED = ("java.lang", "java.util", "java.nio", "java.net", "java.io", "java.time", "sun.nio.ch")


@dataclass(frozen=True, slots=True)
class Program:
    """How the programs of one Flink cluster start. Its folder has the configuration."""

    folder: Path

    def command(self, main: str, heap: str, *arguments: str) -> list[str]:
        """A Java command without Flink's scripts, which are not in the package."""
        program = tools() / TOOL
        opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
        return [
            "java", f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *opens,
            f"-Dlog4j.configurationFile=file:{self.folder}/log4j2.properties",
            "-cp", f"{program}/libs/*:{program}/classes",
            f"org.apache.flink.{main}", "--configDir", str(self.folder), *arguments,
        ]  # fmt: skip

    def write(self, settings: dict[str, Any]) -> None:
        """Writes Flink's configuration."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "log4j2.properties").write_text(LOG4J.format(level="INFO"))
        (self.folder / "config.yaml").write_text(yaml.safe_dump(settings))


TASK_MANAGER = "runtime.taskexecutor.TaskManagerRunner"
PLUGINS = {"FLINK_PLUGINS_DIR": f"{tools() / TOOL}/plugins"}


class JobManager(Process):
    """Runs the one job of a cluster with all slots that it finds. Its REST API is at `url`."""

    def __init__(self, program: Program, *job: str) -> None:
        rest, metrics = free_port(), free_port()
        self.url = f"http://{HOST}:{rest}"
        self.metrics_address = f"{HOST}:{metrics}"
        program.write(_settings(rest))
        main = "container.entrypoint.StandaloneApplicationClusterEntryPoint"
        own = ("-D", f"metrics.reporter.prom.port={metrics}", "--job-classname", "PacedJob")
        super().__init__("jobmanager", program.command(main, "320m", *own, *job), program.folder, PLUGINS)

    def start(self) -> None:
        """Returns when the job waits for TaskManagers."""
        super().start()
        self.ready(lambda: self.jobs())

    def jobs(self) -> list[dict[str, Any]]:
        """The overview of the jobs."""
        found: list[dict[str, Any]] = httpx.get(f"{self.url}/jobs/overview", timeout=5).json()["jobs"]
        return found

    def parallelism(self) -> int | None:
        """The running subtasks of the slowest vertex; None while the job does not run."""
        job = self.jobs()[0]
        if job["state"] != "RUNNING" or job["tasks"]["running"] != job["tasks"]["total"]:
            return None
        vertices = httpx.get(f"{self.url}/jobs/{job['jid']}", timeout=5).json()["vertices"]
        return min(vertex["parallelism"] for vertex in vertices)


def _settings(rest_port: int) -> dict[str, Any]:
    heap = {"task": {"heap": {"size": "128m"}, "off-heap": {"size": "0m"}}, "managed": {"size": "0m"}}
    framework = {"heap": {"size": "64m"}, "off-heap": {"size": "64m"}}
    rest = {"address": HOST, "bind-address": HOST, "port": rest_port}
    quick = {"resource-stabilization-timeout": "2s"}
    return {
        "jobmanager": {
            "rpc": {"address": HOST, "port": free_port()}, "bind-host": HOST,
            "adaptive-scheduler": {
                "submission": quick, "executing": {**quick, "cooldown-after-rescaling": "2s"},
                "rescale-trigger": {"max-delay": "3s"},
            },
        },
        "scheduler-mode": "reactive",
        "rest": rest,
        "taskmanager": {
            "bind-host": "0.0.0.0", "numberOfTaskSlots": 1, "cpu": {"cores": 1.0},  # noqa: S104  # of the pod
            "memory": {
                **heap, "framework": framework, "network": {"min": "32m", "max": "32m"},
                "jvm-metaspace": {"size": "128m"}, "jvm-overhead": {"min": "64m", "max": "64m"},
            },
        },
        "metrics": {
            "reporters": "prom",
            "reporter": {"prom": {
                "factory": {"class": "org.apache.flink.metrics.prometheus.PrometheusReporterFactory"},
                "port": METRICS_PORT,
                "filterLabelValueCharacters": "false",  # otherwise the job clicks-drain is clicks_drain there
            }},
        },
        "execution": {"checkpointing": {"interval": "2s", "storage": "jobmanager"}},
    }  # fmt: skip


class RunningTimes(Loop):
    """Samples the parallelism of the job. changes: time and parallelism, None while the job does not run."""

    def __init__(self, manager: JobManager) -> None:
        super().__init__(pause_s=0.2)
        self._manager = manager
        self.changes: list[tuple[float, int | None]] = []

    def step(self) -> None:
        with contextlib.suppress(httpx.HTTPError, LookupError):  # the job starts or restarts
            now = self._manager.parallelism()
            if not self.changes or self.changes[-1][1] != now:
                self.changes.append((time.time(), now))

    def pauses(self) -> list[tuple[int, int, float]]:
        """The parallelism before and after each restart, and how long the job did not run, in seconds."""
        found = []
        for (_, before), (begin_s, now), (end_s, after) in zip(
            self.changes, self.changes[1:], self.changes[2:], strict=False
        ):
            if now is None and before is not None and after is not None:
                found.append((before, after, end_s - begin_s))
        return found
