"""`netflix`: autoscaling stateless Flink routers by a table of what sizes carry (Farkas, 2020; S4-03..37).

Up on significant lag, high utilization (S4-10) or a forecast above the table (S4-32), down without lag and without an
expected increase (S4-12), to the size that the table gives for the forecast. An unhealthy sink, recent failures,
cooldowns, steps and failover are gates and bounds of every policy (S4-09, S4-10, S4-29, S4-30). A scale-up waits
cooldown_up_s after the last scale-up, a scale-down cooldown_down_s after any change. The talk leaves some points open.
They are decided as follows:

- S4-21: t1 is now, t2 the end of the catch-up, rescale_pause_s + catch_up_s later, and t3 = t2. The size processes all
  records that arrive until then and carries the input at that time. Without a fit the input stays constant.
- S4-13: a regression through a step or a burst would be extrapolated for ten minutes. It is used if its errors are
  within forecast_error_ratio of the input, and its result is at most forecast_cap_ratio times the input. The talk has
  neither limit, so neither applies by the text alone.
- S4-10, S0-28: workers that clear the backlog within catch_up_s are full until then, and are enough. The talk has no
  such condition, so it does not apply by the text alone.
- S4-32: workers of known capacity scale up before there is lag if the forecast exceeds that capacity. The trend counts
  as far as it exceeds twice its error, so that noise is no trend. The talk leaves this for later, so neither applies by
  the text alone.
- S4-12: an increase within growth_noise_ratio does not count. Otherwise a level input would prevent half of the
  scale-downs.
- S4-27: the limit applies beside the table, because S4-24 sizes 15,000/s to 7 workers without a deduction. CPU work
  follows the rate (P-03), so size n runs at utilization * workers / n * rate / throughput, with the rate at t3: the
  backlog drains at full speed until then and needs no more workers. A new size may exceed the utilization
  by 1 %, because a measured rate has an error: in the simulator 99.8 records/s of 100. By the text alone it may not.
- S4-26: every scale-up is a benchmark (S4-11), so the present size and rate are the first record of an empty table;
  without throughput it is one step up. A scale-down with an empty table keeps the size.
- S4-28: sizes are rounded alike. A scale-down carries at least the present input (S4-05). Without a utilization there
  is no scale-down, because S4-27 cannot be checked.
"""

from dataclasses import replace

import numpy as np

from adapter.core.capacity import CARRIED, confidence_at, rate_at, size_for
from adapter.core.forecast import Fit, is_trusted, recovery_rate
from adapter.core.partitions import even_size, whole
from adapter.core.policies.interface import PolicyInput, PolicyResult, lasting_backlog_time
from adapter.core.rates import Mask
from adapter.core.samples import Array, first_known
from adapter.core.signals import is_processing

_ANY = 1e9  # times the input: no limit
_TREND_SIGMAS = 2.0  # a smaller change may be chance
_MEASURED_WITHIN = 0.01  # of the utilization of a new size


def size(policy_input: PolicyInput) -> PolicyResult:
    """Up if late, hot or soon outgrown, down without lag and without an expected increase, otherwise unchanged."""
    rules, workers, present = policy_input.rules, policy_input.workers, policy_input.input_rate_records_per_s
    behind = policy_input.backlog_time_s > rules.significant_backlog_time_s
    hot = policy_input.utilization_ratio > rules.safe_utilization_ratio
    begin_s, end_s = policy_input.fit_age_s, policy_input.fit_age_s + rules.rescale_pause_s + rules.catch_up_s
    curve = _curve(policy_input, end_s)
    most = present * np.where(rules.safety == 0, _ANY, rules.forecast_cap_ratio)
    at_most = (most * (end_s - begin_s) + policy_input.backlog_records) / rules.catch_up_s
    arriving = recovery_rate(curve, policy_input.backlog_records, begin_s, end_s, rules.catch_up_s)
    recovery = np.fmin(arriving, at_most)
    workload = np.clip(curve.at(end_s), present, most)  # at least the present one: S4-05
    rises = workload > present * (1 + rules.growth_noise_ratio)
    late = ((behind | hot) & ~_catches_up(policy_input)) | (rises & _outgrows_table(policy_input, workload))
    keep, catch = _workers_by_table(policy_input, workload, late), _workers_by_table(policy_input, recovery, late)
    needed = _needed_workers(policy_input, np.maximum(keep, catch), workload)  # S4-20's larger rate, as its size

    calm = (lasting_backlog_time(policy_input) <= rules.no_backlog_time_s) & ~rises
    down = calm & np.isfinite(policy_input.utilization_ratio)
    unknown = np.isnan(workers + policy_input.backlog_time_s + workload)
    wanted = np.select(
        [unknown, late, down], [np.nan, np.maximum(needed, workers), np.minimum(needed, workers)], workers
    )
    return PolicyResult(
        wanted_workers=wanted,
        keep_up_workers=keep,
        catch_up_workers=catch,
        needed_workers=np.where(unknown, np.nan, needed),
    )


