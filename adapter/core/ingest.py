"""Samples -> state: who is there, what was counted, and the points of the window."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import numpy as np

from adapter.core.gates import settle_s
from adapter.core.rates import Mask
from adapter.core.rules import RuleBook
from adapter.core.samples import OVERRIDE, OVERRIDES, WHOLE, Array, Samples, first_known
from adapter.core.state import COUNTED, KEPT, LIMITING, Fast, Slow, State, aligned

Stage = tuple[str, str]
FORGET_S = 3600.0  # a found workload that is not seen for so long is no longer there
PARTITIONS = LIMITING.index("partitions")
COUNTED_OVER = [PARTITIONS, LIMITING.index("uncommitted_partitions")]  # which partitions the counters sum
HEALTH = ("running", "sink_healthy")
# What is held of the ticks of a window: field of Fast -> signal.
_POINTS = {
    "processed": "processed_records",
    "appended": "appended_records",
    "backlog": "backlog_records",
    "partition": "highest_partition_backlog_records",
}
_FEW_RATIO = 0.1  # of the ready workers
REPLACED_S = 120.0  # a stage that its siblings outlive by so long was renamed or removed; sooner than an error of age


def take(state: State, samples: Samples, book: RuleBook) -> State:
    """The state with this tick's samples in it. What was not seen stays as it was last known."""
    workloads, stages = _there(state, samples, book)
    state = aligned(state, workloads, stages)
    limiting = reindex([samples.whole(name) for name in LIMITING], samples.workloads, workloads)
    kept, told = first_known(limiting, state.slow.limiting), np.isfinite(limiting[PARTITIONS])
    # Sums over another set of partitions are other counters: the difference between them is no progress.
    changed = (limiting != state.slow.limiting) & np.isfinite(limiting)
    other = np.flatnonzero(changed[COUNTED_OVER].any(axis=0))
    fast = _blanked(state.fast, stages, {workloads[place] for place in other})
    fast = replace(fast, partitions_seen_at_s=np.where(told, samples.at_s, fast.partitions_seen_at_s))
    state = replace(state, slow=_overridden(replace(state.slow, limiting=kept), samples, workloads))
    return replace(state, fast=_counted(_pushed(fast, samples, stages), samples, workloads))


def failed(state: State, samples: Samples, rules: Mapping[str, Array]) -> State:
    """The state with the restarts that nobody planned counted (S4-09): those not near a change of the workers."""
    restarts = reindex([samples.whole("restarts")], samples.workloads, state.slow.workloads)[0]
    kept = dict(zip(KEPT, state.slow.kept, strict=True))
    if not (np.isfinite(restarts) & (restarts != kept["restarts"])).any():
        return state
    changed_s = np.fmax(state.fast.changed_at_s, state.fast.spec_changed_at_s)
    planned = samples.at_s - changed_s < settle_s(rules) + rules["rate_window_s"] + rules["worker_start_s"]
    rose = (restarts > kept["restarts"]) & ~planned
    recent = samples.at_s - kept["failed_at_s"] <= rules["failures_window_s"]
    total = np.where(recent, kept["failures"], 0.0) + restarts - kept["restarts"]
    kept["failures"] = np.where(rose, total, kept["failures"])
    kept["failed_at_s"] = np.where(rose, samples.at_s, kept["failed_at_s"])
    again = restarts > kept["restarts"]
    kept["restarts"] = first_known(restarts, kept["restarts"])
    fast = replace(state.fast, disturbed_at_s=np.where(again, samples.at_s, state.fast.disturbed_at_s))
    return State(fast=fast, slow=replace(state.slow, kept=np.array([kept[name] for name in KEPT])))


def trimmed(fast: Fast, oldest_s: float) -> Fast:
    """Without the points that no window needs any more."""
    keep = fast.at_s >= oldest_s
    points = {name: getattr(fast, name)[keep] for name in ("at_s", *_POINTS)}
    return replace(fast, **points)


def _there(state: State, samples: Samples, book: RuleBook) -> tuple[tuple[str, ...], tuple[Stage, ...]]:
    slow = state.slow
    same = slow.workloads == samples.workloads and book.by_workload.keys() <= set(slow.workloads)
    if same and slow.stages == samples.stages:
        return slow.workloads, slow.stages
    named = {workload for workload, _ in samples.stages} | set(book.by_workload) | _found(samples)
    if same and named >= set(slow.workloads) and slow.stages == _staged(slow.workloads, samples.stages):
        return slow.workloads, slow.stages
    counted = dict(zip(slow.workloads, samples.at_s - state.fast.workers_seen_at_s, strict=True))
    seen = dict(zip(slow.stages, state.fast.seen_at_s, strict=True))
    newest: dict[str, float] = {}
    for (workload, _), at_s in seen.items():
        newest[workload] = np.fmax(at_s, newest.get(workload, -np.inf))
    silent_s = {w: np.fmin(counted[w], samples.at_s - newest.get(w, -np.inf)) for w in slow.workloads}
    workloads = named | {w for w, age_s in silent_s.items() if age_s < FORGET_S}
    stages = {(w, stage) for (w, stage), at_s in seen.items() if w in workloads and at_s > newest[w] - REPLACED_S}
    return tuple(sorted(workloads)), _staged(workloads, stages | set(samples.stages))


