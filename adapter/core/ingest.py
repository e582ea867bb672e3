"""Samples -> state: which workloads exist, their counts, and the points of the window."""

from collections.abc import Collection, Iterable
from dataclasses import fields, replace
from typing import Any

import numpy as np

from adapter.core.gates import settle_s
from adapter.core.missing_metrics import are_fewer
from adapter.core.rates import Mask
from adapter.core.rule_book import RuleBook
from adapter.core.rule_columns import RuleColumns
from adapter.core.samples import EVERY, OVERRIDE, OVERRIDES, WHOLE, Array, Samples, first_known
from adapter.core.stage_reports import GONE_S
from adapter.core.state import Fast, Slow, State, WorkerCounts, WorkloadFacts, align
from adapter.core.window_points import POINTS, counted_share, move_points

Stage = tuple[str, str]
_FALLS_S = 1200.0  # until a further fall of the partitions counts: frequent ones must not block scale-downs for ever
FORGET_S = 3600.0  # a discovered workload without a sample for this long no longer exists
_FAULTY_FORGET_S = 86_400.0  # while a source fails; a fleet that matches nothing fails for ever
_RETURN_S = 600.0  # after a fault: the first healthy ticks may lack samples, as those after a restart of Prometheus
HEALTH = ("running", "sink_healthy")
HPA = ("min_workers", "max_workers", "pause_up", "pause_down", "failover")  # facts that come from the HPA
_FACTS = tuple(f.name for f in fields(WorkloadFacts))
_WORKER_COUNTS = tuple(f.name for f in fields(WorkerCounts))
FEW_RATIO = 0.1  # of the workers
_FLAPS_S = 600.0  # between losses of ready workers that disturb: a flapping probe must not hold the target forever
_LONG_LOSS_S = 300.0  # Kubernetes evicts the pods of a lost node after this time: their return is no flap


def ingest(state: State, samples: Samples, book: RuleBook) -> State:
    """The state with this tick's samples in it. A signal that is missing keeps its last known value."""
    workloads, stages = _current_names(state, samples, book)
    state = align(state, workloads, stages)
    before, now = state.slow.facts, _facts(samples, workloads)
    after = WorkloadFacts(**{name: first_known(getattr(now, name), getattr(before, name)) for name in _FACTS})
    fast, share = state.fast, counted_share(before, now, state.fast.most_partitions)
    if (share != 1).any():
        place = {workload: number for number, workload in enumerate(workloads)}
        fast = move_points(fast, share[[place[workload] for workload, _ in stages]])
        fast = replace(fast, most_partitions=np.where(np.isnan(share), after.partitions, fast.most_partitions))
    fewer = now.partitions < before.partitions
    fell = fewer & ~(samples.at_s - fast.partitions_fell_at_s < _FALLS_S)
    # The count before the first of several falls lasts, but later ones do not renew it for ever.
    first = np.where(are_fewer(fast, samples.at_s), fast.partitions_before, np.nan)
    fast = replace(
        fast,
        partitions_seen_at_s=np.where(np.isfinite(now.partitions), samples.at_s, fast.partitions_seen_at_s),
        partitions_fell_at_s=np.where(fell, samples.at_s, fast.partitions_fell_at_s),
        partitions_before=np.where(fewer, np.fmax(first, before.partitions), fast.partitions_before),
        partitions_before_at_s=np.where(fewer, samples.at_s, fast.partitions_before_at_s),
        running_seen_at_s=np.where(np.isfinite(now.running), samples.at_s, fast.running_seen_at_s),
        sink_healthy_seen_at_s=np.where(np.isfinite(now.sink_healthy), samples.at_s, fast.sink_healthy_seen_at_s),
        fault_at_s=np.array([samples.at_s]) if EVERY in samples.faults else fast.fault_at_s,
        hpa_seen_at_s=np.where(_has_hpa(now) | faulty(samples, workloads), samples.at_s, fast.hpa_seen_at_s),
    )
    slow = _with_overrides(replace(state.slow, facts=after), samples, workloads)
    return State(fast=_with_counts(_with_points(fast, samples, stages), samples, workloads), slow=slow)


