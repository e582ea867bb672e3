"""The parameters of policies, gates and bounds: each once, with its unit, its bounds and the reason for its default."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adapter.core import policies
from adapter.core.periods import Period


def _setting(default: Any, meaning: str, **bounds: float | bool | tuple[str, ...]) -> Any:
    """A parameter with its meaning and bounds (gt, ge, lt, le, one_of): the configuration reads them.

    fixed: the configuration alone sets it, no annotation. hidden: it is no setting, other parts of the file give it.
    """
    return field(default=default, metadata={"meaning": meaning, **bounds})


QUANTA = ("relative", "divisors", "none")
POLICIES = policies.NAMES
_MOST_WORKERS = 100_000  # far beyond any cluster: larger is a slip
ORDERED = (  # parameters of which the first may not exceed the second, and what else were true
    ("min_workers", "max_workers", "no size is allowed"),
    ("min_spare_workers", "max_workers", "the spare workers alone are too many"),
    ("stale_after_s", "error_after_s", "an error comes before the warning of it"),
    ("down_cpu_ratio", "up_cpu_ratio", "one utilization asks for more and for fewer"),
    ("short_backlog_time_s", "up_backlog_time_s", "one backlog asks for more and for fewer"),
    ("low_cpu_ratio", "target_utilization_ratio", "workers as busy as they should be count as idle"),
    ("target_utilization_ratio", "high_utilization_ratio", "a size that meets the target is too full for it"),
    ("sized_utilization_ratio", "safe_utilization_ratio", "a new size is unsafe at once"),
    ("no_backlog_time_s", "significant_backlog_time_s", "one backlog asks for more and for fewer"),
)


def contradiction(order: tuple[str, str, str], lower: str, upper: str) -> str:
    """What is wrong with two parameters of one entry of ORDERED; lower, upper: each with its value and who set it."""
    return f"expected {order[0]} <= {order[1]}, got {lower} and {upper}: {order[2]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How one workload is sized. Times in seconds, rates in records (or bytes) a second, ratios in 0..1."""

    policy: str = _setting(
        policies.DEFAULT, "who sizes the workload: our own policy or a published system's", one_of=POLICIES
    )

    rate_window_s: float = _setting(
        60.0, "rates and growth are taken over this window: four ticks of 15 s", gt=0, le=600, fixed=True
    )
    stale_after_s: float = _setting(
        45.0,
        "older worker counts decide nothing, the target is held: three ticks of 15 s",
        gt=0,
        le=86_400,
        fixed=True,
    )
    error_after_s: float = _setting(
        180.0, "older samples are an error: the HPA freezes and shows our message", gt=0, le=86_400, fixed=True
    )
    settle_s: float = _setting(
        45.0, "no decision so soon after the worker count changed: the restart spoils the rates", ge=0, le=86_400
    )
    in_flight_timeout_s: float = _setting(
        600.0, "workers that are not ready for so long find no place, and are no longer asked for", ge=0, le=86_400
    )

    time_to_reduce_backlog_s: float = _setting(
        60.0, "R: the backlog should be gone after this time (S0-09, S3-09)", gt=0, le=86_400
    )
    quanta: str = _setting("relative", "dataflow: which worker counts are allowed (S3-15, S3-16)", one_of=QUANTA)
    down_cpu_limit_ratio: float = _setting(
        0.9, "dataflow: a smaller size must stay under this utilisation (S3-22)", gt=0, le=1
    )
    short_backlog_time_s: float = _setting(
        10.0, "a shorter backlog is none: down needs it, up does not (S0-11, S3-20)", ge=0, le=86_400
    )
    up_backlog_time_s: float = _setting(120.0, "beam-flink: scale up above this backlog time (S0-10)", ge=0, le=86_400)
    up_cpu_ratio: float = _setting(0.9, "beam-flink: or above this utilisation (S0-10)", gt=0, le=1)
    down_cpu_ratio: float = _setting(0.7, "beam-flink: scale down only below this utilisation (S0-11)", gt=0, le=1)
    down_cpu_desired_ratio: float = _setting(
        0.7, "beam-flink: the utilisation a smaller size may reach; S0-13 leaves it open, so S0-11's band", gt=0, le=1
    )
    growth_noise_ratio: float = _setting(
        0.05, "growth below this share of the throughput is steady, not growth", ge=0, lt=1
    )
    worker_capacity_records_per_s: float | None = _setting(
        None, "what one worker carries, when known; else it is observed while the workload is behind", gt=0
    )

    backlog_time_target_s: float = _setting(
        60.0,
        "drain: scale up only where the job would else fall further behind than this, or never catch up",
        gt=0,
        le=86_400,
    )
    target_utilization_ratio: float = _setting(
        0.8, "drain: a new size runs at this share of its capacity; the rest is for what nobody foresees", gt=0, le=1
    )
    rescale_pause_s: float = _setting(
        30.0, "what a rescale costs: nothing is processed for so long (10 to 60 s were measured)", ge=0, le=3600
    )
    min_spare_workers: int = _setting(
        0, "drain: so many workers beyond those needed, against steps of the input", ge=0, le=_MOST_WORKERS
    )
    warm_up_s: float = _setting(
        120.0,
        "so long after a change or a stop throughput is no benchmark: jobs were seen to warm up for it",
        ge=0,
        le=3600,
    )
    replay_s: float = _setting(
        0.0, "the checkpoint interval: half of it is processed again after a rescale (S0-21)", ge=0, le=3600
    )
    worker_start_s: float = _setting(30.0, "from asking for a worker until it is ready", ge=0, le=3600)
    metric_delay_s: float = _setting(0.0, "how late samples tell what happened (S4-04: 120)", ge=0, le=600)
    slots_per_worker: int = _setting(1, "subtasks a worker runs side by side (S4-36)", ge=1, le=1024)
    max_partitions_per_worker: int | None = _setting(
        None, "a worker's memory holds no more partitions: a floor for the workers (S4-35)", ge=1, le=_MOST_WORKERS
    )

    forecast_horizon_s: float = _setting(
        0.0, "drain: how far the input is foreseen; 0 foresees nothing, which needs fewer workers", ge=0, le=3600
    )
    forecast_outliers: int = _setting(
        3, "so many outliers in a row are a new baseline (S4-16 gives no number)", ge=1, le=15
    )
    forecast_error_ratio: float = _setting(
        0.25, "drain: a fit that errs by more than this share of the input is not trusted", ge=0, le=1
    )
    forecast_cap_ratio: float = _setting(1.5, "drain: foreseen is at most so many times the present input", ge=1, le=10)
    scaling_exponent: float = _setting(
        1.0,
        "drain: beyond the largest size seen, capacity grows with this power of the size; 1 is linear, and headroom "
        "covers a job that scales worse",
        ge=0.5,
        le=1,
    )
    high_utilization_ratio: float = _setting(
        0.9, "drain: what the fullest subtask may reach where partitions are rounded", gt=0, le=1
    )
    probe_ratio: float = _setting(
        0.2,
        "drain: where nobody knows what workers carry, so large a share is tried less after a calm window",
        ge=0,
        lt=1,
    )
    tolerance_ratio: float = _setting(
        0.1, "drain: a smaller change is not worth a rescale, and an HPA ignores it (X-07)", ge=0, lt=1
    )
    pause_budget_ratio: float | None = _setting(
        None, "downs may pause the job for so large a share of a day; unset, drain takes 0.01", gt=0, le=1
    )
    down_window_s: float | None = _setting(
        None,
        "downs go to the largest size wanted in so long a window, which drain shortens where that pays; unset, drain "
        "takes 3600 s and varga 300 s (S1-18)",
        ge=0,
        le=86_400,
    )
    rescale_worth_s: float | None = _setting(
        None,
        "a down waits until it would have saved so long of the whole job's work, a quarter more for each down of the "
        "last day, of which one that was soon taken back counts three times; unset, drain takes 300 s",
        ge=0,
        le=86_400,
    )
    cooldown_up_s: float | None = _setting(
        None,
        "no up so soon after a change; unset, drain waits until the new workers are warm and seen to be, and netflix "
        "takes 300 s (S4-29 gives none)",
        ge=0,
        le=86_400,
    )
    cooldown_down_s: float | None = _setting(
        None,
        "no down so soon after a change; unset, drain takes 600 s and netflix 1800 s (S4-29 gives none)",
        ge=0,
        le=86_400,
    )
    latch_s: float | None = _setting(
        None, "a target stands for so long until it is enacted or overtaken; unset, drain takes 900 s", ge=0, le=86_400
    )
    not_enacted_after_s: float = _setting(
        900.0, "a target that nobody enacts for so long is told as such: HPA bounds, quota or behavior", ge=0, le=86_400
    )
    failures_window_s: float = _setting(600.0, "restarts so recent are counted (S4-09)", ge=0, le=86_400)
    max_failures: int = _setting(
        2, "so many restarts, each within that window of the one before, hold the target (S4-09)", ge=1, le=1000
    )
    low_cpu_ratio: float | None = _setting(
        None,
        "behind at so low a utilization it is not the workers: one more is tried at a time; "
        "unset, drain takes 0.2 (S3-20)",
        ge=0,
        lt=1,
    )
    ineffective_gain_ratio: float = _setting(
        0.25, "an up that gained less than this share of what it should have blocks further ups", ge=0, lt=1
    )
    ineffective_block_s: float | None = _setting(
        None,
        "for so long at first, then twice as long each time, up to eight times; unset, drain takes 1800 s",
        ge=0,
        le=86_400,
    )

    lag_threshold_records: float = _setting(
        50_000.0, "varga: below this lag the utilization alone decides (S1-13, of its re-implementation)", ge=0
    )
    varga_utilization_ratio: float = _setting(0.7, "varga: the utilization it keeps to (S1-18)", gt=0, le=1)
    segments_per_worker: int = _setting(1, "segments: one worker for so many (S2-01)", ge=1, le=_MOST_WORKERS)
    significant_backlog_time_s: float = _setting(
        60.0, "netflix: a longer backlog scales up (S4-10 gives none; a fifth of S4-03's five minutes)", gt=0, le=86_400
    )
    safe_utilization_ratio: float = _setting(
        0.8, "netflix: a higher utilization scales up (S4-10 gives none; midway between S4-27 and full)", gt=0, le=1
    )
    sized_utilization_ratio: float = _setting(0.6, "netflix: a new size runs at this utilization (S4-27)", gt=0, le=1)
    catch_up_s: float = _setting(
        600.0,
        "netflix: what is buffered is processed within this time (S4-20 gives none; ten of its minutes)",
        gt=0,
        le=86_400,
    )
    no_backlog_time_s: float = _setting(
        10.0, "netflix: a shorter backlog is no lag (S4-12; S0-11's number)", ge=0, le=86_400
    )

    min_workers: int = _setting(1, "never fewer; the HPA's minReplicas raises it", ge=0, le=_MOST_WORKERS)
    max_workers: int = _setting(
        100, "never more; the HPA's maxReplicas and the partitions lower it", ge=1, le=_MOST_WORKERS
    )
    max_step_up_workers: int | None = _setting(
        None, "at most so many more in one decision; unset, netflix takes 50 (S4-29)", ge=1, le=_MOST_WORKERS
    )
    max_step_down_workers: int | None = _setting(None, "at most so many fewer in one decision", ge=1, le=_MOST_WORKERS)

    pause_up_until_s: float = _setting(0.0, "Unix seconds until which nothing is scaled up; from `pause`", hidden=True)
    pause_down_until_s: float = _setting(
        0.0, "Unix seconds until which nothing is scaled down; from `pause`", hidden=True
    )
    failover: bool = _setting(False, "no down while a region's traffic may come back (S4-30)", hidden=True)
    excluded: tuple[Period, ...] = _setting((), "when nothing is decided; from `excluded_periods`", hidden=True)


_DEFAULTS = Rules()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleBook:
    """Who is sized by which rules. Configured workloads are known before they have a sample; found ones are not.

    by_workload: "namespace/name" -> its rules. by_fleet: the rules of found workloads, by the index of their fleet.
    """

    by_workload: Mapping[str, Rules]
    by_fleet: tuple[Rules, ...] = ()

    def of(self, workload: str, fleet: int | None) -> Rules:
        """The rules of one workload; the defaults for one that neither a name nor a fleet of the book speaks of."""
        found = _DEFAULTS if fleet is None or fleet >= len(self.by_fleet) else self.by_fleet[fleet]
        return self.by_workload.get(workload, found)