def _catches_up(policy_input: PolicyInput) -> Mask:
    """Whether the workers clear a backlog in the time allowed: they are full until then and need no more (S0-28)."""
    rules, drained_records_per_s = policy_input.rules, -policy_input.growth_records_per_s
    drains = drained_records_per_s > rules.growth_noise_ratio * policy_input.throughput_records_per_s
    in_time = policy_input.backlog_records <= drained_records_per_s * rules.catch_up_s
    catches_up: Mask = drains & in_time & (rules.safety != 0)
    return catches_up


def _outgrows_table(policy_input: PolicyInput, workload: Array) -> Mask:
    """Whether the forecast exceeds what the table gives for the present workers (S4-32)."""
    rules, table, workers = policy_input.rules, policy_input.table, policy_input.workers
    able = rate_at(table, workers, np.ones_like(workers))
    known = (confidence_at(table, workers) > CARRIED) & (rules.safety != 0)
    outgrown: Mask = known & (workload > able)
    return outgrown


def _curve(policy_input: PolicyInput, until_s: Array | float) -> Fit:
    """The fit; without one, or with one whose errors are large, the present input as a constant.

    The trend counts as far as it exceeds its error until then, so that noise is no trend.
    """
    fit, present = policy_input.fit, policy_input.input_rate_records_per_s
    rules = policy_input.rules
    text = rules.safety == 0
    used = is_trusted(fit, present, np.where(text, _ANY, rules.forecast_error_ratio))
    change = np.abs(fit.at(until_s) - fit.at(0.0))
    certain = np.clip(1 - _TREND_SIGMAS * fit.sigma / np.where(change > 0, change, 1.0), 0.0, 1.0)
    share = np.where(text, 1.0, certain)
    return replace(
        fit,
        a=np.where(used, share * fit.a, 0.0),
        b=np.where(used, share * fit.b, 0.0),
        c=np.where(used, fit.c, present),
    )


def _workers_by_table(policy_input: PolicyInput, rate: Array, late: Mask) -> Array:
    """The workers that carry a rate by the table (S4-23..26); with an empty table the present ones, unless late."""
    workers, throughput = policy_input.workers, policy_input.throughput_records_per_s
    processing = is_processing(throughput)
    first_record = np.where(processing, workers * rate / np.where(processing, throughput, 1.0), workers + 1)
    by_table = size_for(policy_input.table, rate, np.ones_like(rate))  # linear above the table's top (S4-25)
    return first_known(by_table, np.where(late, first_record, workers))


def _needed_workers(policy_input: PolicyInput, carrying: Array, workload: Array) -> Array:
    """Whole workers that carry the load, stay below the utilization (S4-27) and share the partitions evenly (S4-37)."""
    rules, throughput = policy_input.rules, policy_input.throughput_records_per_s
    processing = is_processing(throughput)
    work = np.where(processing, workload / np.where(processing, throughput, 1.0), 1.0)
    cool = policy_input.workers * policy_input.utilization_ratio * work / rules.sized_utilization_ratio
    cool *= np.where(rules.safety == 0, 1.0, 1 - _MEASURED_WITHIN)
    sized = np.maximum(whole(np.fmax(carrying, cool)), 1.0)
    return even_size(sized, policy_input.partitions, rules.slots_per_worker)
