"""The points of the window -> the rates of each stage."""

from dataclasses import dataclass

import numpy as np

from adapter.core.commit_steps import commit_age_s, commits_in_steps, waiting_records
from adapter.core.forecast import STEP_S, steady_rise
from adapter.core.gates import settle_s
from adapter.core.rates import (
    Mask,
    confirmed_rate,
    counter_rate,
    ends_gap,
    is_rising,
    is_stalled,
    last_rate,
    rate_rise,
    rises_always,
    robust_slope,
    since_jump,
    since_reset,
    total,
)
from adapter.core.repetition import since_repetition
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array, IntArray, first_known
from adapter.core.signals import input_rate
from adapter.core.stage_samples import StageSamples
from adapter.core.state import Fast

FAR_WINDOWS = 2.0  # windows to search for the steps of a counter that has too few in one window
_COUNTED_EXACTLY = 1.0  # record: a smaller difference is a rounding error
_LEAST_BACKLOGS = 3  # with fewer, nothing shows how the backlog changed
_LEAST_SPAN_RATIO = 0.5  # a rate over less than this share of its window is not reliable


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The rates over the window of each stage; NaN if the window is not enough."""

    throughput_records_per_s: Array
    growth_records_per_s: Array
    input_rate_records_per_s: Array  # also during a pause of the job; without what arrives in stuck partitions
    latest_input_rate_records_per_s: Array  # since the tick before
    confirmed_input_rate_records_per_s: Array  # the lower of the latest two
    latest_throughput_records_per_s: Array
    resumes: Mask  # the newest input follows a missing sample, so that its newest rate is known at the next tick
    input_rise_records_per_s2: Array  # from sample to sample; NaN if unknown
    still_rises: Mask  # the counter of processed records still rises
    stalled: Mask  # a steady counter stopped while a backlog waits
    rising: Mask  # the backlog rises, apart from its sawtooth
    falling: Mask
    mean_utilization_ratio: Array  # over the time of the throughput
    backlog_records: Array
    lowest_backlog_records: Array
    highest_backlog_records: Array  # before this tick
    lowest_partition_backlog_records: Array


def window_rates(fast: Fast, now: StageSamples, rules: RuleColumns, index: IntArray) -> Rates:
    """Rates over the clean points of each stage's window."""
    shows_input = _input_points(fast, rules)
    far = shows_input & _settled_points(fast, rules, index)
    recent = fast.at_s[:, None] >= fast.at_s[-1] - rules.rate_window_s
    near = far & recent
    least_s = rules.rate_window_s * _LEAST_SPAN_RATIO
    processed = counter_rate(fast.at_s, fast.processed, near, far, least_s)
    appended = counter_rate(fast.at_s, fast.appended, near, far, least_s)
    meanwhile = counter_rate(fast.at_s, fast.appended, shows_input & recent, shows_input, least_s)
    full = _has_full_window(fast, rules.rate_window_s)
    throughput = first_known(processed, np.where(full, now.throughput_records_per_s, np.nan))
    arriving = first_known(appended, np.where(full, now.input_rate_records_per_s, np.nan))
    # Input of a stuck partition waits whatever the workers do, so it is no growth.
    stuck = now.stuck_backlog_records > 0
    backlog = np.where(far, fast.backlog, np.nan)
    seen = np.where(near, backlog, np.nan)
    committed = np.where(far, fast.processed, np.nan)
    waiting = np.where(near, waiting_records(backlog, committed), np.nan)
    rising, falling = _directions(fast, waiting, committed, near)
    unusable = stuck | _contradicts_backlog(backlog, processed - appended, rules)
    arriving = np.where(unusable, np.nan, arriving)
    shown, uncounted = arriving.copy(), np.isnan(arriving)
    shown[uncounted] = _input_of_commits(
        fast.at_s, backlog[:, uncounted], committed[:, uncounted], near[:, uncounted], least_s[uncounted]
    )
    growth = _growth(fast, near, least_s, shown - throughput)
    arriving = first_known(arriving, np.where(unusable, np.nan, meanwhile))
    return Rates(
        throughput_records_per_s=throughput,
        growth_records_per_s=growth,
        input_rate_records_per_s=first_known(arriving, input_rate(throughput, growth)),
        latest_input_rate_records_per_s=last_rate(fast.at_s, fast.appended, shows_input),
        confirmed_input_rate_records_per_s=confirmed_rate(fast.at_s, fast.appended, shows_input),
        latest_throughput_records_per_s=last_rate(fast.at_s, fast.processed, far),
        resumes=ends_gap(np.isfinite(fast.appended) & shows_input),
        input_rise_records_per_s2=rate_rise(fast.at_s, fast.appended, far),
        still_rises=_still_rises(fast),
        stalled=is_stalled(fast.processed, far) & (fast.backlog[-1] > 0),
        # With fewer than two points of the backlog, the rates alone decide.
        rising=rising | (np.isfinite(seen).sum(axis=0) < 2),
        falling=falling,
        mean_utilization_ratio=_mean_utilization(fast, near, far),
        backlog_records=fast.backlog[-1],
        lowest_backlog_records=np.fmin.reduce(waiting, axis=0),
        highest_backlog_records=np.fmax.reduce(seen[:-1], axis=0, initial=np.nan),
        lowest_partition_backlog_records=np.fmin.reduce(np.where(near, fast.partition, np.nan), axis=0),
    )


