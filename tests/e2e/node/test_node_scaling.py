"""An HPA scales containers of consumers by the installed chart: up under load, down without it."""

from parts.adapter import Adapter
from parts.container_workload import STEADY_RECORDS_PER_S, ContainerWorkload
from parts.process import until
from parts.workload import PARTITIONS, REPLICAS_FOR_300

# Five workers carry it; those of the steady load fall behind.
STEP_RECORDS_PER_S = 900


def test_the_hpa_adds_consumer_containers_under_load_and_removes_them_after_it(
    adapter: Adapter, job: ContainerWorkload
) -> None:
    steady = job.watch(lambda now: now.replicas in REPLICAS_FOR_300, 300, "two to four workers for 300 records/s")
    until(lambda: job.ready_workers() == steady.replicas, 60, "their containers run")

    job.load.set_rate(STEP_RECORDS_PER_S)
    job.watch(lambda now: now.replicas > steady.replicas, 120, "replicas rise")
    job.watch(lambda now: job.ready_workers() > steady.replicas, 60, "more containers run")
    job.watch(lambda now: now.backlog_records < 2 * STEP_RECORDS_PER_S, 300, "they keep up")

    job.load.set_rate(STEADY_RECORDS_PER_S)
    job.watch(lambda now: now.replicas in REPLICAS_FOR_300, 420, "replicas fall again")
    until(lambda: job.ready_workers() in REPLICAS_FOR_300, 60, "the other containers have ended")

    assert max(each.replicas for each in job.observations) <= PARTITIONS
    assert job.replica_owners() == {("kube-controller-manager", "scale")}
