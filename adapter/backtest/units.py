"""What is to be simulated -> units with an identity, and groups of units that run as lanes of one task."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import ceil

import numpy as np

from adapter.backtest.release import release
from adapter.backtest.trace import Trace, Window, windows
from adapter.simulator.baselines.named import PEERS
from adapter.simulator.profiles import STEP_S, TICK_S, Profile

ORACLE = "oracle"
# Measured on one core: what a tick costs however many lanes there are, and what each lane adds.
TICK_COSTS_S = {"ours": (7.5e-3, 17e-6), "peers": (1e-3, 6e-6)}
ORACLE_S = 2.5
GROUP_S = 480.0  # what an interruption may cost; shorter ones pay the fixed part too often
FEWEST_LANES, MOST_LANES = 64, 1500
ORACLE_LANES = 8


def chance(seed: int, window_index: int) -> int:
    """The seed of a window's randomness."""
    return int(np.random.SeedSequence((seed, window_index)).generate_state(1)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One policy on one window of one trace. profile: with the metric delay it is run with. digest: of the trace."""

    trace: str
    digest: str
    window: Window
    policy: str
    profile: Profile
    seed: int

    @property
    def id(self) -> str:
        """The same for the same question to the same code; a resumed run never mixes two releases."""
        return hashlib.sha256(f"{release()} {self!r}".encode()).hexdigest()[:32]

    @property
    def chance(self) -> int:
        """The seed of the window's randomness: the same for every policy, another for each window."""
        return chance(self.seed, self.window.index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Every policy with every profile, delay and seed. A delay of None is the profile's own."""

    policies: tuple[str, ...]
    profiles: tuple[Profile, ...]
    delays_s: tuple[float | None, ...] = (None,)
    seeds: tuple[int, ...] = (0,)


def units(trace: Trace, grid: Grid) -> tuple[Unit, ...]:
    """What is simulated of a trace, and the oracle once for each window and profile: it sees everything at once."""
    found = []
    for window, profile in product(windows(trace), grid.profiles):
        made = Unit(trace=trace.name, digest=trace.digest, window=window, policy=ORACLE, profile=profile, seed=0)
        found.append(replace(made, profile=replace(profile, metric_delay_s=0.0)))
        for policy, delay_s, seed in product(grid.policies, grid.delays_s, grid.seeds):
            seen = profile if delay_s is None else replace(profile, metric_delay_s=delay_s)
            found.append(replace(made, policy=policy, profile=seen, seed=seed))
    return tuple(dict.fromkeys(found))


def groups(wanted: Iterable[Unit]) -> list[tuple[Unit, ...]]:
    """Units of the same length and kind together, the longest groups first; the machine has no part in it."""
    alike: dict[tuple[object, ...], list[Unit]] = {}
    for unit in wanted:
        alike.setdefault(_shape(unit), []).append(unit)
    found = [part for units in alike.values() for part in _parts(sorted(units, key=_order), _most_lanes(units[0]))]
    return sorted(found, key=lambda group: (-_cost_s(group), _order(group[0])))


def describe(group: Sequence[Unit]) -> str:
    """Which units these are, for a sentence."""
    named: Mapping[str, list[str]] = {
        "trace": [unit.trace for unit in group],
        "policy": [unit.policy for unit in group],
        "profile": [unit.profile.name for unit in group],
    }
    told = "; ".join(f"{name} {', '.join(sorted(set(values)))}" for name, values in named.items())
    return f"{len(group)} unit{'s'[: len(group) > 1]} ({told})"


def _kind(policy: str) -> str:
    """Ours share the cost of a tick, rivals cost next to nothing, and the oracle is another program."""
    if policy == ORACLE:
        return ORACLE
    return "peers" if policy in PEERS else "ours"


def _order(unit: Unit) -> tuple[object, ...]:
    profile = unit.profile
    return unit.policy, profile.name, profile.metric_delay_s, unit.trace, unit.window.index, unit.seed, unit.digest


def _shape(unit: Unit) -> tuple[object, ...]:
    """What lanes of one task have in common: then their arrays are as wide and drawn as alike, whoever is beside."""
    window, profile = unit.window, unit.profile
    return _kind(unit.policy), window.steps, profile.partitions, profile.max_workers


def _most_lanes(unit: Unit) -> int:
    if unit.policy == ORACLE:
        return ORACLE_LANES
    fixed_s, lane_s = TICK_COSTS_S[_kind(unit.policy)]
    return int(np.clip((GROUP_S / _ticks(unit) - fixed_s) / lane_s, FEWEST_LANES, MOST_LANES))


def _cost_s(group: Sequence[Unit]) -> float:
    """About how long the group takes on one core."""
    if group[0].policy == ORACLE:
        return ORACLE_S * len(group)
    fixed_s, lane_s = TICK_COSTS_S[_kind(group[0].policy)]
    return _ticks(group[0]) * (fixed_s + lane_s * len(group))


def _ticks(unit: Unit) -> float:
    return max(1.0, unit.window.steps * STEP_S / TICK_S)


def _parts(ordered: Sequence[Unit], most: int) -> list[tuple[Unit, ...]]:
    """As few parts as there must be, all about equally long."""
    count = ceil(len(ordered) / most)
    edges = [len(ordered) * part // count for part in range(count + 1)]
    return [tuple(ordered[begin:end]) for begin, end in pairwise(edges)]
