"""What a report tells: plain values, from a closed loop, a recorded history, or both."""

from dataclasses import dataclass, field

import numpy as np

from adapter.core.samples import Array

MEASURED, SIMULATED = "measured", "simulated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Why a number became another, at a moment of a track."""

    at_s: float
    before: float
    after: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """Who ran, or would have run, how many workers; arrays (T,), NaN unknown.

    backlog_time_s: empty where a track has none, as that of a policy that nobody obeyed.
    """

    name: str
    at_s: Array
    workers: Array
    backlog_time_s: Array = field(default_factory=lambda: np.empty(0))
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One row of the table; None is unknown. late_ratio: share of the time with the backlog time over the target.

    kind: MEASURED or SIMULATED. p99_s: of the backlog time. pause_s: in all.
    """

    name: str
    kind: str
    worker_hours: float | None = None
    late_ratio: float | None = None
    p99_s: float | None = None
    rescales: int | None = None
    pause_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One line about the job that was simulated. seen: how many observations, 0 for a setting or default."""

    name: str
    value: str
    seen: int
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What to put into the HPA: averageValue of required_workers, and one sentence that says why."""

    policy: str
    average_value: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """One workload or trace. at_s: Unix seconds, or seconds since the trace's begin.

    simulated: closed loop, who really ran first where that is known. asked: open loop. A chapter shows what it has.
    """

    title: str
    target_s: float
    at_s: Array
    rate_records_per_s: Array
    simulated: tuple[Track, ...] = ()
    asked: tuple[Track, ...] = ()
    scores: tuple[Score, ...] = ()
    facts: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = ()
    target: Target | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """price: of one worker for one hour, in the currency; None shows no money."""

    title: str
    chapters: tuple[Chapter, ...]
    price: float | None = None
    currency: str = "EUR"
    notes: tuple[str, ...] = ()
