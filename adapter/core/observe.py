"""State and samples -> a tick: rates, signals, facts and parameters, as named arrays."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from adapter.core import parameters
from adapter.core.aggregation import largest, smallest
from adapter.core.failures import count_failures
from adapter.core.ingest import HEALTH, faulty, ingest, rated_workers, reindex, trim, without_deleted_hpas
from adapter.core.latest_signals import with_latest
from adapter.core.measured_cost import with_measured_cost
from adapter.core.missing_metrics import lasting_partitions
from adapter.core.policies.sizing import policy_has
from adapter.core.rates import Mask
from adapter.core.repetition import with_repetition
from adapter.core.rule_book import RuleBook
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import WHOLE, Array, IntArray, Samples, first_known
from adapter.core.scale_down_cost import warm_after_s
from adapter.core.signals import LEVEL_RATIO, backlog_time, gated_lag_change, relative_lag_change
from adapter.core.stage_reports import StageLoads, has_ceased, update_reports
from adapter.core.stage_samples import StageSamples, stage_samples, with_held_resources
from adapter.core.state import Fast, LatestSignals, State, WorkerCounts, WorkloadFacts
from adapter.core.window_rates import FAR_WINDOWS, Rates, window_rates

_USUAL_S = 120.0  # a backlog of less than this time is no jump
_MARKERS = 2.0  # records of each partition that may be markers of transactions, which no consumer can read
_NOISE_TARGET_RATIO = 1 / 3  # of the target; a longer backlog that rises slowly leaves too little time for a rescale
_JUMP = 10.0  # a backlog that grows by this factor in one tick has to be confirmed


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
    confidence: Array
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
    sized: Mask  # (stages,) the stage is sized: it has throughput and backlog, or partitions alone
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
    level: Mask  # (stages,) the backlog need not be real, see _is_level
    warm_age_s: Array  # (stages,) since the workers became warm: negative until then, infinite without a change
    behind: Mask  # (stages,) the backlog never ended within the window, and the workers are warm
    saturated: Mask  # (stages,) the same, and they were warm in the whole window: throughput is capacity

    @property
    def current_workers(self) -> Array:
        """`spec.replicas` of each scale target, otherwise the present workers; shape (workloads,)."""
        return first_known(self.counts.spec_workers, self.workers)

    def largest(self, values: Array) -> Array:
        """The largest known value among each workload's stages; NaN where none is known."""
        return largest(values, self.workload_index, len(self.workers))


def observe(state: State, samples: Samples, book: RuleBook) -> Tick:
    """Ingest the samples, and derive everything that gates and policies read."""
    state = ingest(state, samples, book)
    names, at_s = state.slow.workloads, samples.at_s
    index, plain = _workload_index(names, state.slow.stages)
    rules, complaints = _rules(state, samples, book, index)
    stage_rules = rules if plain else rules.at(index)
    state = count_failures(without_deleted_hpas(state, at_s, rules), samples, rules)
    now = with_held_resources(stage_samples(samples, state.slow.stages), state.fast.signals, at_s, stage_rules)
    complete = np.where(now.resources_at_s == at_s, now.utilization_ratio, np.nan)
    utilization = np.vstack([state.fast.utilization_ratio, complete])
    fast = replace(state.fast, utilization_ratio=utilization)
    fast = with_repetition(fast, now, stage_rules)
    state = replace(state, fast=trim(fast, at_s - FAR_WINDOWS * stage_rules.rate_window_s))

    rates = window_rates(state.fast, now, stage_rules, index)
    fast = with_latest(state.fast, now, rates, stage_rules)
    idle = _has_only_markers(fast.signals, stage_rules, index, len(names))
    loads = StageLoads(index=index, seen_before_at_s=state.fast.seen_at_s, seen_at_s=fast.seen_at_s, idle=idle)
    fast = replace(fast, reports=update_reports(fast.reports, loads, at_s))
    state = replace(state, fast=fast)

    seen_at_s = _load_seen_at_s(fast, samples, names, index)
    load_age_s, partitions_age_s = at_s - smallest(seen_at_s, index, len(names)), at_s - fast.partitions_seen_at_s
    loaded = load_age_s <= rules.error_after_s
    alone = policy_has("follows_partitions", rules) & np.isfinite(partitions_age_s) & ~loaded
    known = np.isfinite(rates.throughput_records_per_s + rates.growth_records_per_s + now.backlog_records)
    signals = _signals(fast, rates, stage_rules)
    level = _is_level(signals, rates, now, stage_rules, state.slow.facts.partitions[index])
    late = known & ~level & (signals.lowest_backlog_time_s > stage_rules.short_backlog_time_s)
    warm_age_s = _warm_age_s(fast, stage_rules, index)
    return Tick(
        at_s=at_s,
        state=state,
        workload_index=index,
        plain=plain,
        sized=(np.isfinite(seen_at_s) | alone[index]) & ~(idle & (signals.due_backlog_records > 0)),
        partitions_only=alone,
        rules=rules,
        stage_rules=stage_rules,
        complaints=complaints,
        counts=fast.counts,
        facts=_present_facts(state, at_s, rules),
        bad_annotations=reindex([samples.whole("bad_annotations")], samples.workloads, names)[0],
        partitions_age_s=partitions_age_s,
        load_age_s=load_age_s,
        workers=rated_workers(fast, at_s, rules),
        now=now,
        rates=rates,
        signals=signals,
        rates_known=known,
        discontinuous=_is_discontinuous(state, rates, stage_rules),
        level=level,
        warm_age_s=warm_age_s,
        behind=late & (warm_age_s >= 0),
        saturated=late & (warm_age_s >= stage_rules.rate_window_s),
    )


