"""The parameters of policies, gates and bounds: each once, with its unit, its bounds and the reason for its default."""

from dataclasses import dataclass, field, fields
from typing import Any

from adapter.core import policies
from adapter.core.periods import Event, Period


def _setting(default: Any, meaning: str, **bounds: float | bool | tuple[str, ...]) -> Any:
    """A parameter with its meaning and bounds (gt, ge, lt, le, one_of), which the configuration reads.

    fixed: no annotation can set it. hidden: it is not a setting, but follows from other parts of the configuration.
    """
    return field(default=default, metadata={"meaning": meaning, **bounds})


QUANTA = ("relative", "divisors", "none")
POLICIES = policies.NAMES
_MOST_WORKERS = 100_000  # far beyond any cluster: larger is a slip
MAX_WORKERS_IF_UNKNOWN = 100  # the maximum where neither max_workers nor the HPA's maxReplicas is known
ORDERED = (  # the first parameter may not exceed the second; the consequence if it does
    ("min_workers", "max_workers", "no size is allowed"),
    ("min_spare_workers", "max_workers", "the spare workers alone exceed the maximum"),
    ("stale_after_s", "error_after_s", "worker counts would expire before they are stale"),
    ("down_cpu_ratio", "up_cpu_ratio", "the same utilization would scale up and down"),
    ("short_backlog_time_s", "up_backlog_time_s", "the same backlog time would scale up and down"),
    ("low_cpu_ratio", "target_utilization_ratio", "workers at their target utilization would count as idle"),
    ("target_utilization_ratio", "high_utilization_ratio", "a size at its target would exceed the limit"),
    ("sized_utilization_ratio", "safe_utilization_ratio", "a new size would be scaled up at once"),
    ("no_backlog_time_s", "significant_backlog_time_s", "the same backlog time would scale up and down"),
)
# What unset parameters are until `drain` measures them, and the target until it measures a longer backlog of a rescale.
UNTIL_MEASURED = {"backlog_time_target_s": 60.0, "warm_up_s": 120.0, "worker_start_s": 30.0, "metric_delay_s": 0.0}


