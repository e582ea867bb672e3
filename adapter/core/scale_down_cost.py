"""When a scale-down pays: what a smaller size would have saved so far, compared with the cost of a rescale.

It is unknown how long a low load lasts. The ski-rental rule (Karlin et al., Competitive snoopy caching, 1988) changes
once staying has cost as much as a change, which is never much worse than a decision that knows the future. A scale-down
therefore follows a deep fall soon, a shallow one late, and a fluctuation never.
"""

from dataclasses import dataclass

import numpy as np

from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array
from adapter.core.state import BUCKETS

DOWNS_DOUBLE = 4.0  # scale-downs of the last day that double the cost of the next one
REVERSAL_WITHIN_S = 1800.0
REVERSAL_WEIGHT = 2.0  # a scale-down that is reverted within that time counts this much more
# The default of rescale_worth_s: it is the same for pauses of 30 to 72 s.
_SHORT_PAUSES, _SHORT_WORTH_S, _LONG_PAUSES, _WORTH_RANGE_S = 6.0, 180.0, 2.5, (60.0, 300.0)
_CHEAP_S = 60.0  # a rescale that is worth less is cheap
# Removing a quarter of the workers takes four times as long to save the cost of a rescale.
_SEEN_WORTHS, _LONGEST_SEEN_S = 4.0, 3600.0
_LEAST_HEADROOM = 0.05  # at a target utilization near 1 the backlog would never end
_LOST_WARMING = 0.25  # of the work, while a job warms up from half its speed after a pause


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """The running part of the scale-down window; shape (workloads,)."""

    largest_workers: Array
    age_s: Array  # since it began
    width_s: Array  # of each part


@dataclass(frozen=True, slots=True, kw_only=True)
class FewerWorkers:
    """The time in which fewer workers than the present ones were enough, which the window forgets; (workloads,)."""

    largest_workers: Array  # needed in it, NaN before it began
    age_s: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentSize:
    """The present size; shape (workloads,)."""

    current_workers: Array
    since_s: Array  # since spec.replicas changed


def warm_after_s(rules: RuleColumns) -> Array:
    """Seconds from a change of the workers until the rates show the capacity of warm workers."""
    after_s: Array = rules.rescale_pause_s + rules.warm_up_s + rules.metric_delay_s
    return after_s


def backlog_after_rescale_s(rules: RuleColumns) -> Array:
    """The backlog that a rescale makes, in seconds of the input: of the pause, the replay and the slow start."""
    warming_s = np.where(rules.rescale_pause_s > 0, _LOST_WARMING * rules.warm_up_s, 0.0)
    backlog_s: Array = rules.rescale_pause_s + rules.replay_s / 2 + warming_s
    return backlog_s


def default_worth_s(rules: RuleColumns, workers: Array) -> Array:
    """The work of the whole job that a scale-down has to save if `rescale_worth_s` is unset, in seconds.

    It follows from the pause and, where both prices are set, from the price of the lateness after a rescale.
    """
    short = np.minimum(_SHORT_PAUSES * rules.rescale_pause_s, _SHORT_WORTH_S)
    own = np.clip(np.maximum(short, _LONG_PAUSES * rules.rescale_pause_s), *_WORTH_RANGE_S)
    second = rules.worker_hour_price * workers / 3600  # the price of a second of the whole job
    late = rules.late_minute_price * _late_after_rescale_s(rules) / 60
    lateness_s = np.divide(late, second, out=np.zeros(len(workers)), where=second > 0)
    worth_s: Array = own + np.nan_to_num(lateness_s)
    return worth_s


def wait_share(worth_s: Array) -> Array:
    """The share of its default window and cooldown that `drain` waits for a scale-down: less where a rescale is cheap.

    worth_s: the parameter rescale_worth_s. While it is unset, and with 0, the whole defaults count.
    """
    return np.where(worth_s > 0, np.minimum(worth_s / _CHEAP_S, 1.0), 1.0)


def _late_after_rescale_s(rules: RuleColumns) -> Array:
    """The time with a backlog over the target after a rescale, until the headroom has cleared it."""
    over_s = np.maximum(backlog_after_rescale_s(rules) - rules.backlog_time_target_s, 0.0)
    late_s: Array = over_s / np.maximum(1 - rules.target_utilization_ratio, _LEAST_HEADROOM)
    return late_s


def bucket_s(rules: RuleColumns, worth_s: Array) -> Array:
    """The length of each part of the scale-down window, 0 without a window.

    The window is long enough to see a scale-down by a quarter pay.
    """
    seen_s = np.minimum(_SEEN_WORTHS * worth_s, _LONGEST_SEEN_S)
    return np.where(rules.down_window_s > 0, np.fmax(rules.down_window_s, seen_s), 0.0) / BUCKETS


def paying_workers(peaks: Array, running: Bucket, fewer: FewerWorkers, here: CurrentSize, worth_s: Array) -> Array:
    """The smallest size that would have saved worth_s since it was enough; the current size if none has.

    peaks: shape (buckets, workloads), the largest size needed in each closed part of the window, oldest first, NaN
    before the first. worth_s: seconds of the whole job's work; a quarter of the workers saves them in four times as
    long.
    """
    largest, span_s = running.largest_workers, running.age_s
    spans = [(largest, span_s)]
    for closed in peaks[::-1]:
        largest, span_s = np.maximum(largest, closed), span_s + running.width_s
        spans.append((largest, span_s))
    spans.append((np.maximum(running.largest_workers, fewer.largest_workers), fewer.age_s))
    least = here.current_workers
    for largest, span_s in spans:
        pays = np.fmin(span_s, here.since_s) >= seconds_to_pay(largest, here.current_workers, worth_s)
        least = np.where(pays, np.fmin(least, largest), least)
    return least


def seconds_to_pay(largest: Array, current: Array, worth_s: Array) -> Array:
    """Seconds in which `largest` workers instead of `current` ones save worth_s; infinite if they are not fewer."""
    share = 1 - np.divide(largest, current, out=np.full(len(current), np.nan), where=current > 0)
    saves = share > 0
    return np.where(np.isnan(share), np.nan, np.where(saves, worth_s / np.where(saves, share, 1.0), np.inf))