def _facts(samples: Samples, workloads: tuple[str, ...]) -> WorkloadFacts:
    rows = reindex([samples.whole(name) for name in _FACTS], samples.workloads, workloads)
    return WorkloadFacts(**dict(zip(_FACTS, rows, strict=True)))


def _has_hpa(facts: WorkloadFacts) -> Mask:
    newest: Array = np.fmax.reduce([getattr(facts, name) for name in HPA])
    return np.isfinite(newest)


def faulty(samples: Samples, workloads: tuple[str, ...]) -> Mask:
    """Whether a source of each workload failed: what its samples lack may then still exist."""
    return failed(samples, workloads) | (EVERY in samples.faults)


def failed(samples: Samples, workloads: tuple[str, ...]) -> Mask:
    """Whether a source failed for each workload by name."""
    if not samples.faults:
        return np.zeros(len(workloads), dtype=bool)
    names = samples.faults.keys() - samples.assumed
    return np.array([workload in names for workload in workloads], dtype=bool)


def without_deleted_hpas(state: State, at_s: float, rules: RuleColumns) -> State:
    """The state without the limits, pauses and overrides of HPAs that were not read for error_after_s.

    Such an HPA was deleted, or no longer uses our metrics. While a source reports a fault nothing is dropped.
    """
    gone = at_s - state.fast.hpa_seen_at_s > rules.error_after_s
    if not gone.any():
        return state
    facts, slow = state.slow.facts, state.slow
    blank = {name: np.where(gone, np.nan, getattr(facts, name)) for name in HPA}
    return replace(
        state,
        fast=replace(state.fast, hpa_seen_at_s=np.where(gone, np.nan, state.fast.hpa_seen_at_s)),
        slow=replace(slow, facts=replace(facts, **blank), overrides=np.where(gone, np.nan, slow.overrides)),
    )


def rated_workers(fast: Fast, at_s: float, rules: RuleColumns) -> Array:
    """The workers that the rates belong to: the ready ones, and those that were not ready only for a short time."""
    counts, all_ready_at_s = fast.counts, fast.all_ready_at_s
    recent = at_s - all_ready_at_s < settle_s(rules) + rules.rate_window_s
    flaps = recent & ~(fast.changed_at_s >= all_ready_at_s)
    ready = np.where(flaps, np.maximum(counts.ready_workers, counts.spec_workers), counts.ready_workers)
    return first_known(ready, counts.workers, counts.spec_workers)


def trim(fast: Fast, oldest_s: Array) -> Fast:
    """Drop the points that are older than the windows of their stage. oldest_s: (stages,)."""
    keep = fast.at_s >= oldest_s.min(initial=fast.at_s[-1])
    at_s = fast.at_s[keep]
    needed = at_s[:, None] >= oldest_s
    points: dict[str, Any] = {
        name: np.where(needed, getattr(fast, name)[keep], np.nan) for name in (*POINTS, "utilization_ratio")
    }
    return replace(fast, at_s=at_s, **points)


def _current_names(state: State, samples: Samples, book: RuleBook) -> tuple[tuple[str, ...], tuple[Stage, ...]]:
    """The workloads that are configured or had a sample within FORGET_S or _FAULTY_FORGET_S, and their stages."""
    slow = state.slow
    named = {workload for workload, _ in samples.stages} | set(book.by_workload) | _fleet_workloads(samples)
    if named == set(slow.workloads) and slow.stages == _with_whole_stages(named, samples.stages):
        return slow.workloads, slow.stages
    counted_at_s = np.fmax(state.fast.workers_seen_at_s, state.fast.partitions_seen_at_s)
    counted = dict(zip(slow.workloads, samples.at_s - counted_at_s, strict=True))
    # Some stages report only resources, such as the containers of a workload, or only a part of a load.
    known = np.any([np.isfinite(getattr(state.fast, name)) for name in POINTS], axis=0)
    points_at_s = np.where(known, state.fast.at_s[:, None], np.nan)
    seen_at_s = np.fmax.reduce([*points_at_s, state.fast.seen_at_s, state.fast.signals.resources_at_s])
    seen = dict(zip(slow.stages, seen_at_s, strict=True))
    newest: dict[str, float] = {}
    for (workload, _), at_s in seen.items():
        newest[workload] = np.fmax(at_s, newest.get(workload, -np.inf))
    silent_s = {w: np.fmin(counted[w], samples.at_s - newest.get(w, -np.inf)) for w in slow.workloads}
    is_faulty = EVERY in samples.faults or samples.at_s - state.fast.fault_at_s[0] < _RETURN_S
    limit_s = _FAULTY_FORGET_S if is_faulty else FORGET_S
    workloads = named | {w for w, age_s in silent_s.items() if age_s < limit_s}
    stages = {(w, stage) for (w, stage), at_s in seen.items() if w in workloads and at_s >= newest[w] - GONE_S}
    return tuple(sorted(workloads)), _with_whole_stages(workloads, stages | set(samples.stages))


