"""Tells Prometheus what to scrape, in place of its discovery in a cluster."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Discovery:
    """Files of file_sd_configs, one a workload."""

    folder: Path

    def settings(self) -> dict[str, Any]:
        """The scrape job of a Prometheus that reads the files."""
        self.folder.mkdir(parents=True, exist_ok=True)
        files = {"files": [f"{self.folder}/*.json"], "refresh_interval": "2s"}
        return {"job_name": "engines", "file_sd_configs": [files]}

    def write(self, name: str, targets: Sequence[str], labels: Mapping[str, str] | None = None) -> None:
        """Replaces the targets of this workload."""
        written = self.folder / f"{name}.partial"
        written.write_text(json.dumps([{"targets": targets, "labels": labels or {}}]))
        written.replace(self.folder / f"{name}.json")
