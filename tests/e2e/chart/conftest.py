"""The chart on a control plane without nodes: its objects exist, and no pod runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from parts.adapter import CHART
from parts.controlplane import ControlPlane
from parts.process import tools

NAME = "orders"
NAMESPACE = "streaming"
Render = Any


class Release:
    """The chart under one name in one namespace."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self._folder = folder

    def helm(self, command: str, values: dict[str, Any] | None = None) -> str:
        """Runs a command of helm on the release, with these values."""
        chart = [str(CHART)] if command in ("install", "upgrade") else []
        file = self._folder / "values.yaml"
        file.write_text(yaml.safe_dump(values or {}))
        options = ["--values", str(file)] if chart else []
        return self.plane.helm(command, NAME, *chart, "--namespace", NAMESPACE, *options)

    @contextmanager
    def installed(self, values: dict[str, Any] | None = None) -> Iterator[None]:
        """The release is installed during the block."""
        self.helm("install", values)
        try:
            yield
        finally:
            self.helm("uninstall")


@pytest.fixture
def release(controlplane: ControlPlane, tmp_path: Path) -> Release:
    if not controlplane.api.raw(f"/api/v1/namespaces/{NAMESPACE}").is_success:
        controlplane.kubectl("create", "namespace", NAMESPACE)
    return Release(controlplane, tmp_path)


@pytest.fixture(scope="session")
def crds(controlplane: ControlPlane) -> None:
    """The kinds of the Prometheus operator and of cert-manager."""
    folder = next(iter(tools().glob("openapi-*")), None)
    if folder is None:
        pytest.skip(f"the CustomResourceDefinitions are not in {tools()}: make tools")
    controlplane.kubectl("apply", "--server-side", "-f", str(folder / "crds"))
    controlplane.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
