"""State and samples -> a tick: rates, signals, facts and parameters, as named arrays."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from adapter.core import parameters
from adapter.core.gates import settle_s
from adapter.core.grouping import largest, smallest
from adapter.core.ingest import HEALTH, count_failures, ingest, rated_workers, reindex, trimmed, without_deleted_hpas
from adapter.core.measured_cost import with_measured_cost
from adapter.core.policies.sizing import where
from adapter.core.rates import Mask, counter_rate, last_rate, rate_rise, rising, robust_slope, since_reset, stalled
from adapter.core.rule_book import RuleBook
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import WHOLE, Array, IntArray, Samples, first_known
from adapter.core.scale_down_cost import warm_after_s
from adapter.core.signals import backlog_time, gated_lag_change, input_rate, relative_lag_change
from adapter.core.stage_samples import StageSamples, stage_samples, with_held_resources
from adapter.core.state import Fast, LatestSignals, State, WorkerCounts, WorkloadFacts

FAR_WINDOWS = 2.0  # windows to search for the steps of a counter that has too few in one window
_LEAST_SPAN_RATIO = 0.5  # a rate over less than this share of its window is not reliable
_USUAL_S = 120.0  # a backlog of less than this time is no jump
_JUMP = 10.0  # a backlog that grows by this factor in one tick has to be confirmed


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The rates over the window of each stage; NaN if the window is not enough."""

    throughput_records_per_s: Array
    growth_records_per_s: Array
    input_rate_records_per_s: Array  # without what arrives in stuck partitions
    latest_input_rate_records_per_s: Array  # since the tick before
    latest_throughput_records_per_s: Array
    input_rise_records_per_s2: Array  # NaN if unknown
    progressed: Mask  # something was processed since the tick before
    stalled: Mask  # a steady counter stopped while a backlog waits
    rising: Mask  # the backlog rises, apart from its sawtooth
    falling: Mask
    backlog_records: Array
    lowest_backlog_records: Array
    highest_backlog_records: Array  # before this tick
    lowest_partition_backlog_records: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """The signals of each stage, shape (stages,). The latest known value stands in for a missing one."""

    throughput_records_per_s: Array
    growth_records_per_s: Array
    input_rate_records_per_s: Array
    hottest_partition_ratio: Array
    backlog_records: Array  # with stuck partitions
    backlog_time_s: Array
    due_backlog_records: Array  # what workers can process: without stuck partitions
    due_backlog_time_s: Array
    relative_lag_change_ratio: Array
    lowest_backlog_time_s: Array  # of the window
    # From the capacity, unknown until update_estimates.
    trust: Array
    capacity_records_per_s: Array
    drain_time_s: Array
    utilization_ratio: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """All that is known at one tick."""

    at_s: float
    state: State  # with this tick's samples
    workload_index: IntArray  # (stages,) the workload of each stage
    plain: bool  # each workload has one stage that is the whole of it, in the same order
    counting: Mask  # (stages,) the stage is sized: it has throughput and backlog, or partitions alone
    partitions_only: Mask  # (workloads,) the policy follows the partitions and nothing else is reported
    rules: RuleColumns  # (workloads,)
    stage_rules: RuleColumns  # (stages,)
    complaints: Mapping[str, str]  # workload -> why its overrides are ignored
    counts: WorkerCounts
    facts: WorkloadFacts
    bad_annotations: Array  # (workloads,)
    partitions_age_s: Array  # (workloads,) since partitions were counted
    load_age_s: Array  # (workloads,) of throughput and backlog
    workers: Array  # (workloads,) present
    now: StageSamples
    rates: Rates
    signals: Signals
    rates_known: Mask  # (stages,)
    discontinuous: Mask  # (stages,) the backlog jumped
    level: Mask  # (stages,) the backlog need not be real, see _level
    saturated: Mask  # (stages,) the backlog never ended within the window: throughput is capacity


