"""The parameters of many workloads, or of their stages, as one array each."""

from dataclasses import dataclass, fields
from typing import Self

from adapter.core.samples import Array, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleColumns:
    """The fields of Rules, which describes them, with one entry a workload or stage.

    A choice is the index of its name, an unset limit NaN, a switch 1 or 0; `excluded` is 1 while an excluded period is
    on.
    """

    policy: Array
    safety: Array  # 0: the text of a published policy alone decides; always 1 for our own
    rate_window_s: Array
    stale_after_s: Array
    error_after_s: Array
    settle_s: Array
    in_flight_timeout_s: Array
    time_to_reduce_backlog_s: Array
    quanta: Array
    down_cpu_limit_ratio: Array
    short_backlog_time_s: Array
    up_backlog_time_s: Array
    up_cpu_ratio: Array
    down_cpu_ratio: Array
    down_cpu_desired_ratio: Array
    growth_noise_ratio: Array
    worker_capacity_records_per_s: Array
    backlog_time_target_s: Array
    target_utilization_ratio: Array
    rescale_pause_s: Array
    min_spare_workers: Array
    worker_hour_price: Array
    late_minute_price: Array
    warm_up_s: Array
    replay_s: Array
    worker_start_s: Array
    metric_delay_s: Array
    slots_per_worker: Array
    max_partitions_per_worker: Array
    forecast_horizon_s: Array
    forecast_outliers: Array
    forecast_error_ratio: Array
    forecast_cap_ratio: Array
    scaling_exponent: Array
    high_utilization_ratio: Array
    probe_ratio: Array
    tolerance_ratio: Array
    pause_budget_ratio: Array
    down_window_s: Array
    rescale_worth_s: Array
    cooldown_up_s: Array
    cooldown_down_s: Array
    latch_s: Array
    not_enacted_after_s: Array
    failures_window_s: Array
    max_failures: Array
    low_cpu_ratio: Array
    ineffective_gain_ratio: Array
    ineffective_block_s: Array
    lag_threshold_records: Array
    varga_utilization_ratio: Array
    segments_per_worker: Array
    significant_backlog_time_s: Array
    safe_utilization_ratio: Array
    sized_utilization_ratio: Array
    catch_up_s: Array
    no_backlog_time_s: Array
    min_workers: Array
    max_workers: Array
    max_step_up_workers: Array
    max_step_down_workers: Array
    pause_up_until_s: Array
    pause_down_until_s: Array
    failover: Array
    excluded: Array
    expected_times: Array  # of the present input, by an event that begins soon; otherwise 1
    expecting: Array  # 1 from shortly before an event until its end
    between_commits_s: Array  # the backlog time of commits once a tick: short_backlog_time_s is at least as long
    measures_target: Array  # 1: backlog_time_target_s is unset, and the policy raises it to the backlog of a rescale
    measures_warm_up: Array  # 1: warm_up_s is unset, and the policy measures it
    measures_start: Array  # 1: worker_start_s is unset, and the policy measures it
    measures_delay: Array  # 1: metric_delay_s is unset, and the policy measures it

    def at(self, index: IntArray) -> Self:
        """The entries at these places."""
        return type(self)(**{f.name: getattr(self, f.name)[index] for f in fields(self)})
