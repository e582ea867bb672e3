"""A fluid model of streaming jobs: arrivals, worker counts and faults -> record counts, step by step."""

from dataclasses import dataclass, replace

import numpy as np

from adapter.core.rates import Mask
from adapter.core.samples import Array, IntArray
from adapter.simulator.profiles import Profile
from adapter.simulator.sharing import by_owner, owner


@dataclass(frozen=True, slots=True, kw_only=True)
class JobModel:
    """The constants of L jobs; shape (L,), or (L, M) where rescale number i uses column i mod M."""

    worker_capacity_records_per_s: Array  # of a single worker
    scaling_exponent: Array  # n workers carry n ** exponent times the capacity of one
    pooled: Mask  # any worker can take any record; all records are in partition 0
    start_delay_s: Array  # (L, M) until a new worker is ready; the old workers continue meanwhile
    pause_up_s: Array  # (L, M) without processing when workers are added
    pause_down_s: Array  # (L, M) without processing when workers are removed
    replay_s: Array  # (L, M) a rescale repeats the work of this time
    warm_up_s: Array  # after a pause, speed rises linearly to 1 within this time
    warm_up_ratio: Array  # speed right after a pause


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowCapacity:
    """The input that workers can process without a backlog, shape (L,)."""

    flow_records_per_s: Array  # the input at which the first worker is full
    busy_s: Array  # mean busy time of the workers per record of the input
    busiest_s: Array  # the same of the busiest worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Input and disturbances of L jobs during one step."""

    rate_records_per_s: Array  # (L,) input
    share: Array  # (L, P) share of the input of each partition; rows sum to 1
    speed_ratio: Array  # (L, N) of each worker; 0 is stuck
    sink_ratio: Array  # (L,) below 1 a slow sink delays all workers while their CPU idles
    flow_capacity: FlowCapacity | None = None  # of the present workers; speeds up jobs without a backlog, same result


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """The state of L jobs at one moment, shape (L,)."""

    backlog_records: Array  # (L, P) by partition
    waiting_records: Array  # the whole backlog; exactly 0 without one
    appended_records: Array  # since the start
    processed_records: Array  # since the start; falls where records are replayed
    committed_records: Array  # the maximum of processed_records, as a broker reports it
    throughput_records_per_s: Array  # in the last step
    utilization_ratio: Array  # mean busy time of the workers in the last step, 0..1; NaN if none ran
    busiest_ratio: Array  # the same of the busiest worker
    spec_workers: Array
    ready_workers: Array
    leaving_workers: Array  # the size before the last change; removed workers stay until its pause ends
    start_left_s: Array  # until new workers are ready
    pause_left_s: Array  # until processing continues
    idle_s: Array  # paused in the last step
    warm_s: Array  # time worked since the last pause
    changes: IntArray  # rescales so far

    @property
    def paid_workers(self) -> Array:
        """Workers that are ready, starting or ending."""
        present = np.maximum(self.spec_workers, self.ready_workers)
        return np.where(self.pause_left_s > 0, np.maximum(present, self.leaving_workers), present)


@dataclass(frozen=True, slots=True)
class _WorkBudget:
    """The workers that share the partitions of some jobs in a step, and the records that each can process."""

    workers: Array  # shape (L,)
    full_records: Array  # shape (L, N), at full speed
    able_records: Array  # shape (L, N), as the sink permits
    runs: Mask  # shape (L,), whether any worker runs


def initial_state(workers: Array, partitions: int) -> JobState:
    """Jobs in steady state on these workers, shape (L,), without a backlog. partitions: P, the most of any job."""
    zeros, unknown = np.zeros(len(workers)), np.full(len(workers), np.nan)
    return JobState(
        backlog_records=np.zeros((len(workers), partitions)),
        waiting_records=zeros,
        appended_records=zeros,
        processed_records=zeros,
        committed_records=zeros,
        throughput_records_per_s=zeros,
        utilization_ratio=unknown,
        busiest_ratio=unknown,
        spec_workers=workers.astype(float),
        ready_workers=workers.astype(float),
        leaving_workers=zeros,
        start_left_s=zeros,
        pause_left_s=zeros,
        idle_s=zeros,
        warm_s=np.full(len(workers), np.inf),
        changes=np.zeros(len(workers), dtype=np.int64),
    )


def rescale(model: JobModel, state: JobState, workers: Array) -> JobState:
    """Set the desired workers, shape (L,). The last write wins; workers that start together become ready together."""
    more = (workers > state.spec_workers) & (state.start_left_s <= 0)
    delay_s = _of_change(model.start_delay_s, state.changes)
    start_left_s = np.where(more, delay_s, np.where(workers > state.ready_workers, state.start_left_s, 0.0))
    return replace(state, spec_workers=workers.astype(float), start_left_s=start_left_s)


