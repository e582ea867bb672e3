"""Samples -> state: who is there, what was counted, and the points of the window."""

from dataclasses import replace

import numpy as np

from adapter.core.rules import RuleBook
from adapter.core.samples import Array, Samples
from adapter.core.state import COUNTED, LIMITING, Fast, State, aligned

FORGET_S = 3600.0  # a found workload that is not seen for so long is no longer there
REPLACED_S = 120.0  # a stage that its siblings outlive by so long was renamed or removed; sooner than an error of age


def take(state: State, samples: Samples, book: RuleBook) -> State:
    """The state with this tick's samples in it. What was not seen stays as it was last known."""
    workloads, stages = _there(state, samples, book)
    state = aligned(state, workloads, stages)
    limiting = laid([samples.whole(name) for name in LIMITING], samples.workloads, workloads)
    kept = np.where(np.isnan(limiting), state.slow.limiting, limiting)
    state = replace(state, slow=replace(state.slow, limiting=kept))
    return replace(state, fast=_counted(_pushed(state.fast, samples, stages), samples, workloads))


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
    named = set(samples.workloads) | set(book.by_workload)
    silent_s = {w: np.fmin(counted[w], samples.at_s - newest.get(w, -np.inf)) for w in slow.workloads}
    workloads = named | {w for w, age_s in silent_s.items() if age_s < FORGET_S}
    stages = {(w, stage) for (w, stage), at_s in seen.items() if w in workloads and at_s > newest[w] - REPLACED_S}
    return tuple(sorted(workloads)), tuple(sorted(stages | set(samples.stages)))


def _pushed(fast: Fast, samples: Samples, stages: tuple[tuple[str, str], ...]) -> Fast:
    names = {"processed": "processed_records", "appended": "appended_records", "backlog": "backlog_records"}
    seen = laid([samples.stage(name) for name in names.values()], samples.stages, stages)
    points = {name: np.vstack([getattr(fast, name), row]) for name, row in zip(names, seen, strict=True)}
    return replace(fast, at_s=np.append(fast.at_s, samples.at_s), **points)


def _counted(fast: Fast, samples: Samples, workloads: tuple[str, ...]) -> Fast:
    now = laid([samples.whole(name) for name in COUNTED], samples.workloads, workloads)
    spec, status, ready, _, _ = now
    told = np.isfinite(now[:3]).any(axis=0)
    at_work, before = first_known(ready, status, spec), first_known(*fast.counted[[2, 1, 0]])
    changed = told & np.isfinite(before) & (at_work != before)
    asked = first_known(spec, status, ready)  # without a spec, those that exist are those that were asked for
    on_the_way = told & ((asked != first_known(status, asked)) | (first_known(ready, asked) < asked))
    since = np.where(np.isnan(fast.flight_since_s), samples.at_s, fast.flight_since_s)
    return replace(
        fast,
        counted=np.where(told, now, fast.counted),
        counted_at_s=np.where(told, samples.at_s, fast.counted_at_s),
        changed_at_s=np.where(changed, samples.at_s, fast.changed_at_s),
        flight_since_s=np.where(told, np.where(on_the_way, since, np.nan), fast.flight_since_s),
    )


def first_known(*choices: Array) -> Array:
    """Of each place the first value that is not NaN."""
    found = choices[0]
    for choice in choices[1:]:
        found = np.where(np.isnan(found), choice, found)
    return found


def laid(rows: list[Array], names: tuple[object, ...], among: tuple[object, ...]) -> Array:
    """Arrays over `names` laid out over `among`, NaN where a name is absent; shape (len(rows), len(among))."""
    values = np.array(rows, dtype=np.float64).reshape(len(rows), len(names))
    if names == among:
        return values
    at = {name: place for place, name in enumerate(among)}
    spread = np.full((len(rows), len(among)), np.nan)
    spread[:, [at[name] for name in names]] = values
    return spread
