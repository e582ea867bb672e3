"""The chart as it is, with the images of this checkout, on a real node. Without one every test here is skipped."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from parts import images
from parts.adapter import NAMESPACE, RULES, Adapter, Systems, values
from parts.broker import Broker
from parts.container_workload import STEADY_RECORDS_PER_S, ContainerWorkload
from parts.controlplane import ControlPlane
from parts.demo import WORKLOAD
from parts.node import Node
from parts.process import until

# On a machine that is busy with other tests too, ticks come late. No test here is about samples that are missing.
PATIENT = {"stale_after_s": 60, "error_after_s": 300}
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


@pytest.fixture(scope="session")
def controlplane(run: Path) -> Iterator[ControlPlane]:
    if "BACKLOG_ADAPTER_NODE" not in os.environ:
        pytest.skip("runs beside a node of its own: make e2e, or tests/e2e/run-on-node tests/e2e/node")
    with ControlPlane(run / "controlplane", controllers=("*",)) as controlplane:
        yield controlplane


@pytest.fixture(scope="session")
def node(run: Path, controlplane: ControlPlane) -> Iterator[Node]:
    with Node(controlplane, run / "node") as node:
        yield node


@pytest.fixture(scope="session")
def systems(broker: Broker) -> Systems:
    return Systems(broker=broker)


@pytest.fixture(scope="session")
def job(broker: Broker, controlplane: ControlPlane, node: Node, run: Path) -> Iterator[ContainerWorkload]:
    """A consumer group under a steady load with its HPA, as it is before a user installs the adapter."""
    with ContainerWorkload("orders", broker, controlplane, run / "orders") as job:
        job.load.set_rate(STEADY_RECORDS_PER_S)
        yield job


@pytest.fixture(scope="session")
def installed(
    run: Path, controlplane: ControlPlane, node: Node, systems: Systems, job: ContainerWorkload
) -> tuple[Adapter, float]:
    """The chart in a namespace that accepts only restricted pods, and the seconds until an HPA got a number."""
    controlplane.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": RESTRICTED}})
    adapter = Adapter(controlplane, node, run / "adapter")
    began_s = time.monotonic()
    settings = values(systems)
    settings["config"]["rules"] = RULES | PATIENT
    settings["config"]["workloads"].append(WORKLOAD)
    adapter.install(settings | images.VALUES)
    until(lambda: adapter.number("required_workers", job.name), 300, "required_workers has a number")
    return adapter, time.monotonic() - began_s


@pytest.fixture(scope="session")
def adapter(installed: tuple[Adapter, float]) -> Adapter:
    return installed[0]
