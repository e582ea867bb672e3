"""The adapter under a real Prometheus with its rules: a pipeline and a server as processes, on every kind of input.

The pipeline reads the simulated fleet, a consumer group from the broker and from an exporter, and an HPA. The server
owns external.metrics.k8s.io, and the fleet scales by what the aggregator answers.
"""

import shutil
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from adapter.simulator import demo
from adapter.simulator.fleet import SYNC_S, SimulatedFleet
from dashboards.queries import FOLDER, RULES
from examples.demo import worker
from parts.broker import Broker
from parts.certificates import Authority
from parts.controlplane import ControlPlane
from parts.exporter import Exporter
from parts.load import Load
from parts.process import HOST, Part, Process, free_port
from parts.prometheus import Prometheus
from parts.scale_target import autoscaler, workload_resource
from parts.service import EXTERNAL, api_service_at

NAME = "clicks"  # the workload of the broker
EXPORTED = "clicks-exported"  # the same consumer group, from the exporter
UNKNOWN = "clicks-unknown"  # a consumer group that the exporter does not have
RECORDS_PER_S = 100
WRONG_ANNOTATION = {"backlog-adapter/rules.max_workers": "many"}
# Seconds where a user has minutes. tick_s is longer than a tick takes on a slow machine.
RULES_OF_WORKLOADS = {
    "rate_window_s": 20, "settle_s": 6, "stale_after_s": 12, "error_after_s": 60, "max_workers": 12,
    "time_to_reduce_backlog_s": 20, "backlog_time_target_s": 20, "rescale_pause_s": 2, "warm_up_s": 6,
    "worker_start_s": 3, "down_window_s": 20, "cooldown_down_s": 20, "latch_s": 30,
}  # fmt: skip
DEADLINE = {"deadline_s": 3}
SCRAPE_S = 5


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers that the adapter uses."""

    broker: Broker
    exporter: Exporter
    plane: ControlPlane


class Monitored(Part):
    """Ready when the server answers and Prometheus scrapes."""

    def __init__(self, folder: Path, servers: Servers) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._servers = servers
        self._ports = {name: free_port() for name in ("pipeline", "serve", "metrics")}
        self._fleet = SimulatedFleet(1, time.time)
        self._started = ExitStack()
        self._stopping = threading.Event()
        self.pipeline = self._process("pipeline")
        self.prometheus = Prometheus(folder / "prometheus", self._scraped())

    def start(self) -> None:
        """Starts the inputs first, then the adapter, then what reads it."""
        self._fleet.start()
        self._started.callback(self._fleet.stop)
        self._start_consumer()
        self._servers.plane.apply(*api_service_at(self._ports["serve"], EXTERNAL, "backlog-adapter"), *_scaled())
        self._configure()
        self._started.enter_context(self.prometheus)
        self._started.enter_context(self.pipeline)
        serve = self._process("serve")
        self._started.enter_context(serve)
        serve.ready(lambda: not self.pipeline.running() or self._required_workers("steady"), 900)
        self.pipeline.ready(lambda: self._required_workers("steady"), 900)
        scaling = threading.Thread(target=self._scale)
        scaling.start()
        self._started.callback(scaling.join)
        self._started.callback(self._stopping.set)

    def stop(self) -> None:
        """Ends everything in reverse order."""
        self._started.close()

    def _process(self, role: str) -> Process:
        command = [sys.executable, "-m", "adapter", role, "--config", str(self._folder / "config.yaml")]
        return Process(role, command, self._folder)

    def _start_consumer(self) -> None:
        broker = self._servers.broker
        broker.create_topic(NAME, 3)
        load = Load(self._folder, broker.bootstrap_servers, NAME, 3)
        self._started.enter_context(load)
        load.set_rate(RECORDS_PER_S)
        command = [sys.executable, worker.__file__, broker.bootstrap_servers, NAME, NAME, str(2 * RECORDS_PER_S)]
        self._started.enter_context(Process("consumer", command, self._folder))

    def _configure(self) -> None:
        certificate, key = Authority(self._folder, "serve-ca").issue("serve", addresses=(HOST,))
        kubeconfig = str(self._servers.plane.admin.kubeconfig)
        read = {"source": "events", "group": NAME, "topics": [NAME]}
        exported, unknown = (
            {"source": "metrics", "preset": "kafka-exporter", "match": {"consumergroup": group}}
            for group in (NAME, UNKNOWN)
        )
        demos = [{"namespace": demo.NAMESPACE, "name": name, "read": [{"source": "fleet"}]} for name in demo.NAMES]
        content = {
            "sources": {
                "fleet": {"kind": "trace", "url": self._fleet.url, **DEADLINE},
                "events": {"kind": "kafka", "bootstrap_servers": self._servers.broker.bootstrap_servers, **DEADLINE},
                "metrics": {"kind": "prometheus", "url": self.prometheus.url, **DEADLINE},
                "cluster": {"kind": "kubernetes", "kubeconfig": kubeconfig, **DEADLINE},
            },
            "workloads": [
                *demos,
                {"namespace": "default", "name": NAME, "read": [read]},
                {"namespace": "default", "name": EXPORTED, "read": [exported]},
                {"namespace": "default", "name": UNKNOWN, "read": [unknown]},
            ],
            "rules": RULES_OF_WORKLOADS,
            "timing": {"tick_s": 5, "history_s": 60},
            "pipeline": {"checkpoint": str(self._folder / "checkpoint"), "host": HOST, "port": self._ports["pipeline"]},
            "serving": {
                "host": HOST, "port": self._ports["serve"], "metrics_port": self._ports["metrics"],
                "cert_file": str(certificate), "key_file": str(key), "kubeconfig": kubeconfig,
                "snapshot_url": f"http://{HOST}:{self._ports['pipeline']}", "service": "default/backlog-adapter",
            },
        }  # fmt: skip
        (self._folder / "config.yaml").write_text(yaml.safe_dump(content))

    def _scraped(self) -> dict[str, Any]:
        certificate, key = map(str, self._servers.plane.admin.certificate)
        tls = {"insecure_skip_verify": True, "cert_file": certificate, "key_file": key}
        cluster = {
            "job_name": "apiserver", "scheme": "https", "tls_config": tls, "scrape_interval": "15s",
            "static_configs": [{"targets": [self._servers.plane.url.removeprefix("https://")]}],
        }  # fmt: skip
        return {
            "global": {"scrape_interval": f"{SCRAPE_S}s", "evaluation_interval": f"{SCRAPE_S}s"},
            "rule_files": [str(path) for path in quick_rules(self._folder / "rules")],
            "scrape_configs": [
                _job("pipeline", f"{HOST}:{self._ports['pipeline']}"),
                _job("serve", f"{HOST}:{self._ports['metrics']}"),
                _job("kafka", self._servers.exporter.address),
                cluster,
            ],
        }

    def _scale(self) -> None:
        while not self._stopping.wait(SYNC_S):
            self._fleet.sync(lambda name: None if self._stopping.is_set() else self._required_workers(name))

    def _required_workers(self, name: str) -> int | None:
        """required_workers of a demo workload, as the aggregator answers; None without a number."""
        path = f"/apis/{EXTERNAL}/namespaces/{demo.NAMESPACE}/required_workers"
        answer = self._servers.plane.api.raw(path, labelSelector=f"workload={name}")
        return int(answer.json()["items"][0]["value"]) if answer.is_success else None


def quick_rules(folder: Path) -> list[Path]:
    """Copies of the rules in which every interval is short; ranges and thresholds stay."""
    folder.mkdir()
    copies = [Path(shutil.copy(FOLDER / "rules" / f"{name}.yaml", folder)) for name in RULES]
    for copy in copies:
        content = yaml.safe_load(copy.read_text())
        for group in content["groups"]:
            group.pop("interval", None)
            for rule in group["rules"]:
                if "for" in rule:
                    rule["for"] = f"{2 * SCRAPE_S}s"
        copy.write_text(yaml.safe_dump(content))
    return copies


def _job(name: str, address: str) -> Mapping[str, Any]:
    return {"job_name": name, "honor_labels": True, "static_configs": [{"targets": [address]}]}


def _scaled() -> list[dict[str, Any]]:
    """A Deployment without pods, and its HPA, with an annotation that cannot be read."""
    manifest = autoscaler("kafka-consumer.yaml", NAME)
    manifest["metadata"]["annotations"] = WRONG_ANNOTATION
    return [workload_resource(NAME, {}, replicas=1), manifest]
