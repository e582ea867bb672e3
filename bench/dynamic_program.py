"""A dynamic program over slots, sizes and backlog that finds the cheapest sequence of sizes for a load."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapter.core.samples import Array, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLoad:
    """A load in units of backlog."""

    unit_records: float  # records of a unit
    arrivals: IntArray  # (slots,)
    capacity: IntArray  # (slots, sizes) units that 1, 2 ... workers process in a slot without a change
    limits: IntArray  # (slots + 1,) largest allowed backlog at the start of each slot and at the end
    slot_hours: float  # length of a slot
    penalty: float  # worker-hours for exceeding a limit, more than any plan costs


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The best change from each backlog at the start of a slot, shape (limit + 1,)."""

    value: Array  # cost until the end of the load
    workers: Array  # paid in each slot of the change; may be a mixture of sizes
    size: IntArray  # workers - 1 afterwards
    backlog: IntArray  # afterwards; limit + 1 beyond the limit
    slots: int  # duration of the change


Moves = Callable[[int, Sequence[Array]], Move]
"""(slot, values after it, after the next one ...) -> the slot's changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The state of a job at the start of a slot."""

    size: int  # workers - 1
    backlog: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CheapestPath:
    """The cheapest sequence of sizes."""

    workers: Array  # (slots,) paid in each slot
    end: Position  # after the last slot
    rescales: int
    rescaled_workers: float  # the sum of the sizes after each change
    infeasible_slots: int  # beyond their limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Whether the size is kept, for each size and backlog of each slot, and the best change otherwise."""

    values: Array  # (sizes, limit + 2) cost from the first slot on
    keeps: Sequence[NDArray[np.uint8]]
    moves: Sequence[Move]


def cheapest_path(grid: DiscreteLoad, moves: Moves, ahead: int) -> CheapestPath:
    """Compute the values backwards, then follow the best choices. The first size is free; the first backlog is 0.

    ahead: the longest change in slots.
    """
    slots, sizes = grid.capacity.shape
    choices = best_choices(grid, moves, ahead, np.zeros(sizes))
    return follow(grid, choices, Position(size=int(choices.values[:, 0].argmin())), slots)


def best_choices(grid: DiscreteLoad, moves: Moves, ahead: int, rest: Array) -> Choices:
    """The best choice in each slot.

    rest: of each size, the cost after the last slot. A value has the shape (sizes, limit + 2). Its last column is a
    backlog beyond the limit, which only the largest size may have, at a penalty that clears the excess. The cost of a
    change does not depend on the size before it, so a slot takes sizes * backlogs steps instead of sizes ** 2.
    """
    slots, sizes = grid.capacity.shape
    cost = np.arange(1.0, sizes + 1)[:, None] * grid.slot_hours
    last = np.repeat(rest[:, None], grid.limits[slots] + 1, axis=1)
    later = deque([_add_penalty_column(last, grid)], maxlen=ahead)
    keeps: list[NDArray[np.uint8]] = []
    changes: list[Move] = []
    for slot in range(slots - 1, -1, -1):
        keep = cost + _next(grid, slot, later[0], grid.capacity[slot])
        move = moves(slot, later)
        keeps.append(np.packbits(keep <= move.value, axis=1))
        changes.append(move)
        later.appendleft(_add_penalty_column(np.minimum(keep, move.value), grid))
    return Choices(values=later[0], keeps=keeps[::-1], moves=changes[::-1])


def _add_penalty_column(value: Array, grid: DiscreteLoad) -> Array:
    beyond = np.full((len(value), 1), np.inf)
    beyond[-1, 0] = value[-1, -1] + grid.penalty
    return np.concatenate((value, beyond), axis=1)


def _next(grid: DiscreteLoad, slot: int, value: Array, capacity: IntArray) -> Array:
    """The value of each backlog after a slot with each size, shape (sizes, limit + 1)."""
    backlog = after(np.arange(grid.limits[slot] + 1), grid.arrivals[slot], capacity[:, None], grid.limits[slot + 1])
    backlog += np.arange(len(value))[:, None] * value.shape[1]
    found: Array = value.ravel().take(backlog)
    return found


def after(backlog: IntArray, arrivals: int, capacity: IntArray, limit: int) -> IntArray:
    """Backlog after a slot, at least 0, and limit + 1 beyond the limit; shapes broadcast."""
    left: IntArray = backlog + (arrivals - capacity)
    np.maximum(left, 0, out=left)
    np.minimum(left, limit + 1, out=left)
    return left


def follow(grid: DiscreteLoad, choices: Choices, start: Position, slots: int) -> CheapestPath:
    """Follow the best choices for a number of slots, and to the end of a change that is in progress then."""
    slot, size, backlog, infeasible = 0, start.size, start.backlog, 0
    sizes: list[int] = []
    workers = np.zeros(len(choices.moves))
    while slot < slots:
        if choices.keeps[slot][size, backlog >> 3] >> (7 - (backlog & 7)) & 1:
            workers[slot] = size + 1
            backlog = max(backlog + int(grid.arrivals[slot] - grid.capacity[slot, size]), 0)
            slot += 1
        else:
            move = choices.moves[slot]
            workers[slot : slot + move.slots] = move.workers[backlog]
            size, backlog = int(move.size[backlog]), int(move.backlog[backlog])
            slot += move.slots
            sizes.append(size + 1)
        infeasible += backlog > grid.limits[slot]
        backlog = min(backlog, int(grid.limits[slot]))
    return CheapestPath(
        workers=workers[:slot],
        end=Position(size=size, backlog=backlog),
        rescales=len(sizes),
        rescaled_workers=float(sum(sizes)),
        infeasible_slots=infeasible,
    )
