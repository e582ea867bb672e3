"""The demo of examples/demo, applied as its README says."""

import shutil
import time
from pathlib import Path
from typing import Any

import yaml

from examples.demo import worker
from parts.controlplane import ControlPlane
from parts.images import PIPELINE

FOLDER = Path(worker.__file__).parent
WORKLOAD: dict[str, Any] = yaml.safe_load((FOLDER / "values.yaml").read_text())["config"]["workloads"][0]
# The lines that the README asks to edit.
_BROKER = "kafka:9092"
_IMAGE = "newName: registry.example.com/team/backlog-adapter-pipeline, newTag: 0.1.0"


class Demo:
    """The applied manifests, and a transcript of what kubectl shows."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._plane = plane
        self._folder = folder

    def apply(self, bootstrap_servers: str) -> None:
        """Edits a copy of the folder for this broker and the image of this checkout, and applies it."""
        shutil.copytree(FOLDER, self._folder, ignore=shutil.ignore_patterns("__pycache__"))
        file = self._folder / "kustomization.yaml"
        name, _, tag = PIPELINE.rpartition(":")
        text = file.read_text()
        for old, new in ((_BROKER, bootstrap_servers), (_IMAGE, f"newName: {name}, newTag: {tag}")):
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        file.write_text(text)
        self._plane.kubectl("apply", "--kustomize", str(self._folder))

    def show(self) -> int:
        """Appends what a user sees to the transcript; returns the replicas that the HPA wants."""
        shown = self._plane.kubectl("get", "hpa", "demo")
        load = self._plane.kubectl("logs", "deployment/demo-load", "--tail=1")
        with (self._folder / "transcript.txt").open("a") as file:
            file.write(f"{time.ctime()}\n{load}{shown}")
        return int(shown.splitlines()[1].split()[-2])

    def delete(self) -> None:
        """Deletes the objects of the demo."""
        self._plane.kubectl("delete", "--kustomize", str(self._folder), "--wait=false")
