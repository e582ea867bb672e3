"""The content of a report as plain values, from a simulation, a recorded history, or both."""

from dataclasses import dataclass, field

import numpy as np

from adapter.backtest.prices import Prices
from adapter.core.samples import Array

MEASURED, SIMULATED = "measured", "simulated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """A change of a policy's number or of simulated workers, in workers; NaN is no number."""

    at_s: float
    before: float
    after: float
    why: str = ""  # the sentence of the decision; none for simulated workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """The workers of one policy, or of the recorded run, over time; arrays have the shape (T,), NaN is unknown."""

    name: str
    at_s: Array
    workers: Array
    backlog_time_s: Array = field(default_factory=lambda: np.empty(0))  # empty for an open loop
    changes: tuple[Resize, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One row of the table; None is unknown."""

    name: str
    kind: str  # MEASURED or SIMULATED
    worker_hours: float | None = None  # of the time in which the workers are known
    known_ratio: float = 1.0  # share of this time
    late_ratio: float | None = None  # share of the time in which the backlog time exceeds the target
    late_minutes: float | None = None  # this time
    p99_s: float | None = None  # of the backlog time
    rescales: int | None = None
    pause_s: float | None = None  # in total


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One property of the simulated job and its source."""

    name: str
    value: str
    observations: int  # 0 for a setting or default
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaTarget:
    """What to expect from an HPA on required_workers, with the averageValue 1 that it always has."""

    policy: str
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One workload or trace. A section shows what it has."""

    title: str
    target_s: float
    at_s: Array  # Unix seconds, or seconds since the start of a trace
    rate_records_per_s: Array
    simulated: tuple[Track, ...] = ()  # closed loop; the recorded run comes first, if there is one
    recommended: tuple[Track, ...] = ()  # open loop
    scores: tuple[Score, ...] = ()
    facts: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = ()
    target: HpaTarget | None = None
    prices: Prices = field(default_factory=Prices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A page with its sections."""

    title: str
    sections: tuple[Section, ...]
    currency: str = "EUR"
    notes: tuple[str, ...] = ()
