"""Learn at which load uneven partitions make one worker fall behind, while all workers together have capacity left.

Workers differ in speed and partitions in weight, so the fullest one falls behind first.
"""

from dataclasses import replace

import numpy as np

from adapter.core.observe import Tick
from adapter.core.partitions import imbalance_ratio
from adapter.core.samples import Array
from adapter.core.signals import backlog_time
from adapter.core.state import Slow

_LEAST_RATIO = 0.6  # of its capacity: below it the load is not the cause
_TOGETHER_RATIO = 0.95  # of the capacity of all workers: above it the job itself is too small
_SPREAD_RATIO = 1.25  # another size spreads the keys differently, so its busiest subtask may have this much more to do
_RISE_PER_MINUTE = 0.1 / 1440  # it is forgotten by a tenth a day, because keys, partitions and machines change


def partition_behind_s(tick: Tick) -> Array:
    """Backlog time of the partition that is furthest behind, as the minimum of the window.

    Its own rate is unknown, so it is that of the hottest partition, or of the mean one if that is unknown. The minimum
    leaves out what accumulates between commits. NaN if it is unknown, if the job stands still, and while the partition
    catches up.
    """
    now, least = tick.now.highest_partition_backlog_records, tick.rates.lowest_partition_backlog_records
    # The number of partitions of this weight that would carry the whole load.
    as_heavy = tick.facts.partitions[tick.workload_index] / np.fmax(1.0, tick.signals.hottest_partition_ratio)
    behind_s = backlog_time(least * as_heavy, tick.signals.throughput_records_per_s)
    stuck = tick.now.stuck_backlog_records > 0
    return np.where((now > least) & ~stuck, behind_s, np.nan)


def least_capacity(tick: Tick) -> Array:
    """Records/s that each stage carries at least until the workload's busiest subtask is full; NaN if it is unknown.

    It is unknown if a stage is busier in the mean: the busy time of that stage's subtasks is missing.
    """
    busiest, mean = tick.largest(tick.now.busiest_subtask_ratio), tick.largest(tick.now.utilization_ratio)
    known = np.where((busiest > 0) & ~(busiest < mean), busiest, np.nan)[tick.workload_index]
    return tick.signals.throughput_records_per_s / (_SPREAD_RATIO * known)


def learn_fullest_ratio(tick: Tick, slow: Slow, *, minutes: int) -> Slow:
    """Update the load at which the fullest worker of each stage fell behind; NaN if it never did.

    Loads are relative to the capacity of the mean worker. A lower one replaces a higher one.
    """
    rules, behind_s = tick.stage_rules, partition_behind_s(tick)
    learned = slow.fullest_ratio + minutes * _RISE_PER_MINUTE
    learned = np.where(learned < 1, learned, np.nan)
    partitions = tick.facts.partitions[tick.workload_index]
    throughput = tick.signals.throughput_records_per_s
    others_s = tick.signals.backlog_time_s - backlog_time(tick.rates.lowest_partition_backlog_records, throughput)
    alone = others_s < rules.short_backlog_time_s  # otherwise the job recovers from a rescale
    behind = (behind_s > rules.backlog_time_target_s / 2) & alone & tick.rates_known & ~tick.discontinuous
    if behind.any():
        capacity = tick.signals.capacity_records_per_s  # 0 without workers
        load = tick.signals.input_rate_records_per_s / np.where(capacity > 0, capacity, np.nan)
        workers = tick.workers[tick.workload_index]
        fullest = load * imbalance_ratio(workers * rules.slots_per_worker, partitions)
        behind &= (load < _TOGETHER_RATIO) & (fullest > _LEAST_RATIO)
        learned = np.where(behind, np.fmin(learned, fullest), learned)
    return replace(slow, fullest_ratio=learned)
