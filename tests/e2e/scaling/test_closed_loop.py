"""A load step: the backlog grows, the HPA adds workers, the backlog drains, the HPA removes them."""

from pathlib import Path

import pytest
from parts.adapter import WORKER_RECORDS_PER_S, Adapter
from parts.broker import Broker
from parts.controlplane import ControlPlane
from parts.workload import PARTITIONS, REPLICAS_FOR_300, Observation, Workload

# Six workers, with two partitions each, carry it and drain a backlog. Four workers fall behind by 300 records/s.
STEP_RECORDS_PER_S = 1100
CALM_S = 30.0  # how long the backlog time has to stay under its target


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("orders", id="with counts from Kafka's offsets"),
        pytest.param("payments", id="with counts from Prometheus", marks=pytest.mark.full),
    ],
)
def test_the_hpa_adds_workers_until_the_backlog_is_gone_and_then_removes_them(
    name: str, adapter: Adapter, broker: Broker, controlplane: ControlPlane, run: Path
) -> None:
    with Workload(name, broker, controlplane, run / name) as job:
        job.load.set_rate(300)
        job.watch(lambda now: now.replicas in REPLICAS_FOR_300, 300, "two to four workers for 300 records/s")
        stepped = job.watch(lambda now: job.longest_backlog_time_s(0, 15) < 10, 240, "the backlog is gone")

        job.load.set_rate(STEP_RECORDS_PER_S)
        grown = job.watch(lambda now: now.replicas > stepped.replicas, 60, "replicas rise within 60 s of the step")

        def caught_up(now: Observation) -> bool:
            return carries_the_step(now) and job.longest_backlog_time_s(grown.at_s, CALM_S) < 30

        left_s = stepped.at_s + 180 + CALM_S - grown.at_s
        job.watch(caught_up, left_s, "backlog time is back under 30 s within 3 minutes")
        drained = job.watch(lambda now: job.longest_backlog_time_s(grown.at_s, 5) < 10, 360, "the backlog is gone")
        assert carries_the_step(drained)
        # Workers commit once a second, so a second of load always counts as backlog.
        highest = max(each.backlog_records for each in job.observations if each.at_s > stepped.at_s)
        assert highest > 1.5 * STEP_RECORDS_PER_S

        job.load.set_rate(150)
        job.watch(lambda now: now.replicas <= 3, 360, "replicas fall again")

        assert max(each.replicas for each in job.observations) <= PARTITIONS
        job.assert_that_the_hpa_set_each_size()


def carries_the_step(now: Observation) -> bool:
    """With fewer workers a short backlog time would not last."""
    return now.replicas * WORKER_RECORDS_PER_S >= STEP_RECORDS_PER_S
