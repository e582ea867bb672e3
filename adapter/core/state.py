"""What the fold remembers of a shard, in two groups: what changes every tick, and what changes about once a minute."""

import json
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from adapter.core.samples import Array

VERSION = 1
HELD = (
    "throughput_records_per_s",
    "growth_records_per_s",
    "input_rate_records_per_s",
    "backlog_records",
    "measured_utilization_ratio",
)
COUNTED = ("spec_workers", "workers", "ready_workers")
LIMITING = ("min_workers", "max_workers", "partitions", "fleet", "pause_up", "pause_down")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fast:
    """Rewritten every tick.

    at_s: (points,) the ticks held, oldest first. processed, appended, backlog: (points, stages) as seen, NaN where not.
    signals: (len(HELD), stages) as last known. seen_at_s: (stages,) the last tick with throughput and backlog.
    counted: (len(COUNTED), workloads) as last seen, at counted_at_s. changed_at_s: the worker count last changed;
    asked_at_s: another count was asked for; target_workers: what was last served; each (workloads,).
    """

    at_s: Array
    processed: Array
    appended: Array
    backlog: Array
    signals: Array
    seen_at_s: Array
    counted: Array
    counted_at_s: Array
    changed_at_s: Array
    asked_at_s: Array
    target_workers: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """Rewritten when it changes.

    workloads: sorted. stages: (workload, stage), sorted. limiting: (len(LIMITING), workloads) as last seen.
    worker_capacity: (stages,) records/s one worker was seen to carry.
    """

    workloads: tuple[str, ...]
    stages: tuple[tuple[str, str], ...]
    limiting: Array
    worker_capacity: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All that `advance` needs to know of the past of a shard."""

    fast: Fast
    slow: Slow


def _unknown(*shape: int) -> Array:
    return np.full(shape, np.nan)


EMPTY = State(
    fast=Fast(
        at_s=_unknown(0),
        processed=_unknown(0, 0),
        appended=_unknown(0, 0),
        backlog=_unknown(0, 0),
        signals=_unknown(len(HELD), 0),
        seen_at_s=_unknown(0),
        counted=_unknown(len(COUNTED), 0),
        counted_at_s=_unknown(0),
        changed_at_s=_unknown(0),
        asked_at_s=_unknown(0),
        target_workers=_unknown(0),
    ),
    slow=Slow(workloads=(), stages=(), limiting=_unknown(len(LIMITING), 0), worker_capacity=_unknown(0)),
)

_BY_STAGE = ("processed", "appended", "backlog", "signals", "seen_at_s")
_BY_WORKLOAD = ("counted", "counted_at_s", "changed_at_s", "asked_at_s", "target_workers")


def aligned(state: State, workloads: tuple[str, ...], stages: tuple[tuple[str, str], ...]) -> State:
    """The state with exactly these workloads and stages: what is new is unknown, what is not named is forgotten."""
    slow, fast = state.slow, state.fast
    if (slow.workloads, slow.stages) == (workloads, stages):
        return state
    of_stage, of_workload = _places(slow.stages, stages), _places(slow.workloads, workloads)
    moved = {name: _take(getattr(fast, name), of_stage) for name in _BY_STAGE}
    moved |= {name: _take(getattr(fast, name), of_workload) for name in _BY_WORKLOAD}
    return State(
        fast=replace(fast, **moved),
        slow=Slow(
            workloads=workloads,
            stages=stages,
            limiting=_take(slow.limiting, of_workload),
            worker_capacity=_take(slow.worker_capacity, of_stage),
        ),
    )


Name = TypeVar("Name")


def _places(old: tuple[Name, ...], new: tuple[Name, ...]) -> list[int]:
    at = {name: place for place, name in enumerate(old)}
    return [at.get(name, -1) for name in new]


def _take(values: Array, places: list[int]) -> Array:
    if not values.shape[-1]:
        return _unknown(*values.shape[:-1], len(places))
    picked = values[..., places]
    picked[..., [place < 0 for place in places]] = np.nan
    return picked


def encode_fast(state: State) -> bytes:
    """The group that changes every tick, as bytes."""
    return _pack(state.fast, {})


def encode_slow(state: State) -> bytes:
    """The group that changes about once a minute, as bytes; equal groups give equal bytes."""
    return _pack(state.slow, {"workloads": state.slow.workloads, "stages": state.slow.stages})


def decode(version: int, fast: bytes, slow: bytes) -> State:
    """The state from its two groups. Raises ValueError for another version or for damaged bytes."""
    if version != VERSION:
        raise ValueError(f"state of version {version}, expected {VERSION}")
    try:
        named = _unpack(slow)
        named["workloads"] = tuple(named["workloads"])
        named["stages"] = tuple((workload, stage) for workload, stage in named["stages"])
        return State(fast=Fast(**_unpack(fast)), slow=Slow(**named))
    except (KeyError, TypeError, UnicodeDecodeError) as error:
        raise ValueError(f"damaged state: {error}") from error


def _pack(group: Fast | Slow, names: dict[str, Any]) -> bytes:
    arrays = {f.name: getattr(group, f.name) for f in fields(group) if f.name not in names}
    head = json.dumps({"names": names, "shapes": {name: array.shape for name, array in arrays.items()}}).encode()
    return b"\n".join([head, b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values())])


def _unpack(blob: bytes) -> dict[str, Any]:
    head, _, body = blob.partition(b"\n")
    told = json.loads(head)
    found, start = dict(told["names"]), 0
    for name, shape in told["shapes"].items():
        count = int(np.prod(shape))
        found[name] = np.frombuffer(body, dtype=np.float64, count=count, offset=start).reshape(shape)
        start += count * 8
    if start != len(body):
        raise ValueError(f"damaged state: {len(body)} bytes of numbers, expected {start}")
    return found
