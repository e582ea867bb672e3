"""The cheapest plan for a known load and capacity, and a lower bound for the cost of every policy.

A dynamic program over slots, sizes and backlog. The unit of the backlog is a fraction of a worker's slot. Arrivals and
capacity are rounded as running totals, so the error stays below one unit however long the size is constant. One unit
at each change and two at the limit guarantee a plan in time (upper) and a valid bound (lower).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapter.core.partitions import imbalance_ratio
from adapter.core.samples import Array, IntArray
from adapter.simulator.fluid import worker_speed
from adapter.simulator.profiles import Profile
from bench.dynamic_program import DiscreteLoad, Move, Moves, after, cheapest_path

SLOT_S = 60.0
SLO_S = 300.0

_UNITS = 300  # in the largest allowed backlog; twice as many change a plan's cost by less than 0.5 %
SLACK = 2  # one unit for the arrivals, one for the capacity since the last change


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingTask:
    """The load and the capacity for which the oracle finds the cheapest sizes."""

    arrival_records: Array  # (slots,)
    capacity_records: Array  # of 1, 2 ... workers in a slot: (sizes,), or (slots, sizes) if it changes
    slo_s: float = SLO_S  # no record may wait longer


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlan:
    """The cheapest sizes and their cost."""

    workers: Array  # (slots,) paid in each slot
    worker_hours: float
    rescales: int
    objective: float  # worker_hours with the price of the rescales
    infeasible_slots: int  # at whose end a record has waited too long although all workers run


def capacity_records(profile: Profile, even: bool = False) -> Array:
    """Records that 1 .. max_workers workers process in a slot, shape (max_workers,).

    The busiest worker, with whole partitions of unequal weight, limits all: c * P / ceil(P / n) / (1 + skew).
    even: share the work perfectly instead. Source: Theodolite's demand by simulation, as a formula.
    """
    sizes = np.arange(1.0, profile.max_workers + 1)
    capacity: Array = SLOT_S * sizes * worker_speed(profile, sizes)
    if even or not profile.partitions:
        return capacity
    return capacity / imbalance_ratio(sizes, np.full_like(sizes, profile.partitions)) / (1 + profile.skew)


def work_lower_bound(task: SizingTask) -> float:
    """Worker-hours for the records at the best rate of any size, without those that may still wait at the end."""
    sizes = np.arange(1, task.capacity_records.shape[-1] + 1)
    must_records = float(task.arrival_records.sum()) - float(_allowed_records(task)[-1])
    return must_records / float((task.capacity_records / sizes).max()) * SLOT_S / 3600


def upper(task: SizingTask, pause_s: float, price_s: float) -> WorkerPlan:
    """A plan: a size for each slot. No record is processed for pause_s after each change.

    price_s: of a rescale, in seconds of all workers after it. The first size is free. Where all workers together are
    late, all run, and the plan counts the slots that end late in a simulation record by record.
    The plan is in time if the workers have the capacity of the task in every slot. Workers of uneven speed do not:
    played_plan.py finds the margin with which a plan is in time in the simulator.
    """
    grid = discrete_load(task, price_s, -SLACK)
    moves = pausing_moves(task, grid, pause_s, price_s)
    workers = cheapest_path(grid, moves, pause_slots(pause_s)).workers
    changed = np.flatnonzero(np.diff(workers)) + 1
    hours = float(workers.sum()) * grid.slot_hours
    return WorkerPlan(
        workers=workers,
        worker_hours=hours,
        rescales=len(changed),
        objective=hours + price_s / 3600 * float(workers[changed].sum()),
        infeasible_slots=int(_late_slots(task, workers, changed, pause_s).sum()),
    )


def lower(task: SizingTask, price_s: float) -> WorkerPlan:
    """A bound: no policy whose records wait at most slo_s at every slot's end has a smaller objective.

    The bound relaxes the problem. A change takes no time, needs no warm-up and repeats no work. A slot with a change
    may run any mixture of sizes, as if the policy changed at every moment, for the price of one rescale, to its last
    size, and the cost of its work on the convex envelope of the sizes. Work is shared perfectly among the partitions.
    Workers that start or end, and the initial workers, cost nothing. The plan may pay fractions of workers.
    The bound is valid if capacity_records is the maximum that the workers can process in the slot: evenly shared work,
    the fastest workers, the realised noise, the largest of the slot's steps.
    """
    grid = discrete_load(task, price_s, SLACK)
    plan = cheapest_path(grid, _mixing(task, grid, price_s), 1)
    hours = float(plan.workers.sum()) * grid.slot_hours
    return WorkerPlan(
        workers=plan.workers,
        worker_hours=hours,
        rescales=plan.rescales,
        objective=max(hours + price_s / 3600 * plan.rescaled_workers, work_lower_bound(task)),
        infeasible_slots=plan.infeasible_slots,
    )


def _by_slot(task: SizingTask) -> Array:
    return np.broadcast_to(task.capacity_records, (len(task.arrival_records), task.capacity_records.shape[-1]))


def _allowed_records(task: SizingTask) -> Array:
    """Records that arrive in the slo_s before the start of each slot and the end of the last, shape (slots + 1,)."""
    arrived = np.concatenate(([0.0], np.cumsum(task.arrival_records)))
    at_s = np.arange(len(arrived)) * SLOT_S
    allowed: Array = arrived - np.interp(at_s - task.slo_s, at_s, arrived)
    return allowed


def discrete_load(task: SizingTask, price_s: float, slack: int) -> DiscreteLoad:
    """The task in units. A worker's slot is a whole number of units, so that linear capacity is exact."""
    capacity, allowed = _by_slot(task), _allowed_records(task)
    one = float(capacity[:, 0].max()) or 1.0
    unit = one / max(1, round(_UNITS * one / max(float(allowed.max()), one)))
    slots, sizes = capacity.shape
    hours = SLOT_S / 3600
    return DiscreteLoad(
        unit_records=unit,
        arrivals=_whole(task.arrival_records, unit),
        capacity=_whole(capacity, unit),
        limits=np.maximum(np.floor(allowed / unit + 1e-9).astype(np.int64) + slack, 0),
        slot_hours=hours,
        penalty=1 + slots * sizes * (hours + price_s / 3600),  # more than any plan costs
    )


