"""Plans that know the load of the next minutes alone."""

import numpy as np
import pytest

from adapter.errors import AdapterError
from bench.oracle import SizingTask, upper
from bench.receding_horizon import workers_with

ONE = 600.0  # records that a worker processes in a slot
PAUSE_S, PRICE_S = 20.0, 900.0


def a_task(workers_worth: np.ndarray) -> SizingTask:
    return SizingTask(arrival_records=ONE * workers_worth, capacity_records=ONE * np.arange(1.0, 13.0))


def a_load(seed: int, slots: int = 180) -> np.ndarray:
    """A hill with noise."""
    noise = 0.5 * np.random.default_rng(seed).standard_normal(slots)
    return np.clip(5 + 4 * np.sin(np.arange(slots) / 25) + noise, 0, 11)


def objective(workers: np.ndarray) -> float:
    """Worker-hours, and the price of the rescales."""
    changed = np.flatnonzero(np.diff(workers)) + 1
    return float(workers.sum() / 60 + PRICE_S / 3600 * workers[changed].sum())


def test_a_plan_that_knows_everything_is_the_cheapest_one() -> None:
    task = a_task(a_load(1))

    assert objective(workers_with(task, 180, PAUSE_S, PRICE_S)) <= upper(task, PAUSE_S, PRICE_S).objective + 1e-9


@pytest.mark.parametrize("known", [10, 30, 60])
def test_a_plan_with_less_foresight_is_no_cheaper(known: int) -> None:
    task = a_task(a_load(3))

    assert objective(workers_with(task, known, PAUSE_S, PRICE_S)) >= upper(task, PAUSE_S, PRICE_S).objective - 1e-9


def test_a_plan_does_not_depend_on_load_that_it_does_not_know() -> None:
    load, known = a_load(2), 20
    load[:5] = 11  # both loads have the same peak, and so the same units
    other = np.concatenate((load[:100], 11 - load[100:]))
    same, changed = (workers_with(a_task(one), known, PAUSE_S, PRICE_S)[: 100 - known] for one in (load, other))

    assert same.tolist() == changed.tolist()


def test_a_plan_follows_a_step_before_its_records_have_waited_for_five_minutes() -> None:
    workers = workers_with(a_task(np.repeat([2.0, 8.0], 60)), 15, PAUSE_S, PRICE_S)

    assert workers[:60].max() == 2
    assert workers[67:].min() == 8


def test_a_plan_leaves_room_for_a_change_that_the_next_one_needs() -> None:
    rising = np.minimum(8 * 1.01 ** np.arange(120), 11)

    assert workers_with(a_task(rising), 15, 120.0, PRICE_S).max() >= 11


@pytest.mark.parametrize(
    ("known", "pause_s", "message"),
    [
        (4, PAUSE_S, "a plan for 4 minutes ends within a pause"),
        (6, 150.0, "a plan for 6 minutes ends within a pause"),
        (7, 180.0, "no plan for 7 minutes keeps the limit"),
    ],
)
def test_a_plan_that_knows_too_little_is_refused(known: int, pause_s: float, message: str) -> None:
    load = np.tile(np.repeat([1.0, 11.9], 7), 6)
    with pytest.raises(AdapterError, match=message):
        workers_with(a_task(load), known, pause_s, PRICE_S)
