"""Score a run: its cost, the delay of its records, and its elasticity."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from adapter.core.formatting import DAY_S
from adapter.core.rates import Mask
from adapter.core.samples import Array, IntArray

LATE_S = (10.0, 60.0, 120.0, 300.0)
RECOVERED_S = 10.0  # a change is over when the delay is below it
REVERSAL_S = (1800.0, 600.0)
RESCALE_PRICES_S = (10.0, 60.0, 300.0, 600.0)  # of the time of all workers after a rescale

# Delays in whole seconds up to a minute, then 3 % apart: the resolution of percentiles.
_FINE = np.arange(1.0, 60.0)
_COARSE = np.geomspace(60.0, DAY_S, 247)
DELAY_EDGES_S: Array = np.concatenate((_FINE, _COARSE))

# The sums of a lane, and the length of each.
SUMS: Mapping[str, int] = {
    "scored_s": 1,
    "worker_s": 1,
    "records": 1,
    "late_records": len(LATE_S),
    "late_s": len(LATE_S),
    "delayed_s": len(DELAY_EDGES_S) + 1,  # time by delay, between DELAY_EDGES_S
    "paused_s": 1,
    "ups": 1,
    "downs": 1,
    "reversals": len(REVERSAL_S),  # changes in the opposite direction within each of REVERSAL_S
    "rescaled_workers": 1,  # the workers after each change
    "recoveries": 1,
    "recovery_s": 1,  # from a change until the job runs and its delay is below RECOVERED_S; further changes prolong it
    # The integrals of SPEC's elasticity measures; compared_s is their T without the first step.
    "under_ratio_s": 1,
    "over_ratio_s": 1,
    "under_s": 1,
    "over_s": 1,
    "compared_s": 1,
    "unlike_s": 1,
    "max_delay_s": 1,
    "max_recovery_s": 1,
}
_MAXIMA = ("max_delay_s", "max_recovery_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """L jobs during one step; shape (L,) unless stated otherwise."""

    at_s: float
    dt_s: float
    delay_s: Array  # age of the oldest unprocessed record of the worst partition, at the step's end
    paid_workers: Array  # ready, starting or ending
    working_workers: Array  # 0 in a pause
    new_records: Array  # processed for the first time
    late_records: Array  # (4, L) those of them older than each of LATE_S
    demand_workers: Array  # the fewest that keep up with the input
    change: Array  # of the number of workers, nearly always 0
    ready_workers: Array  # after the change
    paused_s: Array  # seconds of the step without work


@dataclass(slots=True)
class _Memory:
    """The previous step, for comparison with the next one; NaN and None before the first."""

    changed_at_s: Array
    direction: Array
    recovering_since_s: Array
    supply_workers: Array | None = None
    demand_workers: Array | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over the steps of L lanes, by the names of SUMS; shape (L,), or (L, length) of SUMS."""

    sums: Mapping[str, Array]
    memory: _Memory | None = field(default=None, compare=False)

    @classmethod
    def empty(cls, lanes: int) -> "Tally":
        """A tally of lanes without any step."""
        shapes = {name: (lanes, width) if width > 1 else (lanes,) for name, width in SUMS.items()}
        memory = _Memory(*(np.full(lanes, np.nan) for _ in range(3)))
        return cls({name: np.zeros(shape) for name, shape in shapes.items()}, memory)

    def add(self, result: StepResult) -> None:
        """Add one step in place. Raises ValueError for a tally from take() or plus(), which has no present step."""
        if self.memory is None:
            raise ValueError("a tally of finished windows takes no more steps")
        sums, dt_s = self.sums, result.dt_s
        np.add(sums["scored_s"], dt_s, out=sums["scored_s"])
        np.add(sums["worker_s"], result.paid_workers * dt_s, out=sums["worker_s"])
        np.add(sums["records"], result.new_records, out=sums["records"])
        np.add(sums["paused_s"], result.paused_s, out=sums["paused_s"])
        if result.late_records[0].any():
            np.add(sums["late_records"], result.late_records.T, out=sums["late_records"])
        _add_delays(sums, result)
        _add_changes(sums, self.memory, result)
        _add_recoveries(sums, self.memory, result)
        _add_elasticity(sums, self.memory, result)

    def reset(self, lanes: Mask) -> None:
        """Reset some lanes in place, at the end of their lead-in."""
        if self.memory is None:
            raise ValueError("a tally of finished windows begins no more")
        for numbers in self.sums.values():
            numbers[lanes] = 0.0
        for column in (self.memory.changed_at_s, self.memory.direction, self.memory.recovering_since_s):
            column[lanes] = np.nan

    def take(self, index: IntArray | slice) -> "Tally":
        """A tally of some lanes, in the given order."""
        return Tally({name: numbers[index] for name, numbers in self.sums.items()})

    def plus(self, other: "Tally") -> "Tally":
        """Combine two windows of the same lanes: add the sums, take the larger maxima."""
        how = {name: np.maximum if name in _MAXIMA else np.add for name in self.sums}
        return Tally({name: how[name](numbers, other.sums[name]) for name, numbers in self.sums.items()})


