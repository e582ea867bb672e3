"""The memory of a shard between two ticks, as named arrays in two groups, and the encoding of both.

The last axis of an array runs over stages or workloads, as `axis` says. Unknown is NaN; times are Unix seconds.
"As last seen" keeps the last known number while nothing newer is reported.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any, get_type_hints

import numpy as np

from adapter.core.capacity import SLOTS, Table
from adapter.core.forecast import POINTS, Fit
from adapter.core.rescale_stop import RESCALES, RescaleCost, RescaleStop
from adapter.core.samples import Array
from adapter.core.stage_reports import StageReports

VERSION = 31  # raise it whenever layout() changes
BUCKETS = 10  # parts of the scale-down window
_NAMES = ("workloads", "stages", "overridden")  # fields of Slow that are texts


def _by(axis: str, *shape: int) -> dict[str, Any]:
    """The metadata of arrays. axis: what the last axis runs over, "" for a fixed shape. shape: the axes before it."""
    return {"axis": axis, "shape": shape}


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestSignals:
    """The latest known signals of each stage."""

    throughput_records_per_s: Array
    growth_records_per_s: Array
    input_rate_records_per_s: Array
    backlog_records: Array  # without what waits in stuck partitions
    stuck_backlog_records: Array  # what waits in them
    measured_utilization_ratio: Array  # as reported, not estimated; ends error_after_s after the last complete sample
    resources: Array  # which of busy time, CPU, memory and network were reported in resources_at_s
    resources_at_s: Array  # the last tick in which none of them was missing
    hottest_partition_ratio: Array
    hottest_partition_at_s: Array  # when it was last reported


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerCounts:
    """The worker counts of each workload, as last seen."""

    spec_workers: Array
    workers: Array
    ready_workers: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFacts:
    """What sources report of each workload, as last seen; the names are signals of samples.WORKLOAD_SIGNALS."""

    min_workers: Array
    max_workers: Array
    partitions: Array
    uncommitted_partitions: Array
    fleet: Array
    processed_source: Array
    appended_source: Array
    pause_up: Array
    pause_down: Array
    failover: Array
    running: Array
    sink_healthy: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadHistory:
    """Failures and scale-downs of each workload."""

    restarts: Array  # the counter, as last seen; unknown after a fall
    failures: Array  # unplanned restarts in a row, each within failures_window_s of the one before; see failures
    failed_at_s: Array  # the last of them
    budget_s: Array  # pause that scale-downs may still cost, as of budget_at_s; NaN before the first one
    budget_at_s: Array
    downs: Array  # scale-downs of the last day as of downs_at_s; older ones fade
    downs_at_s: Array
    bucket_at_s: Array  # when the running bucket of the scale-down window began
    fewer_since_s: Array  # since then fewer workers than the present ones have been enough; NaN if they are not
    fewer_workers: Array  # the largest size needed since then, in closed buckets


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpTrial:
    """The last scale-up of each stage, until its effect is known, and the block on further ones."""

    from_workers: Array  # the size before it
    from_records_per_s: Array  # the observed capacity of that size, NaN where it was never observed
    relays_since_s: Array  # since when a later stage is full, NaN while none is
    blocked_until_s: Array  # no scale-up until then
    block_s: Array  # how long the last block was


@dataclass(frozen=True, slots=True, kw_only=True)
class Fast:
    """What changes every tick."""

    at_s: Array = field(metadata=_by("", 0))  # the ticks of the window, oldest first
    processed: Array = field(metadata=_by("stage", 0))  # (ticks, stages) as reported
    appended: Array = field(metadata=_by("stage", 0))
    backlog: Array = field(metadata=_by("stage", 0))
    partition: Array = field(metadata=_by("stage", 0))  # the largest backlog of a single partition
    reported: Array = field(metadata=_by("stage", 0))  # the throughput that a source computed
    utilization_ratio: Array = field(metadata=_by("stage", 0))  # NaN while a resource is missing
    signals: LatestSignals = field(metadata=_by("stage"))
    seen_at_s: Array = field(metadata=_by("stage"))  # the last tick with throughput and backlog
    processed_repeated_at_s: Array = field(metadata=_by("stage"))  # its last point that may be from before a gap
    appended_repeated_at_s: Array = field(metadata=_by("stage"))
    stop: RescaleStop = field(metadata=_by("stage"))
    reports: StageReports = field(metadata=_by("workload"))
    counts: WorkerCounts = field(metadata=_by("workload"))
    workers_seen_at_s: Array = field(metadata=_by("workload"))
    changed_at_s: Array = field(metadata=_by("workload"))  # a worker count last changed, flaps excepted
    lost_at_s: Array = field(metadata=_by("workload"))  # ready workers were last lost, likewise
    few_moved_at_s: Array = field(metadata=_by("workload"))  # a few workers were last lost or back, rescales excepted
    few_lost_at_s: Array = field(metadata=_by("workload"))  # a few workers were last lost, likewise
    few_failed_at_s: Array = field(metadata=_by("workload"))  # restarts were last seen with a few lost workers
    disturbed_at_s: Array = field(metadata=_by("workload"))  # the job last stood still, was stuck or did not run
    spec_changed_at_s: Array = field(metadata=_by("workload"))  # spec.replicas, if unknown the workers, last changed
    spec_raised_at_s: Array = field(metadata=_by("workload"))  # the same last rose
    restarts_seen_at_s: Array = field(metadata=_by("workload"))  # restarts were last counted
    running_seen_at_s: Array = field(metadata=_by("workload"))  # whether the job runs was last reported
    sink_healthy_seen_at_s: Array = field(metadata=_by("workload"))  # the health of its sink was last reported
    partitions_seen_at_s: Array = field(metadata=_by("workload"))
    most_partitions: Array = field(metadata=_by("workload"))  # the largest count since the points were dropped
    partitions_fell_at_s: Array = field(metadata=_by("workload"))  # their count fell; a fall soon after does not count
    partitions_before: Array = field(metadata=_by("workload"))  # their count before the last fall
    partitions_before_at_s: Array = field(metadata=_by("workload"))  # when that was
    fault_at_s: Array = field(metadata=_by("", 1))  # a source last failed for every workload
    hpa_seen_at_s: Array = field(metadata=_by("workload"))  # its HPA was last read, or a source failed
    all_ready_at_s: Array = field(metadata=_by("workload"))  # all desired workers were last ready
    target_workers: Array = field(metadata=_by("workload"))  # what was served last
    committed_at_s: Array = field(metadata=_by("workload"))  # when that target was decided
    peak_workers: Array = field(metadata=_by("workload"))  # the largest size needed in the running bucket


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """What changes about once a minute."""

    workloads: tuple[str, ...]  # sorted
    stages: tuple[tuple[str, str], ...]  # (workload, stage), sorted, at least one of each workload
    overridden: tuple[str, ...]  # the parameters that annotations of any HPA override
    overrides: Array = field(metadata=_by("workload", 0))  # (overridden, workloads), NaN where not overridden
    facts: WorkloadFacts = field(metadata=_by("workload"))
    history: WorkloadHistory = field(metadata=_by("workload"))
    peaks: Array = field(metadata=_by("workload", BUCKETS))  # the size that each closed bucket needed, oldest first
    last_rescales: RescaleCost = field(metadata=_by("workload", RESCALES))  # as measured, oldest first
    usual_rescale: RescaleCost = field(metadata=_by("workload"))  # medians or the longest, NaN while there are too few
    trial: ScaleUpTrial = field(metadata=_by("stage"))
    fullest_ratio: Array = field(metadata=_by("stage"))  # the load at which the fullest worker fell behind
    newest_point_at_s: Array = field(metadata=_by("", 1))  # when the newest of `points` was taken
    points: Array = field(metadata=_by("stage", POINTS))  # the input rate, one point a minute, oldest first
    outlier_run: Array = field(metadata=_by("stage"))  # how many of the newest points are outliers
    fit: Fit = field(metadata=_by("stage"))  # the curve through the points
    table: Table = field(metadata=_by("stage", SLOTS))  # the capacity of each size


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All that `advance` needs of the past of a shard."""

    fast: Fast
    slow: Slow