def contradiction(order: tuple[str, str, str], lower: str, upper: str) -> str:
    """The fault of two parameters of one entry of ORDERED. lower, upper: each with its value and origin."""
    return f"expected {order[0]} <= {order[1]}, got {lower} and {upper}: {order[2]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How one workload is sized. Times in seconds, rates in records (or bytes) a second, ratios in 0..1."""

    policy: str = _setting(
        policies.DEFAULT, "policy that sizes the workload: ours, or one of a published system", one_of=POLICIES
    )
    safety: bool = _setting(
        True,
        "gates and bounds that the text of a published policy does not have; off, its text alone decides",
        fixed=True,
    )

    rate_window_s: float = _setting(
        60.0, "window over which rates and backlog growth are measured; four ticks of 15 s", gt=0, le=600, fixed=True
    )
    stale_after_s: float = _setting(
        45.0,
        "worker counts older than this are not used: the target is held; three ticks of 15 s",
        gt=0,
        le=86_400,
        fixed=True,
    )
    error_after_s: float = _setting(
        180.0,
        "samples older than this are an error: the HPA keeps its replicas and shows the reason",
        gt=0,
        le=86_400,
        fixed=True,
    )
    settle_s: float = _setting(
        45.0,
        "after the workers change, decide nothing for this time, or a longer rescale_pause_s, and metric_delay_s",
        ge=0,
        le=86_400,
    )
    in_flight_timeout_s: float = _setting(
        600.0, "after this time the target leaves out workers that are not ready, if over a tenth", ge=0, le=86_400
    )

    # S0-09, S3-09.
    time_to_reduce_backlog_s: float = _setting(
        60.0, "R: time to clear the backlog, and for all but drain the target in alerts and dashboards", gt=0, le=86_400
    )
    # S3-15, S3-16.
    quanta: str = _setting("relative", "allowed worker counts; docs/policies.md explains them", one_of=QUANTA)
    # S3-22.
    down_cpu_limit_ratio: float = _setting(0.9, "highest utilization that a smaller size may reach", gt=0, le=1)
    # S0-11, S3-20.
    short_backlog_time_s: float = _setting(
        10.0, "a shorter backlog time counts as no backlog: a scale-down requires it", ge=0, le=86_400
    )
    # S0-10.
    up_backlog_time_s: float = _setting(120.0, "scale up above this backlog time", ge=0, le=86_400)
    up_cpu_ratio: float = _setting(0.9, "scale up above this utilization", gt=0, le=1)
    # S0-11.
    down_cpu_ratio: float = _setting(0.7, "scale down only below this utilization", gt=0, le=1)
    # S0-13 leaves it open: the band of S0-11.
    down_cpu_desired_ratio: float = _setting(0.7, "highest utilization that a smaller size may reach", gt=0, le=1)
    growth_noise_ratio: float = _setting(
        0.05, "backlog growth below this share of the throughput counts as no growth", ge=0, lt=1
    )
    worker_capacity_records_per_s: float | None = _setting(
        None, "capacity of one worker, if known; otherwise it is measured while the workload is behind", gt=0
    )

    backlog_time_target_s: float | None = _setting(
        None,
        "`drain` scales up only if the job would otherwise fall further behind than this, or never catch up; unset, "
        f"{UNTIL_MEASURED['backlog_time_target_s']:g} s, or the backlog that a rescale makes if longer, up to 180 s",
        gt=0,
        le=86_400,
    )
    target_utilization_ratio: float = _setting(
        0.8, "utilization of a new size of `drain`, and of an advised parallelism; the rest is headroom", gt=0, le=1
    )
    rescale_pause_s: float = _setting(
        30.0,
        "time for which a rescale stops processing; `drain` measures it, and uses this until three rescales are seen",
        ge=0,
        le=3600,
    )
    min_spare_workers: int = _setting(
        0, "workers to add to the needed ones, for steps of the input", ge=0, le=_MOST_WORKERS
    )
    worker_hour_price: float | None = _setting(
        None,
        "price of a worker-hour; `drain` weighs it against that of a late minute unless rescale_worth_s is set, and "
        "reports show it",
        gt=0,
        le=1e9,
    )
    late_minute_price: float | None = _setting(
        None,
        "price of a minute in which the backlog time exceeds backlog_time_target_s, in the currency of "
        "worker_hour_price: the higher it is, the longer a scale-down waits that would make the job late",
        ge=0,
        le=1e9,
    )
    warm_up_s: float | None = _setting(
        None,
        "time after a rescale or a stop in which throughput is no measure of capacity: jobs warm up; unset, "
        f"{UNTIL_MEASURED['warm_up_s']:g} s, and `drain` measures it",
        ge=0,
        le=3600,
    )
    # S0-21.
    replay_s: float = _setting(0.0, "checkpoint interval: a rescale processes half of it again", ge=0, le=3600)
    worker_start_s: float | None = _setting(
        None,
        f"time until new workers are ready; unset, {UNTIL_MEASURED['worker_start_s']:g} s, and `drain` measures it",
        ge=0,
        le=3600,
    )
    # S4-04 has 120.
    metric_delay_s: float | None = _setting(
        None,
        "delay of the samples behind the events that they measure; unset, "
        f"{UNTIL_MEASURED['metric_delay_s']:g} s, and `drain` measures it",
        ge=0,
        le=600,
    )
    # S4-36.
    slots_per_worker: int = _setting(1, "subtasks that a worker runs in parallel", ge=1, le=1024)
    # S4-35.
    max_partitions_per_worker: int | None = _setting(
        None, "partitions that fit into the memory of one worker: sets a minimum of workers", ge=1, le=_MOST_WORKERS
    )

    forecast_horizon_s: float = _setting(
        0.0, "how far ahead to forecast the input; 0 turns the forecast off and needs fewer workers", ge=0, le=3600
    )
    # S4-16 gives no number.
    forecast_outliers: int = _setting(3, "consecutive outliers that form a new baseline", ge=1, le=15)
    forecast_error_ratio: float = _setting(
        0.25, "a forecast with a larger error, as a share of the input, is not used", ge=0, le=1
    )
    forecast_cap_ratio: float = _setting(1.5, "the forecast is at most this multiple of the present input", ge=1, le=10)
    scaling_exponent: float = _setting(
        1.0,
        "above the largest size measured, capacity grows with this power of the size; 1 is linear, and the "
        "headroom covers a job that scales worse",
        ge=0.5,
        le=1,
    )
    high_utilization_ratio: float = _setting(
        0.9, "highest utilization of the fullest subtask when partitions are rounded", gt=0, le=1
    )
    probe_ratio: float = _setting(
        0.2,
        "while the capacity is unknown, try this share of the workers less, down to the next even spread; 0: keep them",
        ge=0,
        lt=1,
    )
    #
    tolerance_ratio: float = _setting(
        0.1, "a smaller change does not justify a rescale of `drain` or `varga`, and an HPA ignores it", ge=0, lt=1
    )
    pause_budget_ratio: float | None = _setting(
        None, "share of a day for which scale-downs may stop the job", gt=0, le=1
    )
    # S1-18.
    down_window_s: float | None = _setting(
        None,
        "a scale-down goes to the largest size needed within this time, or sooner if the policy weighs what it saves",
        ge=0,
        le=86_400,
    )
    rescale_worth_s: float | None = _setting(
        None,
        "a scale-down waits until it would have saved this many seconds of the whole job's work, a quarter more for "
        "each scale-down of the last day; a scale-down that was soon reverted counts three times; below 60, the "
        "default down_window_s and cooldown_down_s of `drain` shrink in proportion; with 0, a scale-down waits for the "
        "whole down_window_s; without effect if that is 0",
        ge=0,
        le=86_400,
    )
    # S4-29 gives no number.
    cooldown_up_s: float | None = _setting(
        None,
        "no scale-up until this long after a change of the workers; `netflix` counts from the last scale-up",
        ge=0,
        le=86_400,
    )
    # S4-29 gives no number.
    cooldown_down_s: float | None = _setting(None, "no scale-down until this long after a change", ge=0, le=86_400)
    latch_s: float | None = _setting(
        None, "time for which a target is held until it is enacted or exceeded", ge=0, le=86_400
    )
    not_enacted_after_s: float = _setting(
        900.0, "time after which a target that is not enacted is reported: HPA limits, quota, behavior", ge=0, le=86_400
    )
    # S4-09.
    failures_window_s: float = _setting(600.0, "longest time between restarts that count together", ge=0, le=86_400)
    max_failures: int = _setting(
        2, "restarts, at most failures_window_s apart, that hold the target (docs/decisions.md)", ge=1, le=1000
    )
    # S3-20.
    low_cpu_ratio: float | None = _setting(
        None,
        "a job that is behind at a lower utilization lacks no workers: scale up by the smallest step that an HPA takes",
        ge=0,
        lt=1,
    )
    ineffective_gain_ratio: float = _setting(
        0.25, "a scale-up that gained less than this share of the expected gain blocks further ones", ge=0, lt=1
    )
    ineffective_block_s: float | None = _setting(
        None,
        "no scale-up for this long after a scale-up without effect, or until the effect shows; doubles, up to eight "
        "times, if the last such block ended less than eight times this ago",
        ge=0,
        le=86_400,
    )

    # S1-13, of its re-implementation.
    lag_threshold_records: float = _setting(50_000.0, "below this lag the utilization alone decides", ge=0)
    # S1-18.
    varga_utilization_ratio: float = _setting(0.7, "target utilization", gt=0, le=1)
    # S2-01.
    segments_per_worker: int = _setting(1, "segments for each worker", ge=1, le=_MOST_WORKERS)
    # S4-10 gives no number: a fifth of the five minutes of S4-03.
    significant_backlog_time_s: float = _setting(60.0, "scale up above this backlog time", gt=0, le=86_400)
    # S4-10 gives no number: midway between S4-27 and full.
    safe_utilization_ratio: float = _setting(0.8, "scale up above this utilization", gt=0, le=1)
    # S4-27.
    sized_utilization_ratio: float = _setting(0.6, "utilization of a new size", gt=0, le=1)
    # S4-20 gives no number: ten of its minutes.
    catch_up_s: float = _setting(600.0, "time within which the backlog is cleared", gt=0, le=86_400)
    # S4-12, with the number of S0-11.
    no_backlog_time_s: float = _setting(10.0, "a shorter backlog time counts as no lag", ge=0, le=86_400)

    min_workers: int = _setting(1, "minimum of workers; the HPA's minReplicas raises it", ge=0, le=_MOST_WORKERS)
    max_workers: int | None = _setting(
        None,
        "maximum of workers; the HPA's maxReplicas and the partitions lower it; unset, maxReplicas is the maximum; "
        f"where it is unknown, {MAX_WORKERS_IF_UNKNOWN}, or the present size if that is larger",
        ge=1,
        le=_MOST_WORKERS,
    )
    # S4-29.
    max_step_up_workers: int | None = _setting(None, "workers added in one decision, at most", ge=1, le=_MOST_WORKERS)
    max_step_down_workers: int | None = _setting(
        None, "workers removed in one decision, at most", ge=1, le=_MOST_WORKERS
    )

    pause_up_until_s: float = _setting(0.0, "Unix seconds until which scale-ups pause; from `pause`", hidden=True)
    pause_down_until_s: float = _setting(0.0, "Unix seconds until which scale-downs pause; from `pause`", hidden=True)
    # S4-30.
    failover: bool = _setting(False, "no scale-down while traffic of another region may come back", hidden=True)
    excluded: tuple[Period, ...] = _setting((), "times without decisions; from `excluded_periods`", hidden=True)
    expected: tuple[Event, ...] = _setting((), "times with more input; from `expected`", hidden=True)


MEANINGS = {  # of each setting, also by which policies
    setting.name: policies.describe(setting.name, setting.metadata["meaning"])
    for setting in fields(Rules)
    if "hidden" not in setting.metadata
}