def _whole(records: Array, unit_records: float) -> IntArray:
    """Units whose running total is that of the records, rounded down; shape as given, time along the first axis."""
    totals = np.floor(np.cumsum(records, axis=0) / unit_records + 1e-9).astype(np.int64)
    return np.diff(totals, axis=0, prepend=0)


def pause_slots(pause_s: float) -> int:
    """The slots of a change, at least one."""
    return max(1, int(np.ceil(pause_s / SLOT_S)))


def pausing_moves(task: SizingTask, grid: DiscreteLoad, pause_s: float, price_s: float) -> Moves:
    """Changes to any size: slots without work, then one slot in which the work resumes."""
    capacity = _by_slot(task)
    whole = pause_slots(pause_s)
    share = whole - pause_s / SLOT_S  # of the last slot, after the pause
    # Rounding can give a size one unit too many if its capacity is not a whole number of units: charge it at the start.
    inexact = np.abs(capacity / grid.unit_records - grid.capacity).max(axis=0) > 1e-6
    costs = np.arange(1.0, capacity.shape[1] + 1)[:, None] * grid.slot_hours
    prices = _prices(capacity, price_s)

    def moves(slot: int, later: Sequence[Array]) -> Move:
        slots = min(whole, len(capacity) - slot)
        last = slot + slots - 1
        backlog, late = np.arange(grid.limits[slot] + 1), np.zeros(grid.limits[slot] + 1)
        for paused in range(slot, last):
            backlog = backlog + grid.arrivals[paused]
            late += backlog > grid.limits[paused + 1]
            backlog = np.minimum(backlog, grid.limits[paused + 1])
        left = share if slots == whole else 0.0
        work = np.floor(capacity[last] * left / grid.unit_records + 1e-9).astype(np.int64) - inexact
        ends = after(backlog, grid.arrivals[last], work[:, None], grid.limits[last + 1])
        value = prices + costs * slots + np.take_along_axis(later[slots - 1], ends, axis=1)
        size = value.argmin(axis=0)
        places = np.arange(len(backlog))
        return Move(
            value=value[size, places] + late * grid.penalty,
            workers=size + 1.0,
            size=size,
            backlog=ends[size, places],
            slots=slots,
        )

    return moves