def _find_kinds(group: Any) -> tuple[tuple[str, Any], ...]:
    """The fields of a group that hold arrays: name and type, an array or a dataclass of arrays."""
    kinds = get_type_hints(group)
    return tuple((f.name, kind) for f in fields(group) if (kind := kinds[f.name]) == Array or is_dataclass(kind))


_kinds: Callable[[Any], tuple[tuple[str, Any], ...]] = lru_cache(maxsize=16)(_find_kinds)


def _metadata(group: Any) -> dict[str, Any]:
    return {f.name: f.metadata for f in fields(group)}


def _map_arrays(part: Any, change: Callable[[Array], Array]) -> Any:
    """An array, or a dataclass of arrays, with each array changed."""
    if isinstance(part, np.ndarray):
        return change(part)
    return replace(part, **{name: _map_arrays(getattr(part, name), change) for name, _ in _kinds(type(part))})


def _empty(kind: Any, shape: tuple[int, ...]) -> Any:
    """NaN arrays of one shape, in an array or in a dataclass of arrays."""
    if kind == Array:
        return np.full(shape, np.nan)
    return kind(**{name: _empty(inner, shape) for name, inner in _kinds(kind)})


def _empty_group(group: Any, **texts: tuple[str, ...]) -> Any:
    """A group without a stage or workload."""
    metadata = _metadata(group)
    shapes = {name: metadata[name]["shape"] + (0,) * bool(metadata[name]["axis"]) for name, _ in _kinds(group)}
    return group(**texts, **{name: _empty(kind, shapes[name]) for name, kind in _kinds(group)})


