"""`drain`: our own policy. It sizes by measured capacity, and rescales only if the present size misses the target.

Up: the load needs more workers, and the backlog time at the present size would exceed backlog_time_target_s within the
horizon, or a stage without a backlog of its own is full. Down: there is no backlog and the load needs fewer workers; a
bound waits until the change pays. Otherwise the size stays, because a rescale costs a pause.

With no pause, no replay, linear scaling, no forecast, no rise and no headroom the size is S3-06 + S3-07 exactly.
"""

from dataclasses import dataclass

import numpy as np

from adapter.core.capacity import CARRIED, Table, rate_at, size_for, strength, trust_at
from adapter.core.limits import one_more
from adapter.core.partitions import fewest_evenly_spread, whole
from adapter.core.policies.interface import (
    Outlook,
    PolicyInput,
    PolicyResult,
    forecast_input_rate,
    is_full,
    keeps_pace,
    positive_growth,
)
from adapter.core.policies.outlook import horizon_s, look_ahead
from adapter.core.rates import Mask
from adapter.core.samples import Array, first_known
from adapter.core.scale_down_cost import backlog_after_rescale_s, warm_after_s
from adapter.core.signals import backlog_time

_CATCH_UP_PAUSES = 10.0  # a pause makes a backlog of its own length; clearing it sooner takes extra workers
_LONGEST_CATCH_UP_S = 600.0
_SLOWEST_CATCH_UP_S = 1800.0  # with the headroom alone
_MOST_RISEN = 2.0  # times the newest input; with 1.5, records were late in jobs with long pauses and late metrics
_ENOUGH = 1e18  # records/s, for an unknown capacity: no backlog is expected


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """The capacity of the present workers and of other sizes; every array has the shape (stages,)."""

    table: Table
    exponent: Array
    strength: Array  # the present capacity relative to the table
    proven: Mask  # more is known than a lower bound
    capacity_records_per_s: Array  # NaN if it is not proven; without workers 0

    def rate(self, workers: Array) -> Array:
        """The capacity of a number of workers, records/s."""
        return rate_at(self.table, workers, self.exponent) * self.strength

    def size(self, rate: Array) -> Array:
        """The workers that carry a rate, not rounded."""
        return size_for(self.table, rate / self.strength, self.exponent)


def size(policy_input: PolicyInput) -> PolicyResult:
    """Up if the present size misses the target, down if fewer workers are enough, otherwise unchanged."""
    rules, workers, known = policy_input.rules, policy_input.workers, _known(policy_input)
    event = policy_input.input_rate_records_per_s * rules.expected_times
    highest = np.fmax(forecast_input_rate(policy_input), event)
    keep, catch = _rates_needed(policy_input, highest)
    idle = policy_input.level & np.isfinite(policy_input.utilization_ratio)
    calm = (idle | (policy_input.lowest_backlog_time_s < rules.short_backlog_time_s)) & keeps_pace(policy_input)
    relayed = _relayed(policy_input)
    needed = _at_least(_needed(policy_input, known, calm, (highest, np.maximum(keep, catch))), relayed)
    newest = _input_to_carry(policy_input, highest)
    up_to = _needed(policy_input, known, calm, (newest, np.maximum(*_rates_needed(policy_input, newest))))
    larger = np.maximum(_at_least(up_to, relayed), one_more(workers, rules))

    capacity = known.capacity_records_per_s
    enough = first_known(capacity, np.full(len(capacity), _ENOUGH))
    other = np.where(needed > workers, larger, needed)
    ahead = look_ahead(policy_input, highest, enough, _changed_capacity(known, workers, other))
    behind_s = _behind_at_present(policy_input, highest)
    outrun = behind_s > ahead.keep_behind_s
    uneven = policy_input.partition_behind_s > rules.backlog_time_target_s
    outgrown = (rules.expected_times > 1) & (event > enough)  # at once, so a look ahead would find it too late
    up = (needed > workers) & (ahead.late | uneven | outgrown | is_full(policy_input))
    down = calm & (workers - needed > rules.tolerance_ratio * workers)
    return PolicyResult(
        wanted_workers=np.select([np.isnan(needed), up, down], [np.nan, larger, needed], workers),
        keep_up_workers=known.size(keep),
        catch_up_workers=known.size(catch),
        needed_workers=needed,
        outlook=Outlook(
            workers=other,
            keep_behind_s=np.where(known.proven, np.fmax(ahead.keep_behind_s, behind_s), np.nan),
            keep_after_s=np.where(known.proven, np.where(outrun, horizon_s(rules), ahead.keep_after_s), np.nan),
            change_behind_s=np.where(known.proven, ahead.change_behind_s, np.nan),
            caught_up_s=np.where(known.proven, ahead.caught_up_s, np.nan),
        ),
    )


def _input_to_carry(policy_input: PolicyInput, highest: Array) -> Array:
    """The input for which a scale-up is sized, so that one rescale is enough, records/s.

    After a step most of the rate window is old, so the newest rate counts. A rise is assumed to last until the next
    scale-up can take effect. A counter that rises in steps has no newest rate, and no rise.
    """
    rules = policy_input.rules
    newest = np.minimum(policy_input.latest_input_rate_records_per_s, highest * rules.forecast_cap_ratio)
    lead_s = rules.worker_start_s + first_known(rules.cooldown_up_s, warm_after_s(rules))
    risen = newest + np.nan_to_num(policy_input.input_rise_records_per_s2) * lead_s
    return np.fmax(highest, np.minimum(risen, _MOST_RISEN * newest))


