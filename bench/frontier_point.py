"""A policy as a point of the frontier of worker-hours and rescales."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPoint:
    """A policy on the traces of one profile: means, and the number of traces on which it is late."""

    policy: str
    cost_ratio: float  # worker-hours over the oracle's
    rescales_per_day: float
    over_60s_pct: float
    late_traces: int
