"""The latest known signals of each stage, which stand in for missing ones until they expire."""

from dataclasses import replace

import numpy as np

from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array, first_known
from adapter.core.stage_samples import StageSamples, has_load
from adapter.core.state import Fast, LatestSignals
from adapter.core.window_rates import Rates


def with_latest(fast: Fast, now: StageSamples, rates: Rates, rules: RuleColumns) -> Fast:
    """The group with the latest known signals, and when throughput and backlog were last seen."""
    fast = replace(fast, seen_at_s=np.where(has_load(now), fast.at_s[-1], fast.seen_at_s))
    return replace(fast, signals=_latest(fast, now, rates, rules))


def _latest(fast: Fast, now: StageSamples, rates: Rates, rules: RuleColumns) -> LatestSignals:
    """The latest known signals. Those that the tick lacks last until error_after_s after the load was seen."""
    was, at_s = fast.signals, fast.at_s[-1]
    lasts = at_s - _last_sample_at_s(fast, rates) <= rules.error_after_s
    hottest_at_s = np.where(np.isfinite(now.hottest_partition_ratio), at_s, was.hottest_partition_at_s)
    hottest = first_known(now.hottest_partition_ratio, was.hottest_partition_ratio)
    stuck = np.where(np.isfinite(now.backlog_records), np.nan_to_num(now.stuck_backlog_records), np.nan)

    def latest(value: Array, before: Array) -> Array:
        return np.where(lasts, first_known(value, before), value)

    return LatestSignals(
        throughput_records_per_s=latest(rates.throughput_records_per_s, was.throughput_records_per_s),
        growth_records_per_s=latest(rates.growth_records_per_s, was.growth_records_per_s),
        input_rate_records_per_s=latest(rates.input_rate_records_per_s, was.input_rate_records_per_s),
        backlog_records=latest(rates.backlog_records, was.backlog_records),
        measured_utilization_ratio=now.utilization_ratio,
        stuck_backlog_records=latest(stuck, was.stuck_backlog_records),
        hottest_partition_ratio=np.where(at_s - hottest_at_s > rules.error_after_s, np.nan, hottest),
        hottest_partition_at_s=hottest_at_s,
        resources=now.resources,
        resources_at_s=now.resources_at_s,
    )


def _last_sample_at_s(fast: Fast, rates: Rates) -> Array:
    """When the load of each stage was last seen: throughput and backlog, or the throughput of one without a backlog.

    NaN if the window does not contain it, and while the rate of a stage without a backlog is known: nothing shows how
    old its other signals are.
    """
    seen = np.isfinite(fast.processed) | np.isfinite(fast.reported)
    seen_at_s = np.fmax.reduce(np.where(seen, fast.at_s[:, None], np.nan), axis=0)
    missed = np.isnan(rates.throughput_records_per_s)
    return first_known(fast.seen_at_s, np.where(missed, seen_at_s, np.nan))