def _relayed(policy_input: PolicyInput) -> Array:
    """Workers that carry the input of the fullest stage without a backlog of its own, NaN without such a stage.

    The backlog of such a stage waits at the source, whose reported backlog may not show it.
    """
    rules = policy_input.rules
    busy = policy_input.workers * policy_input.relayed_load_ratio
    return whole(busy / rules.target_utilization_ratio) + rules.min_spare_workers


def _at_least(size: Array, least: Array) -> Array:
    """The larger size; an unknown size stays unknown, an unknown minimum does not apply."""
    return np.where(np.isnan(size), np.nan, np.fmax(size, least))


def _known(policy_input: PolicyInput) -> _Known:
    table, exponent = policy_input.table, policy_input.rules.scaling_exponent
    rate = rate_at(table, policy_input.workers, exponent)
    now = strength(rate, policy_input.throughput_records_per_s, policy_input.saturated)
    proven = trust_at(table, policy_input.workers) > CARRIED
    return _Known(
        table=table,
        exponent=exponent,
        strength=now,
        proven=proven,
        capacity_records_per_s=np.where(policy_input.workers > 0, np.where(proven, rate * now, np.nan), 0.0),
    )


def _changed_capacity(known: _Known, workers: Array, other: Array) -> Array:
    """The capacity of another size; of a smaller one at least its share of the present capacity, as rounding assumes.

    An older observation of the smaller size may be of a slow sink.
    """
    share = known.rate(workers) * other / np.maximum(workers, 1.0)
    return np.where(other < workers, np.fmax(known.rate(other), share), known.rate(other))


def _behind_at_present(policy_input: PolicyInput, highest: Array) -> Array:
    """The backlog time at the end of the horizon if the input exceeds the throughput, otherwise NaN.

    The present throughput then is the capacity. This shows a slow sink before the table is corrected. It does not scale
    up, because more workers do not help a slow sink.
    """
    able = np.fmax(policy_input.throughput_records_per_s, policy_input.latest_throughput_records_per_s)
    grows = (policy_input.input_rate_records_per_s + highest) / 2 - able
    waits = policy_input.backlog_records + grows * horizon_s(policy_input.rules)
    return np.where((positive_growth(policy_input) > 0) & (grows > 0), backlog_time(waits, able), np.nan)


def _rates_needed(policy_input: PolicyInput, rate: Array) -> tuple[Array, Array]:
    """Records/s to keep up with headroom, and to catch up with the backlog after a rescale.

    The backlog that the rescale itself makes takes no more than the headroom, if that clears it within half an hour.
    """
    rules, headroom = policy_input.rules, 1 / policy_input.rules.target_utilization_ratio - 1
    catch_up_s = np.minimum(_CATCH_UP_PAUSES * rules.rescale_pause_s, _LONGEST_CATCH_UP_S)
    catch_up_s = np.maximum(catch_up_s, rules.backlog_time_target_s)
    lost_s = backlog_after_rescale_s(rules)
    lost = np.clip(headroom, lost_s / np.maximum(catch_up_s, _SLOWEST_CATCH_UP_S), lost_s / catch_up_s)
    return rate * (1 + headroom), policy_input.backlog_records / catch_up_s + rate * (1 + lost)


def _needed(policy_input: PolicyInput, known: _Known, calm: Mask, rates: tuple[Array, Array]) -> Array:
    """Whole workers with spare ones, such that partitions spread evenly; without input only the spare ones.

    While the capacity is unknown and the job is calm, the size falls by a share, so that the capacity can be learned.
    rates: of the input, and of the input and backlog until the backlog is gone.
    """
    rules, workers, (stays, rate) = policy_input.rules, policy_input.workers, rates
    sized = whole(known.size(rate)) + rules.min_spare_workers
    probed = np.maximum(np.ceil(workers * (1 - rules.probe_ratio) - 1e-9), 1.0)
    sized = np.where(known.proven, sized, np.where(calm, np.fmin(sized, probed), np.maximum(workers, 1.0)))
    slots = rules.slots_per_worker
    # The fullest subtask has to carry the input, not the passing backlog. The capacity of a worker at the present size
    # keeps the result monotone where the table is not linear.
    able = known.rate(workers) / np.maximum(workers, 1.0) * sized
    usable = known.proven & (able > 0)
    load = np.where(usable, stays / np.where(usable, able, 1.0), rules.target_utilization_ratio)
    highest = np.fmin(rules.high_utilization_ratio, policy_input.fullest_ratio)
    even = fewest_evenly_spread(sized, policy_input.partitions, slots, load, highest)
    # A size above the partitions stays: a bound limits it and names the partitions that the load needs.
    even = np.where(sized * slots > policy_input.partitions, np.maximum(sized, even), even)
    return np.where(rate > 0, even, np.where(np.isnan(rate), np.nan, rules.min_spare_workers))
