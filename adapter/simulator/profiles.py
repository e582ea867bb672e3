"""Profiles: the size of a simulated job, the cost of a rescale, and how its metrics arrive."""

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One kind of job. At the peak of its input (99.9 % of the 5-minute means) it needs `workers`."""

    name: str
    worker_capacity_records_per_s: float = 1000.0  # of a single worker
    workers: int = 40
    peak_utilization_ratio: float = 0.75  # at the peak, of the workers' linear capacity
    min_workers: int = 1  # minReplicas of the HPA
    max_workers: int = 60  # maxReplicas of the HPA
    scaling_exponent: float = 1.0  # n workers carry n ** exponent times the capacity of one
    partitions: int = 180  # partition p belongs to worker p mod n; 0: any worker takes any record
    skew: float = 0.1  # sigma of the log-normal weights of the partitions
    worker_spread: float = 0.05  # coefficient of variation between workers
    speed_noise: float = 0.04  # coefficient of variation of a worker's speed over time, AR(1) of 120 s
    start_s: float = 30.0  # median time until a new worker is ready
    start_spread: float = 0.3  # sigma of its log-normal
    pause_up_s: float = 10.0  # median time without processing when workers are added
    pause_down_s: float = 10.0  # the same when workers are removed
    pause_spread: float = 0.25  # sigma of their log-normal
    checkpoint_s: float = 0.0  # a restart repeats the work since the last checkpoint; 0: restart from a savepoint
    warm_up_ratio: float = 1.0  # speed after a pause; it rises linearly to 1
    warm_up_s: float = 0.0  # within this time
    metric_delay_s: float = 0.0  # age of the newest visible sample
    missing_ratio: float = 0.01  # share of the samples that never arrive
    blackout_s: float = 600.0  # once a day no sample arrives for this long
    shows_while_down: bool = False  # whether counts are a broker's; otherwise a stopped job reports nothing
    shows_busy: bool = True  # whether the job reports its busy time; otherwise policies see CPU as utilization
    idle_cpu_ratio: float = 0.05  # CPU of an idle worker
    cpu_window_s: float = 15.0  # a CPU sample is a mean over this time
    faults: bool = False  # each day has a slow sink, a stuck worker and an unplanned failure


def _published(up_s: float, down_s: float, warm_up_ratio: float = 1.0, warm_up_s: float = 0.0) -> Profile:
    """The setting of the published comparison: one stage of 24 workers, no skew and little noise."""
    return Profile(
        name=f"pause-{up_s:.0f}-{down_s:.0f}",
        workers=24,
        peak_utilization_ratio=0.8 * 24**-0.05,  # 24 ** 0.95 times the capacity of one worker is 1.25 times the peak
        max_workers=24,
        scaling_exponent=0.95,
        partitions=0,
        skew=0.0,
        worker_spread=0.0,
        speed_noise=0.015,
        start_spread=0.0,
        pause_spread=0.0,
        missing_ratio=0.0,
        blackout_s=0.0,
        metric_delay_s=45.0,
        pause_up_s=up_s,
        pause_down_s=down_s,
        warm_up_ratio=warm_up_ratio,
        warm_up_s=warm_up_s,
        shows_while_down=True,
    )


_CONSUMER_GROUP = Profile(name="consumer-group", checkpoint_s=5.0, shows_while_down=True, shows_busy=False)
_FLINK_REACTIVE = Profile(
    name="flink-reactive", pause_up_s=14.0, pause_down_s=14.0, checkpoint_s=10.0, warm_up_ratio=0.5, warm_up_s=120.0
)
_FLINK_OPERATOR = Profile(
    name="flink-operator",
    start_s=0.0,
    start_spread=0.0,
    pause_up_s=57.0,
    pause_down_s=57.0,
    pause_spread=0.15,
    warm_up_ratio=0.4,
    warm_up_s=180.0,
)
_NETFLIX = Profile(
    name="netflix", start_s=60.0, pause_up_s=45.0, pause_down_s=120.0, warm_up_ratio=0.5, warm_up_s=120.0
)
_PUBLISHED = (
    _published(0.0, 0.0),
    _published(10.0, 15.0),
    _published(30.0, 60.0),
    _published(57.0, 57.0, warm_up_ratio=0.4, warm_up_s=180.0),
    _published(120.0, 180.0),
)
PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        _CONSUMER_GROUP,
        _FLINK_REACTIVE,
        _FLINK_OPERATOR,
        _NETFLIX,
        replace(_CONSUMER_GROUP, name="consumer-group-small", workers=8, max_workers=12, partitions=36),
        replace(_CONSUMER_GROUP, name="consumer-group-faults", faults=True),
        *_PUBLISHED,
    )
}
STEP_S = 5.0  # of the model; against 1 s, worker-hours differ by less than 1 %
TICK_S = 15.0  # of the policies and of the HPA
