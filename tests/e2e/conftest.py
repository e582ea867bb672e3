"""The servers of a session: each starts with the first test that uses it and stops at the end.

Each folder has an adapter of its own (fixture `systems`), so a session runs one folder (see the Makefile).
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from parts.adapter import IMAGES, Adapter, Systems, values
from parts.broker import Broker
from parts.controlplane import ControlPlane
from parts.exporter import Exporter
from parts.kubelet import Kubelet
from parts.pravega import Pravega
from parts.process import tail
from parts.prometheus import Prometheus, scraping

from bench.tool_folder import tools

_RUN = pytest.StashKey[Path]()
_PARTS = ("kafka-4.3.1", "prometheus-0.315.0", "pravega-0.13.0", "controlplane-1.36.3", "helm-4.3.1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    marks = [pytest.mark.e2e, pytest.mark.timeout(1800)]  # ends a test that hangs; it promises no speed
    if fault := os.environ.get("BACKLOG_ADAPTER_E2E_FAULT"):  # set by tests/e2e/run
        marks.append(pytest.mark.skip(reason=fault))
    for item in items:
        if item.path.is_relative_to(here):
            for mark in marks:
                item.add_marker(mark)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Adds the end of every log to the report of a failure."""
    report = yield
    run = item.session.stash.get(_RUN, None)
    if run is not None and report.failed:
        logs = [*run.glob("*/*.log"), *run.glob("pods/*/container.log")]
        if "BACKLOG_ADAPTER_NODE" in os.environ:  # its own log folder, see run-on-node
            logs += Path("/var/log/pods").glob("*/*/*.log")
        shown = [(log, 40 if "pipeline" in str(log) else 6) for log in sorted(logs) if log.stat().st_size]
        text = "\n".join(f"--- {log}\n{tail(log, lines)}" for log, lines in shown)
        report.sections.append((f"logs in {run}", text))
    return report


@pytest.fixture(scope="session")
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for the data and logs of this session."""
    if not os.environ.get("BACKLOG_ADAPTER_E2E"):
        pytest.skip("runs in namespaces of its own: make e2e, or tests/e2e/run -m e2e tests/e2e/scaling")
    missing = [part for part in _PARTS if not (tools() / part).is_dir()]
    if missing:
        pytest.skip(f"{', '.join(missing)} not in {tools()}: make tools")
    folder = tmp_path_factory.mktemp("e2e")
    request.session.stash[_RUN] = folder
    return folder


@pytest.fixture(scope="session")
def broker(run: Path) -> Iterator[Broker]:
    with Broker(run / "broker") as broker:
        yield broker


@pytest.fixture(scope="session")
def exporter(run: Path, broker: Broker) -> Iterator[Exporter]:
    with Exporter(run / "exporter", broker.bootstrap_servers) as exporter:
        yield exporter


@pytest.fixture(scope="session")
def prometheus(run: Path, exporter: Exporter) -> Iterator[Prometheus]:
    with Prometheus(run / "prometheus", scraping({"kafka": exporter.address})) as prometheus:
        yield prometheus


@pytest.fixture(scope="session")
def pravega(run: Path) -> Iterator[Pravega]:
    with Pravega(run / "pravega") as pravega:
        yield pravega


@pytest.fixture(scope="session")
def controlplane(run: Path) -> Iterator[ControlPlane]:
    with ControlPlane(run / "controlplane") as controlplane:
        yield controlplane


@pytest.fixture(scope="session")
def kubelet(run: Path, controlplane: ControlPlane) -> Iterator[Kubelet]:
    with Kubelet(controlplane.api, run / "pods", IMAGES) as kubelet:
        yield kubelet


@pytest.fixture(scope="session")
def adapter(run: Path, controlplane: ControlPlane, kubelet: Kubelet, systems: Systems) -> Adapter:
    adapter = Adapter(controlplane, kubelet, run / "adapter")
    adapter.install(values(systems))
    return adapter
