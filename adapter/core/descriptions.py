"""What each reason and each bound means; README's tables are tested against these words."""

from collections.abc import Mapping

from adapter.core.decisions import Bound, Reason

REASON_DESCRIPTIONS: Mapping[Reason, str] = {
    Reason.PAUSED: "a pause is in force: the target is held",
    Reason.EXCLUDED: "an excluded period is on: the target is held until it ends",
    Reason.NO_DATA: "no sample yet, or too few for a rate: the target is held, if there is one",
    Reason.EXPIRED: "the last sample is older than error_after_s: there is no number",
    Reason.STALE: "the last sample is older than this tick: the target is held",
    Reason.NO_WORKERS: "nobody said how many workers run: the target is held",
    Reason.NOT_RUNNING: "the job says that it does not run: the target is held",
    Reason.FAILURES: "the job failed max_failures times within failures_window_s: the target is held",
    Reason.UNSCHEDULABLE: "workers did not become ready within in_flight_timeout_s: only those that did are asked for",
    Reason.IN_FLIGHT: "workers are on their way: the target is held until they are ready",
    Reason.STUCK: "a backlog waits and nothing is processed: more workers would not help, the target is held",
    Reason.SETTLING: "workers have just changed or stood still: the target is held until rates are clean again",
    Reason.DISCONTINUITY: "the backlog jumped as no input explains: the target is held until samples confirm it",
    Reason.NOT_ENACTED: "the target has stood for not_enacted_after_s and the workers do not follow",
    Reason.UP: "more workers are needed to keep up with the input and to catch up with the backlog",
    Reason.DOWN: "fewer workers can carry the load",
    Reason.IDLE: "nothing arrives and nothing waits: workers go down to the minimum",
    Reason.HOLD: "the workers that run are right, or a bound keeps them",
}

BOUND_DESCRIPTIONS: Mapping[Bound, str] = {
    Bound.NONE: "nothing cut what the policy wanted",
    Bound.WINDOW: "not below the largest size needed within down_window_s; drain: no down that does not pay yet",
    Bound.LATCH: "a target that is not enacted yet stands for latch_s",
    Bound.PAUSE: "a pause forbids this direction",
    Bound.FAILOVER: "no down while traffic may come back from another region",
    Bound.SINK: "the sink is not healthy: no up, and no down while the job is behind",
    Bound.INEFFECTIVE: "the last up gained too little or found no place: no up for ineffective_block_s",
    Bound.COOLDOWN: "too soon after a change: cooldown_up_s, cooldown_down_s",
    Bound.BUDGET: "downs have paused the job for pause_budget_ratio of a day",
    Bound.TRIAL: "behind at a utilization below low_cpu_ratio: the smallest step an HPA takes at a time",
    Bound.HOT: "one partition is so hot that more workers would not help",
    Bound.STEP: "at most max_step_up_workers or max_step_down_workers in one decision",
    Bound.MAX: "not above max_workers and the HPA's maxReplicas",
    Bound.PARTITIONS: "not more workers than the partitions can feed",
    Bound.MIN: "not below min_workers and the HPA's minReplicas",
    Bound.MEMORY: "a worker holds at most max_partitions_per_worker partitions",
}
