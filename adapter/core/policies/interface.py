"""What a policy is asked and what it answers, and the two terms most of them share."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adapter.core.capacity import Table
from adapter.core.forecast import Fit, trusted
from adapter.core.rates import Mask
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array
from adapter.core.signals import moves


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyInput:
    """What is known of each stage; every array has the shape (stages,).

    workers: of the workload, at work now. most_workers: the cap that max and partitions leave. partitions: the parts
    of the input, NaN where they are unknown. lowest_backlog_time_s: of the window, so without the saw's teeth.
    highest_backlog_records: before this tick, NaN when there is none. rising: the backlog does, beyond its teeth.
    partition_behind_s: backlog time of the partition furthest behind, NaN while it catches up or nobody tells.
    latest_*_records_per_s: since the tick before, NaN for a counter that rises in steps.
    growth_records_per_s: signed. utilization_ratio: of the workload's hottest stage, NaN when unknown.
    bottleneck: it is not held back by what is downstream. saturated: its backlog never ended within the window.
    fit: the input rate over time, fit_age_s after its newest point. table: what sizes were seen to carry.
    rules: parameter -> its value for each stage.
    """

    workers: Array
    most_workers: Array
    partitions: Array
    throughput_records_per_s: Array
    input_rate_records_per_s: Array
    latest_input_rate_records_per_s: Array
    latest_throughput_records_per_s: Array
    growth_records_per_s: Array
    highest_backlog_records: Array
    rising: Mask
    backlog_records: Array
    backlog_time_s: Array
    lowest_backlog_time_s: Array
    utilization_ratio: Array
    partition_behind_s: Array
    bottleneck: Mask
    saturated: Mask
    fit: Fit
    fit_age_s: Array
    table: Table
    rules: RuleColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What is foreseen for the size that runs and for another one; seconds, HORIZON_S for never.

    input_rate_records_per_s: the highest foreseen. keep_*: the present size; change_*: `workers` instead.
    *_behind_s: the longest backlog time, *_after_s: when it is reached. caught_up_s: when the backlog is gone again.
    """

    input_rate_records_per_s: Array
    workers: Array
    keep_behind_s: Array
    keep_after_s: Array
    change_behind_s: Array
    caught_up_s: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyResult:
    """The size each stage asks for, in workers; NaN where an input is unknown.

    keep_up_workers, catch_up_workers: its terms, where the policy has them. needed_workers: what the load needs now,
    whether or not a change is worth it; the window of downs remembers it. outlook: None of who foresees nothing.
    """

    wanted_workers: Array
    keep_up_workers: Array
    catch_up_workers: Array
    needed_workers: Array
    outlook: Outlook | None = None


Formula = Callable[[PolicyInput], PolicyResult]


def positive_growth(policy_input: PolicyInput) -> Array:
    """Backlog growth floored at 0 (X-03); a small share of the throughput, or a backlog that does not rise, is none."""
    noise = policy_input.rules.growth_noise_ratio * policy_input.throughput_records_per_s
    growth = policy_input.growth_records_per_s
    return np.where(policy_input.rising & (growth > noise), growth, np.where(np.isnan(growth), np.nan, 0.0))


def keeps_pace(policy_input: PolicyInput) -> Mask:
    """Whether nothing grows: neither the rates nor, sooner than they can tell, the backlog above all it was before."""
    noise = policy_input.rules.growth_noise_ratio * policy_input.throughput_records_per_s
    risen = policy_input.backlog_records - policy_input.highest_backlog_records
    far = policy_input.backlog_time_s > policy_input.rules.up_backlog_time_s  # a jump that the window does not show yet
    return (positive_growth(policy_input) <= 0) & ~(risen > noise) & ~far


def keep_up(policy_input: PolicyInput) -> Array:
    """Workers that absorb the input: M * (T + G) / T, G positive (S0-06, S3-06).

    Where nothing is processed the question has no answer: M without backlog (X-02); with one, the cap (X-01), or one
    worker to begin with where there is none.
    """
    moving = moves(policy_input.throughput_records_per_s)
    throughput = np.where(moving, policy_input.throughput_records_per_s, 1.0)
    absorbed = policy_input.workers * (throughput + positive_growth(policy_input)) / throughput
    begun = np.where(policy_input.workers > 0, policy_input.most_workers, 1.0)
    halted = np.where(policy_input.backlog_records > 0, begun, policy_input.workers)
    return np.where(moving, absorbed, np.where(np.isnan(policy_input.throughput_records_per_s), np.nan, halted))


def catch_up(policy_input: PolicyInput) -> Array:
    """Workers that clear the backlog within R: M * B / R (S0-07, S3-07)."""
    return policy_input.workers * policy_input.backlog_time_s / policy_input.rules.time_to_reduce_backlog_s


def foreseen(policy_input: PolicyInput) -> Array:
    """The highest input within the horizon, never below the present one (S4-20, S4-32)."""
    rules, present = policy_input.rules, policy_input.input_rate_records_per_s
    fit, begin_s, horizon_s = policy_input.fit, policy_input.fit_age_s, rules.forecast_horizon_s
    highest = fit.highest(begin_s, begin_s + horizon_s)
    used = trusted(fit, present, rules.forecast_error_ratio) & (horizon_s > 0)
    return np.where(used, np.clip(highest, present, present * rules.forecast_cap_ratio), present)


def drains_in_time(policy_input: PolicyInput) -> Mask:
    """Whether the backlog, as it falls now, is gone within R: then nothing more is needed (S0-28, fourth step)."""
    return (
        policy_input.backlog_records <= -policy_input.growth_records_per_s * policy_input.rules.time_to_reduce_backlog_s
    )
