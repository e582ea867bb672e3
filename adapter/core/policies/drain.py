"""`drain`: our own policy. It sizes by measured capacity, and moves only where staying would break the user's target.

Up: the load needs more, and the present size would leave the job further behind than backlog_time_target_s within the
horizon, even then when a change could be at work. Down: nothing waits, and the load needs fewer; the bounds let it
pass once fewer would have saved what a rescale is worth. Otherwise it stays: a rescale costs a pause.

With no pause, no replay, linear scaling, no forecast and no headroom the size is S3-06 + S3-07 exactly.
"""

from dataclasses import dataclass

import numpy as np

from adapter.core.capacity import CARRIED, Table, rate_at, size_for, strength, trust_at
from adapter.core.limits import one_more
from adapter.core.partitions import evened, whole
from adapter.core.policies.interface import Outlook, PolicyInput, PolicyResult, foreseen, keeps_pace, positive_growth
from adapter.core.policies.outlook import horizon_s, look_ahead
from adapter.core.rates import Mask
from adapter.core.samples import Array, first_known
from adapter.core.signals import backlog_time

_CATCH_UP_PAUSES = 10.0  # a pause makes a backlog of its own length: to clear it sooner takes workers for that alone
_LONGEST_CATCH_UP_S = 600.0
_LOST_WARMING = 0.25  # of the work, while a job warms up from half its speed; without a pause nothing starts anew
_ENOUGH = 1e18  # records/s: whose capacity nobody knows is not seen to fall behind


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What the workers at work can do. table: as it was learned. strength: how much more, or less, they do now.

    capacity_records_per_s: NaN where no more is known than what they have carried so far.
    """

    table: Table
    exponent: Array
    strength: Array
    proven: Mask
    capacity_records_per_s: Array

    def rate(self, workers: Array) -> Array:
        """What so many workers carry, records/s."""
        return rate_at(self.table, workers, self.exponent) * self.strength

    def size(self, rate: Array) -> Array:
        """The workers that carry a rate, not rounded."""
        return size_for(self.table, rate / self.strength, self.exponent)


def size(policy_input: PolicyInput) -> PolicyResult:
    """Up where staying breaks the target, down where fewer have been enough, else as it is."""
    rules, workers, known = policy_input.rules, policy_input.workers, _known(policy_input)
    highest = foreseen(policy_input)
    keep, catch = _rates_needed(policy_input, highest)
    calm = (policy_input.lowest_backlog_time_s < rules.short_backlog_time_s) & keeps_pace(policy_input)
    needed = _needed(policy_input, known, calm, (highest, np.maximum(keep, catch)))
    # Most of a window is from before a step of the input: whoever moves now moves for what comes now, and once.
    newest = np.minimum(policy_input.latest_input_rate_records_per_s, highest * rules.forecast_cap_ratio)
    newest = np.fmax(highest, newest)
    up_to = _needed(policy_input, known, calm, (newest, np.maximum(*_rates_needed(policy_input, newest))))
    larger = np.maximum(up_to, one_more(workers, rules))

    capacity = known.capacity_records_per_s
    enough = first_known(capacity, np.full(len(capacity), _ENOUGH))
    other = np.where(needed > workers, larger, needed)
    ahead = look_ahead(policy_input, highest, enough, known.rate(other))
    behind_s = _behind_at_present(policy_input, highest)
    outrun = behind_s > ahead.keep_behind_s
    uneven = policy_input.partition_behind_s > rules.backlog_time_target_s
    up = (needed > workers) & (ahead.late | uneven)
    down = calm & (workers - needed > rules.tolerance_ratio * workers)
    return PolicyResult(
        wanted_workers=np.select([np.isnan(needed), up, down], [np.nan, larger, needed], workers),
        keep_up_workers=known.size(keep),
        catch_up_workers=known.size(catch),
        needed_workers=needed,
        outlook=Outlook(
            input_rate_records_per_s=highest,
            workers=other,
            keep_behind_s=np.where(known.proven, np.fmax(ahead.keep_behind_s, behind_s), np.nan),
            keep_after_s=np.where(known.proven, np.where(outrun, horizon_s(rules), ahead.keep_after_s), np.nan),
            change_behind_s=np.where(known.proven, ahead.change_behind_s, np.nan),
            caught_up_s=np.where(known.proven, ahead.caught_up_s, np.nan),
        ),
    )


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
        capacity_records_per_s=np.where(proven, rate * now, np.nan),
    )


def _behind_at_present(policy_input: PolicyInput, foreseen: Array) -> Array:
    """The backlog time at the end of the horizon where the input outruns the workers, else NaN.

    There the present throughput is all they can: a slow sink shows before the window is saturated and the table is
    corrected. It informs, and does not scale up: more workers do not help a slow sink.
    """
    able = np.fmax(policy_input.throughput_records_per_s, policy_input.latest_throughput_records_per_s)
    grows = (policy_input.input_rate_records_per_s + foreseen) / 2 - able
    waits = policy_input.backlog_records + grows * horizon_s(policy_input.rules)
    return np.where((positive_growth(policy_input) > 0) & (grows > 0), backlog_time(waits, able), np.nan)


def _rates_needed(policy_input: PolicyInput, rate: Array) -> tuple[Array, Array]:
    """Records/s that keep up with headroom, and that catch up with all that waits once a rescale is over."""
    rules = policy_input.rules
    catch_up_s = np.minimum(_CATCH_UP_PAUSES * rules.rescale_pause_s, _LONGEST_CATCH_UP_S)
    catch_up_s = np.maximum(catch_up_s, rules.backlog_time_target_s)
    warming_s = np.where(rules.rescale_pause_s > 0, _LOST_WARMING * rules.warm_up_s, 0.0)
    waits = policy_input.backlog_records + rate * (rules.rescale_pause_s + rules.replay_s / 2 + warming_s)
    return rate / rules.target_utilization_ratio, waits / catch_up_s + rate


def _needed(policy_input: PolicyInput, known: _Known, calm: Mask, rates: tuple[Array, Array]) -> Array:
    """Whole workers, spare ones included, so many that partitions spread evenly; 0 for nothing at all.

    rates: of the input that stays, and of all that has to be carried until the backlog is gone.

    Where nobody knows what workers carry a share of them less is tried while all is calm: what they carry then is
    learned.
    """
    rules, workers, (stays, rate) = policy_input.rules, policy_input.workers, rates
    sized = whole(known.size(rate)) + rules.min_spare_workers
    probed = np.maximum(np.ceil(workers * (1 - rules.probe_ratio) - 1e-9), 1.0)
    sized = np.where(known.proven, sized, np.where(calm, np.fmin(sized, probed), np.maximum(workers, 1.0)))
    slots = rules.slots_per_worker
    # The fullest subtask is to carry what stays: for a backlog that passes nobody needs a partition of its own. By what
    # a worker carries now: where the table is bent more load would else leave fewer of them.
    able = known.rate(workers) / np.maximum(workers, 1.0) * sized
    usable = known.proven & (able > 0)
    load = np.where(usable, stays / np.where(usable, able, 1.0), rules.target_utilization_ratio)
    even = evened(sized, policy_input.partitions, slots, load, rules.high_utilization_ratio)
    # Above the partitions it stays as it is: a bound cuts it, and says how many partitions it would take.
    even = np.where(sized * slots > policy_input.partitions, np.maximum(sized, even), even)
    return np.where(rate > 0, even, np.where(np.isnan(rate), np.nan, rules.min_spare_workers))
