"""What each reason and each bound means; the tables of docs/decisions.md are tested against these texts."""

from collections.abc import Mapping

from adapter.core.decisions import Bound, Reason

REASON_DESCRIPTIONS: Mapping[Reason, str] = {
    Reason.PAUSED: "a pause is active: the target is held",
    Reason.EXCLUDED: "an excluded period is active: the target is held until it ends",
    Reason.NO_DATA: "no sample yet, or too few for a rate: an existing target is held",
    Reason.EXPIRED: "the last sample is older than error_after_s: no number is served",
    Reason.STALE: "this tick brought no new sample: the target is held",
    Reason.NO_WORKERS: "the number of workers is unknown: the target is held",
    Reason.NOT_RUNNING: "the job reports that it is not running: the target is held",
    Reason.FAILURES: "the job failed max_failures times within failures_window_s: the target is held",
    Reason.UNSCHEDULABLE: "workers were not ready within in_flight_timeout_s: the target is the number of ready ones",
    Reason.IN_FLIGHT: "workers are starting or stopping: the target is held until they are ready",
    Reason.STUCK: "a backlog waits and nothing is processed: more workers would not help, the target is held",
    Reason.SETTLING: "replicas changed or processing stopped: the target is held until rates are stable",
    Reason.DISCONTINUITY: "the backlog jumped more than the input explains: the target is held until it is confirmed",
    Reason.NOT_ENACTED: "the target is older than not_enacted_after_s and the replicas do not follow",
    Reason.UP: "more workers are needed to keep up with the input or to catch up with the backlog",
    Reason.DOWN: "fewer workers can carry the load",
    Reason.IDLE: "no input and no backlog: workers go down to the minimum",
    Reason.HOLD: "the current number of workers fits the load, or a bound prevents a change",
}

BOUND_DESCRIPTIONS: Mapping[Bound, str] = {
    Bound.NONE: "no bound changed the size that the policy wants",
    Bound.WINDOW: "at least the largest size needed within down_window_s; drain: no scale-down before it pays",
    Bound.LATCH: "a target that is not enacted yet stands for latch_s",
    Bound.PAUSE: "a pause blocks this direction",
    Bound.FAILOVER: "no scale-down while traffic of another region may come back",
    Bound.SINK: "the sink is unhealthy: no scale-up, and no scale-down while the job is behind",
    Bound.INEFFECTIVE: (
        "the last scale-up gained too little or its workers did not start: no scale-up for ineffective_block_s"
    ),
    Bound.COOLDOWN: "the last change is more recent than cooldown_up_s or cooldown_down_s",
    Bound.BUDGET: "scale-downs have stopped the job for pause_budget_ratio of a day",
    Bound.TRIAL: "behind at a utilization below low_cpu_ratio: only the smallest step that an HPA takes",
    Bound.HOT: "one partition receives so much that more workers would not help",
    Bound.STEP: "at most max_step_up_workers or max_step_down_workers in one decision",
    Bound.MAX: "at most max_workers and the HPA's maxReplicas",
    Bound.PARTITIONS: "at most as many workers as the partitions can feed",
    Bound.MIN: "at least min_workers and the HPA's minReplicas",
    Bound.MEMORY: "a worker holds at most max_partitions_per_worker partitions",
}