def _with_whole_stages(workloads: Iterable[str], stages: Collection[Stage]) -> tuple[Stage, ...]:
    """The stages, sorted. A workload without a stage gets one for the whole, as for a stream of segments (S2-01)."""
    named = {workload for workload, _ in stages}
    return tuple(sorted([*stages, *((workload, WHOLE) for workload in workloads if workload not in named)]))


def _fleet_workloads(samples: Samples) -> set[str]:
    """Workloads that a fleet discovered. An HPA alone adds none: it may name one that does not exist."""
    in_fleet = np.isfinite(samples.whole("fleet"))
    return {name for name, found in zip(samples.workloads, in_fleet, strict=True) if found}


def _with_overrides(slow: Slow, samples: Samples, workloads: tuple[str, ...]) -> Slow:
    """Replace the overrides of workloads whose HPA was read in this tick."""
    reported = [name for name in OVERRIDES if name in samples.by_workload]
    if not (reported or slow.overridden):
        return slow
    names = tuple(sorted({*slow.overridden, *(name.removeprefix(OVERRIDE) for name in reported)}))
    unknown = np.full(len(workloads), np.nan)
    known = dict(zip(slow.overridden, slow.overrides, strict=True))
    before = np.array([known.get(name, unknown) for name in names])
    now = reindex([samples.whole(OVERRIDE + name) for name in names], samples.workloads, workloads)
    read = np.isfinite(reindex([samples.whole("max_workers")], samples.workloads, workloads)[0])
    overrides = np.where(read, now, before)
    used = [place for place, row in enumerate(overrides) if np.isfinite(row).any()]
    return replace(slow, overridden=tuple(names[place] for place in used), overrides=overrides[used])


def _with_points(fast: Fast, samples: Samples, stages: tuple[Stage, ...]) -> Fast:
    names = (*POINTS.values(), "stuck_backlog_records")
    *seen, stuck = reindex([samples.stage(name) for name in names], samples.stages, stages)
    # The backlog of a stuck partition needs a repair instead of workers.
    newest = dict(zip(POINTS, seen, strict=True))
    newest["backlog"] -= np.fmin(np.nan_to_num(stuck), newest["backlog"])
    points: dict[str, Any] = {name: np.vstack([getattr(fast, name), row]) for name, row in newest.items()}
    return replace(fast, at_s=np.append(fast.at_s, samples.at_s), **points)


