"""`drain`: our own policy. It sizes by measured capacity.

Up: the load needs more workers, and the backlog time at the present size would exceed backlog_time_target_s within the
horizon, or a stage without a backlog of its own is full. Down: there is no backlog and the load needs fewer workers; a
bound waits until the change pays. Otherwise the size stays, because a rescale costs a pause.

With no pause, no replay, linear scaling, no forecast, no rise and no headroom the size is S3-06 + S3-07 exactly.
"""

import numpy as np

from adapter.core.capacity import CARRIED, SHARE_RATIO, confidence_at
from adapter.core.limits import one_more
from adapter.core.partitions import even_size, fewest_evenly_spread, whole
from adapter.core.policies.interface import (
    Outlook,
    PolicyInput,
    PolicyResult,
    forecast_input_rate,
    is_full,
    keeps_pace,
    positive_growth,
)
from adapter.core.policies.known_capacity import Capacity, known_capacity
from adapter.core.policies.outlook import Projection, horizon_s, look_ahead
from adapter.core.policies.scale_up_input import expected_rise, input_to_carry, is_in_step
from adapter.core.rates import Mask
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array, first_known
from adapter.core.scale_down_cost import backlog_after_rescale_s
from adapter.core.signals import backlog_time

_CATCH_UP_PAUSES = 10.0  # a pause makes a backlog of its own length; clearing it sooner takes extra workers
_LONGEST_CATCH_UP_S = 600.0
_SLOWEST_CATCH_UP_S = 1800.0  # with the headroom alone


def size(policy_input: PolicyInput) -> PolicyResult:
    """Up if the present size misses the target, down if fewer workers are enough, otherwise unchanged."""
    rules, workers, capacity = policy_input.rules, policy_input.workers, known_capacity(policy_input)
    highest = np.fmax(forecast_input_rate(policy_input), _expected_input(policy_input))
    calm = _is_calm(policy_input)
    needed = _needed_workers(policy_input, capacity, highest)
    other = _other_workers(policy_input, capacity, highest, needed)
    ahead = _look_ahead(policy_input, capacity, highest, other)
    up = (needed > workers) & ~is_in_step(policy_input, highest) & (ahead.late | _misses_target(policy_input, capacity))
    down = calm & ~_outgrows_headroom(policy_input) & (workers - needed > rules.tolerance_ratio * workers)
    return PolicyResult(
        wanted_workers=np.where(up | down | np.isnan(needed), other, workers),
        keep_up_workers=capacity.size(_keep_up_rate(rules, highest)),
        catch_up_workers=capacity.size(_catch_up_rate(policy_input, capacity, highest)),
        needed_workers=needed,
        outlook=_outlook(policy_input, capacity, highest, other, ahead),
    )


def _other_workers(policy_input: PolicyInput, capacity: Capacity, highest: Array, needed: Array) -> Array:
    """The size after a change: the needed one, or for a scale-up one that carries the input for longer."""
    larger = _needed_workers(policy_input, capacity, input_to_carry(policy_input, highest))
    raised = np.maximum(larger, one_more(policy_input.workers, policy_input.rules))
    return np.where(needed > policy_input.workers, raised, needed)


def _is_calm(policy_input: PolicyInput) -> Mask:
    """Whether the job keeps pace without a backlog, so that fewer workers may be enough."""
    return _has_no_backlog(policy_input) & keeps_pace(policy_input)


def _has_no_backlog(policy_input: PolicyInput) -> Mask:
    """Whether the backlog is no longer than what accumulates between two commits, or need not be real."""
    unreal = policy_input.level & np.isfinite(policy_input.utilization_ratio)
    short = policy_input.lowest_backlog_time_s < policy_input.rules.short_backlog_time_s
    return unreal | short


def _expected_input(policy_input: PolicyInput) -> Array:
    """The input during an expected event, records/s; the present input without one."""
    return policy_input.input_rate_records_per_s * policy_input.rules.expected_times


