"""A tick -> updated estimates: scale-ups without effect, and once a minute the capacities and the forecast."""

from dataclasses import replace

import numpy as np

from adapter.core.capacity import (
    CARRIED,
    ESTIMATED,
    OBSERVED,
    Observation,
    Table,
    capacity_ratio,
    confidence_at,
    learn,
    rate_at,
    utilization,
    with_prior,
)
from adapter.core.decision_input import is_overloaded
from adapter.core.forecast import POINTS, STEP_S, append_point, fit_curve, widen_sigma
from adapter.core.formatting import DAY_S
from adapter.core.fullest_worker import learn_fullest_ratio
from adapter.core.measured_cost import slow_time_unknown
from adapter.core.observe import Signals, Tick
from adapter.core.rates import Mask
from adapter.core.relayed_load import LONGEST_TRIAL_S, relays_at_capacity
from adapter.core.samples import Array, first_known
from adapter.core.signals import drain_time
from adapter.core.state import ScaleUpTrial, Slow
from adapter.core.stops import measure_stop

_LONGEST_BLOCK = 8.0  # times the first one
_RISING_RATIO = 1.05  # less is noise, or the end of the warm-up
_LONGEST_SLOW_S = 600.0  # after a rescale: pause, warm-up and late metrics of most jobs


def update_estimates(tick: Tick) -> Tick:
    """The tick with updated estimates in its state, and with the signals that follow from the capacity."""
    tick = replace(tick, state=measure_stop(tick))
    passed = _minutes(tick)
    slow = _block_failed_scale_ups(tick, _learn_capacity(tick, minute=passed > 0))
    if passed:
        slow = _extend_forecast(tick, slow, passed)
    tick = replace(tick, signals=_with_capacity(tick, slow))
    slow = learn_fullest_ratio(tick, slow, minutes=passed)
    return replace(tick, state=replace(tick.state, slow=slow))


