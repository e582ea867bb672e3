"""Flink in reactive mode: a load step, more TaskManagers through the HPA, and fewer after it."""

import pytest
from parts.flink_workload import FlinkWorkload
from parts.process import until
from parts.prometheus import Prometheus

# One TaskManager carries it; the step takes three.
STEADY_RECORDS_PER_S, STEP_RECORDS_PER_S = 120, 480
BACKLOG_TIME_TARGET_S = 30
CALM_S = 20.0  # how long the backlog time has to stay under its target


@pytest.mark.full
@pytest.mark.parametrize("flink_job", ["drain"], indirect=True)
def test_the_hpa_scales_task_managers_with_a_load_step_and_back(
    flink_job: FlinkWorkload, prometheus: Prometheus
) -> None:
    job = flink_job
    job.load.set_rate(STEADY_RECORDS_PER_S)
    job.watch(lambda now: job.longest_backlog_time_s(0, CALM_S) < 10, 300, "the job keeps up")
    before = job.watch(lambda now: now.replicas <= 2, 300, "one or two TaskManagers")

    job.load.set_rate(STEP_RECORDS_PER_S)
    grown = job.watch(lambda now: now.replicas > before.replicas, 90, "replicas rise within 90 s of the step")

    def caught_up(_now: object) -> bool:
        return job.longest_backlog_time_s(grown.at_s, CALM_S) < BACKLOG_TIME_TARGET_S

    left_s = before.at_s + 300 + CALM_S - grown.at_s
    high = job.watch(caught_up, left_s, "backlog time is back under its target within 5 minutes")
    assert high.replicas >= 3

    job.load.set_rate(STEADY_RECORDS_PER_S)
    job.watch(lambda now: now.replicas < high.replicas, 600, "replicas fall again")
    until(lambda: job.manager.parallelism() == job.observe().replicas, 120, "the job runs on them", every_s=1.0)

    sizes = {each.replicas for each in job.observations}
    # An event follows the change that it reports.
    until(lambda: sizes <= {1, *job.rescales()}, 60, "the HPA has an event for each size")
    assert job.replica_owners() == {("kube-controller-manager", "scale")}
    # The samples of the job follow it too.
    until(lambda: {before > after for before, after, _ in job.running_times.pauses()} == {True, False}, 60, "pauses")
    pauses = job.running_times.pauses()
    assert restarts(prometheus, job.name) >= len(pauses)
    assert max(pause_s for _, _, pause_s in pauses) < 60


def restarts(prometheus: Prometheus, name: str) -> float:
    """The restarts of the job as the preset reads them, rescales among them."""
    (found,) = prometheus.query(f'max(flink_jobmanager_job_numRestarts{{job_name="{name}"}})')
    return float(found["value"][1])
