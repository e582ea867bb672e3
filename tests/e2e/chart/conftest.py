"""Releases of the chart on a control plane without nodes."""

from pathlib import Path

import pytest
from parts.controlplane import ControlPlane
from parts.release import NAMESPACE, Release

from bench.tool_folder import tools


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
