"""Samples -> state: who is there, what was counted, and the points of the window."""

from dataclasses import replace

import numpy as np

from adapter.core.rules import RuleBook
from adapter.core.samples import Array, Samples, first_known
from adapter.core.state import COUNTED, LIMITING, Fast, State, aligned

FORGET_S = 3600.0  # a found workload that is not seen for so long is no longer there
PARTITIONS = LIMITING.index("partitions")
_FEW_RATIO = 0.1  # of the ready workers
REPLACED_S = 120.0  # a stage that its siblings outlive by so long was renamed or removed; sooner than an error of age


def take(state: State, samples: Samples, book: RuleBook) -> State:
    """The state with this tick's samples in it. What was not seen stays as it was last known."""
    workloads, stages = _there(state, samples, book)
    state = aligned(state, workloads, stages)
    limiting = laid([samples.whole(name) for name in LIMITING], samples.workloads, workloads)
    kept = first_known(limiting, state.slow.limiting)
    # Sums over another set of partitions are other counters: the difference between them is no progress.
    other = np.flatnonzero((limiting != state.slow.limiting)[PARTITIONS] & np.isfinite(limiting[PARTITIONS]))
    fast = _blanked(state.fast, stages, {workloads[place] for place in other})
    state = replace(state, slow=replace(state.slow, limiting=kept))
    return replace(state, fast=_counted(_pushed(fast, samples, stages), samples, workloads))


def trimmed(fast: Fast, oldest_s: float) -> Fast:
    """Without the points that no window needs any more."""
    keep = fast.at_s >= oldest_s
    points = {name: getattr(fast, name)[keep] for name in ("at_s", "processed", "appended", "backlog")}
    return replace(fast, **points)


def _there(state: State, samples: Samples, book: RuleBook) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    slow = state.slow
    if (slow.workloads, slow.stages) == (samples.workloads, samples.stages) and book.by_workload.keys() <= set(
        slow.workloads
    ):
        return slow.workloads, slow.stages
    counted = dict(zip(slow.workloads, samples.at_s - state.fast.counted_at_s, strict=True))
    seen = dict(zip(slow.stages, state.fast.seen_at_s, strict=True))
    newest: dict[str, float] = {}
    for (workload, _), at_s in seen.items():
        newest[workload] = np.fmax(at_s, newest.get(workload, -np.inf))
    named = {workload for workload, _ in samples.stages} | set(book.by_workload) | _found(samples)
    silent_s = {w: np.fmin(counted[w], samples.at_s - newest.get(w, -np.inf)) for w in slow.workloads}
    workloads = named | {w for w, age_s in silent_s.items() if age_s < FORGET_S}
    stages = {(w, stage) for (w, stage), at_s in seen.items() if w in workloads and at_s > newest[w] - REPLACED_S}
    return tuple(sorted(workloads)), tuple(sorted(stages | set(samples.stages)))


def _found(samples: Samples) -> set[str]:
    """Workloads that a fleet found. An HPA alone makes none: it may name one that does not exist."""
    in_fleet = np.isfinite(samples.whole("fleet"))
    return {name for name, found in zip(samples.workloads, in_fleet, strict=True) if found}


def _blanked(fast: Fast, stages: tuple[tuple[str, str], ...], workloads: set[str]) -> Fast:
    """Without the counts so far of some workloads."""
    if not workloads:
        return fast
    kept = np.array([workload not in workloads for workload, _ in stages], dtype=bool)
    points = {name: np.where(kept, getattr(fast, name), np.nan) for name in ("processed", "appended", "backlog")}
    return replace(fast, **points)


def _pushed(fast: Fast, samples: Samples, stages: tuple[tuple[str, str], ...]) -> Fast:
    names = {"processed": "processed_records", "appended": "appended_records", "backlog": "backlog_records"}
    seen = laid([samples.stage(name) for name in names.values()], samples.stages, stages)
    points = {name: np.vstack([getattr(fast, name), row]) for name, row in zip(names, seen, strict=True)}
    return replace(fast, at_s=np.append(fast.at_s, samples.at_s), **points)


def _counted(fast: Fast, samples: Samples, workloads: tuple[str, ...]) -> Fast:
    now = laid([samples.whole(name) for name in COUNTED], samples.workloads, workloads)
    told = np.isfinite(now).any(axis=0)
    asked, exist, ready = np.nan_to_num(np.abs(now - fast.counted))
    # One pod of many that comes and goes does not spoil the rates, and must not keep the rest from being sized.
    changed = (asked > 0) | (exist > 0) | (ready > _FEW_RATIO * fast.counted[2])
    first = told & np.isnan(fast.asked_at_s)
    return replace(
        fast,
        counted=first_known(now, fast.counted),
        counted_at_s=np.where(told, samples.at_s, fast.counted_at_s),
        changed_at_s=np.where(changed, samples.at_s, fast.changed_at_s),
        asked_at_s=np.where(first | (asked > 0), samples.at_s, fast.asked_at_s),
    )


def laid(rows: list[Array], names: tuple[object, ...], among: tuple[object, ...]) -> Array:
    """Arrays over `names` laid out over `among`, NaN where a name is absent there; shape (len(rows), len(among))."""
    values = np.array(rows, dtype=np.float64).reshape(len(rows), len(names))
    if names == among:
        return values
    at = {name: place for place, name in enumerate(among)}
    there = [place for place, name in enumerate(names) if name in at]
    spread = np.full((len(rows), len(among)), np.nan)
    spread[:, [at[names[place]] for place in there]] = values[:, there]
    return spread
