"""A dynamic program over slots, sizes and backlog: from what a change may do to the cheapest way through a load."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapter.core.samples import Array, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLoad:
    """A load in units of backlog.

    unit_records: records of a unit. arrivals: shape (slots,). kept: what 1, 2 ... workers process in a slot in which
    they stay, shape (slots, sizes). limits: the greatest backlog at each slot's begin and the end, shape (slots + 1,).
    slot_hours: a slot's length. penalty: worker-hours for passing a limit, more than any plan costs.
    """

    unit_records: float
    arrivals: IntArray
    kept: IntArray
    limits: IntArray
    slot_hours: float
    penalty: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The best change from each backlog at the begin of a slot, shape (limit + 1,).

    value: cost from here to the end of the load. workers: paid in each of the slots it takes, which may be a mixture.
    size: workers - 1 afterwards. backlog: afterwards, limit + 1 if it passes the limit. slots: how many it takes.
    """

    value: Array
    workers: Array
    size: IntArray
    backlog: IntArray
    slots: int


Moves = Callable[[int, Sequence[Array]], Move]
"""(slot, values after it, after the next one ...) -> the slot's changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheapestPath:
    """The cheapest way: workers paid in each slot, shape (slots,), changes, and slots that pass their limit."""

    workers: Array
    rescales: int
    infeasible_slots: int


def cheapest_path(grid: DiscreteLoad, moves: Moves, ahead: int) -> CheapestPath:
    """Backwards the values, then forwards the choices; the first size is free and nothing waits.

    ahead: the most slots that a change takes. A value has the shape (sizes, limit + 2). Its last column is a backlog
    beyond the limit: impossible, but for the greatest size at a penalty, where the excess is forgiven. What a change
    costs does not depend on the size before it, so a slot takes sizes * backlogs steps, not sizes ** 2.
    """
    slots, sizes = grid.kept.shape
    cost = np.arange(1.0, sizes + 1)[:, None] * grid.slot_hours
    later = deque([_closed(np.zeros((sizes, grid.limits[slots] + 1)), grid)], maxlen=ahead)
    choices: list[tuple[NDArray[np.uint8], Move]] = []
    for slot in range(slots - 1, -1, -1):
        keep = cost + _next(grid, slot, later[0], grid.kept[slot])
        move = moves(slot, later)
        choices.append((np.packbits(keep <= move.value, axis=1), move))
        later.appendleft(_closed(np.minimum(keep, move.value), grid))
    return _follow(grid, int(later[0][:, 0].argmin()), choices[::-1])


def _closed(value: Array, grid: DiscreteLoad) -> Array:
    beyond = np.full((len(value), 1), np.inf)
    beyond[-1, 0] = value[-1, -1] + grid.penalty
    return np.concatenate((value, beyond), axis=1)


def _next(grid: DiscreteLoad, slot: int, value: Array, capacity: IntArray) -> Array:
    """The value after a slot of each size from each backlog, shape (sizes, limit + 1)."""
    backlog = after(np.arange(grid.limits[slot] + 1), grid.arrivals[slot], capacity[:, None], grid.limits[slot + 1])
    backlog += np.arange(len(value))[:, None] * value.shape[1]
    found: Array = value.ravel().take(backlog)
    return found


def after(backlog: IntArray, arrivals: int, capacity: IntArray, limit: int) -> IntArray:
    """Backlog after a slot, not below 0, and limit + 1 for all that passes the limit; shapes as they broadcast."""
    left: IntArray = backlog + (arrivals - capacity)
    np.maximum(left, 0, out=left)
    np.minimum(left, limit + 1, out=left)
    return left


def _follow(grid: DiscreteLoad, size: int, choices: Sequence[tuple[NDArray[np.uint8], Move]]) -> CheapestPath:
    slot, backlog, rescales, infeasible = 0, 0, 0, 0
    workers = np.zeros(len(choices))
    while slot < len(choices):
        keeps, move = choices[slot]
        if keeps[size, backlog >> 3] >> (7 - (backlog & 7)) & 1:
            workers[slot] = size + 1
            backlog = max(backlog + int(grid.arrivals[slot] - grid.kept[slot, size]), 0)
            slot += 1
        else:
            workers[slot : slot + move.slots] = move.workers[backlog]
            size, backlog = int(move.size[backlog]), int(move.backlog[backlog])
            slot, rescales = slot + move.slots, rescales + 1
        infeasible += backlog > grid.limits[slot]
        backlog = min(backlog, int(grid.limits[slot]))
    return CheapestPath(workers=workers, rescales=rescales, infeasible_slots=infeasible)
