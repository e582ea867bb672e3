"""A tick -> the decision inputs of each workload: everything that a decision depends on."""

from dataclasses import dataclass

import numpy as np

from adapter.core.aggregation import every, some
from adapter.core.capacity import CARRIED, confidence_at, rate_at, with_prior
from adapter.core.formatting import DAY_S
from adapter.core.fullest_worker import least_capacity, partition_behind_s
from adapter.core.gates import GateInputs
from adapter.core.ingest import FEW_RATIO
from adapter.core.limits import Range, at_least_one, limits, pauses
from adapter.core.missing_metrics import misses_metrics
from adapter.core.observe import Tick
from adapter.core.policies.interface import PolicyInput
from adapter.core.policies.sizing import policy_has
from adapter.core.rates import Mask
from adapter.core.relayed_load import HELD_BACK, is_held_back, misses_utilization, proven_load, relayed_workers
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import Array, IntArray, first_known
from adapter.core.scale_down_window import window_workers
from adapter.core.signals import is_processing
from adapter.core.state import WorkerCounts
from adapter.core.window_rates import input_rise

Pauses = tuple[Mask, Mask]  # of scale-ups and of scale-downs
# After a scale-up: the capacity of the larger size is less certain, and another rescale is another pause.
_EXCESS_RATIO = 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadStatus:
    """The target and the limits of each workload before this tick; every array has the shape (workloads,)."""

    current_workers: Array  # spec.replicas of the scale target, otherwise the running workers
    target_workers: Array  # the last target
    committed_age_s: Array  # since it was decided
    rescaled: Mask  # a change of the workers was seen
    spec_changed_age_s: Array
    raised_age_s: Array  # since spec.replicas last rose
    peak_workers: Array  # the largest size needed in the scale-down window; the current size if a change does not pay
    budget_s: Array  # pause that scale-downs may still cost, NaN if unknown
    no_up: Mask  # scale-ups are paused
    no_down: Mask  # scale-downs are paused
    failover: Mask
    hpa_off: Mask  # a person or KEDA has set 0 replicas, and the HPA's minReplicas is above 0
    expecting: Mask  # an event with more input begins soon, or lasts
    sink_unhealthy: Mask
    misses_metrics: Mask  # a stage ceased to report its load or its utilization, or the partitions became fewer
    between_minutes: Mask  # the policy decides once a minute, and no minute has ended since the previous tick
    in_step: Mask  # another stage was in a step of the input; set only in a record
    needed_workers: Array  # what the other stages needed; set only in a record
    measured_pauses: Array  # how many of the last rescales have shown a pause
    measured_starts: Array  # 0 also where worker_start_s is set
    measured_delays: Array  # 0 also where metric_delay_s is set
    measured_warm_ups: Array  # 0 also where warm_up_s is set
    rules: RuleColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpBlockers:
    """Reasons against more workers for a stage; every array has the shape (stages,), NaN unknown."""

    blocked_s: Array  # time without scale-ups, because the last one did not help
    tried_from_workers: Array  # the size before it, which helped
    stands: Mask  # a backlog waits and nothing is processed, while another stage processes records
    hottest_utilization_ratio: Array  # as reported, of the hottest stage of the workload
    hottest_partition_ratio: Array  # input of the hottest partition / input of the mean partition


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionInput:
    """Everything that the decisions of a tick depend on."""

    workload_index: IntArray  # (stages,) the workload of each stage
    sized: Mask  # (stages,) the stage is sized
    policy_input: PolicyInput  # (stages,)
    blockers: ScaleUpBlockers  # (stages,)
    gate_inputs: GateInputs  # (workloads,)
    range_: Range  # (workloads,)
    status: WorkloadStatus  # (workloads,)


def decision_input(tick: Tick) -> DecisionInput:
    """The decision inputs of each workload at this tick."""
    range_ = limits(tick.rules, tick.facts, relayed_workers(tick), tick.current_workers, tick.state.fast.target_workers)
    paused = pauses(tick.rules, tick.facts, tick.at_s)
    return DecisionInput(
        workload_index=tick.workload_index,
        sized=tick.sized,
        policy_input=_policy_input(tick, range_.most),
        blockers=ScaleUpBlockers(
            blocked_s=tick.state.slow.trial.blocked_until_s - tick.at_s,
            tried_from_workers=tick.state.slow.trial.from_workers,
            stands=_is_stuck_alone(tick),
            hottest_utilization_ratio=_hottest_utilization(tick),
            hottest_partition_ratio=tick.signals.hottest_partition_ratio,
        ),
        gate_inputs=_gate_inputs(tick, paused),
        range_=range_,
        status=_workload_status(tick, paused),
    )


def is_overloaded(tick: Tick) -> Mask:
    """Whether the input exceeds the throughput of a stage by more than noise."""
    noise = tick.stage_rules.growth_noise_ratio * tick.signals.throughput_records_per_s
    overloaded: Mask = tick.rates_known & _is_rising(tick) & (tick.signals.growth_records_per_s > noise)
    return overloaded


