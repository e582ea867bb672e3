"""The load of each stage: its input / its true rate. The backlog of later stages waits at the source of the job."""

import numpy as np

from adapter.core.aggregation import first_largest, some
from adapter.core.limits import at_least_one
from adapter.core.observe import Tick
from adapter.core.partitions import whole
from adapter.core.rates import Mask
from adapter.core.samples import Array, IntArray, first_known
from adapter.core.signals import is_processing
from adapter.core.stage_reports import MISSED_S

LONGEST_TRIAL_S = 3600.0  # after a scale-up; a lower throughput later need not be its effect
HELD_BACK = 0.5  # a stage that is backpressured for more of the time is not the bottleneck (S1-19)


def stage_load(tick: Tick) -> Array:
    """Input / true rate of each stage, shape (stages,); NaN unknown.

    The true rate is what the stage processes at full busy time. Its input is reported, or in proportion to the input of
    the job's sources. While the sources catch up, their input is less than their throughput, so a stage that is full
    with the backlog alone is not full with the input.
    """
    throughput = tick.rates.throughput_records_per_s
    processing = is_processing(throughput)
    own = tick.rates.input_rate_records_per_s / np.where(processing, throughput, np.nan)
    load = first_known(own, _source_ratio(tick)[tick.workload_index]) * tick.now.utilization_ratio
    return np.where(processing, load, np.nan)


def true_rate(tick: Tick) -> Array:
    """Records/s of each stage at full busy time, shape (stages,); NaN without busy time.

    The busy time is the newest one, so the throughput is that of the last tick, unless its counter rises in steps.
    """
    busy_ratio = tick.now.utilization_ratio
    rate = first_known(tick.rates.latest_throughput_records_per_s, tick.rates.throughput_records_per_s)
    return rate / np.where(busy_ratio > 0, busy_ratio, np.nan)


def required_parallelism(tick: Tick) -> Array:
    """Subtasks with which each stage would carry its input at the target utilization, shape (stages,); NaN unknown."""
    rules, subtasks = tick.stage_rules, tick.workers[tick.workload_index] * tick.stage_rules.slots_per_worker
    return np.maximum(whole(subtasks * stage_load(tick) / rules.target_utilization_ratio), 1.0)


def bottleneck(tick: Tick) -> IntArray:
    """The fullest stage of each workload, as an index, shape (workloads,); -1 if no load is known."""
    load = stage_load(tick)
    return first_largest([load], np.isfinite(load), tick.workload_index, len(tick.workers))


def fullest_load(tick: Tick) -> Array:
    """The largest load of the workload's stages without a backlog of their own, shape (stages,); NaN without one."""
    if tick.plain:
        return np.full(len(tick.workload_index), np.nan)
    load = np.where(tick.sized, np.nan, stage_load(tick))
    return tick.largest(load)[tick.workload_index]


def proven_load(tick: Tick) -> Array:
    """The fullest load; NaN while the rate window does not show yet whether the last scale-up was effective.

    A stage that is full for less than a rate window may write a snapshot, so it counts as nearly full.
    """
    rules = tick.stage_rules
    is_recent = tick.at_s - tick.state.fast.spec_raised_at_s[tick.workload_index] <= LONGEST_TRIAL_S
    unproven = is_recent & (tick.warm_age_s < rules.rate_window_s)
    lasts = tick.at_s - tick.state.slow.trial.relays_since_s >= rules.rate_window_s
    load = fullest_load(tick)
    load = np.where(lasts, load, np.minimum(load, rules.high_utilization_ratio))
    return np.where(unproven, np.nan, load)


def relayed_workers(tick: Tick) -> Array:
    """Workers that the stages without a backlog of their own can use, shape (workloads,).

    At least what they need for the input, and as many as full sources keep busy: workers without a partition help them
    to catch up. 0 while their load is unknown, NaN without such stages.
    """
    if tick.plain:
        return np.full(len(tick.workers), np.nan)
    load, needed = stage_load(tick), whole(required_parallelism(tick) / tick.stage_rules.slots_per_worker)
    sources = tick.largest(np.where(tick.sized, load, np.nan))[tick.workload_index]
    at_sources = np.fmax(tick.workers, at_least_one(tick.facts.partitions) / tick.rules.slots_per_worker)
    fed = np.floor(at_sources[tick.workload_index] * load / np.where(sources > 0, sources, np.nan))
    return tick.largest(np.where(_is_later(tick), np.nan_to_num(np.fmax(needed, fed)), np.nan))


def misses_utilization(tick: Tick) -> Mask:
    """Whether a later stage of each workload reported a utilization within the last hour, and does not now."""
    reported = tick.at_s - tick.state.fast.signals.resources_at_s < MISSED_S
    missing = _is_later(tick) & reported & np.isnan(tick.now.utilization_ratio)
    return some(missing, tick.workload_index, len(tick.workers))


def _is_later(tick: Tick) -> Mask:
    """Whether a stage has throughput and never had a backlog. An idle source is not sized either, but has had one."""
    later: Mask = np.isnan(tick.state.fast.seen_at_s) & ~tick.sized & np.isfinite(tick.signals.throughput_records_per_s)
    return later


def is_held_back(tick: Tick) -> Mask:
    """Whether one full subtask of a later stage holds back the sources, shape (stages,).

    Uneven keys fill one subtask long before the mean is full, and the connector may not count the records that wait.
    """
    now, later = tick.now, ~tick.sized
    sources = tick.largest(np.where(later, np.nan, now.backpressured_ratio))[tick.workload_index]
    busiest = tick.largest(np.where(later, now.busiest_subtask_ratio, np.nan))[tick.workload_index]
    held_back: Mask = (sources > HELD_BACK) & (busiest > tick.stage_rules.high_utilization_ratio)
    return held_back


def relays_at_capacity(tick: Tick) -> Mask:
    """Whether a later stage of a warm workload is full, so that the throughput of its sources is its capacity."""
    full: Mask = (fullest_load(tick) > tick.stage_rules.high_utilization_ratio) & (tick.warm_age_s >= 0)
    return full


def _source_ratio(tick: Tick) -> Array:
    """Input / throughput of all sources of each workload, shape (workloads,); NaN if nothing moves."""
    arriving, passing = tick.signals.input_rate_records_per_s, tick.signals.throughput_records_per_s
    known = tick.sized & np.isfinite(arriving + passing)
    total = np.zeros((2, len(tick.workers)))
    np.add.at(total[0], tick.workload_index[known], arriving[known])
    np.add.at(total[1], tick.workload_index[known], passing[known])
    ratio: Array = total[0] / np.where(is_processing(total[1]), total[1], np.nan)
    return ratio
