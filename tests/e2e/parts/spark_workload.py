"""A Spark Structured Streaming query whose standalone workers are the pods of a StatefulSet."""

import shlex
import sys
from dataclasses import dataclass, field
from typing import Any

import httpx

from bench.tool_folder import tools
from parts import paced_query, spark
from parts.discovery import Discovery
from parts.process import HOST, Process, free_port
from parts.workload import Workload

KAFKA_SOURCE = "spark-kafka-4.2.0"
MAX_WORKERS = 5
MILLISECONDS_A_RECORD = 4  # a worker of one core processes about 200 records/s, with what Spark itself takes
_METRICS = "/metrics/prometheus"
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # a quick start counts here, not the speed


@dataclass
class SparkWorkload(Workload):
    """The query runs on all cores of the workers that are there."""

    discovery: Discovery = field(kw_only=True)
    hpa: str = "spark-workers.yaml"
    kind: str = "StatefulSet"
    max_replicas: int | None = MAX_WORKERS

    def start(self) -> None:
        """Starts the master, what every workload has, and the driver; returns when the query runs."""
        self.master = self.started.enter_context(spark.Master(self.folder, HOST))
        super().start()
        ui = free_port()
        self.driver = self.started.enter_context(self._driver(ui))
        metrics = f"http://{HOST}:{ui}{_METRICS}/"
        self.driver.ready(lambda: "_paced_inputRate" in httpx.get(metrics, timeout=5).text)
        self.discovery.write(self.name, [f"{HOST}:{ui}"], {"app": self.name, "__metrics_path__": f"{_METRICS}/"})
        self.started.callback(self.discovery.write, self.name, [])

    def _driver(self, ui: int) -> Process:
        libraries = f"{tools() / KAFKA_SOURCE}/libs/*"
        settings = {
            "spark.master": self.master.url, "spark.driver.host": HOST, "spark.driver.memory": "512m",
            "spark.executor.cores": 1, "spark.executor.memory": "512m", "spark.ui.port": ui,
            "spark.driver.extraClassPath": libraries, "spark.executor.extraClassPath": libraries,
            "spark.executor.extraJavaOptions": _QUICK, "spark.ui.showConsoleProgress": "false",
            "spark.locality.wait": 0,  # otherwise a new worker gets few tasks: each partition prefers one executor
            "spark.sql.streaming.metricsEnabled": "true", "spark.metrics.namespace": self.name.replace("-", "_"),
            "spark.metrics.conf.driver.sink.prometheusServlet.class": "org.apache.spark.metrics.sink.PrometheusServlet",
            "spark.metrics.conf.driver.sink.prometheusServlet.path": _METRICS,
        }  # fmt: skip
        program = (self.broker.bootstrap_servers, self.name, MILLISECONDS_A_RECORD, self.folder / "checkpoint")
        arguments = [*program, *(f"{key}={value}" for key, value in settings.items())]
        command = [sys.executable, paced_query.__file__, *map(str, arguments)]
        return Process("driver", command, self.folder, spark.environment(HOST))

    def manifests(self) -> list[dict[str, Any]]:
        command = shlex.join(spark.worker_command("POD_IP", "/run/work", self.master.url)).replace("POD_IP", "$POD_IP")
        # The pod's address, which the driver and the executors connect to.
        script = f"SPARK_LOCAL_IP=$POD_IP exec {command}"
        env = [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
        env += [{"name": "SPARK_DAEMON_MEMORY", "value": "128m"}, {"name": "SPARK_DAEMON_JAVA_OPTS", "value": _QUICK}]
        return [self.target_with({"image": "spark:1", "command": ["sh", "-c", script], "env": env})]