def observe(state: State, samples: Samples, book: RuleBook) -> Tick:
    """Ingest the samples and derive all that gates and policies read."""
    state = ingest(state, samples, book)
    names, fast, slow = state.slow.workloads, state.fast, state.slow
    index, plain = _workload_index(names, slow.stages)
    overrides = dict(zip(slow.overridden, slow.overrides, strict=True))
    effective = parameters.columns(names, slow.facts.fleet, book, samples.at_s, overrides)
    shown_s = largest(state.fast.stop.longest_s, index, len(names))
    rules = with_measured_cost(effective.values, slow.usual_rescale, shown_s)
    state = count_failures(without_deleted_hpas(state, samples.at_s, rules), samples, rules)
    stage_rules = rules if plain else rules.at(index)
    state = replace(state, fast=trimmed(state.fast, samples.at_s - FAR_WINDOWS * stage_rules.rate_window_s))

    now = with_held_resources(stage_samples(samples, slow.stages), state.fast.signals, samples.at_s, stage_rules)
    rates = _rates(state.fast, now, stage_rules, index)
    seen = np.isfinite(first_known(now.processed_records, now.throughput_records_per_s) + now.backlog_records)
    seen_at_s = np.where(seen, samples.at_s, fast.seen_at_s)
    fast = replace(state.fast, seen_at_s=seen_at_s)
    fast = replace(fast, signals=_latest(fast, now, rates, stage_rules))
    state = replace(state, fast=fast)

    load_age_s = samples.at_s - smallest(seen_at_s, index, len(names))
    partitions_age_s = samples.at_s - fast.partitions_seen_at_s
    loaded = load_age_s <= rules.error_after_s
    alone = where("follows_partitions", rules.policy) & np.isfinite(partitions_age_s) & ~loaded
    known = rates.throughput_records_per_s + rates.growth_records_per_s + now.backlog_records
    signals = _signals(state.fast, rates, stage_rules)
    level = _level(signals, rates, now, stage_rules)
    return Tick(
        at_s=samples.at_s,
        state=state,
        workload_index=index,
        plain=plain,
        counting=np.isfinite(seen_at_s) | alone[index],
        partitions_only=alone,
        rules=rules,
        stage_rules=stage_rules,
        complaints=effective.complaints,
        counts=fast.counts,
        facts=_healthy_facts(state, samples.at_s, rules),
        bad_annotations=reindex([samples.whole("bad_annotations")], samples.workloads, names)[0],
        partitions_age_s=partitions_age_s,
        load_age_s=load_age_s,
        workers=rated_workers(fast, samples.at_s, rules),
        now=now,
        rates=rates,
        signals=signals,
        rates_known=np.isfinite(known),
        discontinuous=_discontinuous(state, rates, stage_rules),
        level=level,
        saturated=_saturated(state.fast, signals, np.isfinite(known) & ~level, stage_rules, index),
    )


def _healthy_facts(state: State, at_s: float, rules: RuleColumns) -> WorkloadFacts:
    """The facts; the health of a job that has not reported it for error_after_s is unknown."""
    facts, seen_at_s = state.slow.facts, {name: getattr(state.fast, f"{name}_seen_at_s") for name in HEALTH}
    known = {name: at_s - seen_at_s[name] <= rules.error_after_s for name in HEALTH}
    return replace(facts, **{name: np.where(known[name], getattr(facts, name), np.nan) for name in HEALTH})


def _latest(fast: Fast, now: StageSamples, rates: Rates, rules: RuleColumns) -> LatestSignals:
    """The latest known signals; those of an expired stage are unknown."""
    was, at_s = fast.signals, fast.at_s[-1]
    expired = at_s - fast.seen_at_s > rules.error_after_s
    hottest_at_s = np.where(np.isfinite(now.hottest_partition_ratio), at_s, was.hottest_partition_at_s)
    hottest = first_known(now.hottest_partition_ratio, was.hottest_partition_ratio)
    stuck = np.where(np.isfinite(now.backlog_records), np.nan_to_num(now.stuck_backlog_records), np.nan)

    def latest(value: Array, before: Array) -> Array:
        return np.where(expired, np.nan, first_known(value, before))

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


def _level(signals: Signals, rates: Rates, now: StageSamples, rules: RuleColumns) -> Mask:
    """Whether a backlog within the target does not rise, and no worker is full.

    Offsets that are committed in steps, and records that no consumer can read, look like that. While the utilization is
    unknown, a backlog that falls counts as that of full workers.
    """
    busy = now.utilization_ratio
    not_full = np.where(np.isfinite(busy), busy < rules.high_utilization_ratio, ~rates.falling)
    level: Mask = not_full & ~rates.rising & (signals.lowest_backlog_time_s < rules.backlog_time_target_s)
    return level


def _saturated(fast: Fast, signals: Signals, rates_known: Mask, rules: RuleColumns, index: IntArray) -> Mask:
    """Whether a stage's backlog never ended within the window, so that its throughput is its capacity."""
    late = signals.lowest_backlog_time_s > rules.short_backlog_time_s
    disturbed_s = fast.at_s[-1] - np.fmax(fast.changed_at_s, fast.disturbed_at_s)[index]
    # A job that has just started is still slow.
    always: Mask = rates_known & late & ~(disturbed_s < warm_after_s(rules))
    return always


@lru_cache(maxsize=64)
def _workload_index(workloads: tuple[str, ...], stages: tuple[tuple[str, str], ...]) -> tuple[IntArray, bool]:
    """The workload of each stage, and whether each workload is one stage that is the whole of it."""
    place = {name: number for number, name in enumerate(workloads)}
    workload_index = np.array([place[workload] for workload, _ in stages], dtype=np.int64)
    whole = all(stage == WHOLE for _, stage in stages)
    return workload_index, whole and np.array_equal(workload_index, np.arange(len(workloads)))