EMPTY = State(fast=_empty_group(Fast), slow=_empty_group(Slow, **dict.fromkeys(_NAMES, ())))


def align(state: State, workloads: tuple[str, ...], stages: tuple[tuple[str, str], ...]) -> State:
    """The state with exactly these workloads and stages: new ones are unknown, absent ones are dropped."""
    slow = state.slow
    if (slow.workloads, slow.stages) == (workloads, stages):
        return state
    indices = {"stage": _old_indices(slow.stages, stages), "workload": _old_indices(slow.workloads, workloads)}
    named = replace(slow, workloads=workloads, stages=stages)
    return State(fast=_reorder(state.fast, indices), slow=_reorder(named, indices))


def _old_indices(old: tuple[object, ...], new: tuple[object, ...]) -> list[int]:
    at = {name: index for index, name in enumerate(old)}
    return [at.get(name, -1) for name in new]


def _reorder(group: Any, indices: dict[str, list[int]]) -> Any:
    """A group with the entries of each array at their new places."""
    axes = {name: known["axis"] for name, known in _metadata(type(group)).items() if known.get("axis")}
    found = {name: _map_arrays(getattr(group, name), partial(_pick, indices=indices[to])) for name, to in axes.items()}
    return replace(group, **found)


def _pick(values: Array, indices: list[int]) -> Array:
    unknown = np.full((*values.shape[:-1], 1), np.nan)
    return np.concatenate([values, unknown], axis=-1)[..., indices]  # -1 picks the unknown value at the end


def layout() -> str:
    """A hash of the names, types, axes and order of all fields of the state."""
    return sha256(json.dumps([_describe(Fast), _describe(Slow)]).encode()).hexdigest()[:16]


def _describe(group: Any) -> list[Any]:
    kinds = dict(_kinds(group))
    inner = {name: _describe(kind) for name, kind in kinds.items() if is_dataclass(kind)}
    return [[name, dict(of), inner.get(name, [])] for name, of in _metadata(group).items()]


def encode_fast(state: State) -> bytes:
    """The group that changes every tick, as bytes."""
    return _pack(state.fast, {})


def encode_slow(state: State) -> bytes:
    """The group that changes about once a minute, as bytes; equal groups give equal bytes."""
    return _pack(state.slow, {name: getattr(state.slow, name) for name in _NAMES})


def decode(version: int, fast: bytes, slow: bytes) -> State:
    """The state from its two groups. Raises ValueError for another version or for damaged bytes."""
    if version != VERSION:
        raise ValueError(f"state of version {version}, expected {VERSION}")
    try:
        texts, arrays = _unpack(slow)
        named = {name: tuple(texts[name]) for name in _NAMES} | {"stages": tuple(map(tuple, texts["stages"]))}
        return State(fast=_read(Fast, _unpack(fast)[1]), slow=_read(Slow, arrays, "", **named))
    except (KeyError, TypeError, UnicodeDecodeError) as error:
        raise ValueError(f"damaged state: {error}") from error


def _arrays(part: Any, path: str = "") -> Iterator[tuple[str, Array]]:
    for name, kind in _kinds(type(part)):
        value = getattr(part, name)
        yield from _arrays(value, f"{path}{name}.") if is_dataclass(kind) else [(path + name, value)]


def _read(group: Any, arrays: dict[str, Array], path: str = "", **texts: Any) -> Any:
    found = {
        name: _read(kind, arrays, f"{path}{name}.") if is_dataclass(kind) else arrays[path + name]
        for name, kind in _kinds(group)
    }
    return group(**texts, **found)


def _pack(group: Fast | Slow, texts: dict[str, Any]) -> bytes:
    arrays = dict(_arrays(group))
    head = json.dumps({"names": texts, "shapes": {path: array.shape for path, array in arrays.items()}}).encode()
    return b"\n".join([head, b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values())])


def _unpack(blob: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    head, _, body = blob.partition(b"\n")
    header, arrays, start = json.loads(head), {}, 0
    for path, shape in header["shapes"].items():
        arrays[path] = np.frombuffer(body, np.float64, int(np.prod(shape)), start).reshape(shape)
        start += arrays[path].nbytes
    if start != len(body):
        raise ValueError(f"damaged state: {len(body)} bytes of numbers, expected {start}")
    return dict(header["names"]), arrays