def _with_counts(fast: Fast, samples: Samples, workloads: tuple[str, ...]) -> Fast:
    rows = reindex([samples.whole(name) for name in _WORKER_COUNTS], samples.workloads, workloads)
    now, was = WorkerCounts(**dict(zip(_WORKER_COUNTS, rows, strict=True))), fast.counts
    seen = np.isfinite(rows).any(axis=0)
    # Without spec.replicas, the existing workers show a rescale.
    unspecified = np.isnan(now.spec_workers) & np.isnan(was.spec_workers)
    desired, before = (np.where(unspecified, each.workers, each.spec_workers) for each in (now, was))
    rescaled, raised = np.abs(desired - before) > 0, desired > before
    # One pod of many that restarts does not distort the rates, nor do the extra ones of a rolling update.
    over = samples.at_s - fast.spec_changed_at_s >= _FLAPS_S
    extra = over & (np.minimum(now.workers, was.workers) >= now.spec_workers)
    mostly_ready = over & (np.minimum(now.ready_workers, was.ready_workers) >= (1 - FEW_RATIO) * now.spec_workers)
    mostly_ready &= ~(fast.lost_at_s > fast.all_ready_at_s)  # the last ones to return end the loss of many
    many = ~mostly_ready & (np.abs(now.ready_workers - was.ready_workers) > FEW_RATIO * was.ready_workers)
    disturbing = many & ~_flaps(fast, now, samples.at_s)
    lost = disturbing & (now.ready_workers < np.minimum(was.ready_workers, now.spec_workers))
    available, former = (np.fmin(each.ready_workers, each.workers) for each in (now, was))
    least, spec = np.minimum(available, former), now.spec_workers
    few_moved = ~rescaled & (available != former) & (least < spec) & (least >= (1 - FEW_RATIO) * spec)
    changed = rescaled | ((np.abs(now.workers - was.workers) > 0) & ~extra) | disturbing
    # A change of the existing workers may be a crash, which must not lower the target.
    adopted = rescaled & ~unspecified & ~_towards_target(fast, now.spec_workers)
    first = seen & np.isnan(fast.spec_changed_at_s)
    # A count from before a change of the desired workers says nothing about the new ones.
    held = {name: np.where(rescaled, np.nan, getattr(was, name)) for name in _WORKER_COUNTS}
    return replace(
        fast,
        counts=WorkerCounts(**{name: first_known(getattr(now, name), held[name]) for name in _WORKER_COUNTS}),
        workers_seen_at_s=np.where(seen, samples.at_s, fast.workers_seen_at_s),
        changed_at_s=np.where(changed, samples.at_s, fast.changed_at_s),
        lost_at_s=np.where(lost, samples.at_s, fast.lost_at_s),
        few_moved_at_s=np.where(few_moved, samples.at_s, fast.few_moved_at_s),
        few_lost_at_s=np.where(few_moved & (available < former), samples.at_s, fast.few_lost_at_s),
        spec_changed_at_s=np.where(first | rescaled, samples.at_s, fast.spec_changed_at_s),
        spec_raised_at_s=np.where(raised, samples.at_s, fast.spec_raised_at_s),
        all_ready_at_s=np.where(now.ready_workers >= now.spec_workers, samples.at_s, fast.all_ready_at_s),
        target_workers=np.where(adopted, now.spec_workers, fast.target_workers),
        committed_at_s=np.where(adopted, samples.at_s, fast.committed_at_s),
    )


def _flaps(fast: Fast, now: WorkerCounts, at_s: float) -> Mask:
    """Whether a change of the ready workers is a flap: it belongs to no rescale, and follows a loss that disturbed."""
    steady = (fast.all_ready_at_s >= fast.spec_changed_at_s) & (fast.counts.ready_workers <= now.spec_workers)
    returned = (now.ready_workers >= now.spec_workers) & (at_s - fast.all_ready_at_s >= _LONG_LOSS_S)
    flaps: Mask = steady & (at_s - fast.lost_at_s < _FLAPS_S) & ~returned
    return flaps


def _towards_target(fast: Fast, spec: Array) -> Mask:
    """Whether a count lies between the last one and our target. Otherwise another actor changed it: adopt it."""
    was, target = fast.counts.spec_workers, fast.target_workers
    between: Mask = (spec >= np.minimum(was, target)) & (spec <= np.maximum(was, target))
    return between | np.isnan(target)


def reindex(rows: list[Array], names: tuple[object, ...], among: tuple[object, ...]) -> Array:
    """Arrays over `names` as arrays over `among`, NaN for a new name; shape (len(rows), len(among))."""
    values = np.array(rows, dtype=np.float64).reshape(len(rows), len(names))
    if names == among:
        return values
    at = {name: place for place, name in enumerate(among)}
    there = [place for place, name in enumerate(names) if name in at]
    spread = np.full((len(rows), len(among)), np.nan)
    spread[:, [at[names[place]] for place in there]] = values[:, there]
    return spread
