"""The oracle's plans in the simulator: in time with the smallest sufficient margin, and set ahead of the load."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from adapter.backtest.trace import Window
from adapter.backtest.units import Unit
from adapter.core.samples import Array
from adapter.simulator.profiles import PROFILES, STEP_S
from adapter.simulator.score import Tally, scores
from bench import played_plan
from bench.oracle import SizingTask, capacity_records, upper
from bench.played_plan import LATE_PCT, MARGINS, PRICE_S, PlayedPlan, lost_s, play

PROFILE = replace(PROFILES["consumer-group-small"], skew=0.0, worker_spread=0.1)  # slower than the plan assumes


def a_hill(hours: float = 6.0) -> Array:
    at_s = np.arange(0, hours * 3600, STEP_S)
    rate: Array = 1000 * (3 + 2 * np.sin(at_s / 3600))
    return rate


def a_unit(steps: int) -> Unit:
    window = Window(index=0, begin=0, end=steps, lead_steps=0)
    return Unit(trace="hill", digest="", window=window, policy="oracle", profile=PROFILE, seed=0)


def late_pct(plan: PlayedPlan) -> float:
    sums = {name: np.asarray(values)[None] for name, values in plan.sums.items()}
    return float(scores(Tally(sums))["late_pct"][0])


@cache
def played() -> PlayedPlan:
    """The plan for a_hill."""
    rate = a_hill()
    (plan,) = play([a_unit(len(rate))], [rate])
    return plan


@pytest.mark.simulation
def test_the_played_plan_is_in_time_and_no_smaller_margin_is() -> None:
    rate, plan = a_hill(), played()
    assert late_pct(plan) <= LATE_PCT
    assert plan.margin_ratio > 0

    (smaller,) = play([a_unit(len(rate))], [rate], MARGINS[: MARGINS.index(plan.margin_ratio)])
    assert late_pct(smaller) > LATE_PCT


@pytest.mark.simulation
def test_a_played_plan_costs_what_was_planned() -> None:
    plan = played()
    task = SizingTask(
        arrival_records=played_plan.records_by_slot(a_hill()),
        capacity_records=capacity_records(PROFILE) * (1 - plan.margin_ratio),
    )
    planned = upper(task, lost_s(PROFILE), PRICE_S)

    assert plan.sums["worker_s"] / 3600 == pytest.approx(planned.worker_hours, rel=0.02)
    assert plan.sums["ups"] + plan.sums["downs"] == planned.rescales


def test_new_workers_are_requested_before_they_are_needed() -> None:
    profile = replace(PROFILE, start_s=30.0)
    schedule = played_plan._schedule(np.array([2.0, 4.0, 3.0]), profile, 36)

    assert schedule.tolist() == [2, 2, 4, 4, 4, 4, 4, 4, 3, 3, 3, 3, 3]
