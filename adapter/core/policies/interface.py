"""The input and the result of a policy, and the two terms that most policies share."""

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from adapter.core.capacity import Table
from adapter.core.forecast import Fit, is_trusted
from adapter.core.rates import Mask
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array
from adapter.core.signals import is_processing


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyInput:
    """The signals of each stage that policies read; every array has the shape (stages,), NaN unknown."""

    workers: Array  # present workers of the workload
    most_workers: Array  # the maximum that limits and partitions leave
    partitions: Array  # of the input
    throughput_records_per_s: Array
    input_rate_records_per_s: Array
    latest_input_rate_records_per_s: Array  # since the tick before, NaN for a counter that rises in steps
    confirmed_input_rate_records_per_s: Array  # the lower of the latest two
    latest_throughput_records_per_s: Array  # since the tick before, NaN for a counter that rises in steps
    resumes: Mask  # the newest input follows a missing sample: its newest rate is known at the next tick
    input_rise_records_per_s2: Array  # how fast the input rises, 0 if it does not, NaN unknown
    growth_records_per_s: Array  # signed
    highest_backlog_records: Array  # of the window, before this tick
    rising: Mask  # the backlog rises, apart from its sawtooth
    backlog_records: Array
    backlog_time_s: Array
    lowest_backlog_time_s: Array  # of the window, so without the sawtooth
    utilization_ratio: Array  # of the workload's hottest stage
    relayed_load_ratio: Array  # input / true rate of the workload's fullest stage without a backlog of its own
    fullest_ratio: Array  # the load at which the fullest worker fell behind, NaN while it never did
    partition_behind_s: Array  # backlog time of the partition that is furthest behind, NaN while it catches up
    bottleneck: Mask  # not backpressured
    held_back: Mask  # one full subtask of a later stage holds back the sources
    least_capacity_records_per_s: Array  # until the busiest subtask is full, NaN if its busy time is unknown
    saturated: Mask  # the backlog never ended within the window, in which the workers were always warm
    level: Mask  # the backlog does not rise, is within the target, and workers are not full: it need not be real
    fit: Fit  # the input rate over time
    fit_age_s: Array  # since the newest point of the fit
    table: Table  # the learned capacity
    rules: RuleColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The expected backlog at the present size and at another one; seconds, HORIZON_S for never."""

    change_workers: Array  # the other size
    keep_behind_s: Array  # the longest backlog time at the present size
    keep_after_s: Array  # when it is reached
    change_behind_s: Array  # the longest backlog time at the other size
    caught_up_s: Array  # when its backlog is gone
    calm: Array  # 1 if the job keeps pace without a backlog, otherwise 0
    in_step: Array  # 1 if no scale-up is decided before the end of a step of the input shows its size, otherwise 0
    full_stage: Array  # 1 if a stage without a backlog of its own is full, otherwise 0
    held_back: Array  # 1 if one full subtask of a later stage holds back the sources, otherwise 0
    expected_times: Array  # an expected event multiplies the input by it; NaN without one
    blocking_rise_records_per_s: Array  # of the input, until a scale-up can take effect; NaN if it blocks no scale-down
    too_small_workers: Array  # the smaller size over which partitions spread evenly, if it carries too little, or NaN
    too_small_capacity_records_per_s: Array  # what it carries


NO_OUTLOOK = Outlook(**{f.name: np.array(np.nan) for f in fields(Outlook)})  # of a policy without a forecast


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyResult:
    """The size of each stage, in workers; NaN if an input is unknown."""

    wanted_workers: Array
    keep_up_workers: Array  # the first term, if the policy has terms
    catch_up_workers: Array  # the second term
    needed_workers: Array  # the load needs them now, whether or not a change pays; an input of the scale-down window
    outlook: Outlook = NO_OUTLOOK


Formula = Callable[[PolicyInput], PolicyResult]


_JUMP_S = 120.0  # of the backlog time, which the window does not show yet
_MARKERS_PER_S = 1.0  # less input may be markers of transactions, which no consumer processes
_ROUNDING = 1e-6  # growth below this share of the throughput is a rounding error of its slope


def lasting_backlog_time(policy_input: PolicyInput) -> Array:
    """The least backlog time of the window, so without the sawtooth of commits; with safety off the present one."""
    present, least = policy_input.backlog_time_s, policy_input.lowest_backlog_time_s
    return np.where(policy_input.rules.safety == 0, present, least)


def positive_growth(policy_input: PolicyInput) -> Array:
    """Backlog growth, at least 0 (X-03). Growth within the noise, or without a rising backlog, counts as 0.

    With safety off every growth counts but floating point errors (X-11).
    """
    off = policy_input.rules.safety == 0
    noise = np.where(off, _ROUNDING, policy_input.rules.growth_noise_ratio) * policy_input.throughput_records_per_s
    growth = policy_input.growth_records_per_s
    return np.where((policy_input.rising | off) & (growth > noise), growth, np.where(np.isnan(growth), np.nan, 0.0))


def keeps_pace(policy_input: PolicyInput) -> Mask:
    """Whether the backlog does not grow by its rates, and does not exceed its previous maximum, which shows earlier.

    Input without throughput is a backlog that is not counted, because a group waits for the end of a transaction.
    """
    noise = policy_input.rules.growth_noise_ratio * policy_input.throughput_records_per_s
    risen = policy_input.backlog_records - policy_input.highest_backlog_records
    far = policy_input.backlog_time_s > _JUMP_S
    uncounted = (policy_input.throughput_records_per_s == 0) & (policy_input.input_rate_records_per_s > _MARKERS_PER_S)
    level = positive_growth(policy_input) <= 0
    steady: Mask = level & ((policy_input.rules.safety == 0) | ~((risen > noise) | far | uncounted))
    return steady


def keep_up(policy_input: PolicyInput) -> Array:
    """Workers that absorb the input: M * (T + G) / T, G positive (S0-06, S3-06).

    Without throughput: M if there is no backlog (X-02), otherwise the maximum (X-01), or one worker to begin with if
    there is none.
    """
    processing = is_processing(policy_input.throughput_records_per_s)
    throughput = np.where(processing, policy_input.throughput_records_per_s, 1.0)
    absorbed = policy_input.workers * (throughput + positive_growth(policy_input)) / throughput
    begun = np.where(policy_input.workers > 0, policy_input.most_workers, 1.0)
    halted = np.where(policy_input.backlog_records > 0, begun, policy_input.workers)
    return np.where(processing, absorbed, np.where(np.isnan(policy_input.throughput_records_per_s), np.nan, halted))


def catch_up(policy_input: PolicyInput) -> Array:
    """Workers that clear the backlog within R: M * B / R (S0-07, S3-07)."""
    return policy_input.workers * policy_input.backlog_time_s / policy_input.rules.time_to_reduce_backlog_s


def forecast_input_rate(policy_input: PolicyInput) -> Array:
    """The highest input within the horizon, never below the present one (S4-20, S4-32)."""
    rules, present = policy_input.rules, policy_input.input_rate_records_per_s
    fit, begin_s, horizon_s = policy_input.fit, policy_input.fit_age_s, rules.forecast_horizon_s
    highest = fit.highest(begin_s, begin_s + horizon_s)
    used = is_trusted(fit, present, rules.forecast_error_ratio) & (horizon_s > 0)
    return np.where(used, np.clip(highest, present, present * rules.forecast_cap_ratio), present)


def is_full(policy_input: PolicyInput) -> Mask:
    """Whether a stage without a backlog of its own has no busy time left for its input."""
    full: Mask = policy_input.relayed_load_ratio > policy_input.rules.high_utilization_ratio
    return full


def drains_in_time(policy_input: PolicyInput) -> Mask:
    """Whether the backlog is gone within R at its present rate and needs no more workers (S0-28, fourth step).

    The published policies have no such check, so with safety off it never holds.
    """
    drained = -policy_input.growth_records_per_s * policy_input.rules.time_to_reduce_backlog_s
    in_time: Mask = (policy_input.backlog_records <= drained) & (policy_input.rules.safety != 0)
    return in_time
