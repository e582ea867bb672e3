"""S0-28 / S3-10 in a closed loop: each policy with its defaults, starts and pauses of 30 s, and an HPA."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby, pairwise

import pytest

from adapter.core.rules import POLICIES, UNTIL_MEASURED, Rules
from bench.scenario import END_S, NAMES, STEP_S, TICK_S, ScenarioTick, play

CAPACITY = 100  # records/s a worker
BALANCE, STEPPED = 1000, 1500
START_S, PAUSE_S = int(UNTIL_MEASURED["worker_start_s"]), int(Rules().rescale_pause_s)


@dataclass(frozen=True)
class ExpectedBehaviour:
    """The behaviour of a policy in the closed loop. sizes: its targets, in order.

    outgrown: the workers of the balance do not carry the new input, so that a backlog grows until more have started.
    """

    policy: str
    sizes: tuple[int, ...]
    first_at_s: int | None
    outgrown: bool = True


BEHAVIOURS = [
    # A tick after the step, for the newest rate; 19 are needed, and 20 share 60 partitions evenly.
    ExpectedBehaviour("drain", sizes=(10, 20), first_at_s=150),
    # The pause of the first up is 45 000 records more to catch up with; 20 is the quantum that 90 % of CPU allow.
    ExpectedBehaviour("dataflow", sizes=(10, 15, 30, 20), first_at_s=150),
    # Hot, so it scales up at once, on a quarter of the step; four scale-downs, because it has no scale-down window.
    ExpectedBehaviour("beam-flink", sizes=(10, 12, 30, 26, 25, 24, 22), first_at_s=135),
    # 15 are 70 % busy and carry the new input; the backlog of each pause looks like load.
    ExpectedBehaviour("varga", sizes=(15, 22, 28, 23), first_at_s=135, outgrown=False),
    # As many as the stream has segments.
    ExpectedBehaviour("segments", sizes=(10, 20), first_at_s=150),
    # 60 % of 17 workers, and 20 share the partitions evenly: at 1 500/s they are 75 % busy, under its 80 %.
    ExpectedBehaviour("netflix", sizes=(20,), first_at_s=None, outgrown=False),
]
every_policy = pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda behaviour: behaviour.policy)


@cache
def story() -> tuple[ScenarioTick, ...]:
    return play()


def seen(behaviour: ExpectedBehaviour, name: str) -> dict[int, float]:
    """One column of the story: tick -> the policy's value."""
    return {scene.at_s: round(float(getattr(scene, name)[NAMES.index(behaviour.policy)]), 6) for scene in story()}


def changes(behaviour: ExpectedBehaviour) -> dict[int, float]:
    """Tick -> by how many workers the HPA changed the size then."""
    sizes = seen(behaviour, "spec_workers")
    return {at_s: sizes[at_s] - sizes[before] for before, at_s in pairwise(sizes) if sizes[at_s] != sizes[before]}


def within(column: Mapping[int, float], from_s: float, to_s: float) -> list[float]:
    """The values of the ticks from from_s to to_s, both included."""
    return [value for at_s, value in column.items() if from_s <= at_s <= to_s]


def test_s0_28_the_table_has_every_policy() -> None:
    assert tuple(behaviour.policy for behaviour in BEHAVIOURS) == POLICIES


@pytest.mark.simulation
@every_policy
def test_s0_28_the_sizes_of_every_policy(behaviour: ExpectedBehaviour) -> None:
    sizes = seen(behaviour, "spec_workers")
    assert tuple(size for size, _ in groupby(sizes.values())) == behaviour.sizes
    assert next(iter(changes(behaviour)), None) == behaviour.first_at_s


@pytest.mark.simulation
@every_policy
def test_s0_28_1_in_balance_nothing_changes_and_nothing_waits(behaviour: ExpectedBehaviour) -> None:
    assert not within(changes(behaviour), 0, STEP_S)
    assert set(within(seen(behaviour, "throughput_records_per_s"), 0, STEP_S)) == {BALANCE}
    assert set(within(seen(behaviour, "backlog_records"), 0, STEP_S)) == {0}


@pytest.mark.simulation
@every_policy
def test_s0_28_2_the_backlog_grows_until_more_workers_have_started(behaviour: ExpectedBehaviour) -> None:
    started_s = (behaviour.first_at_s or END_S) + START_S
    backlog = within(seen(behaviour, "backlog_records"), STEP_S, started_s)
    each_s = STEPPED - BALANCE if behaviour.outgrown else 0
    assert {(after - before) / TICK_S for before, after in pairwise(backlog)} == {each_s}


@pytest.mark.simulation
@every_policy
def test_s0_28_3_4_the_backlog_falls_once_all_workers_run(behaviour: ExpectedBehaviour) -> None:
    last_up_s = max((at_s for at_s, more in changes(behaviour).items() if more > 0), default=STEP_S)
    end_s = min((at_s for at_s in changes(behaviour) if at_s > last_up_s), default=END_S)
    backlog = within(seen(behaviour, "backlog_records"), last_up_s + START_S + PAUSE_S, end_s)
    assert all(after < before or after == before == 0 for before, after in pairwise(backlog))
    assert backlog[-1] < STEPPED * Rules().short_backlog_time_s


@pytest.mark.simulation
@every_policy
def test_s0_11_s0_28_4_no_scale_down_with_ten_seconds_of_backlog(behaviour: ExpectedBehaviour) -> None:
    late = seen(behaviour, "backlog_time_s")
    downs = [at_s for at_s, more in changes(behaviour).items() if more < 0]
    assert max((late[at_s] for at_s in downs), default=0) < Rules().short_backlog_time_s


@pytest.mark.simulation
@every_policy
def test_s0_28_5_the_new_balance_is_calm_and_carries_the_input(behaviour: ExpectedBehaviour) -> None:
    assert not within(changes(behaviour), END_S - 600, END_S)
    assert set(within(seen(behaviour, "throughput_records_per_s"), END_S - 600, END_S)) == {STEPPED}
    assert set(within(seen(behaviour, "backlog_time_s"), END_S - 600, END_S)) == {0}
    assert seen(behaviour, "ready_workers")[END_S] == behaviour.sizes[-1] >= STEPPED / CAPACITY
