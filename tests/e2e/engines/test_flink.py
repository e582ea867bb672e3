"""Flink in reactive mode: TaskManagers follow a load step through the HPA, with each policy for Flink."""

import pytest
from parts.flink_workload import FlinkWorkload
from parts.load_step import follow_a_load_step
from parts.process import until
from parts.prometheus import Prometheus


@pytest.mark.full
@pytest.mark.parametrize("flink_job", ["drain", "beam-flink", "varga"], indirect=True)
def test_the_hpa_scales_task_managers_with_a_load_step_and_back(
    flink_job: FlinkWorkload, prometheus: Prometheus
) -> None:
    job = flink_job
    follow_a_load_step(job)
    until(lambda: job.manager.parallelism() == job.observe().replicas, 120, "the job runs on them", every_s=1.0)
    # The samples of the job follow it too.
    until(lambda: {before > after for before, after, _ in job.running_times.pauses()} == {True, False}, 60, "pauses")
    pauses = job.running_times.pauses()
    assert restarts(prometheus, job.name) >= len(pauses)
    assert max(pause_s for _, _, pause_s in pauses) < 60


def restarts(prometheus: Prometheus, name: str) -> float:
    """The restarts of the job as the preset reads them, rescales among them."""
    (found,) = prometheus.query(f'max(flink_jobmanager_job_numRestarts{{job_name="{name}"}})')
    return float(found["value"][1])