def fail(model: JobModel, state: JobState, load: Conditions, pause_s: Array) -> JobState:
    """Restart the jobs whose pause_s, shape (L,), is above 0. A restart within a pause prolongs the pause."""
    alone = (pause_s > 0) & (state.pause_left_s <= 0)
    state = _begin_pauses(model, state, load, alone, pause_s)
    leaving_workers = np.where(alone, 0.0, state.leaving_workers)
    return replace(state, leaving_workers=leaving_workers, pause_left_s=np.maximum(state.pause_left_s, pause_s))


def step(model: JobModel, state: JobState, load: Conditions, dt_s: float) -> JobState:
    """Advance the jobs by dt_s. No record is lost: appended = processed + backlog.

    Partition p belongs to worker p mod n: workers beyond the partitions idle, uneven shares reduce the capacity, and a
    hot partition gets at most one worker. A worker serves its partitions in proportion to their backlog.
    """
    changes, state = state.changes, _begin_changes(model, state, load)
    working_s = np.clip(dt_s - state.pause_left_s, 0.0, dt_s)
    warmth = _warm_up_speed(model, state.warm_s + working_s / 2)
    # The flow capacity of the old workers does not apply to new ones that take over without a pause.
    flowing = _processes_on_arrival(state, load, warmth, (working_s >= dt_s) & (state.changes == changes))
    arrived_records = load.rate_records_per_s * dt_s
    processed_records = arrived_records.copy()
    utilization_ratio, busiest_ratio = _flow_busy(load, flowing, warmth)
    backlog_records, left_records = state.backlog_records, np.zeros(len(flowing))

    some = np.flatnonzero(~flowing)
    if len(some):
        budget = _work_budget(model, state, load, some, warmth * working_s)
        waiting_records = backlog_records[some] + load.share[some] * arrived_records[some, None]
        served_records, utilization_ratio[some], busiest_ratio[some] = _process_waiting(budget, waiting_records)
        backlog_records = backlog_records.copy()
        backlog_records[some] = waiting_records - served_records
        left_records[some] = backlog_records[some].sum(axis=1)
        processed_records[some] = served_records.sum(axis=1)
    processed_in_all = state.processed_records + processed_records
    return replace(
        state,
        backlog_records=backlog_records,
        waiting_records=left_records,
        appended_records=state.appended_records + arrived_records,
        processed_records=processed_in_all,
        committed_records=np.maximum(state.committed_records, processed_in_all),
        throughput_records_per_s=processed_records / dt_s,
        utilization_ratio=utilization_ratio,
        busiest_ratio=busiest_ratio,
        start_left_s=np.maximum(state.start_left_s - dt_s, 0.0),
        pause_left_s=np.maximum(state.pause_left_s - dt_s, 0.0),
        idle_s=dt_s - working_s,
        warm_s=state.warm_s + working_s,
    )


def flow_capacity(model: JobModel, load: Conditions, workers: Array, held: Array) -> FlowCapacity:
    """The capacity of workers, shape (L,). held: their shares of the input, from worker_share."""
    full = worker_speed(model, workers)[:, None] * load.speed_ratio
    present = np.arange(full.shape[1]) < workers[:, None]
    # A pool is as fast as the sum of its workers.
    pool = np.where(present, full, 0.0).sum(axis=1)
    full = np.where(model.pooled[:, None], (pool / np.maximum(workers, 1))[:, None], full)
    busy_s = np.divide(held, full, out=np.where(held > 0, np.inf, 0.0), where=full > 0)
    busiest_s = busy_s.max(axis=1)
    able = np.divide(load.sink_ratio, busiest_s, out=np.full_like(busiest_s, np.inf), where=busiest_s > 0)
    return FlowCapacity(
        flow_records_per_s=np.where(workers > 0, able, 0.0),
        busy_s=np.where(present, busy_s, 0.0).sum(axis=1) / np.maximum(workers, 1),
        busiest_s=busiest_s,
    )


def _of_change(drawn: Array, changes: IntArray) -> Array:
    column: Array = drawn[np.arange(len(drawn)), changes % drawn.shape[1]]
    return column


def _begin_changes(model: JobModel, state: JobState, load: Conditions) -> JobState:
    """Begin a change of the workers where all new workers are ready and no other change is in progress."""
    due = (state.spec_workers != state.ready_workers) & (state.start_left_s <= 0) & (state.pause_left_s <= 0)
    if not due.any():
        return state
    up_s, down_s = (_of_change(drawn, state.changes) for drawn in (model.pause_up_s, model.pause_down_s))
    pause_s = np.where(state.spec_workers > state.ready_workers, up_s, down_s)
    return replace(
        _begin_pauses(model, state, load, due, pause_s),
        ready_workers=np.where(due, state.spec_workers, state.ready_workers),
        leaving_workers=np.where(due, state.ready_workers, state.leaving_workers),
    )


