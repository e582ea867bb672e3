"""Plans that know the load of the next minutes alone, and are made again every five minutes."""

from dataclasses import replace

import numpy as np

from adapter.core.samples import Array
from adapter.errors import AdapterError
from bench.dynamic_program import DiscreteLoad, Position, best_choices, follow
from bench.oracle import SLACK, SLOT_S, SizingTask, discrete_load, pause_slots, pausing_moves

_STEP_SLOTS = 5  # between two plans
_REST_SLOTS = 120  # after the known ones; the plan expects the mean of the last known slots in them
_MEAN_SLOTS = 5


def workers_with(task: SizingTask, known_slots: int, pause_s: float, price_s: float) -> Array:
    """The workers of each slot. A plan knows the next known_slots, and is followed for the first five of them.

    pause_s: no record is processed for this long after each change. price_s: of a rescale, in seconds of all workers
    after it. The first size is free. Raises AdapterError if the known slots are too few to keep the limit.
    """
    if known_slots < _STEP_SLOTS + pause_slots(pause_s) - 1:
        raise AdapterError(f"a plan for {known_slots} minutes ends within a pause; expected more")
    whole = discrete_load(task, price_s, -SLACK)
    slots, _ = whole.capacity.shape
    paid: list[float] = []
    position: Position | None = None
    while len(paid) < slots:
        first, end = len(paid), min(len(paid) + known_slots, slots)
        known, grid = _part(task, whole, first, end)
        if end < slots:  # the next plan may have to begin with a change
            grid.limits[-1] = max(grid.limits[-1] - round(grid.arrivals[-1] * pause_s / SLOT_S), 0)
        moves = pausing_moves(known, grid, pause_s, price_s)
        choices = best_choices(grid, moves, pause_slots(pause_s), _rest_hours(task, end, price_s))
        start = position or Position(size=int(choices.values[:, 0].argmin()))
        path = follow(grid, choices, start, min(_STEP_SLOTS, end - first))
        if path.infeasible_slots:  # the next plan would not see the backlog beyond the limit
            raise AdapterError(f"no plan for {known_slots} minutes keeps the limit; expected more minutes")
        paid += path.workers.tolist()
        position = path.end
    return np.array(paid)


def _part(task: SizingTask, whole: DiscreteLoad, first: int, end: int) -> tuple[SizingTask, DiscreteLoad]:
    """The slots from first to end, in the units of the whole load."""
    part = replace(task, arrival_records=task.arrival_records[first:end])
    grid = replace(
        whole,
        arrivals=whole.arrivals[first:end],
        capacity=whole.capacity[first:end],
        limits=whole.limits[first : end + 1].copy(),
    )
    return part, grid


def _rest_hours(task: SizingTask, end: int, price_s: float) -> Array:
    """Worker-hours of each size after the known slots: it stays if it carries the expected input, or changes once."""
    slots, sizes = len(task.arrival_records) - end, np.arange(1.0, task.capacity_records.shape[-1] + 1)
    if slots == 0:
        return np.zeros(len(sizes))
    hours = sizes * min(_REST_SLOTS, slots) * SLOT_S / 3600
    expected = task.arrival_records[max(end - _MEAN_SLOTS, 0) : end].mean()
    carries = task.capacity_records >= min(expected, float(task.capacity_records.max()))
    change = float((hours + sizes * price_s / 3600)[carries].min())
    rest: Array = np.where(carries, np.minimum(hours, change), change)
    return rest
