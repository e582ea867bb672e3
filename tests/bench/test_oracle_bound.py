"""No policy beats the bound of the oracle on real traces: a policy that is never late pays at least as much."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from adapter.backtest.trace import normalisation_ratio, read, resample
from adapter.core.samples import Array
from adapter.simulator import closed_loop
from adapter.simulator.profiles import PROFILES, STEP_S
from adapter.simulator.score import scores
from adapter.simulator.world import SimulatedJob, World
from bench.oracle import SizingTask, WorkerPlan, lower, upper

TRACES = Path(__file__).parents[1] / "data" / "traces"
pytestmark = pytest.mark.simulation

BEGINS_H = {"dsp_ads_18h_1s": 2, "ms_mongo_01": 30, "crane_02_onoff1m": 12, "nab_twitter_goog_5m": 100}
PROFILE_NAMES = ("consumer-group", "flink-operator", "pause-0-0")
POLICIES = ("static-peak", "hpa-cpu-70", "keda-30s", "flink-fast", "dataflow-docs", "ds2-1.2", "drain")
PRICES_S = (0.0, 180.0, 600.0)
SLOT_STEPS = 12


def window(trace: str, profile: str, hours: int) -> Array:
    """Some hours of a trace, as the profile's job gets it."""
    recorded = read(TRACES / f"{trace}.csv")
    rate = resample(recorded) * normalisation_ratio(recorded, PROFILES[profile])
    begin = round(BEGINS_H[trace] * 3600 / STEP_S)
    return rate[begin : begin + round(hours * 3600 / STEP_S)]


def most_records(world: World, job: int, hours: int) -> Array:
    """An upper bound of what 1, 2, ... workers of a job process in each minute, shape (minutes, max_workers).

    Without pauses, faults and warm-up; every record finds a worker with time for it; noise as it occurs.
    """
    profile = world.profiles[job]
    speed = np.stack([world.speed(60.0 * minute)[job] for minute in range(hours * 60)])[:, : profile.max_workers]
    scaling = np.arange(1.0, profile.max_workers + 1) ** (profile.scaling_exponent - 1)
    return np.cumsum(speed, axis=1) * profile.worker_capacity_records_per_s * scaling * 60.0


KEYS = [(trace, profile) for trace in BEGINS_H for profile in PROFILE_NAMES]


@pytest.fixture(scope="module", params=[2, pytest.param(4, marks=pytest.mark.full)])
def hours(request: pytest.FixtureRequest) -> int:
    """Of each trace."""
    return int(request.param)


@pytest.fixture(scope="module")
def cases(hours: int) -> list[SimulatedJob]:
    """Every policy on every trace and profile."""
    rates = {key: window(*key, hours) for key in KEYS}
    return [SimulatedJob(rates[key], 0, policy, PROFILES[key[1]], 1) for key in KEYS for policy in POLICIES]


@pytest.fixture(scope="module")
def found(cases: list[SimulatedJob]) -> dict[tuple[str, str], dict[str, Array]]:
    """The scores of all policies on a trace with a profile, shape (policies,)."""
    result, size = scores(closed_loop.run(cases).tally), len(POLICIES)
    return {key: {name: result[name][row * size : (row + 1) * size] for name in result} for row, key in enumerate(KEYS)}


@pytest.fixture(scope="module")
def tasks(cases: list[SimulatedJob], hours: int) -> dict[tuple[str, str], SizingTask]:
    """What the oracle has to do: the same arrivals, and the most that the same workers can do in each minute."""
    world = World(cases)
    return {
        key: SizingTask(
            arrival_records=cases[job].rate_records_per_s.reshape(-1, SLOT_STEPS).sum(axis=1) * STEP_S,
            capacity_records=most_records(world, job, hours),
        )
        for key, job in zip(KEYS, range(0, len(cases), len(POLICIES)), strict=True)
    }


def test_no_policy_that_is_never_late_is_cheaper_than_the_bound(
    found: dict[tuple[str, str], dict[str, Array]], tasks: dict[tuple[str, str], SizingTask]
) -> None:
    cheaper = []
    for key, price_s in product(KEYS, PRICES_S):
        result, bound = found[key], lower(tasks[key], price_s)
        never_late = result["over_300s_pct"] == 0
        assert never_late.any(), key
        objective = result["worker_hours"] + price_s / 3600 * result["rescaled_workers"]
        below = np.flatnonzero(never_late & (objective < bound.objective))
        cheaper += [(POLICIES[lane], *key, price_s) for lane in below]

    assert cheaper == []


@pytest.mark.parametrize("trace", list(BEGINS_H))
def test_the_bound_lies_below_the_plan(trace: str, tasks: dict[tuple[str, str], SizingTask]) -> None:
    task = tasks[trace, "consumer-group"]

    plans: list[tuple[WorkerPlan, WorkerPlan]] = [
        (lower(task, price_s), upper(task, 10.0, price_s)) for price_s in PRICES_S
    ]

    assert all(below.objective <= above.objective for below, above in plans)
    assert all(above.infeasible_slots == 0 for _, above in plans)
    assert [below.objective for below, _ in plans] == sorted(below.objective for below, _ in plans)