def _begin_pauses(model: JobModel, state: JobState, load: Conditions, due: Mask, pause_s: Array) -> JobState:
    """Begin the pauses that are due, and put the records since the last checkpoint back into the backlog."""
    if not due.any():
        return state
    again_records = state.throughput_records_per_s * _of_change(model.replay_s, state.changes)
    again_records = np.where(due, np.minimum(again_records, state.processed_records), 0.0)
    return replace(
        state,
        backlog_records=state.backlog_records + again_records[:, None] * load.share,
        waiting_records=state.waiting_records + again_records,
        processed_records=state.processed_records - again_records,
        pause_left_s=np.where(due, pause_s, state.pause_left_s),
        warm_s=np.where(due, 0.0, state.warm_s),
        changes=state.changes + due,
    )


def _warm_up_speed(model: JobModel, warm_s: Array) -> Array:
    """Ratio of the present speed to full speed, shape (L,)."""
    share = np.divide(warm_s, model.warm_up_s, out=np.ones_like(warm_s), where=model.warm_up_s > warm_s)
    return model.warm_up_ratio + (1 - model.warm_up_ratio) * share


def _processes_on_arrival(state: JobState, load: Conditions, warmth: Array, works_all_step: Mask) -> Mask:
    """Where every record is processed on arrival, shape (L,)."""
    if load.flow_capacity is None:
        return np.zeros(len(warmth), dtype=bool)
    able = load.flow_capacity.flow_records_per_s
    flowing: Mask = (
        works_all_step & (state.waiting_records <= 0) & (load.rate_records_per_s <= able * warmth) & (able > 0)
    )
    return flowing


def _flow_busy(load: Conditions, flowing: Mask, warmth: Array) -> tuple[Array, Array]:
    """Busy time of the mean and of the busiest worker, shape (L,); NaN where records wait."""
    flow = load.flow_capacity
    if flow is None:
        return np.full(len(warmth), np.nan), np.full(len(warmth), np.nan)
    rate = np.where(flowing, load.rate_records_per_s, np.nan)
    mean_s, busiest_s = (np.where(flowing, busy_s, 0.0) for busy_s in (flow.busy_s, flow.busiest_s))
    return rate * mean_s / warmth, rate * busiest_s / warmth


def worker_speed(model: JobModel | Profile, workers: Array) -> Array:
    """Records/s of each worker at full speed: together, n workers carry n ** scaling_exponent times one's capacity."""
    speed: Array = model.worker_capacity_records_per_s * np.maximum(workers, 1) ** (model.scaling_exponent - 1)
    return speed


def _work_budget(model: JobModel, state: JobState, load: Conditions, some: IntArray, worked_s: Array) -> _WorkBudget:
    """worked_s: time of the step in units of full speed, shape (L,). A pool counts as one worker with all its speed."""
    ready, pooled, worked_s = state.ready_workers[some], model.pooled[some], worked_s[some]
    speed = worker_speed(model, state.ready_workers)[some, None] * load.speed_ratio[some]
    index = np.arange(speed.shape[1])
    speed = np.where(index < ready[:, None], speed, 0.0)
    if pooled.any():
        together = np.where(index < 1, speed.sum(axis=1)[:, None], 0.0)
        speed = np.where(pooled[:, None], together, speed)
    full_records = speed * worked_s[:, None]
    workers = np.where(pooled, np.minimum(ready, 1), ready)
    return _WorkBudget(
        workers, full_records, full_records * load.sink_ratio[some, None], (workers > 0) & (worked_s > 0)
    )


def _process_waiting(budget: _WorkBudget, waiting_records: Array) -> tuple[Array, Array, Array]:
    """Records taken from each partition, shape (L, P); busy time of the mean and of the busiest worker, shape (L,)."""
    owns = owner(waiting_records.shape[1], budget.workers)
    held = by_owner(waiting_records, owns, budget.full_records.shape[1])
    share = np.divide(budget.able_records, held, out=np.ones_like(held), where=held > budget.able_records)
    served = waiting_records * np.take_along_axis(share, owns, axis=1)
    busy = np.divide(held * share, budget.full_records, out=np.zeros_like(held), where=budget.full_records > 0)
    mean = np.divide(busy.sum(axis=1), budget.workers, out=np.full(len(served), np.nan), where=budget.runs)
    return served, mean, np.where(budget.runs, busy.max(axis=1), np.nan)
