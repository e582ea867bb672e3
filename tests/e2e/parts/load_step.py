"""A load step: the HPA adds workers until the backlog is gone, and removes them after it."""

from parts.workload import Workload

# One worker of about 200 records/s carries the steady load; the step takes three.
STEADY_RECORDS_PER_S, STEP_RECORDS_PER_S = 120, 480
BACKLOG_TIME_TARGET_S = 30
CALM_S = 20.0  # how long the backlog time has to stay under its target


def follow_a_load_step(job: Workload) -> None:
    """Fails unless the replicas rise within 90 s, the backlog time recovers within 5 minutes, and the replicas fall."""
    job.load.set_rate(STEADY_RECORDS_PER_S)
    job.watch(lambda now: job.longest_backlog_time_s(0, CALM_S) < 10, 300, "the job keeps up")
    before = job.watch(lambda now: now.replicas <= 2, 300, "one or two workers")

    job.load.set_rate(STEP_RECORDS_PER_S)
    grown = job.watch(lambda now: now.replicas > before.replicas, 90, "replicas rise within 90 s of the step")

    def caught_up(_now: object) -> bool:
        return job.longest_backlog_time_s(grown.at_s, CALM_S) < BACKLOG_TIME_TARGET_S

    left_s = before.at_s + 300 + CALM_S - grown.at_s
    high = job.watch(caught_up, left_s, "backlog time is back under its target within 5 minutes")
    assert high.replicas >= 3

    job.load.set_rate(STEADY_RECORDS_PER_S)
    job.watch(lambda now: now.replicas < high.replicas, 600, "replicas fall again")
    job.assert_that_the_hpa_set_each_size()
