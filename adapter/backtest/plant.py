"""A fluid model of streaming jobs: arrivals, worker counts and faults -> counts, a step at a time."""

from dataclasses import dataclass, replace

import numpy as np

from adapter.core.samples import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """What does not change about W jobs; every array has shape (W,).

    start_delay_s: from asking for a worker until it is ready; the old set works on meanwhile.
    pause_s: nothing is processed for so long when the set of workers changes.
    warm_up_s, warm_up_ratio: speed rises linearly from the ratio to 1 in so many seconds after the pause.
    """

    worker_capacity_records_per_s: Array
    start_delay_s: Array
    pause_s: Array
    warm_up_s: Array
    warm_up_ratio: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the world does to W jobs of at most P partitions during one step.

    arrival_records_per_s: shape (W, P); partitions that a job does not have receive 0.
    speed_ratio: shape (W,); below 1 a slow sink holds the workers back while their CPU idles.
    stuck_workers: shape (W,); so many workers, the first ones, process nothing.
    """

    arrival_records_per_s: Array
    speed_ratio: Array
    stuck_workers: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """W jobs at one moment; shape (W,), the backlog (W, P).

    appended_records, processed_records: counters from 0.
    utilization_ratio: CPU of the last step, 0..1; NaN when nothing ran.
    start_left_s, pause_left_s: until new workers are ready, until processing goes on.
    warm_s: time worked since the last pause.
    """

    backlog_records: Array
    appended_records: Array
    processed_records: Array
    utilization_ratio: Array
    spec_workers: Array
    ready_workers: Array
    start_left_s: Array
    pause_left_s: Array
    warm_s: Array


def initial(workers: Array, partitions: int) -> State:
    """Jobs that have always run on these workers, shape (W,), and nothing waits. partitions: P, the most any has."""
    zeros = np.zeros(len(workers))
    return State(
        backlog_records=np.zeros((len(workers), partitions)),
        appended_records=zeros,
        processed_records=zeros,
        utilization_ratio=np.full(len(workers), np.nan),
        spec_workers=workers.astype(float),
        ready_workers=workers.astype(float),
        start_left_s=zeros,
        pause_left_s=zeros,
        warm_s=np.full(len(workers), np.inf),
    )


def rescaled(plant: Plant, state: State, workers: Array) -> State:
    """Workers asked for, shape (W,). The last write wins: one more worker on the way starts the wait anew."""
    more = workers > state.spec_workers
    start_left_s = np.where(more, plant.start_delay_s, np.where(workers > state.ready_workers, state.start_left_s, 0.0))
    return replace(state, spec_workers=workers.astype(float), start_left_s=start_left_s)


def step(plant: Plant, state: State, load: Load, dt_s: float) -> State:
    """The jobs dt_s later. Nothing is lost: appended = processed + backlog.

    Partition p belongs to worker p mod n, so workers beyond the partitions idle, an uneven share costs capacity and a
    hot partition is worth one worker. A worker serves its partitions in proportion to what waits in them.
    """
    state = _restarted(plant, state)
    working_s = np.clip(dt_s - state.pause_left_s, 0.0, dt_s)
    full_speed_records = plant.worker_capacity_records_per_s * _warmth(plant, state.warm_s + working_s / 2) * working_s
    waiting_records = state.backlog_records + load.arrival_records_per_s * dt_s
    served_records = _served(state.ready_workers, full_speed_records, load, waiting_records)
    processed_records = served_records.sum(axis=1)
    return replace(
        state,
        backlog_records=waiting_records - served_records,
        appended_records=state.appended_records + load.arrival_records_per_s.sum(axis=1) * dt_s,
        processed_records=state.processed_records + processed_records,
        utilization_ratio=_utilization(processed_records, state.ready_workers * full_speed_records),
        start_left_s=np.maximum(state.start_left_s - dt_s, 0.0),
        pause_left_s=np.maximum(state.pause_left_s - dt_s, 0.0),
        warm_s=state.warm_s + working_s,
    )


def _restarted(plant: Plant, state: State) -> State:
    """The new set takes over, after the pause, where all its workers are ready."""
    due = (state.spec_workers != state.ready_workers) & (state.start_left_s <= 0)
    return replace(
        state,
        ready_workers=np.where(due, state.spec_workers, state.ready_workers),
        pause_left_s=np.where(due, plant.pause_s, state.pause_left_s),
        warm_s=np.where(due, 0.0, state.warm_s),
    )


def _warmth(plant: Plant, warm_s: Array) -> Array:
    """Share of full speed, shape (W,)."""
    share = np.divide(warm_s, plant.warm_up_s, out=np.ones_like(warm_s), where=plant.warm_up_s > warm_s)
    return plant.warm_up_ratio + (1 - plant.warm_up_ratio) * share


def _served(workers: Array, full_speed_records: Array, load: Load, waiting_records: Array) -> Array:
    """Records taken from each partition, shape (W, P)."""
    jobs, partitions = waiting_records.shape
    index = np.arange(partitions)
    owner = index % np.maximum(workers, 1).astype(int)[:, None]
    slot = owner + np.arange(jobs)[:, None] * partitions
    held = np.bincount(slot.ravel(), waiting_records.ravel(), jobs * partitions).reshape(jobs, partitions)
    works = (index >= load.stuck_workers[:, None]) & (index < workers[:, None])
    able = np.where(works, (full_speed_records * load.speed_ratio)[:, None], 0.0)
    share = np.divide(able, held, out=np.ones_like(held), where=held > able)
    served: Array = waiting_records * np.take_along_axis(share, owner, axis=1)
    return served


def _utilization(processed_records: Array, possible_records: Array) -> Array:
    unknown = np.full_like(processed_records, np.nan)
    return np.divide(processed_records, possible_records, out=unknown, where=possible_records > 0)