def _outgrows_headroom(policy_input: PolicyInput) -> Mask:
    """Whether the input rises so fast that the low load, which would pay for a scale-down, is about to end.

    A rise within the noise does not count: without headroom any rise would block scale-downs.
    """
    rules = policy_input.rules
    spare = np.maximum(_headroom(rules), rules.growth_noise_ratio)
    return expected_rise(policy_input) > spare * policy_input.input_rate_records_per_s


def _needed_workers(policy_input: PolicyInput, capacity: Capacity, input_rate: Array) -> Array:
    """Whole workers with spare ones, such that partitions spread evenly; without input only the spare ones."""
    rate = _needed_rate(policy_input, capacity, input_rate)
    sized = _sized(policy_input, capacity, rate)
    even = _nearest_while_late(policy_input, sized, _evenly_spread(policy_input, capacity, sized, input_rate))
    needed = np.where(rate > 0, even, np.where(np.isnan(rate), np.nan, policy_input.rules.min_spare_workers))
    return np.where(np.isnan(needed), np.nan, np.fmax(needed, _workers_of_full_stage(policy_input)))


def _needed_rate(policy_input: PolicyInput, capacity: Capacity, input_rate: Array) -> Array:
    """The capacity that carries the input with headroom, and clears the backlog, records/s."""
    keep_up_rate = _keep_up_rate(policy_input.rules, input_rate)
    return np.maximum(keep_up_rate, _catch_up_rate(policy_input, capacity, input_rate))


def _sized(policy_input: PolicyInput, capacity: Capacity, rate: Array) -> Array:
    """Whole workers with spare ones, however the partitions spread over them."""
    sized = whole(capacity.size(rate)) + policy_input.rules.min_spare_workers
    return np.where(capacity.proven, sized, _unproven_size(policy_input, sized))


def _workers_of_full_stage(policy_input: PolicyInput) -> Array:
    """Workers that carry the input of the fullest stage without a backlog of its own, NaN without such a stage.

    Its backlog waits at the source, which may not report it. At least the present workers while it is held back.
    """
    rules, workers = policy_input.rules, policy_input.workers
    carry = whole(workers * policy_input.relayed_load_ratio / rules.target_utilization_ratio) + rules.min_spare_workers
    return np.where(policy_input.held_back, np.fmax(carry, workers), carry)


def _keep_up_rate(rules: RuleColumns, input_rate: Array) -> Array:
    """The capacity that carries the input with headroom, records/s."""
    return input_rate * (1 + _headroom(rules))


def _catch_up_rate(policy_input: PolicyInput, capacity: Capacity, input_rate: Array) -> Array:
    """The capacity that carries the input and clears the backlog after a rescale, records/s.

    The backlog that the rescale itself makes takes no more than the headroom, if that clears it within half an hour.
    Of late metrics it also clears what has waited since the newest sample, so that no second scale-up has to.
    """
    rules = policy_input.rules
    catch_up_s = np.minimum(_CATCH_UP_PAUSES * rules.rescale_pause_s, _LONGEST_CATCH_UP_S)
    catch_up_s = np.maximum(catch_up_s, rules.backlog_time_target_s)
    lost_s = backlog_after_rescale_s(rules)
    lost = np.clip(_headroom(rules), lost_s / np.maximum(catch_up_s, _SLOWEST_CATCH_UP_S), lost_s / catch_up_s)
    unseen_records = np.maximum(input_rate - capacity.assumed_records_per_s, 0.0) * rules.metric_delay_s
    seen_rate = policy_input.backlog_records / catch_up_s
    return seen_rate + unseen_records / _LONGEST_CATCH_UP_S + input_rate * (1 + lost)


def _headroom(rules: RuleColumns) -> Array:
    """The spare capacity at the target utilization, as a share of the input."""
    return 1 / rules.target_utilization_ratio - 1


def _unproven_size(policy_input: PolicyInput, sized: Array) -> Array:
    """The size while the capacity of the present workers is unknown.

    It falls by a share while no records wait, so that the capacity can be learned. Otherwise it stays.
    """
    workers = policy_input.workers
    probed = np.maximum(whole(workers * (1 - policy_input.rules.probe_ratio)), 1.0)
    return np.where(_may_be_fewer(policy_input), np.fmin(sized, probed), np.maximum(workers, 1.0))


