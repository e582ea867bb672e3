"""A release of the chart on a control plane, without nodes: its objects exist, and no pod runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from parts.adapter import CHART
from parts.controlplane import ControlPlane

NAME = "orders"
NAMESPACE = "streaming"


class Release:
    """The chart under one name in one namespace."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self._folder = folder

    def helm(self, command: str, values: dict[str, Any] | None = None, *further: str) -> str:
        """Runs a command of helm on the release, with these values and further options."""
        chart = [str(CHART)] if command in ("install", "upgrade") else []
        file = self._folder / "values.yaml"
        file.write_text(yaml.safe_dump(values or {}))
        options = ["--values", str(file)] if chart else []
        return self.plane.helm(command, NAME, *chart, "--namespace", NAMESPACE, *options, *further)

    @contextmanager
    def installed(self, values: dict[str, Any] | None = None) -> Iterator[None]:
        """The release is installed during the block."""
        self.helm("install", values)
        try:
            yield
        finally:
            self.helm("uninstall")
