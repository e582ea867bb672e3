"""What the world around a job is like: how it is scaled to the trace, what a rescale costs, what can be seen of it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One kind of job. Times in seconds.

    workers, peak_utilization_ratio: so many workers carry the trace's peak (99.9 % of its 5-minute means) at this share
    of their linear capacity. max_workers: the HPA's maxReplicas. scaling_exponent: n workers carry n ** exponent.
    partitions: of the input, shared p mod n; 0 is work that any worker can take. skew: sigma of their log-normal
    weights.
    worker_spread, speed_noise: coefficients of variation of a worker for life, and of its speed (AR(1), 120 s).
    start_s, pause_up_s, pause_down_s: medians; start_spread, pause_spread: sigmas of their log-normals.
    checkpoint_s: at a restart, what came since the last checkpoint is done again; 0 restarts from a savepoint.
    warm_up_ratio, warm_up_s: speed rises linearly from the ratio to 1.
    metric_delay_s: what is seen is so old. missing_ratio: share of the samples that never come. blackout_s: once a day
    none comes for so long. shows_while_down: whether counts are a broker's, else a stopped job shows nothing.
    idle_cpu_ratio: CPU of a worker that has nothing to do; CPU, a mean over cpu_window_s, is what a policy sees as
    utilization, unless shows_busy: the job tells its busy time.
    faults: a day has one slow sink, one stuck worker and one unplanned failure.
    """

    name: str
    workers: int = 40
    peak_utilization_ratio: float = 0.75
    max_workers: int = 60
    scaling_exponent: float = 1.0
    partitions: int = 180
    skew: float = 0.1
    worker_spread: float = 0.05
    speed_noise: float = 0.04
    start_s: float = 30.0
    start_spread: float = 0.3
    pause_up_s: float = 10.0
    pause_down_s: float = 10.0
    pause_spread: float = 0.25
    checkpoint_s: float = 0.0
    warm_up_ratio: float = 1.0
    warm_up_s: float = 0.0
    metric_delay_s: float = 0.0
    missing_ratio: float = 0.01
    blackout_s: float = 600.0
    shows_while_down: bool = False
    shows_busy: bool = True
    idle_cpu_ratio: float = 0.05
    cpu_window_s: float = 15.0
    faults: bool = False


def _published(up_s: float, down_s: float, warm_up_ratio: float = 1.0, warm_up_s: float = 0.0) -> Profile:
    """The setting of the published comparison: one stage of 24 workers, no skew, all but noiseless."""
    return Profile(
        name=f"pause-{up_s:.0f}-{down_s:.0f}",
        workers=24,
        peak_utilization_ratio=0.8 * 24**-0.05,  # 24 ** 0.95 workers' worth carry 1.25 times the peak
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
WORKER_CAPACITY_RECORDS_PER_S = 1000.0  # of the first worker; KEDA's default threshold of 10 records shows what it is