def _may_be_fewer(policy_input: PolicyInput) -> Mask:
    """Whether no records wait, in any partition, so that fewer workers may be enough."""
    late = policy_input.partition_behind_s > _partition_limit_s(policy_input.rules)
    return _has_no_backlog(policy_input) & ~late


def _evenly_spread(policy_input: PolicyInput, capacity: Capacity, sized: Array, input_rate: Array) -> Array:
    """The size over which the partitions spread evenly, larger where the smaller one is known to carry too little.

    A size above the partitions stays: a bound limits it and names the partitions that the load needs.
    """
    rules, workers, partitions = policy_input.rules, policy_input.workers, policy_input.partitions
    even = _even_size(policy_input, capacity, sized, input_rate)
    roomy = whole(capacity.size(_keep_up_rate(rules, input_rate)))
    above = even_size(np.where(capacity.proven, sized, np.fmax(sized, roomy)), partitions, rules.slots_per_worker)
    above = np.where(sized > workers, above, np.fmin(above, workers))  # a scale-down ends at the present size
    found = np.where(_carries_too_little(policy_input, capacity, even, input_rate), above, even)
    return np.where(sized * rules.slots_per_worker > partitions, np.maximum(sized, found), found)


def _even_size(policy_input: PolicyInput, capacity: Capacity, sized: Array, input_rate: Array) -> Array:
    """The size with which the fullest subtask carries the input; the passing backlog does not count.

    The capacity of a worker at the present size keeps the result monotone where the table is not linear. While a
    smaller size is tried, the result is the fewest workers over which the partitions spread as evenly.
    """
    rules = policy_input.rules
    able = capacity.present_records_per_s / np.maximum(policy_input.workers, 1.0) * sized
    usable = capacity.proven & (able > 0)
    tries = ~capacity.proven & _may_be_fewer(policy_input) & (sized < policy_input.workers)
    assumed = np.where(tries, 0.0, rules.target_utilization_ratio)
    load = np.where(usable, input_rate / np.where(usable, able, 1.0), assumed)
    highest = np.fmin(rules.high_utilization_ratio, policy_input.fullest_ratio)
    return fewest_evenly_spread(sized, policy_input.partitions, rules.slots_per_worker, load, highest)


def _carries_too_little(policy_input: PolicyInput, capacity: Capacity, even: Array, input_rate: Array) -> Mask:
    """Whether the known capacity of a size is below the input. A tried size also has to carry the headroom.

    A capacity below what the busiest subtask allows was measured wrongly.
    """
    known, present = capacity.rate(even), capacity.present_records_per_s
    least = first_known(policy_input.least_capacity_records_per_s, present / SHARE_RATIO)
    roomy = whole(capacity.size(_keep_up_rate(policy_input.rules, input_rate)))
    tight = (confidence_at(capacity.table, even) > CARRIED) & (even < roomy)
    return np.where(capacity.proven, (known < input_rate) & (known * policy_input.workers >= least * even), tight)


def _too_small_workers(policy_input: PolicyInput, capacity: Capacity, input_rate: Array) -> Array:
    """The even size that would be needed if it did not carry too little; NaN without one."""
    sized = _sized(policy_input, capacity, _needed_rate(policy_input, capacity, input_rate))
    even = _even_size(policy_input, capacity, sized, input_rate)
    return np.where(_carries_too_little(policy_input, capacity, even, input_rate), even, np.nan)


def _nearest_while_late(policy_input: PolicyInput, sized: Array, even: Array) -> Array:
    """For a scale-up of a late job the nearest evenly spread size, because the next smaller one may clear it slowly.

    even: the smaller one, which stays where the maximum would cut the larger one to an uneven size.
    """
    rules, workers = policy_input.rules, policy_input.workers
    above = even_size(sized, policy_input.partitions, rules.slots_per_worker)
    late = (even > workers) & (policy_input.backlog_time_s > rules.backlog_time_target_s)
    nearer = (sized - even > above - sized) & (above <= policy_input.most_workers)
    return np.where(late & nearer, above, even)


