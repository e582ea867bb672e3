"""Traces, policies, profiles and seeds -> units of work with an identity, grouped into Spark tasks."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from math import ceil

import numpy as np

from adapter.backtest.release import release
from adapter.backtest.trace import Trace, Window, fit_profile, windows
from adapter.core.formatting import counted
from adapter.core.rules import POLICIES
from adapter.simulator.baselines.registry import BASELINES
from adapter.simulator.profiles import STEP_S, TICK_S, Profile

SIMULATION = "adapter.backtest.unit_simulation:simulate_units"
# Measured on one core: the cost of a tick however many lanes there are, and the cost that each lane adds.
TICK_COSTS_S = {"policy": (7.5e-3, 17e-6), "baseline": (1e-3, 6e-6)}
OTHER_UNIT_S, OTHER_LANES = 8.0, 8  # of a unit that another function computes, such as the oracle of the benchmark
GROUP_S = 480.0  # the work that an interruption may lose; shorter groups pay the fixed cost too often
MIN_LANES, MAX_LANES = 64, 1500


def random_seed(seed: int, window_index: int) -> int:
    """The seed of the disturbances of one window: the same for every policy, different for each window."""
    return int(np.random.SeedSequence((seed, window_index)).generate_state(1)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One policy on one window of one trace."""

    trace: str
    digest: str  # of the trace's numbers
    window: Window
    policy: str
    profile: Profile  # with the metric delay of this unit
    seed: int
    normalised: bool = False  # scale the trace to the profile's workers instead of using its own unit
    records_series: bool = False  # store the series of its ticks, for a report
    function: str = field(default=SIMULATION, repr=False)  # "module:function" that a Spark worker imports

    @property
    def id(self) -> str:
        """The identity of a unit: equal for equal units and equal code."""
        return hashlib.sha256(f"{release(self.module)} {self!r}".encode()).hexdigest()[:32]

    @property
    def module(self) -> str:
        """The module of `function`."""
        return self.function.partition(":")[0]

    @property
    def random_seed(self) -> int:
        """The seed of the disturbances of this unit."""
        return random_seed(self.seed, self.window.index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Every policy with every profile, delay and seed."""

    policies: tuple[str, ...]
    profiles: tuple[Profile, ...]
    delays_s: tuple[float | None, ...] = (None,)  # None: the delay of the profile
    seeds: tuple[int, ...] = (0,)
    worker_capacity_records_per_s: float | None = None  # None: inferred, see fit_profile
    normalised: bool = False  # see Unit
    records_first_seed: bool = False  # see Unit.records_series

    def profile(self, trace: Trace, profile: Profile) -> Profile:
        """The profile that a trace runs with: of its own size where the trace is scaled to it."""
        return profile if self.normalised else fit_profile(trace, profile, self.worker_capacity_records_per_s)

    def delayed_profiles(self, trace: Trace, profile: Profile) -> list[Profile]:
        """The profile that a trace runs with, once for each metric delay."""
        own = self.profile(trace, profile)
        return [own if delay_s is None else replace(own, metric_delay_s=delay_s) for delay_s in self.delays_s]


def units(trace: Trace, grid: Grid) -> tuple[Unit, ...]:
    """The units of a trace, without duplicates."""
    found = []
    for window, named in product(windows(trace), grid.profiles):
        profiles = grid.delayed_profiles(trace, named)
        for policy, profile, seed in product(grid.policies, profiles, grid.seeds):
            unit = Unit(
                trace=trace.name,
                digest=trace.digest,
                window=window,
                policy=policy,
                profile=profile,
                seed=seed,
                normalised=grid.normalised,
                records_series=grid.records_first_seed and seed == grid.seeds[0],
            )
            found.append(unit)
    return tuple(dict.fromkeys(found))


def groups(units: Iterable[Unit]) -> list[tuple[Unit, ...]]:
    """Units of equal length and kind, the longest groups first. The grouping does not depend on the machine."""
    by_shape: dict[tuple[object, ...], list[Unit]] = {}
    for unit in units:
        by_shape.setdefault(_shape(unit), []).append(unit)
    found = [part for alike in by_shape.values() for part in _split(sorted(alike, key=_order), _max_lanes(alike[0]))]
    return sorted(found, key=lambda group: (-_cost_s(group), _order(group[0])))


def describe(group: Sequence[Unit]) -> str:
    """A group for an error message: how many runs, and their traces, policies and profiles."""
    names: Mapping[str, list[str]] = {
        "trace": [unit.trace for unit in group],
        "policy": [unit.policy for unit in group],
        "profile": [unit.profile.name for unit in group],
    }
    listed = "; ".join(f"{name} {', '.join(sorted(set(values)))}" for name, values in names.items())
    return f"{counted(len(group), 'run')} ({listed})"


def _kind(unit: Unit) -> str:
    """Policies of one group share the cost of a tick; baselines cost little; other functions run one by one."""
    if unit.policy in BASELINES:
        return "baseline"
    return "policy" if unit.policy.partition(":")[0] in POLICIES else "other"


def _order(unit: Unit) -> tuple[object, ...]:
    profile = unit.profile
    return unit.policy, profile.name, profile.metric_delay_s, unit.trace, unit.window.index, unit.seed, unit.digest


def _shape(unit: Unit) -> tuple[object, ...]:
    """Lanes of one task have equal arrays and draws, so that a unit's result does not depend on its neighbours."""
    window, profile = unit.window, unit.profile
    return unit.function, unit.records_series, _kind(unit), window.steps, profile.partitions, profile.max_workers


def _max_lanes(unit: Unit) -> int:
    if _kind(unit) == "other":
        return OTHER_LANES
    if unit.records_series:
        return MIN_LANES  # their series of four days take 80 MB
    fixed_s, lane_s = TICK_COSTS_S[_kind(unit)]
    return int(np.clip((GROUP_S / _ticks(unit) - fixed_s) / lane_s, MIN_LANES, MAX_LANES))


def _cost_s(group: Sequence[Unit]) -> float:
    """Approximate seconds of the group on one core."""
    if _kind(group[0]) == "other":
        return OTHER_UNIT_S * len(group)
    fixed_s, lane_s = TICK_COSTS_S[_kind(group[0])]
    return _ticks(group[0]) * (fixed_s + lane_s * len(group))


def _ticks(unit: Unit) -> float:
    return max(1.0, unit.window.steps * STEP_S / TICK_S)


def _split(ordered: Sequence[Unit], max_lanes: int) -> list[tuple[Unit, ...]]:
    """As few parts as possible, of about equal length."""
    count = ceil(len(ordered) / max_lanes)
    edges = [len(ordered) * part // count for part in range(count + 1)]
    return [tuple(ordered[begin:end]) for begin, end in pairwise(edges)]
