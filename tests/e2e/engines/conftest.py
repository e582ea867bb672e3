"""An adapter that reads the jobs of real engines."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from parts import flink
from parts.adapter import Adapter, Systems, values
from parts.broker import Broker
from parts.controlplane import ControlPlane
from parts.discovery import Discovery
from parts.flink_workload import FlinkWorkload
from parts.kubelet import Kubelet
from parts.pravega import Pravega
from parts.prometheus import Prometheus, scraping
from parts.spark_workload import KAFKA_SOURCE, SparkWorkload
from parts.stream_readers import SCOPE, StreamReaders, Wave
from tool_cache import need

_RESTART = {"rescale_pause_s": 5, "worker_start_s": 20, "settle_s": 15, "stale_after_s": 45, "error_after_s": 120}
# The settings of each policy, with seconds where a user has minutes. The published rules of beam-flink have no window.
_POLICIES: dict[str, dict[str, Any]] = {
    "drain": {},
    "beam-flink": {"up_backlog_time_s": 20, "time_to_reduce_backlog_s": 60, "down_window_s": 0},
    "varga": {"lag_threshold_records": 2000, "cooldown_up_s": 30, "down_window_s": 60},
}


@pytest.fixture(scope="session")
def discovery(run: Path) -> Discovery:
    return Discovery(run / "targets")


@pytest.fixture(scope="session")
def prometheus(run: Path, discovery: Discovery) -> Iterator[Prometheus]:
    settings = scraping({}) | {"scrape_configs": [discovery.settings()]}
    with Prometheus(run / "prometheus", settings) as prometheus:
        yield prometheus


@pytest.fixture(scope="session")
def pravega(run: Path) -> Pravega:
    """Only its own test starts it, because an idle Pravega needs most of a core."""
    return Pravega(run / "pravega")


@pytest.fixture(scope="session")
def systems(broker: Broker, prometheus: Prometheus, pravega: Pravega) -> Systems:
    return Systems(broker=broker, prometheus=prometheus, pravega=pravega)


@pytest.fixture(scope="session")
def adapter(run: Path, controlplane: ControlPlane, kubelet: Kubelet, systems: Systems) -> Adapter:
    settings = values(systems)
    jobs = [_flink_job(policy) for policy in _POLICIES]
    settings["config"]["workloads"] = [*jobs, _spark_query("invoices"), _stream_readers("audit")]
    adapter = Adapter(controlplane, kubelet, run / "adapter")
    adapter.install(settings)
    return adapter


def _flink_job(policy: str) -> dict[str, Any]:
    """As the comment of hpa/flink-reactive.yaml, with this policy."""
    name = f"clicks-{policy}"
    preset = "flink-varga" if policy == "varga" else "flink"
    read = [
        {"source": "metrics", "preset": preset, "match": {"job_name": name}},
        {"source": "events", "group": name, "topics": [name]},
    ]
    return {"name": name, "read": read, "rules": {"policy": policy, **_RESTART, **_POLICIES[policy]}}


def _spark_query(name: str) -> dict[str, Any]:
    """As the comment of hpa/spark-workers.yaml, with the backlog from the offsets that the query commits."""
    read = [
        {"source": "metrics", "preset": "spark", "match": {"app": name}},
        {"source": "events", "group": name, "topics": [name]},
    ]
    # A worker starts an executor, another Java program, which is slow at first.
    return {"name": name, "read": read, "rules": _RESTART | {"worker_start_s": 40, "settle_s": 30, "warm_up_s": 60}}


def _stream_readers(name: str) -> dict[str, Any]:
    """As the comment of hpa/pravega-reader.yaml, with policy `segments`."""
    read = [{"source": "streams", "scope": SCOPE, "stream": name}]
    return {"name": name, "read": read, "rules": {"policy": "segments", "down_window_s": 60}}


@pytest.fixture
def flink_job(
    request: pytest.FixtureRequest, adapter: Adapter, controlplane: ControlPlane, discovery: Discovery, run: Path
) -> Iterator[FlinkWorkload]:
    """A job with the policy that is the parameter."""
    need(flink.TOOL, "make tools-all")
    name = f"clicks-{request.param}"
    broker, kubelet = request.getfixturevalue("broker"), request.getfixturevalue("kubelet")
    with FlinkWorkload(name, broker, controlplane, run / name, discovery=discovery, kubelet=kubelet) as job:
        yield job


@pytest.fixture
def spark_query(
    adapter: Adapter, broker: Broker, controlplane: ControlPlane, discovery: Discovery, run: Path
) -> Iterator[SparkWorkload]:
    need(KAFKA_SOURCE, "make tools-all")
    with SparkWorkload("invoices", broker, controlplane, run / "invoices", discovery=discovery) as job:
        yield job


@pytest.fixture
def stream_readers(
    adapter: Adapter, pravega: Pravega, controlplane: ControlPlane, run: Path
) -> Iterator[StreamReaders]:
    if shutil.which("javac") is None:
        pytest.skip("no javac; install a JDK (Debian 12: openjdk-17-jdk-headless)")
    wave = Wave(highest_events_per_s=80, period_s=900)
    with (
        pravega,
        StreamReaders("audit", pravega, controlplane, run / "audit", wave, segment_events_per_s=10) as readers,
    ):
        yield readers