def _add_delays(sums: Mapping[str, Array], result: StepResult) -> None:
    lanes = np.flatnonzero(result.delay_s > 0)
    if not len(lanes):
        return
    delay_s = result.delay_s[lanes]
    sums["delayed_s"][lanes, np.searchsorted(DELAY_EDGES_S, delay_s, side="right")] += result.dt_s
    sums["late_s"][lanes] += (delay_s[:, None] > LATE_S) * result.dt_s
    sums["max_delay_s"][lanes] = np.maximum(sums["max_delay_s"][lanes], delay_s)


def _add_changes(sums: Mapping[str, Array], memory: _Memory, result: StepResult) -> None:
    lanes = np.flatnonzero(result.change)
    if not len(lanes):
        return
    direction = np.sign(result.change[lanes])
    since_s = result.at_s - memory.changed_at_s[lanes]
    sums["ups"][lanes] += direction > 0
    sums["downs"][lanes] += direction < 0
    sums["rescaled_workers"][lanes] += result.ready_workers[lanes]
    against = direction == -memory.direction[lanes]
    sums["reversals"][lanes] += against[:, None] & (since_s[:, None] <= REVERSAL_S)
    memory.changed_at_s[lanes], memory.direction[lanes] = result.at_s, direction
    begins = lanes[np.isnan(memory.recovering_since_s[lanes])]
    memory.recovering_since_s[begins] = result.at_s
    sums["recoveries"][begins] += 1


def _add_recoveries(sums: Mapping[str, Array], memory: _Memory, result: StepResult) -> None:
    """The step in which a job recovers does not count, so a change without effect takes 0 s."""
    lanes = np.flatnonzero(memory.recovering_since_s <= result.at_s)
    if not len(lanes):
        return
    back = (result.delay_s[lanes] < RECOVERED_S) & (result.paused_s[lanes] == 0)
    memory.recovering_since_s[lanes[back]] = np.nan
    away = lanes[~back]
    sums["recovery_s"][away] += result.dt_s
    lasted_s = result.at_s + result.dt_s - memory.recovering_since_s[away]
    sums["max_recovery_s"][away] = np.maximum(sums["max_recovery_s"][away], lasted_s)


def _add_elasticity(sums: Mapping[str, Array], memory: _Memory, result: StepResult) -> None:
    """SPEC RG's measures, relative to demand, which is one worker at least."""
    supply, demand, dt_s = result.working_workers, result.demand_workers, result.dt_s
    spare = supply - demand
    share_s = spare / np.maximum(demand, 1.0) * dt_s
    np.add(sums["over_ratio_s"], np.maximum(share_s, 0.0), out=sums["over_ratio_s"])
    np.subtract(sums["under_ratio_s"], np.minimum(share_s, 0.0), out=sums["under_ratio_s"])
    np.add(sums["over_s"], (spare > 0) * dt_s, out=sums["over_s"])
    np.add(sums["under_s"], (spare < 0) * dt_s, out=sums["under_s"])
    if memory.supply_workers is not None and memory.demand_workers is not None:
        unlike = np.sign(supply - memory.supply_workers) != np.sign(demand - memory.demand_workers)
        np.add(sums["unlike_s"], unlike * dt_s, out=sums["unlike_s"])
        np.add(sums["compared_s"], dt_s, out=sums["compared_s"])
    memory.supply_workers, memory.demand_workers = supply.copy(), demand.copy()


