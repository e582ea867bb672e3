"""A streaming job whose workers are real containers."""

from pathlib import Path
from typing import Any

from examples.demo import worker
from parts.images import PIPELINE
from parts.workload import Workload

STEADY_RECORDS_PER_S = 300


class ContainerWorkload(Workload):
    """The workers run in the pipeline's image, because it has a Kafka client; their program comes from a ConfigMap."""

    def ready_workers(self) -> int:
        """The consumers that run now."""
        ready: int = self.plane.api.get(self.path)["status"].get("readyReplicas", 0)
        return ready

    def manifests(self) -> list[dict[str, Any]]:
        name = f"{self.name}-program"
        program = {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"worker.py": Path(worker.__file__).read_text()},
        }  # fmt: skip
        container = {
            "image": PIPELINE, "imagePullPolicy": "Never",
            "command": ["/opt/backlog-adapter/bin/python", "/program/worker.py", *self._arguments()],
            "volumeMounts": [{"name": "program", "mountPath": "/program"}],
        }  # fmt: skip
        volumes = [{"name": "program", "configMap": {"name": name}}]
        return [program, self.target_with(container, volumes=volumes)]
