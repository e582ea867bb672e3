"""The cheapest plan for a known load, and a lower bound of the cost of every policy.

A dynamic program over slots, sizes and backlog. Backlog is counted in units of a fraction of a worker's slot. Both
arrivals and capacity are rounded as running totals, so that an error never grows beyond a unit however long a size is
kept; one unit at each change and two at the limit make the plan surely feasible (upper) or the bound sure (lower).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapter.core.samples import Array, IntArray
from adapter.simulator.profiles import Profile
from bench.dynamic_program import DiscreteLoad, Move, Moves, after, cheapest_path

SLOT_S = 60.0
SLO_S = 300.0

_UNITS = 300  # in the greatest backlog that is in time; twice as many change a plan's cost by less than 0.5 %
_SLACK = 2  # one unit for the arrivals, one for the capacity since the last change


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingTask:
    """What arrives in each slot, shape (slots,), and what 1, 2 ... workers can process in one, in records.

    capacity_records: shape (sizes,), or (slots, sizes) where it changes. slo_s: no record may wait longer.
    """

    arrival_records: Array
    capacity_records: Array
    slot_s: float = SLOT_S
    slo_s: float = SLO_S


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlan:
    """Workers paid in each slot, shape (slots,), and their cost: objective = worker_hours + rho * rescales.

    infeasible_slots: at whose end something waits too long, although all workers run.
    """

    workers: Array
    worker_hours: float
    rescales: int
    objective: float
    infeasible_slots: int


def capacity_records(profile: Profile, even: bool = False, slot_s: float = SLOT_S) -> Array:
    """What 1 .. max_workers workers process in a slot, shape (max_workers,).

    Whole partitions of unequal weight keep the others waiting for the busiest worker: c * P / ceil(P / n) / (1 + skew);
    even: as if the work were shared perfectly. Source: Theodolite's demand by simulation, as a formula.
    """
    sizes = np.arange(1.0, profile.max_workers + 1)
    capacity: Array = profile.worker_capacity_records_per_s * slot_s * sizes**profile.scaling_exponent
    if even or not profile.partitions:
        return capacity
    shared = profile.partitions / np.ceil(profile.partitions / sizes) / sizes
    return capacity * shared / (1 + profile.skew)


def work_lower_bound(task: SizingTask) -> float:
    """Worker-hours of the work alone, at the best rate of any size; what may still wait at the end is left out."""
    sizes = np.arange(1, task.capacity_records.shape[-1] + 1)
    must_records = float(task.arrival_records.sum()) - float(_allowed_records(task)[-1])
    return must_records / float((task.capacity_records / sizes).max()) * task.slot_s / 3600


def static_optimum(task: SizingTask) -> int | None:
    """The least size that is never late, None if there is none. Nothing waits at the start."""
    sizes = np.arange(task.capacity_records.shape[-1])
    never = np.ones(len(sizes), dtype=bool)
    waiting, allowed = np.zeros(len(sizes)), _allowed_records(task)
    for slot, capacity in enumerate(_by_slot(task)):
        waiting = np.maximum(waiting + task.arrival_records[slot] - capacity, 0.0)
        never &= waiting <= allowed[slot + 1] + 1e-6
    return int(sizes[never][0]) + 1 if never.any() else None


def upper(task: SizingTask, pause_s: float, rho: float) -> WorkerPlan:
    """A feasible plan: a size for each slot. Nothing is processed for pause_s after each change.

    rho: worker-hours that a rescale is worth. The first size is free. Where even all workers are late they run, and
    the slots that end late, as simulated record by record, are counted.
    """
    grid = _grid(task, rho, -_SLACK)
    ahead = max(1, int(np.ceil(pause_s / task.slot_s)))
    workers = cheapest_path(grid, _pausing(task, grid, pause_s, rho), ahead).workers
    changed = np.flatnonzero(np.diff(workers)) + 1
    hours = float(workers.sum()) * grid.slot_hours
    return WorkerPlan(
        workers=workers,
        worker_hours=hours,
        rescales=len(changed),
        objective=hours + rho * len(changed),
        infeasible_slots=int(_late_slots(task, workers, changed, pause_s).sum()),
    )


def lower(task: SizingTask, rho: float) -> WorkerPlan:
    """A bound: no policy that leaves no record waiting longer than slo_s at any slot's end has a smaller objective.

    It may do what no policy can. A change takes no time, needs no warm-up and repeats no work. In a slot with a change
    any mixture of sizes may run, as if the policy had changed at every moment of it, for one rho and the cost of its
    work on the convex envelope of the sizes. Work is shared perfectly, whichever partition waits. The paid workers
    that a policy has beyond those that work (starting, ending) are not counted, nor is what it begins with.
    The bound holds if capacity_records is the most that so many workers can process in the slot: even, the luckiest
    workers, noise as realised, the greatest of the slot's steps. Its plan may pay parts of workers.
    """
    grid = _grid(task, rho, _SLACK)
    plan = cheapest_path(grid, _mixing(task, grid, rho), 1)
    hours = float(plan.workers.sum()) * grid.slot_hours
    return WorkerPlan(
        workers=plan.workers,
        worker_hours=hours,
        rescales=plan.rescales,
        objective=max(hours + rho * plan.rescales, work_lower_bound(task)),
        infeasible_slots=plan.infeasible_slots,
    )


def _by_slot(task: SizingTask) -> Array:
    return np.broadcast_to(task.capacity_records, (len(task.arrival_records), task.capacity_records.shape[-1]))


def _allowed_records(task: SizingTask) -> Array:
    """What arrived in the slo_s before each slot begins and the last one ends, shape (slots + 1,)."""
    arrived = np.concatenate(([0.0], np.cumsum(task.arrival_records)))
    at_s = np.arange(len(arrived)) * task.slot_s
    allowed: Array = arrived - np.interp(at_s - task.slo_s, at_s, arrived)
    return allowed


def _grid(task: SizingTask, rho: float, slack: int) -> DiscreteLoad:
    """A unit is a whole part of one worker's slot, so that linear capacity is exact."""
    capacity, allowed = _by_slot(task), _allowed_records(task)
    one = float(capacity[:, 0].max()) or 1.0
    unit = one / max(1, round(_UNITS * one / max(float(allowed.max()), one)))
    slots, sizes = capacity.shape
    hours = task.slot_s / 3600
    return DiscreteLoad(
        unit_records=unit,
        arrivals=_whole(task.arrival_records, unit),
        kept=_whole(capacity, unit),
        limits=np.maximum(np.floor(allowed / unit + 1e-9).astype(np.int64) + slack, 0),
        slot_hours=hours,
        penalty=1 + slots * (sizes * hours + rho),  # more than any plan costs
    )


