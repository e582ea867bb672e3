"""A load step: the backlog grows, the HPA adds workers, the backlog drains, the HPA removes them."""

from pathlib import Path

import pytest
from parts.adapter import Adapter
from parts.broker import Broker
from parts.controlplane import ControlPlane
from parts.process import until
from parts.workload import CARRY_300, PARTITIONS, Look, Workload

CALM_S = 30.0  # under 30 s for so long is "back under 30 s"; for a moment might be luck


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("orders", id="with counts from Kafka's offsets"),
        pytest.param("payments", id="with counts from Prometheus"),
    ],
)
def test_the_hpa_adds_workers_until_the_backlog_is_gone_and_then_removes_them(
    name: str, adapter: Adapter, broker: Broker, controlplane: ControlPlane, run: Path
) -> None:
    with Workload(name, broker, controlplane, run / name) as job:
        job.load.set_rate(300)
        job.watch(lambda look: look.replicas in CARRY_300, 300, "two or three workers carry 300 records/s")
        job.watch(lambda look: job.longest_backlog_time_s(0, 15) < 10, 240, "and no backlog is left")

        job.load.set_rate(1000)
        stepped = job.watch(lambda look: True, 30, "it is seen as it was")
        grown = job.watch(lambda look: look.replicas > stepped.replicas, 60, "replicas rise within 60 s of the step")

        def caught_up(look: Look) -> bool:
            # Four workers cannot carry the load: a short backlog time with them is not the end of it.
            return look.replicas >= 5 and job.longest_backlog_time_s(grown.at_s, CALM_S) < 30

        left_s = stepped.at_s + 180 + CALM_S - grown.at_s
        job.watch(caught_up, left_s, "backlog time is back under 30 s within 3 minutes")
        drained = job.watch(lambda look: job.longest_backlog_time_s(grown.at_s, 5) < 5, 240, "and the backlog is gone")
        assert drained.replicas >= 5
        assert max(look.backlog_records for look in job.looks if look.at_s > stepped.at_s) > 3000

        job.load.set_rate(150)
        job.watch(lambda look: look.replicas <= 3, 360, "replicas fall again")

        assert max(look.replicas for look in job.looks) <= PARTITIONS
        sizes = {look.replicas for look in job.looks}
        until(lambda: sizes <= {1, *job.rescales()}, 60, "the HPA has told of each size")  # after it has set it
        assert job.replica_owners() == {("kube-controller-manager", "scale")}
