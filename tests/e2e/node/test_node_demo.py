"""The manifests of examples/demo, on a real node: the HPA follows the wave of the generator."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from parts.adapter import Adapter
from parts.broker import Broker
from parts.controlplane import ControlPlane
from parts.demo import Demo
from parts.process import until


@pytest.fixture(scope="module")
def demo(run: Path, adapter: Adapter, broker: Broker, controlplane: ControlPlane) -> Iterator[Demo]:
    demo = Demo(controlplane, run / "demo")
    demo.apply(broker.bootstrap_servers)
    yield demo
    demo.delete()


def test_the_demo_scales_up_with_its_wave(demo: Demo) -> None:
    until(lambda: demo.show() >= 3, 420, "three consumers or more", every_s=5)


@pytest.mark.full
def test_the_demo_scales_down_with_its_wave(demo: Demo) -> None:
    """README.md of the demo shows lines of this test's transcript."""
    shown: list[int] = []

    def replicas() -> int:
        shown.append(demo.show())
        return shown[-1]

    until(lambda: replicas() >= 4, 420, "four consumers or more at the top of the wave", every_s=15)
    until(lambda: replicas() < max(shown), 600, "fewer than at the top after it", every_s=15)