def budget_s(tick: Tick) -> Array:
    """The pause that scale-downs may still cause, in seconds: at most a share of a day, and it grows back over time."""
    share, history = tick.rules.pause_budget_ratio, tick.state.slow.history
    whole = np.fmax(share * DAY_S, tick.rules.rescale_pause_s)
    left = history.budget_s + share * (tick.at_s - history.budget_at_s)
    return np.fmin(whole, first_known(left, whole))


def _has_excess_input(tick: Tick) -> Mask:
    """Whether the input of each stage exceeds what all of its workers process when warm.

    The rates after the rescale would show the same. They are necessary after a change by another actor, and after a
    scale-up that max_step_up_workers may have cut.
    """
    rules, fast, index = tick.stage_rules, tick.state.fast, tick.workload_index
    workers, table = tick.workers[index], with_prior(tick.state.slow.table, rules.worker_capacity_records_per_s)
    known = confidence_at(table, workers) > CARRIED
    capacity = np.where(known, rate_at(table, workers, rules.scaling_exponent), np.nan)
    raised = (fast.spec_raised_at_s >= fast.spec_changed_at_s)[index]
    most = capacity * np.where(raised, _EXCESS_RATIO, 1 + rules.growth_noise_ratio)
    exceeds = tick.rates.input_rate_records_per_s > most
    reliable = (fast.committed_at_s < fast.spec_changed_at_s)[index] | tick.rates_known
    complete, cut = ~_workers_in_flight(tick.counts)[index], raised & np.isfinite(rules.max_step_up_workers)
    excess: Mask = policy_has("waits_until_warm", rules) & exceeds & complete & reliable & ~cut
    return excess


def _policy_input(tick: Tick, most: Array) -> PolicyInput:
    workload_index, signals, slow = tick.workload_index, tick.signals, tick.state.slow
    return PolicyInput(
        workers=tick.workers[workload_index],
        most_workers=most[workload_index],
        partitions=at_least_one(tick.facts.partitions)[workload_index],
        throughput_records_per_s=signals.throughput_records_per_s,
        input_rate_records_per_s=signals.input_rate_records_per_s,
        latest_input_rate_records_per_s=tick.rates.latest_input_rate_records_per_s,
        confirmed_input_rate_records_per_s=tick.rates.confirmed_input_rate_records_per_s,
        latest_throughput_records_per_s=tick.rates.latest_throughput_records_per_s,
        resumes=tick.rates.resumes,
        input_rise_records_per_s2=input_rise(tick.rates, slow.points, tick.stage_rules),
        growth_records_per_s=signals.growth_records_per_s,
        highest_backlog_records=tick.rates.highest_backlog_records,
        rising=_is_rising(tick),
        backlog_records=signals.due_backlog_records,
        backlog_time_s=signals.due_backlog_time_s,
        lowest_backlog_time_s=signals.lowest_backlog_time_s,
        utilization_ratio=_hottest(tick)[workload_index],
        relayed_load_ratio=proven_load(tick),
        partition_behind_s=partition_behind_s(tick),
        fullest_ratio=slow.fullest_ratio,
        bottleneck=~(tick.now.backpressured_ratio > HELD_BACK),
        held_back=is_held_back(tick),
        least_capacity_records_per_s=least_capacity(tick),
        saturated=tick.saturated,
        level=tick.level,
        fit=slow.fit,
        fit_age_s=np.broadcast_to(tick.at_s - slow.newest_point_at_s, workload_index.shape),
        table=with_prior(slow.table, tick.stage_rules.worker_capacity_records_per_s),
        rules=tick.stage_rules,
    )


def _is_rising(tick: Tick) -> Mask:
    """Whether the backlog rises and exceeds what accumulates between two commits."""
    rising: Mask = tick.rates.rising & (tick.signals.due_backlog_time_s > tick.stage_rules.short_backlog_time_s)
    return rising


def _hottest(tick: Tick) -> Array:
    """The largest utilization of each workload's stages."""
    busy = np.where(tick.stage_rules.safety == 0, tick.now.utilization_ratio, tick.signals.utilization_ratio)
    return tick.largest(busy)


def _gate_inputs(tick: Tick, paused: Pauses) -> GateInputs:
    workload_index, count, fast, rules = tick.workload_index, len(tick.workers), tick.state.fast, tick.rules
    no_up, no_down = paused
    history = tick.state.slow.history
    recent = tick.at_s - history.failed_at_s <= rules.failures_window_s
    spec, ready = tick.counts.spec_workers, tick.counts.ready_workers
    load_age_s, count_age_s = tick.load_age_s, tick.partitions_age_s
    # A policy that follows the partitions needs their count, and the load as long as there is one.
    followed_age_s = np.where(tick.partitions_only, count_age_s, np.maximum(load_age_s, count_age_s))
    return GateInputs(
        paused=no_up & no_down,
        excluded=rules.excluded == 1,
        sample_age_s=np.where(policy_has("follows_partitions", rules), followed_age_s, load_age_s),
        workers_age_s=tick.at_s - fast.workers_seen_at_s,
        changed_age_s=tick.at_s - np.fmax(fast.changed_at_s, fast.disturbed_at_s),
        spec_changed_age_s=tick.at_s - fast.spec_changed_at_s,
        in_flight=_workers_in_flight(tick.counts),
        too_few=(ready >= 1) & (ready < (1 - FEW_RATIO) * spec) & ~(fast.all_ready_at_s >= fast.spec_changed_at_s),
        stopped=tick.facts.running == 0,
        failures=np.where(recent, history.failures, np.where(np.isnan(history.restarts), np.nan, 0.0)),
        rates_known=tick.partitions_only | every(tick.rates_known, tick.sized, workload_index, count),
        excess_input=some(tick.sized & _has_excess_input(tick), workload_index, count),
        discontinuous=some(tick.sized & tick.discontinuous, workload_index, count),
        nothing_moves=some(tick.sized & _is_stuck(tick), workload_index, count)
        & ~_some_stage_processes(tick)
        & (tick.current_workers > 0),
        rules=rules,
    )