def _look_ahead(policy_input: PolicyInput, capacity: Capacity, highest: Array, other: Array) -> Projection:
    """The expected backlog at the present size and at another one.

    A smaller size carries at least its share of the present capacity, as rounding assumes: an older observation of it
    may be of a slow sink.
    """
    workers, changed = policy_input.workers, capacity.rate(other)
    share = capacity.present_records_per_s * other / np.maximum(workers, 1.0)
    changed = np.where(other < workers, np.fmax(changed, share), changed)
    return look_ahead(policy_input, highest, capacity.assumed_records_per_s, changed)


def _misses_target(policy_input: PolicyInput, capacity: Capacity) -> Mask:
    """Whether the present size is too small for a reason that the expected backlog does not show.

    A partition is late while the sum of all is not, a stage without a backlog of its own is full, or an event begins
    soon whose input would make the workers full.
    """
    rules, event = policy_input.rules, _expected_input(policy_input)
    uneven = policy_input.partition_behind_s > _partition_limit_s(rules)
    outgrown = (rules.expected_times > 1) & (event > rules.high_utilization_ratio * capacity.assumed_records_per_s)
    return uneven | outgrown | is_full(policy_input)


def _partition_limit_s(rules: RuleColumns) -> Array:
    """How far the worst partition may be behind before the job scales up.

    It may have fallen further behind since a late sample, so the limit is less than the target: at least half of it,
    and at least the backlog of a rescale, which would otherwise cause the next one.
    """
    target_s = rules.backlog_time_target_s
    least_s = np.maximum(target_s / 2, backlog_after_rescale_s(rules))
    limit_s: Array = np.minimum(np.maximum(target_s - rules.metric_delay_s, least_s), target_s)
    return limit_s


def _outlook(policy_input: PolicyInput, capacity: Capacity, highest: Array, other: Array, ahead: Projection) -> Outlook:
    """The expected backlogs, NaN if the capacity is not proven. The present throughput may show a longer backlog."""
    proven, too_small = capacity.proven, _too_small_workers(policy_input, capacity, highest)
    behind_s = _behind_at_present(policy_input, highest)
    after_s = np.where(behind_s > ahead.keep_behind_s, horizon_s(policy_input.rules), ahead.keep_after_s)
    blocks, times = (other < policy_input.workers) & _outgrows_headroom(policy_input), policy_input.rules.expected_times
    return Outlook(
        change_workers=other,
        keep_behind_s=np.where(proven, np.fmax(ahead.keep_behind_s, behind_s), np.nan),
        keep_after_s=np.where(proven, after_s, np.nan),
        change_behind_s=np.where(proven, ahead.change_behind_s, np.nan),
        caught_up_s=np.where(proven, ahead.caught_up_s, np.nan),
        calm=_is_calm(policy_input).astype(np.float64),
        in_step=((other > policy_input.workers) & is_in_step(policy_input, highest)).astype(np.float64),
        full_stage=is_full(policy_input).astype(np.float64),
        held_back=policy_input.held_back.astype(np.float64),
        expected_times=np.where(times > 1, times, np.nan),
        blocking_rise_records_per_s=np.where(blocks, expected_rise(policy_input), np.nan),
        too_small_workers=too_small,
        too_small_capacity_records_per_s=capacity.rate(too_small),
    )


def _behind_at_present(policy_input: PolicyInput, highest: Array) -> Array:
    """The backlog time at the end of the horizon if the input exceeds the throughput, otherwise NaN.

    The present throughput then is the capacity. This shows a slow sink before the table is corrected. It does not scale
    up, because more workers do not help a slow sink.
    """
    able = np.fmax(policy_input.throughput_records_per_s, policy_input.latest_throughput_records_per_s)
    grows = (policy_input.input_rate_records_per_s + highest) / 2 - able
    waits = policy_input.backlog_records + grows * horizon_s(policy_input.rules)
    return np.where((positive_growth(policy_input) > 0) & (grows > 0), backlog_time(waits, able), np.nan)