def _mixing(task: SizingTask, grid: DiscreteLoad, price_s: float) -> Moves:
    """Changes with any amount of work at its least cost, then any size."""
    capacity = _by_slot(task)
    most = int(np.ceil(capacity.max() / grid.unit_records)) + 1
    works = (np.arange(most, -1, -1) - 2).astype(np.float64) * grid.unit_records  # one unit is free, one is rounding
    envelopes: dict[bytes, Array] = {}
    prices = _prices(capacity, price_s)

    def moves(slot: int, later: Sequence[Array]) -> Move:
        key = capacity[slot].tobytes()
        if key not in envelopes:
            envelopes.clear()
            envelopes[key] = _workers_for(works, capacity[slot])
        workers = envelopes[key]
        value = later[0] + prices
        size = value.argmin(axis=0)
        best = value[size, np.arange(value.shape[1])]
        ends = np.arange(-most, grid.limits[slot] + 1) + grid.arrivals[slot]
        ends = np.minimum(np.maximum(ends, 0), grid.limits[slot + 1] + 1)
        # from backlog j with k units of work it ends in ends[j - k + most]
        costs = np.lib.stride_tricks.sliding_window_view(best[ends], most + 1) + workers * grid.slot_hours
        choice = costs.argmin(axis=1)
        places = np.arange(len(choice))
        end = ends[places + choice]
        return Move(value=costs[places, choice], workers=workers[choice], size=size[end], backlog=end, slots=1)

    return moves


def _prices(capacity: Array, price_s: float) -> Array:
    """Worker-hours of a rescale to 1, 2, ... workers, shape (sizes, 1)."""
    prices: Array = np.arange(1.0, capacity.shape[1] + 1)[:, None] * price_s / 3600
    return prices


def _workers_for(work_records: Array, capacity: Array) -> Array:
    """Fewest mean workers for an amount of work in a slot: the convex envelope of the sizes; infinite beyond it."""
    hull = [(0.0, 1.0)]
    for workers, records in enumerate(capacity.tolist(), start=1):
        if records <= hull[-1][0]:
            continue
        while len(hull) > 1 and _bends_down(hull[-2], hull[-1], (records, float(workers))):
            hull.pop()
        hull.append((records, float(workers)))
    xs, ys = zip(*hull, strict=True)
    least: Array = np.interp(work_records, xs, ys, right=np.inf)
    return least


def _bends_down(first: tuple[float, float], middle: tuple[float, float], last: tuple[float, float]) -> bool:
    return (middle[1] - first[1]) * (last[0] - first[0]) >= (last[1] - first[1]) * (middle[0] - first[0])


def _late_slots(task: SizingTask, workers: Array, changed: IntArray, pause_s: float) -> NDArray[np.bool_]:
    """The slots of a plan of whole workers that end with late records, simulated exactly; shape (slots,)."""
    stopped_s = np.zeros(len(workers))
    for slot in changed:
        left_s = pause_s - np.arange(len(workers) - slot) * SLOT_S
        stopped_s[slot:] = np.maximum(stopped_s[slot:], np.clip(left_s, 0.0, SLOT_S))
    capacity = _by_slot(task)[np.arange(len(workers)), workers.astype(int) - 1] * (1 - stopped_s / SLOT_S)
    total = np.cumsum(task.arrival_records - capacity)
    waiting = total - np.minimum.accumulate(np.minimum(total, 0.0))
    late: NDArray[np.bool_] = waiting > _allowed_records(task)[1:] + 1e-6 * np.maximum(task.arrival_records, 1.0)
    return late