def _hottest_utilization(tick: Tick) -> Array:
    """The largest reported utilization of each stage's workload: backpressure leaves the earlier stages idle."""
    return tick.largest(tick.now.utilization_ratio)[tick.workload_index]


def _is_stuck(tick: Tick) -> Mask:
    """Whether a backlog of a stage waits, has waited at the sample before, and nothing is processed."""
    idle = (tick.signals.throughput_records_per_s >= 0) & ~_is_stage_processing(tick)
    before = first_known(*tick.state.fast.backlog[-2::-1], tick.signals.due_backlog_records)
    stuck: Mask = idle & (tick.signals.due_backlog_records > 0) & (before > 0)
    return stuck


def _is_stuck_alone(tick: Tick) -> Mask:
    """Whether a stage is stuck while another stage of its workload processes records."""
    alone: Mask = _is_stuck(tick) & _some_stage_processes(tick)[tick.workload_index] & (tick.stage_rules.safety != 0)
    return alone


def _some_stage_processes(tick: Tick) -> Mask:
    """Whether a stage of each workload processes records."""
    return some(_is_stage_processing(tick), tick.workload_index, len(tick.workers))


def _is_stage_processing(tick: Tick) -> Mask:
    processing: Mask = is_processing(tick.signals.throughput_records_per_s) | tick.rates.still_rises
    return processing


def _workers_in_flight(counts: WorkerCounts) -> Mask:
    """Whether the existing workers differ from the desired ones, or fewer are ready.

    An unknown count counts as equal to the desired one.
    """
    desired = first_known(counts.spec_workers, counts.workers, counts.ready_workers)
    exist, ready = first_known(counts.workers, desired), first_known(counts.ready_workers, desired)
    in_flight: Mask = np.isfinite(desired) & ((exist != desired) | (ready < desired))
    return in_flight


def _workload_status(tick: Tick, paused: Pauses) -> WorkloadStatus:
    fast, rules = tick.state.fast, tick.rules
    no_up, no_down = paused
    return WorkloadStatus(
        current_workers=tick.current_workers,
        target_workers=fast.target_workers,
        committed_age_s=tick.at_s - fast.committed_at_s,
        rescaled=np.isfinite(fast.changed_at_s),
        spec_changed_age_s=tick.at_s - fast.spec_changed_at_s,
        raised_age_s=tick.at_s - fast.spec_raised_at_s,
        peak_workers=window_workers(tick),
        budget_s=budget_s(tick),
        no_up=no_up,
        no_down=no_down,
        failover=(tick.facts.failover == 1) | (rules.failover == 1),
        hpa_off=(tick.counts.spec_workers == 0) & (tick.facts.min_workers > 0),
        expecting=rules.expecting == 1,
        sink_unhealthy=tick.facts.sink_healthy == 0,
        misses_metrics=misses_metrics(fast, tick.at_s, rules) | misses_utilization(tick),
        between_minutes=policy_has("decides_each_minute", rules) & ~_is_new_minute(tick),
        in_step=np.zeros(len(tick.workers), dtype=bool),
        needed_workers=np.full(len(tick.workers), np.nan),
        measured_pauses=_count_known(tick.state.slow.last_rescales.pause_s),
        measured_starts=rules.measures_start * _count_known(tick.state.slow.last_rescales.start_s),
        measured_delays=rules.measures_delay * _count_known(tick.state.slow.last_rescales.delay_s),
        measured_warm_ups=rules.measures_warm_up * _count_known(tick.state.slow.last_rescales.warm_up_s),
        rules=rules,
    )


def _is_new_minute(tick: Tick) -> Mask:
    """Whether the forecast has a point that is newer than the previous tick, shape (1,)."""
    last_s = tick.state.fast.at_s[-2:-1]
    ended: Mask = tick.state.slow.newest_point_at_s > (last_s if last_s.size else -np.inf)
    return ended


def _count_known(cost: Array) -> Array:
    """How many of the last rescales have shown a cost, which has the shape (rescales, workloads)."""
    shown: Array = np.isfinite(cost).sum(axis=0).astype(np.float64)
    return shown