def _minutes(tick: Tick) -> int:
    """How many minutes have ended since the last point of the curve."""
    last_s = float(tick.state.slow.newest_point_at_s[0])
    return 1 if np.isnan(last_s) else int((tick.at_s - last_s) // STEP_S)


def _learn_capacity(tick: Tick, *, minute: bool) -> Slow:
    """The capacity table after this tick."""
    slow = tick.state.slow
    table = _without_old_observations(slow.table, tick.at_s) if minute else slow.table
    return replace(slow, table=learn(table, _observation(tick, minute=minute), tick.stage_rules.scaling_exponent))


def _observation(tick: Tick, *, minute: bool) -> Observation:
    """The observation for the capacity table: once a minute, and on every tick while the capacity is hardly known."""
    exceeded, throughput = is_overloaded(tick), tick.signals.throughput_records_per_s
    # Earlier in the window, an overloaded stage had less to do or was still slow, so the last tick counts.
    latest = np.fmax(throughput, tick.rates.latest_throughput_records_per_s)
    healthy = tick.facts.sink_healthy[tick.workload_index] != 0
    return Observation(
        at_s=tick.at_s,
        workers=tick.workers[tick.workload_index],
        throughput_records_per_s=np.where((exceeded | tick.behind) & ~tick.saturated, latest, throughput),
        utilization_ratio=_busiest(tick),
        saturated=tick.behind,
        doubtful=_may_be_slow(tick)[tick.workload_index] | (tick.warm_age_s < tick.stage_rules.rate_window_s),
        overloaded=exceeded,
        clean=tick.rates_known & ~tick.discontinuous & healthy & (minute | _is_capacity_uncertain(tick)),
    )


def _is_capacity_uncertain(tick: Tick) -> Mask:
    """Whether the capacity of the present size is not proven, or a full stage shows it, perhaps for the first time.

    A job that rescales as soon as it is warm is never warm in a whole window: its newest throughput is an estimate.
    """
    confidence = confidence_at(tick.state.slow.table, tick.workers[tick.workload_index])
    uncertain: Mask = (confidence <= CARRIED) | (tick.behind & (~tick.saturated | (confidence < OBSERVED)))
    return uncertain


def _busiest(tick: Tick) -> Array:
    """The largest utilization of each stage's workload: all stages share the workers."""
    return tick.largest(tick.rates.mean_utilization_ratio)[tick.workload_index]


def _may_be_slow(tick: Tick) -> Mask:
    """Whether each workload rescaled or stopped recently, and its warm-up or metric delay is unknown."""
    fast = tick.state.fast
    recent: Mask = tick.at_s - np.fmax(fast.changed_at_s, fast.disturbed_at_s) < _LONGEST_SLOW_S
    return recent & slow_time_unknown(tick.rules, tick.state.slow.usual_rescale)


def _without_old_observations(table: Table, at_s: float) -> Table:
    """Turn observations of sizes that were not in use for a day into estimates: jobs and records change."""
    old = (table.confidence == OBSERVED) & (at_s - table.seen_at_s > DAY_S)
    return replace(table, confidence=np.where(old, ESTIMATED, table.confidence)) if old.any() else table


def _with_capacity(tick: Tick, slow: Slow) -> Signals:
    """The signals, completed by those that follow from the capacity."""
    rules, signals, workers = tick.stage_rules, tick.signals, tick.workers[tick.workload_index]
    throughput, backlog = signals.throughput_records_per_s, signals.backlog_records
    table = with_prior(slow.table, rules.worker_capacity_records_per_s)
    confidence = confidence_at(table, workers)
    rate = rate_at(table, workers, rules.scaling_exponent)
    capacity = np.where(confidence > CARRIED, rate * capacity_ratio(rate, throughput, tick.saturated), np.nan)
    return replace(
        signals,
        confidence=confidence,
        capacity_records_per_s=capacity,
        drain_time_s=drain_time(backlog, capacity, signals.input_rate_records_per_s),
        utilization_ratio=utilization(tick.now.utilization_ratio, throughput, backlog, capacity),
    )


def _with_relays_since(tick: Tick, slow: Slow) -> Slow:
    """Note since when a later stage has been full."""
    relays, was_s = relays_at_capacity(tick), slow.trial.relays_since_s
    since_s = np.where(relays, first_known(was_s, np.full(len(relays), tick.at_s)), np.nan)
    return replace(slow, trial=replace(slow.trial, relays_since_s=since_s))


def _block_failed_scale_ups(tick: Tick, slow: Slow) -> Slow:
    """Block scale-ups of a stage whose last scale-up gained too little, until its throughput shows the gain.

    Once it has shown the gain without a backlog, a later fall has another cause. The first throughput after a rescale
    may mislead: an engine that reads ahead makes the smaller size seem faster, and a sink may take more after a pause.
    """
    slow = _with_relays_since(tick, slow)
    trial = slow.trial
    more = (tick.workers[tick.workload_index] > trial.from_workers) & (trial.from_workers > 0)
    if not more.any():
        return slow
    blocked, short = _is_blocked_since(tick, trial), _missing_gain(tick, trial)
    conclusive = more & _is_conclusive(tick, trial) & ~blocked
    failed = conclusive & (short > 0)
    cleared = tick.signals.due_backlog_time_s <= tick.stage_rules.short_backlog_time_s
    complete = (tick.workers >= tick.current_workers)[tick.workload_index]
    gained = short <= -tick.stage_rules.growth_noise_ratio * trial.from_records_per_s
    shown = more & complete & gained & (blocked | cleared)
    passed = (conclusive & ~failed) | shown
    trial = replace(
        trial,
        from_workers=np.where(passed, np.nan, trial.from_workers),
        from_records_per_s=np.where(passed, np.nan, trial.from_records_per_s),
        blocked_until_s=np.where(shown, np.nan, trial.blocked_until_s),
        block_s=np.where(passed, np.nan, trial.block_s),
    )
    return extend_blocks(tick, replace(slow, trial=trial), failed)


def _is_blocked_since(tick: Tick, trial: ScaleUpTrial) -> Mask:
    """Whether a block began after the last scale-up of a stage."""
    raised_at_s = tick.state.fast.spec_raised_at_s[tick.workload_index]
    since: Mask = trial.blocked_until_s - trial.block_s >= raised_at_s
    return since


def _is_conclusive(tick: Tick, trial: ScaleUpTrial) -> Mask:
    """Whether the throughput of a stage shows the capacity that its last scale-up added.

    The scale-up is less than an hour ago. In addition, one of two conditions holds. The stage is behind, its backlog
    does not fall at the larger size, and it becomes no faster. Or a later stage has been full for a whole rate window,
    so that the throughput contains no time of less load.
    """
    relays = tick.at_s - trial.relays_since_s >= tick.stage_rules.rate_window_s
    recent = tick.at_s - tick.state.fast.spec_raised_at_s[tick.workload_index] <= LONGEST_TRIAL_S
    noise = tick.stage_rules.growth_noise_ratio * tick.signals.throughput_records_per_s
    stays = tick.rates_known & (tick.signals.growth_records_per_s >= -noise)
    full = (tick.behind & stays & ~_may_be_warming_up(tick)) | relays
    conclusive: Mask = full & recent
    return conclusive


def _may_be_warming_up(tick: Tick) -> Mask:
    """Whether a stage is still becoming faster, or was silent within the rate window and may have been down."""
    latest, whole = tick.rates.latest_throughput_records_per_s, tick.signals.throughput_records_per_s
    fast = tick.state.fast
    near = fast.at_s[:, None] >= fast.at_s[-1] - tick.stage_rules.rate_window_s
    known = np.isfinite(fast.processed)
    silent = (near & ~known).any(axis=0) & known.any(axis=0)
    warming: Mask = silent | (latest > _RISING_RATIO * whole)
    return warming


def _missing_gain(tick: Tick, trial: ScaleUpTrial) -> Array:
    """Records/s by which a scale-up falls short of ineffective_gain_ratio of its expected gain; NaN if unknown."""
    rules, before = tick.stage_rules, trial.from_records_per_s
    grown = tick.workers[tick.workload_index] / np.where(trial.from_workers > 0, trial.from_workers, np.nan)
    expected = before * (grown**rules.scaling_exponent - 1.0)
    gained = tick.signals.throughput_records_per_s - before
    missing: Array = rules.ineffective_gain_ratio * expected - gained
    return missing


def extend_blocks(tick: Tick, slow: Slow, failed: Mask) -> Slow:
    """Block scale-ups of these stages: for ineffective_block_s, or twice as long as a block that ended recently."""
    trial = slow.trial
    first_s = tick.stage_rules.ineffective_block_s
    longest_s = _LONGEST_BLOCK * first_s
    last_s = np.where(tick.at_s - trial.blocked_until_s < longest_s, trial.block_s, np.nan)
    block_s = np.fmin(2.0 * first_known(last_s, first_s / 2.0), longest_s)
    blocked = replace(
        trial,
        blocked_until_s=np.where(failed, tick.at_s + block_s, trial.blocked_until_s),
        block_s=np.where(failed, block_s, trial.block_s),
    )
    return replace(slow, trial=blocked)


def _extend_forecast(tick: Tick, slow: Slow, minutes: int) -> Slow:
    """The forecast with this minute's input rate as its newest point; missed minutes are unknown."""
    points, outlier_run, fit = slow.points, np.nan_to_num(slow.outlier_run), slow.fit
    last_s = slow.newest_point_at_s
    rate = np.where(tick.rates_known, tick.signals.input_rate_records_per_s, np.nan)
    missed = [np.full(len(rate), np.nan)] * (min(minutes, POINTS) - 1)
    for newest in [*missed, rate]:
        points, outlier_run = append_point(points, outlier_run, fit, newest, tick.stage_rules.forecast_outliers)
        fit = widen_sigma(fit_curve(points, outlier_run), points)  # its time begins at the newest point
    return replace(
        slow,
        points=points,
        outlier_run=outlier_run,
        fit=fit,
        # Minutes have their own grid, because ticks need not divide a minute.
        newest_point_at_s=np.where(np.isnan(last_s), tick.at_s, last_s + minutes * STEP_S),
    )