def _load_seen_at_s(fast: Fast, samples: Samples, names: tuple[str, ...], index: IntArray) -> Array:
    """When the load of each stage was last seen; NaN while only its siblings report theirs, unless a source failed."""
    ceased = has_ceased(fast.seen_at_s, index, len(names)) & ~faulty(samples, names)[index]
    return np.where(ceased, np.nan, fast.seen_at_s)


def _rules(state: State, samples: Samples, book: RuleBook, index: IntArray) -> tuple[RuleColumns, Mapping[str, str]]:
    """The parameters of each workload with overrides and measured costs, and why overrides are ignored."""
    names, slow = state.slow.workloads, state.slow
    overrides = dict(zip(slow.overridden, slow.overrides, strict=True))
    configured, complaints = parameters.columns(names, slow.facts.fleet, book, samples.at_s, overrides)
    shown_s = largest(state.fast.stop.longest_s, index, len(names))
    rules = with_measured_cost(configured, slow.usual_rescale, shown_s)
    between_s = _between_commits_s(state.fast, rules)
    short_s = np.maximum(rules.short_backlog_time_s, between_s)
    rules = replace(rules, short_backlog_time_s=short_s, between_commits_s=between_s)
    return parameters.with_events(rules, names, slow.facts.fleet, book, samples.at_s), complaints


def _between_commits_s(fast: Fast, rules: RuleColumns) -> Array:
    """The longest backlog time that commits once a tick cause, within the target; 0 for a published policy.

    Commits that are nearly as far apart as ticks show no steps: their backlog rises and falls slowly, by up to a tick.
    """
    tick_s = np.diff(fast.at_s).min() if len(fast.at_s) > 1 else 0.0  # the least, because a tick may be missing
    within_s = np.minimum(tick_s, rules.backlog_time_target_s)
    return np.where(policy_has("waits_until_warm", rules), within_s, 0.0)


def _present_facts(state: State, at_s: float, rules: RuleColumns) -> WorkloadFacts:
    """The facts; the health of a job that has not reported it for error_after_s is unknown."""
    facts, seen_at_s = state.slow.facts, {name: getattr(state.fast, f"{name}_seen_at_s") for name in HEALTH}
    known = {name: at_s - seen_at_s[name] <= rules.error_after_s for name in HEALTH}
    health = {name: np.where(known[name], getattr(facts, name), np.nan) for name in HEALTH}
    return replace(facts, partitions=lasting_partitions(state.fast, facts.partitions, at_s, rules), **health)


def _is_level(signals: Signals, rates: Rates, now: StageSamples, rules: RuleColumns, partitions: Array) -> Mask:
    """Whether a backlog within the target, or of a few records, rises by noise at most, and workers are not full.

    Offsets that are committed in steps, or by each member of a group at its own time, and records that no consumer can
    read, look like that. While the utilization is unknown, a backlog that falls counts as that of full workers.
    """
    busy, growth = first_known(rates.mean_utilization_ratio, now.utilization_ratio), signals.growth_records_per_s
    noise = LEVEL_RATIO * signals.throughput_records_per_s
    short = signals.lowest_backlog_time_s < _NOISE_TARGET_RATIO * rules.backlog_time_target_s
    rising, falling = rates.rising & ~(short & (growth <= noise)), rates.falling & ~(growth >= -noise)
    not_full = np.where(np.isfinite(busy), busy < rules.high_utilization_ratio, ~falling)
    few = rates.lowest_backlog_records <= _MARKERS * partitions
    within = signals.lowest_backlog_time_s < rules.backlog_time_target_s
    level: Mask = not_full & ~rising & (few | within)
    return level


def _has_only_markers(signals: LatestSignals, rules: RuleColumns, index: IntArray, workloads: int) -> Mask:
    """Whether a stage processes nothing, and what waits may be markers on a topic without input."""
    throughput = signals.throughput_records_per_s
    few = signals.backlog_records <= rules.short_backlog_time_s * largest(throughput, index, workloads)[index]
    idle: Mask = (throughput == 0) & few
    return idle


def _warm_age_s(fast: Fast, rules: RuleColumns, index: IntArray) -> Array:
    """Seconds for which the workers of each stage have been warm. A job that has just started is not warm yet."""
    disturbed_s = fast.at_s[-1] - np.fmax(fast.changed_at_s, fast.disturbed_at_s)[index]
    return np.where(np.isnan(disturbed_s), np.inf, disturbed_s - warm_after_s(rules))


@lru_cache(maxsize=64)
def _workload_index(workloads: tuple[str, ...], stages: tuple[tuple[str, str], ...]) -> tuple[IntArray, bool]:
    """The workload of each stage, and whether each workload is one stage that is the whole of it."""
    place = {name: number for number, name in enumerate(workloads)}
    workload_index = np.array([place[workload] for workload, _ in stages], dtype=np.int64)
    whole = all(stage == WHOLE for _, stage in stages)
    return workload_index, whole and np.array_equal(workload_index, np.arange(len(workloads)))


def _is_discontinuous(state: State, rates: Rates, rules: RuleColumns) -> Mask:
    """Whether a backlog fell without being processed, or rose to a multiple between two ticks.

    Retention or an offset reset makes such a step. The next tick confirms it.
    """
    throughput, points = rates.throughput_records_per_s, state.fast.backlog
    fell = throughput + rates.growth_records_per_s < -rules.growth_noise_ratio * throughput
    if len(points) < 2:
        return fell
    usual = np.maximum(first_known(*points[-2::-1]), throughput * _USUAL_S)
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
        confidence=unknown,
        capacity_records_per_s=unknown,
        drain_time_s=unknown,
        utilization_ratio=unknown,
    )
