"""An adapter that reads the jobs of real engines."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from parts import flink, flink_workload
from parts.adapter import Adapter, Systems, values
from parts.broker import Broker
from parts.controlplane import ControlPlane
from parts.kubelet import Kubelet
from parts.process import tools
from parts.prometheus import Prometheus, scraping

POLICIES = ["drain"]
_RESTART = {"rescale_pause_s": 5, "worker_start_s": 20, "settle_s": 15, "stale_after_s": 45, "error_after_s": 120}


@pytest.fixture(scope="session")
def discovery(run: Path, kubelet: Kubelet) -> flink_workload.Discovery:
    if not (tools() / flink.TOOL).is_dir():
        pytest.skip(f"{flink.TOOL} is not in {tools()}: make tools-all")
    return flink_workload.Discovery(kubelet, run / "targets.json")


@pytest.fixture(scope="session")
def prometheus(run: Path, discovery: flink_workload.Discovery) -> Iterator[Prometheus]:
    settings = scraping({})
    files = {"files": [str(discovery.file)], "refresh_interval": "2s"}
    settings["scrape_configs"] = [{"job_name": "flink", "file_sd_configs": [files]}]
    with Prometheus(run / "prometheus", settings) as prometheus:
        yield prometheus


@pytest.fixture(scope="session")
def systems(broker: Broker, prometheus: Prometheus) -> Systems:
    return Systems(broker=broker, prometheus=prometheus)


@pytest.fixture(scope="session")
def adapter(run: Path, controlplane: ControlPlane, kubelet: Kubelet, systems: Systems) -> Adapter:
    settings = values(systems)
    settings["config"]["workloads"] = [_flink_job(policy) for policy in POLICIES]
    adapter = Adapter(controlplane, kubelet, run / "adapter")
    adapter.install(settings)
    return adapter


def _flink_job(policy: str) -> dict[str, Any]:
    """As the comment of hpa/flink-reactive.yaml, with this policy."""
    name = f"clicks-{policy}"
    read = [
        {"source": "metrics", "preset": "flink", "match": {"job_name": name}},
        {"source": "events", "group": name, "topics": [name]},
    ]
    return {"name": name, "read": read, "rules": {"policy": policy, **_RESTART}}


@pytest.fixture
def flink_job(
    request: pytest.FixtureRequest,
    adapter: Adapter,
    controlplane: ControlPlane,
    discovery: flink_workload.Discovery,
    run: Path,
) -> Iterator[flink_workload.FlinkWorkload]:
    """A job with the policy that is the parameter."""
    name = f"clicks-{request.param}"
    broker: Broker = request.getfixturevalue("broker")
    with flink_workload.FlinkWorkload(name, broker, controlplane, run / name, discovery=discovery) as job:
        yield job
