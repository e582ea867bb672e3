"""What the fold remembers of a shard, in two groups: what changes every tick, and what changes about once a minute."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from adapter.core.capacity import SLOTS, Table
from adapter.core.forecast import POINTS, Fit
from adapter.core.samples import Array

VERSION = 5
HELD = (
    "throughput_records_per_s",
    "growth_records_per_s",
    "input_rate_records_per_s",
    "backlog_records",
    "measured_utilization_ratio",
    "hottest_partition_ratio",
)
COUNTED = ("spec_workers", "workers", "ready_workers")
LIMITING = (
    "min_workers",
    "max_workers",
    "partitions",
    "uncommitted_partitions",
    "fleet",
    "pause_up",
    "pause_down",
    "failover",
    "running",
    "sink_healthy",
)
KEPT = (
    "restarts",  # the counter, as last seen
    "failures",  # restarts that nobody asked for, of a row no two of which lie further apart than the window
    "failed_at_s",  # the last of them
    "budget_s",  # pause that downs may still cost, at budget_at_s; NaN before the first one
    "budget_at_s",
    "downs",  # downs of the last day, older ones fade
    "downs_at_s",  # as of when
    "bucket_at_s",  # when the running bucket of the window of downs began
)
KEPT_OF_STAGE = (
    "from_workers",  # the size before the last up, where its capacity had been observed
    "from_records_per_s",  # what it carried
    "blocked_until_s",  # ups do not help until then
    "block_s",  # so long was the last block
)
FIT = ("a", "b", "c", "sigma")
TABLE = ("sizes", "rates", "trust", "seen_at_s")
BUCKETS = 10  # parts of the window of downs


@dataclass(frozen=True, slots=True, kw_only=True)
class Fast:
    """Rewritten every tick.

    at_s: (points,) the ticks held, oldest first. processed, appended, backlog, partition: (points, stages) as seen, NaN
    where not; partition is the backlog of the one furthest behind.
    signals: (len(HELD), stages) as last known. seen_at_s: (stages,) the last tick with throughput and backlog.
    counted: (len(COUNTED), workloads) as last seen, at workers_seen_at_s. changed_at_s: the worker count last changed;
    disturbed_at_s: the job stood still, did not run or was started again;
    spec_changed_at_s: another count was asked for; health_seen_at_s: the job, or its sink, told how it is;
    partitions_seen_at_s: its partitions were counted;
    all_ready_at_s: all that were asked for were ready; target_workers: what was last served,
    decided at committed_at_s; peak_workers: the largest size needed since the last bucket of the window was closed;
    each (workloads,).
    """

    at_s: Array
    processed: Array
    appended: Array
    backlog: Array
    partition: Array
    signals: Array
    seen_at_s: Array
    counted: Array
    workers_seen_at_s: Array
    changed_at_s: Array
    disturbed_at_s: Array
    spec_changed_at_s: Array
    health_seen_at_s: Array
    partitions_seen_at_s: Array
    all_ready_at_s: Array
    target_workers: Array
    committed_at_s: Array
    peak_workers: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    """Rewritten when it changes.

    workloads: sorted. stages: (workload, stage), sorted, at least one of each workload. limiting: (len(LIMITING),
    workloads) as last seen.
    overridden: the parameters that any workload overrides; overrides: (len(overridden), workloads), NaN where not.
    kept: (len(KEPT), workloads). peaks: (BUCKETS, workloads) the largest sizes needed, oldest first.
    kept_of_stage: (len(KEPT_OF_STAGE), stages). points: (POINTS, stages) the input rate, one a minute, the last of
    newest_point_at_s, shape (1,); outlier_run: (stages,) outliers at their end. fit: (len(FIT), stages).
    table: (len(TABLE), SLOTS, stages) what sizes were seen to carry.
    """

    workloads: tuple[str, ...]
    stages: tuple[tuple[str, str], ...]
    overridden: tuple[str, ...]
    limiting: Array
    overrides: Array
    kept: Array
    peaks: Array
    kept_of_stage: Array
    newest_point_at_s: Array
    points: Array
    outlier_run: Array
    fit: Array
    table: Array


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
        partition=_unknown(0, 0),
        signals=_unknown(len(HELD), 0),
        seen_at_s=_unknown(0),
        counted=_unknown(len(COUNTED), 0),
        workers_seen_at_s=_unknown(0),
        changed_at_s=_unknown(0),
        disturbed_at_s=_unknown(0),
        spec_changed_at_s=_unknown(0),
        health_seen_at_s=_unknown(0),
        partitions_seen_at_s=_unknown(0),
        all_ready_at_s=_unknown(0),
        target_workers=_unknown(0),
        committed_at_s=_unknown(0),
        peak_workers=_unknown(0),
    ),
    slow=Slow(
        workloads=(),
        stages=(),
        overridden=(),
        limiting=_unknown(len(LIMITING), 0),
        overrides=_unknown(0, 0),
        kept=_unknown(len(KEPT), 0),
        peaks=_unknown(BUCKETS, 0),
        kept_of_stage=_unknown(len(KEPT_OF_STAGE), 0),
        newest_point_at_s=_unknown(1),
        points=_unknown(POINTS, 0),
        outlier_run=_unknown(0),
        fit=_unknown(len(FIT), 0),
        table=_unknown(len(TABLE), SLOTS, 0),
    ),
)

# What has a row, or an entry, for each stage or workload; the last axis runs over them.
_FAST_BY_STAGE = ("processed", "appended", "backlog", "partition", "signals", "seen_at_s")
_FAST_BY_WORKLOAD = (
    "counted",
    "workers_seen_at_s",
    "changed_at_s",
    "disturbed_at_s",
    "spec_changed_at_s",
    "health_seen_at_s",
    "partitions_seen_at_s",
    "all_ready_at_s",
    "target_workers",
    "committed_at_s",
    "peak_workers",
)
_SLOW_BY_STAGE = ("kept_of_stage", "points", "outlier_run", "fit", "table")
_SLOW_BY_WORKLOAD = ("limiting", "overrides", "kept", "peaks")


def aligned(state: State, workloads: tuple[str, ...], stages: tuple[tuple[str, str], ...]) -> State:
    """The state with exactly these workloads and stages: what is new is unknown, what is not named is forgotten."""
    slow, fast = state.slow, state.fast
    if (slow.workloads, slow.stages) == (workloads, stages):
        return state
    of_stage, of_workload = _places(slow.stages, stages), _places(slow.workloads, workloads)
    return State(
        fast=replace(fast, **_moved(fast, _FAST_BY_STAGE, of_stage), **_moved(fast, _FAST_BY_WORKLOAD, of_workload)),
        slow=replace(
            slow,
            workloads=workloads,
            stages=stages,
            **_moved(slow, _SLOW_BY_STAGE, of_stage),
            **_moved(slow, _SLOW_BY_WORKLOAD, of_workload),
        ),
    )


Name = TypeVar("Name")


def _places(old: tuple[Name, ...], new: tuple[Name, ...]) -> list[int]:
    at = {name: place for place, name in enumerate(old)}
    return [at.get(name, -1) for name in new]


def _moved(group: Fast | Slow, names: tuple[str, ...], places: list[int]) -> Any:
    return {name: _take(getattr(group, name), places) for name in names}


def _take(values: Array, places: list[int]) -> Array:
    if not values.shape[-1]:
        return _unknown(*values.shape[:-1], len(places))
    picked = values[..., places]
    picked[..., [place < 0 for place in places]] = np.nan
    return picked


def fit_of(rows: Iterable[Array]) -> Fit:
    """The curve of FIT's rows."""
    a, b, c, sigma = rows
    return Fit(a=a, b=b, c=c, sigma=sigma)