def _whole(records: Array, unit_records: float) -> IntArray:
    """Units whose running total is that of the records, rounded down; shape as given, time along the first axis."""
    totals = np.floor(np.cumsum(records, axis=0) / unit_records + 1e-9).astype(np.int64)
    return np.diff(totals, axis=0, prepend=0)


def _pausing(task: SizingTask, grid: DiscreteLoad, pause_s: float, rho: float) -> Moves:
    """Any size, after slots without work and a slot with what is left of it."""
    capacity = _by_slot(task)
    whole = max(1, int(np.ceil(pause_s / task.slot_s)))
    share = whole - pause_s / task.slot_s  # of the last slot, in which work goes on
    # a size whose capacity is no whole number of units is lent one while it is kept, and pays when it begins
    inexact = np.abs(capacity / grid.unit_records - grid.kept).max(axis=0) > 1e-6
    costs = np.arange(1.0, capacity.shape[1] + 1)[:, None] * grid.slot_hours

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
        value = costs * slots + np.take_along_axis(later[slots - 1], ends, axis=1)
        size = value.argmin(axis=0)
        places = np.arange(len(backlog))
        return Move(
            value=value[size, places] + rho + late * grid.penalty,
            workers=size + 1.0,
            size=size,
            backlog=ends[size, places],
            slots=slots,
        )

    return moves


def _mixing(task: SizingTask, grid: DiscreteLoad, rho: float) -> Moves:
    """Any amount of work at its least cost, then any size."""
    capacity = _by_slot(task)
    most = int(np.ceil(capacity.max() / grid.unit_records)) + 1
    works = (np.arange(most, -1, -1) - 2).astype(np.float64) * grid.unit_records  # one unit is free, one is rounding
    envelopes: dict[bytes, Array] = {}

    def moves(slot: int, later: Sequence[Array]) -> Move:
        key = capacity[slot].tobytes()
        if key not in envelopes:
            envelopes.clear()
            envelopes[key] = _workers_for(works, capacity[slot])
        workers = envelopes[key]
        value = later[0]
        size = value.argmin(axis=0)
        best = value[size, np.arange(value.shape[1])]
        ends = np.arange(-most, grid.limits[slot] + 1) + grid.arrivals[slot]
        ends = np.minimum(np.maximum(ends, 0), grid.limits[slot + 1] + 1)
        # from backlog j with k units of work it ends in ends[j - k + most]
        costs = np.lib.stride_tricks.sliding_window_view(best[ends], most + 1) + workers * grid.slot_hours
        choice = costs.argmin(axis=1)
        places = np.arange(len(choice))
        end = ends[places + choice]
        return Move(value=costs[places, choice] + rho, workers=workers[choice], size=size[end], backlog=end, slots=1)

    return moves


def _workers_for(work_records: Array, capacity: Array) -> Array:
    """Least workers on average for an amount of work in a slot: the convex envelope of the sizes; infinite beyond."""
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
        left_s = pause_s - np.arange(len(workers) - slot) * task.slot_s
        stopped_s[slot:] = np.maximum(stopped_s[slot:], np.clip(left_s, 0.0, task.slot_s))
    capacity = _by_slot(task)[np.arange(len(workers)), workers.astype(int) - 1] * (1 - stopped_s / task.slot_s)
    total = np.cumsum(task.arrival_records - capacity)
    waiting = total - np.minimum.accumulate(np.minimum(total, 0.0))
    late: NDArray[np.bool_] = waiting > _allowed_records(task)[1:] + 1e-6 * np.maximum(task.arrival_records, 1.0)
    return late