def _mean_utilization(fast: Fast, near: Mask, far: Mask) -> Array:
    """The mean utilization of the time for which counter_rate measures the throughput; NaN while the newest is unknown.

    The newest one counts for a source that computes the throughput itself, because both are of the same time: of the
    last batch of Spark, of the last minute of Flink.
    """
    steady = rises_always(np.where(near, fast.processed, np.nan))
    counted = np.where(np.where(steady, near, far), fast.processed, np.nan)
    since_first = np.isfinite(np.fmax.accumulate(counted, axis=0))
    # A point describes the time before it, so the first one is of the time before the counter was known.
    known = since_first & (np.cumsum(since_first, axis=0) > 1) & np.isfinite(fast.utilization_ratio)
    count, newest = known.sum(axis=0), fast.utilization_ratio[-1]
    mean = total(np.where(known, fast.utilization_ratio, 0.0)) / np.maximum(count, 1)
    found: Array = np.where(np.isfinite(newest) & (count > 0), mean, newest)
    return found


def _directions(fast: Fast, waiting: Array, committed: Array, near: Mask) -> tuple[Mask, Mask]:
    """Whether the backlog rises, and whether it falls. The age of the last committed record has to agree, if known."""
    at_s = fast.at_s
    rises, falls = is_rising(at_s, waiting, near), is_rising(at_s, -waiting, near)
    moves, age_s = rises | falls, np.full_like(waiting, np.nan)
    age_s[:, moves] = commit_age_s(at_s, fast.backlog[:, moves], committed[:, moves])
    age_s = np.where(near, age_s, np.nan)
    unknown = (np.isnan(age_s) & np.isfinite(waiting)).any(axis=0)
    return rises & (unknown | is_rising(at_s, age_s, near)), falls & (unknown | is_rising(at_s, -age_s, near))


def input_rise(rates: Rates, points: Array, rules: RuleColumns) -> Array:
    """How fast the input rises: from sample to sample, or from minute to minute, where noise hides less of it.

    Minutes overlap in a longer window, and for a counter that rises in steps, which has no newest rate.
    points: of the forecast.
    """
    apart = (rules.rate_window_s <= STEP_S) & np.isfinite(rates.latest_input_rate_records_per_s)
    return np.fmax(rates.input_rise_records_per_s2, np.where(apart, steady_rise(points), np.nan))