def table_of(rows: Iterable[Array]) -> Table:
    """The capacity table of TABLE's rows."""
    sizes, rates, trust, seen_at_s = rows
    return Table(sizes=sizes, rates=rates, trust=trust, seen_at_s=seen_at_s)


def encode_fast(state: State) -> bytes:
    """The group that changes every tick, as bytes."""
    return _pack(state.fast, {})


def encode_slow(state: State) -> bytes:
    """The group that changes about once a minute, as bytes; equal groups give equal bytes."""
    slow = state.slow
    return _pack(slow, {"workloads": slow.workloads, "stages": slow.stages, "overridden": slow.overridden})


def decode(version: int, fast: bytes, slow: bytes) -> State:
    """The state from its two groups. Raises ValueError for another version or for damaged bytes."""
    if version != VERSION:
        raise ValueError(f"state of version {version}, expected {VERSION}")
    try:
        named = _unpack(slow)
        named["workloads"] = tuple(named["workloads"])
        named["stages"] = tuple((workload, stage) for workload, stage in named["stages"])
        named["overridden"] = tuple(named["overridden"])
        return State(fast=Fast(**_unpack(fast)), slow=Slow(**named))
    except (KeyError, TypeError, UnicodeDecodeError) as error:
        raise ValueError(f"damaged state: {error}") from error


def _pack(group: Fast | Slow, names: Mapping[str, Any]) -> bytes:
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