def _rates(fast: Fast, now: StageSamples, rules: RuleColumns, index: IntArray) -> Rates:
    """Rates over the clean points of each stage's window: after the last reset, and after the last change settled."""
    settled_at_s = np.nan_to_num(np.fmax(fast.changed_at_s, fast.disturbed_at_s)[index] + settle_s(rules), nan=-np.inf)
    window_s, at_s = rules.rate_window_s, fast.at_s[:, None]
    oldest_s = np.maximum(at_s[-1] - FAR_WINDOWS * window_s, settled_at_s)
    far = (at_s >= oldest_s) & since_reset(fast.processed, fast.appended)
    near = far & (at_s >= at_s[-1] - window_s)
    least_s = window_s * _LEAST_SPAN_RATIO

    processed = counter_rate(fast.at_s, fast.processed, near, far, least_s)
    appended = counter_rate(fast.at_s, fast.appended, near, far, least_s)
    throughput = first_known(processed, now.throughput_records_per_s)
    arriving = first_known(appended, now.input_rate_records_per_s)
    # Input of a stuck partition waits whatever the workers do, so it is no growth.
    sized = np.where(now.stuck_backlog_records > 0, np.nan, arriving)
    # Counters are better than the backlog, which is a sawtooth if offsets are committed in steps.
    growth = sized - throughput
    sloped = np.isnan(growth)
    growth[sloped] = robust_slope(fast.at_s, fast.backlog[:, sloped], near[:, sloped], least_s[sloped])
    seen = np.where(near, fast.backlog, np.nan)
    return Rates(
        throughput_records_per_s=throughput,
        growth_records_per_s=growth,
        input_rate_records_per_s=first_known(sized, input_rate(throughput, growth)),
        latest_input_rate_records_per_s=last_rate(fast.at_s, fast.appended, near),
        latest_throughput_records_per_s=last_rate(fast.at_s, fast.processed, near),
        input_rise_records_per_s2=rate_rise(fast.at_s, fast.appended, far),
        progressed=_progressed(fast),
        stalled=stalled(fast.processed, far) & (fast.backlog[-1] > 0),
        # With fewer than two points of the backlog, the rates alone decide.
        rising=rising(fast.at_s, fast.backlog, near) | (np.isfinite(seen).sum(axis=0) < 2),
        falling=rising(fast.at_s, -fast.backlog, near),
        backlog_records=fast.backlog[-1],
        lowest_backlog_records=np.fmin.reduce(seen, axis=0),
        highest_backlog_records=np.fmax.reduce(seen[:-1], axis=0, initial=np.nan),
        lowest_partition_backlog_records=np.fmin.reduce(np.where(near, fast.partition, np.nan), axis=0),
    )


def _progressed(fast: Fast) -> Mask:
    if len(fast.at_s) < 2:
        return np.zeros(fast.processed.shape[1], dtype=bool)
    rose: Mask = fast.processed[-1] > fast.processed[-2]
    return rose


def _discontinuous(state: State, rates: Rates, rules: RuleColumns) -> Mask:
    """Whether a backlog fell without being processed, or rose to a multiple between two ticks.

    Retention or an offset reset makes such a step. The next tick confirms it.
    """
    throughput, points = rates.throughput_records_per_s, state.fast.backlog
    fell = throughput + rates.growth_records_per_s < -rules.growth_noise_ratio * throughput
    if len(points) < 2:
        return fell
    usual = np.maximum(points[-2], throughput * _USUAL_S)
    jumped: Mask = fell | (points[-1] > _JUMP * usual)
    return jumped


def _signals(fast: Fast, rates: Rates, rules: RuleColumns) -> Signals:
    """The latest known signals, and the signals that follow from them."""
    latest = fast.signals
    throughput, due = latest.throughput_records_per_s, latest.backlog_records
    backlog = due + latest.stuck_backlog_records
    change = relative_lag_change(throughput, latest.growth_records_per_s)
    unknown = np.full_like(throughput, np.nan)
    return Signals(
        throughput_records_per_s=throughput,
        growth_records_per_s=latest.growth_records_per_s,
        input_rate_records_per_s=latest.input_rate_records_per_s,
        hottest_partition_ratio=latest.hottest_partition_ratio,
        backlog_records=backlog,
        backlog_time_s=backlog_time(backlog, throughput),
        due_backlog_records=due,
        due_backlog_time_s=backlog_time(due, throughput),
        relative_lag_change_ratio=gated_lag_change(change, backlog, rules.lag_threshold_records),
        lowest_backlog_time_s=backlog_time(rates.lowest_backlog_records, rates.throughput_records_per_s),
        trust=unknown,
        capacity_records_per_s=unknown,
        drain_time_s=unknown,
        utilization_ratio=unknown,
    )