def _staged(workloads: Iterable[str], stages: Collection[Stage]) -> tuple[Stage, ...]:
    """Sorted. Of whom no stage is told, the whole is one: the segments of a stream may be all there is (S2-01)."""
    named = {workload for workload, _ in stages}
    return tuple(sorted([*stages, *((workload, WHOLE) for workload in workloads if workload not in named)]))


def _found(samples: Samples) -> set[str]:
    """Workloads that a fleet found. An HPA alone makes none: it may name one that does not exist."""
    in_fleet = np.isfinite(samples.whole("fleet"))
    return {name for name, found in zip(samples.workloads, in_fleet, strict=True) if found}


def _blanked(fast: Fast, stages: tuple[Stage, ...], workloads: set[str]) -> Fast:
    """Without the counts so far of some workloads."""
    if not workloads:
        return fast
    kept = np.array([workload not in workloads for workload, _ in stages], dtype=bool)
    points = {name: np.where(kept, getattr(fast, name), np.nan) for name in _POINTS}
    return replace(fast, **points)


def _overridden(slow: Slow, samples: Samples, workloads: tuple[str, ...]) -> Slow:
    """With the overrides as they are now: whose HPA was read has those it names and no others."""
    told = [name for name in OVERRIDES if name in samples.by_workload]
    if not (told or slow.overridden):
        return slow
    names = tuple(sorted({*slow.overridden, *(name.removeprefix(OVERRIDE) for name in told)}))
    unknown = np.full(len(workloads), np.nan)
    held = dict(zip(slow.overridden, slow.overrides, strict=True))
    before = np.array([held.get(name, unknown) for name in names])
    now = reindex([samples.whole(OVERRIDE + name) for name in names], samples.workloads, workloads)
    read = np.isfinite(reindex([samples.whole("max_workers")], samples.workloads, workloads)[0])
    overrides = np.where(read, now, before)
    used = [place for place, row in enumerate(overrides) if np.isfinite(row).any()]
    return replace(slow, overridden=tuple(names[place] for place in used), overrides=overrides[used])


def _pushed(fast: Fast, samples: Samples, stages: tuple[Stage, ...]) -> Fast:
    told = [samples.stage(name) for name in (*_POINTS.values(), "stuck_backlog_records")]
    *seen, stuck = reindex(told, samples.stages, stages)
    # What waits in a partition that is stuck waits for its repair, not for workers.
    seen[2] -= np.fmin(np.nan_to_num(stuck), seen[2])
    points = {name: np.vstack([getattr(fast, name), row]) for name, row in zip(_POINTS, seen, strict=True)}
    return replace(fast, at_s=np.append(fast.at_s, samples.at_s), **points)


def _counted(fast: Fast, samples: Samples, workloads: tuple[str, ...]) -> Fast:
    now = reindex([samples.whole(name) for name in COUNTED], samples.workloads, workloads)
    told = np.isfinite(now).any(axis=0)
    asked, exist, ready = np.nan_to_num(np.abs(now - fast.counted))
    # One pod of many that comes and goes does not spoil the rates, and must not keep the rest from being sized.
    changed = (asked > 0) | (exist > 0) | (ready > _FEW_RATIO * fast.counted[2])
    first = told & np.isnan(fast.spec_changed_at_s)
    adopted = (asked > 0) & ~_on_the_way(fast, now[0])
    return replace(
        fast,
        counted=first_known(now, fast.counted),
        workers_seen_at_s=np.where(told, samples.at_s, fast.workers_seen_at_s),
        changed_at_s=np.where(changed, samples.at_s, fast.changed_at_s),
        spec_changed_at_s=np.where(first | (asked > 0), samples.at_s, fast.spec_changed_at_s),
        health_seen_at_s=np.where(_health_told(samples, workloads), samples.at_s, fast.health_seen_at_s),
        all_ready_at_s=np.where(now[2] >= now[0], samples.at_s, fast.all_ready_at_s),
        target_workers=np.where(adopted, now[0], fast.target_workers),
        committed_at_s=np.where(adopted, samples.at_s, fast.committed_at_s),
    )


def _health_told(samples: Samples, workloads: tuple[str, ...]) -> Mask:
    running, sink = reindex([samples.whole(name) for name in HEALTH], samples.workloads, workloads)
    told: Mask = np.isfinite(running) | np.isfinite(sink)
    return told


def _on_the_way(fast: Fast, spec: Array) -> Mask:
    """Whether a count lies between the last one and our target: else somebody else asked for it, and meant it."""
    was, target = fast.counted[0], fast.target_workers
    between: Mask = (spec >= np.minimum(was, target)) & (spec <= np.maximum(was, target))
    return between | np.isnan(target)


def reindex(rows: list[Array], names: tuple[object, ...], among: tuple[object, ...]) -> Array:
    """Arrays over `names` reindex out over `among`, NaN where a name is absent there; shape (len(rows), len(among))."""
    values = np.array(rows, dtype=np.float64).reshape(len(rows), len(names))
    if names == among:
        return values
    at = {name: place for place, name in enumerate(among)}
    there = [place for place, name in enumerate(names) if name in at]
    spread = np.full((len(rows), len(among)), np.nan)
    spread[:, [at[names[place]] for place in there]] = values[:, there]
    return spread