def _input_points(fast: Fast, rules: RuleColumns) -> Mask:
    """Which points of twice the window show the input: the producers go on while the job pauses or settles."""
    oldest_s = fast.at_s[-1] - FAR_WINDOWS * rules.rate_window_s
    fresh = since_repetition(fast.at_s, fast.appended, fast.appended_repeated_at_s)
    shown: Mask = (fast.at_s[:, None] >= oldest_s) & fresh
    return shown & since_reset(fast.appended) & since_jump(fast.appended)


def _settled_points(fast: Fast, rules: RuleColumns, index: IntArray) -> Mask:
    """Which points follow the last reset and jump of the throughput, and the last change once it has settled."""
    changed_at_s = np.fmax(fast.changed_at_s, fast.disturbed_at_s)[index]
    settled_at_s = np.nan_to_num(changed_at_s + settle_s(rules), nan=-np.inf)
    fresh = since_repetition(fast.at_s, fast.processed, fast.processed_repeated_at_s)
    settled: Mask = (fast.at_s[:, None] >= settled_at_s) & fresh
    return settled & since_reset(fast.processed) & since_jump(fast.processed)


def _has_full_window(fast: Fast, window_s: Array) -> Mask:
    """Whether the rate of each stage was reported for a whole window since it was missing for over half a window.

    Until then a rate that the source reports may be too low: the source was away too, and its window is not full.
    """
    at_s, known = fast.at_s[:, None], np.isfinite(fast.reported)
    before_s = np.maximum.accumulate(np.where(known, at_s, at_s[0]), axis=0)[:-1]
    returned = known[1:] & (at_s[1:] - before_s > window_s / 2) & (at_s[1:] > at_s[-1] - window_s)
    full: Mask = ~returned.any(axis=0)
    return full


def _contradicts_backlog(seen: Array, fall: Array, rules: RuleColumns) -> Mask:
    """Whether the backlog would have fallen by more than it did: the input is not counted where it is processed.

    seen: the backlogs of two rate windows, because a source may read it rarely. fall: throughput - input, both as
    counted, records/s: a rate that a source reports may be of an earlier time.
    """
    highest, few = np.fmax.accumulate(seen, axis=0), np.isfinite(seen).sum(axis=0) < _LEAST_BACKLOGS
    fell = np.where(few, highest[-1], np.fmax.reduce(highest - seen, axis=0))
    contradicts: Mask = fall * rules.rate_window_s * _LEAST_SPAN_RATIO > np.maximum(fell, _COUNTED_EXACTLY)
    return contradicts


def _input_of_commits(at_s: Array, backlog: Array, committed: Array, near: Mask, least_s: Array) -> Array:
    """The input of consumers that commit in steps: the slope of committed + waiting records; NaN for other consumers.

    The backlog alone is a sawtooth: between two commits it rises by the whole input.
    """
    return robust_slope(at_s, backlog + committed, near & commits_in_steps(backlog, committed), least_s)


def _growth(fast: Fast, near: Mask, least_s: Array, counted: Array) -> Array:
    """The growth of the backlog: as counted, otherwise its slope."""
    growth, sloped = counted.copy(), np.isnan(counted)
    growth[sloped] = robust_slope(fast.at_s, fast.backlog[:, sloped], near[:, sloped], least_s[sloped])
    return growth


def _still_rises(fast: Fast) -> Mask:
    """Whether a counter still rises: its last rise is no older than twice the longest time without one before.

    A counter that is committed rarely does not rise at each point.
    """
    rose_s = np.where(np.diff(fast.processed, axis=0) > 0, fast.at_s[1:, None], np.nan)
    first_s = np.fmin.reduce(np.where(np.isfinite(fast.processed), fast.at_s[:, None], np.nan), axis=0)
    last_s = np.fmax.accumulate(np.vstack([first_s, rose_s]), axis=0)
    longest_s = np.fmax.reduce(rose_s - last_s[:-1], axis=0, initial=np.nan)
    stopped = fast.at_s[-1] - last_s[-1] > 2 * longest_s
    stopped |= is_stalled(fast.processed, np.ones(fast.processed.shape, dtype=bool))
    still_rises: Mask = np.isfinite(longest_s) & ~stopped
    return still_rises