def scores(tally: Tally) -> Mapping[str, Array]:
    """The published scores, shape (L,) each; NaN where there is nothing to divide by.

    late_*_pct: records that are older than this many seconds when processed; late_pct: than 300 s. over_*_pct: time in
    which the worst partition is further behind. cost_*_worker_hours: a rescale costs this many seconds of the job's
    workers. Percentiles of the delay are over time, rounded up to the bin's end.
    theta, tau and nu: SPEC RG's accuracy, time share and instability, with working workers as supply.
    """
    sums = tally.sums
    days = sums["scored_s"] / DAY_S
    rescales = sums["ups"] + sums["downs"]
    return {
        "days": days,
        "worker_hours": sums["worker_s"] / 3600,
        "mean_workers": _ratio(sums["worker_s"], sums["scored_s"]),
        **_lateness(sums),
        **_costs(sums),
        "rescales": rescales,
        "rescales_per_day": _ratio(rescales, days),
        "rescaled_workers": sums["rescaled_workers"],
        "reversals": sums["reversals"][:, 0],
        "reversals_10min": sums["reversals"][:, 1],
        "p50_delay_s": _delay_percentile_s(sums, 0.5),
        "p99_delay_s": _delay_percentile_s(sums, 0.99),
        "max_delay_s": sums["max_delay_s"],
        "mean_recovery_s": _ratio(sums["recovery_s"], sums["recoveries"]),
        "max_recovery_s": sums["max_recovery_s"],
        "paused_pct": 100 * _ratio(sums["paused_s"], sums["scored_s"]),
        "theta_u_pct": 100 * _ratio(sums["under_ratio_s"], sums["scored_s"]),
        "theta_o_pct": 100 * _ratio(sums["over_ratio_s"], sums["scored_s"]),
        "tau_u_pct": 100 * _ratio(sums["under_s"], sums["scored_s"]),
        "tau_o_pct": 100 * _ratio(sums["over_s"], sums["scored_s"]),
        "nu_pct": 100 * _ratio(sums["unlike_s"], sums["compared_s"]),
    }


def _costs(sums: Mapping[str, Array]) -> Mapping[str, Array]:
    paid, again = sums["worker_s"], sums["rescaled_workers"]
    return {f"cost_{price_s:.0f}s_worker_hours": (paid + price_s * again) / 3600 for price_s in RESCALE_PRICES_S}


def _lateness(sums: Mapping[str, Array]) -> Mapping[str, Array]:
    found: dict[str, Array] = {}
    for place, late_s in enumerate(LATE_S):
        found[f"late_{late_s:.0f}_pct"] = 100 * _ratio(sums["late_records"][:, place], sums["records"])
        found[f"over_{late_s:.0f}s_pct"] = 100 * _ratio(sums["late_s"][:, place], sums["scored_s"])
    found["late_pct"] = found.pop("late_300_pct")
    return found


def _delay_percentile_s(sums: Mapping[str, Array], share: float) -> Array:
    longer_s = np.cumsum(sums["delayed_s"][:, ::-1], axis=1)[:, ::-1]
    beyond_s = sums["scored_s"] * (1 - share)
    ends_s = np.concatenate(([0.0], DELAY_EDGES_S, [np.inf]))  # without a delay the bin is 0
    reached = (longer_s > beyond_s[:, None]).sum(axis=1)
    return np.where(sums["scored_s"] > 0, np.minimum(ends_s[reached], sums["max_delay_s"]), np.nan)


def _ratio(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.full_like(part, np.nan), where=whole > 0)
