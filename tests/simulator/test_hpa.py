"""The arithmetic of the HPA against the tables of its own tests (case 74), a real controller and a scalar model.

Case 75: which changes it follows with and without a tolerance.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.simulator.hpa import (
    DOWN,
    MOST_WORKERS,
    UP,
    Behavior,
    Direction,
    Hpa,
    Memory,
    PodCpu,
    RatePolicy,
    Tolerance,
    by_average_value,
    by_utilization,
    recommend,
    unready,
)

DEFAULT = Tolerance()
EXACT = Tolerance(up_ratio=0.0, down_ratio=0.0)
AT_ONCE = Direction(window_s=0, policies=DOWN.policies)
NAN = math.nan


def lanes(*numbers: float) -> np.ndarray:
    return np.array(numbers, dtype=float)


def settle(hpa: Hpa, spec_workers: float, proposals: Sequence[float], every_s: float = 15.0) -> list[int]:
    """Replicas after each sync, of one lane."""
    memory, workers = Memory(), lanes(spec_workers)
    sizes = []
    for turn, proposal in enumerate(proposals):
        workers, memory = recommend(hpa, memory, workers, lanes(proposal), turn * every_s)
        sizes.append(int(workers[0]))
    return sizes


@pytest.mark.parametrize(
    ("usage", "target", "replicas", "tolerance", "expected"),
    [
        pytest.param(8600, 2150, 3, DEFAULT, 4, id="8600m over 2150m is 4"),
        pytest.param(8600, 2867, 5, DEFAULT, 3, id="8600m over 2867m is 3"),
        pytest.param(8600, 2900, 3, DEFAULT, 3, id="inside the tolerance nothing moves"),
        pytest.param(
            8600, 2800, 3, Tolerance(up_ratio=0.01, down_ratio=0.01), 4, id="with a tolerance of 1 % it scales"
        ),
        pytest.param(2**63 - 1, 1, 3, DEFAULT, MOST_WORKERS, id="the largest number is the largest size"),
        pytest.param(20_000, 1000, 3, DEFAULT, 20, id="20 from 3"),
        pytest.param(20_001, 1000, 20, EXACT, 21, id="a hair more than 20 is 21 at tolerance 0"),
        pytest.param(0, 1000, 3, DEFAULT, 0, id="0 gives 0"),
        pytest.param(1000, 1000, 0, DEFAULT, 1, id="from 0 the tolerance does not count"),
        pytest.param(0, 1000, 0, DEFAULT, 0, id="0 from 0"),
    ],
)
def test_average_value_divides_the_sum_by_the_target(
    usage: int, target: int, replicas: int, tolerance: Tolerance, expected: int
) -> None:
    assert by_average_value(usage, target, replicas, tolerance) == expected


def test_an_unknown_metric_proposes_nothing() -> None:
    assert np.isnan(by_average_value(lanes(NAN, NAN), 1000, lanes(3, 0), DEFAULT)).all()


@pytest.mark.parametrize(
    ("spec", "target_percent", "pods", "expected"),
    [
        pytest.param(3, 30, {"ready": 3, "usage_milli": 1500}, 5, id="50 % against 30 takes 3 to 5"),
        pytest.param(3, 30, {"ready": 2, "usage_milli": 1200, "unready": 1}, 4, id="an unready pod takes from an up"),
        pytest.param(3, 30, {"ready": 1, "usage_milli": 400, "unready": 2}, 3, id="and may take all of it"),
        pytest.param(5, 50, {"ready": 5, "usage_milli": 1400}, 3, id="28 % against 50 takes 5 to 3"),
        pytest.param(5, 50, {"ready": 3, "usage_milli": 900, "unready": 2}, 2, id="unready pods do not hold a down"),
        pytest.param(
            3, 80, {"ready": 3, "usage_milli": 2663}, 3, id="per cents are cut: 88.77 is 88, in the tolerance"
        ),
        pytest.param(3, 80, {"ready": 3, "usage_milli": 2670}, 4, id="89 is not"),
        pytest.param(3, 80, {"ready": 0, "usage_milli": 0, "unready": 3}, NAN, id="unknown without a ready pod"),
        pytest.param(5, 80, {"ready": 9, "usage_milli": 6300}, 8, id="surge pods count"),
    ],
)
def test_cpu_utilization_scales_by_the_ratio(
    spec: int, target_percent: int, pods: dict[str, float], expected: float
) -> None:
    found = by_utilization(PodCpu(**{key: lanes(n) for key, n in pods.items()}), target_percent, lanes(spec), DEFAULT)

    np.testing.assert_array_equal(found, [expected])


@pytest.mark.parametrize(
    ("age_s", "is_ready", "turned_s", "sampled_s", "expected"),
    [
        pytest.param(60, False, 60, 5, True, id="not ready yet"),
        pytest.param(60, True, 10, 5, True, id="ready for less than a window before its sample"),
        pytest.param(60, True, 30, 5, False, id="ready, and a window was measured since"),
        pytest.param(299, False, 100, 5, True, id="unready in its first five minutes"),
        pytest.param(300, False, 100, 5, False, id="unready later, but ready once"),
        pytest.param(400, False, 390, 5, True, id="never ready but in its first half minute"),
        pytest.param(400, True, 5, 60, False, id="after five minutes the age of a sample is nothing"),
    ],
)
def test_unready_pods_do_not_count(
    age_s: float, is_ready: bool, turned_s: float, sampled_s: float, expected: bool
) -> None:
    found = unready(lanes(age_s), np.array([is_ready]), lanes(turned_s), lanes(sampled_s))

    assert found.tolist() == [expected]


@pytest.mark.parametrize(
    ("replicas", "first_up"), [(9, 10), (10, 12), (20, 23), (30, 34), (50, 56), (100, 111), (500, 551)]
)
def test_required_workers_moves_up_only_beyond_a_tenth(replicas: int, first_up: int) -> None:
    requested = range(replicas + 1, first_up + 1)

    moved = [wanted for wanted in requested if by_average_value(wanted * 1000, 1000, replicas, DEFAULT) != replicas]

    assert moved == [first_up]


@pytest.mark.parametrize(("replicas", "first_down"), [(10, 8), (20, 17), (50, 44), (100, 89), (200, 179)])
def test_required_workers_moves_down_only_beyond_a_tenth(replicas: int, first_down: int) -> None:
    requested = range(replicas - 1, first_down - 1, -1)

    moved = [wanted for wanted in requested if by_average_value(wanted * 1000, 1000, replicas, DEFAULT) != replicas]

    assert moved == [first_down]


@pytest.mark.parametrize(("tolerance_ratio", "replicas", "first_up"), [(0.05, 20, 22), (0.02, 20, 21), (0.02, 50, 52)])
def test_a_smaller_tolerance_loses_fewer_steps(tolerance_ratio: float, replicas: int, first_up: int) -> None:
    tolerance = Tolerance(up_ratio=tolerance_ratio, down_ratio=tolerance_ratio)

    assert by_average_value(first_up * 1000, 1000, replicas, tolerance) == first_up
    assert by_average_value((first_up - 1) * 1000, 1000, replicas, tolerance) == replicas


@pytest.mark.parametrize(("replicas", "wanted"), [(10, 11), (30, 33)])
def test_since_1_33_exactly_a_tenth_is_within_the_tolerance(replicas: int, wanted: int) -> None:
    assert by_average_value(wanted * 1000, 1000, replicas, DEFAULT) == replicas


@given(replicas=st.integers(1, 599), wanted=st.integers(1, 599))
def test_padding_by_a_tenth_never_settles_below_the_required_size(replicas: int, wanted: int) -> None:
    assert by_average_value(wanted * 1100, 1000, replicas, DEFAULT) >= wanted


@given(replicas=st.integers(1, 999), wanted=st.integers(0, 999))
def test_tolerance_0_follows_every_integer(replicas: int, wanted: int) -> None:
    assert by_average_value(wanted * 1000, 1000, replicas, EXACT) == wanted


def test_x_09_the_default_scale_up_is_four_pods_or_double_every_15_s() -> None:
    assert settle(Hpa(max_workers=100), 3, [20, 20, 20, 20]) == [7, 14, 20, 20]


def test_syncs_within_one_period_share_its_allowance() -> None:
    assert settle(Hpa(max_workers=100), 3, [20] * 7, every_s=5) == [7, 7, 7, 14, 14, 14, 20]


def test_x_09_the_default_scale_down_takes_the_highest_proposal_of_300_s() -> None:
    assert settle(Hpa(max_workers=100), 10, [4] * 22) == [*[10] * 20, 4, 4]


def test_the_highest_proposal_of_the_window_limits_a_scale_down() -> None:
    hpa = Hpa(max_workers=100, behavior=Behavior(down=Direction(window_s=30, policies=DOWN.policies)))

    assert settle(hpa, 10, [4, 7, 4, 4, 4]) == [10, 10, 7, 4, 4]


def test_without_a_behavior_the_size_at_most_doubles_and_falls_after_300_s() -> None:
    hpa = Hpa(max_workers=100, behavior=None)

    assert settle(hpa, 3, [20, 20, 20]) == [6, 12, 20]
    assert settle(hpa, 1, [20]) == [4]
    assert settle(hpa, 10, [10, *[4] * 21]) == [*[10] * 21, 4]


def test_a_scale_up_window_takes_its_lowest_proposal() -> None:
    hpa = Hpa(max_workers=100, behavior=Behavior(up=Direction(window_s=30, policies=UP.policies)))

    assert settle(hpa, 10, [10, 12, 14, 14]) == [10, 10, 12, 14]


def test_percents_round_towards_more_pods() -> None:
    tenth = (RatePolicy(kind="Percent", value=10),)
    behavior = Behavior(up=Direction(window_s=0, policies=tenth), down=Direction(window_s=0, policies=tenth))
    hpa = Hpa(max_workers=100, behavior=behavior)

    assert settle(hpa, 1, [50]) == [2]
    assert settle(hpa, 15, [1]) == [13]


def test_removed_pods_count_in_the_period_of_a_scale_up() -> None:
    behavior = Behavior(up=Direction(window_s=0, policies=(RatePolicy(kind="Pods", value=1),)), down=AT_ONCE)
    hpa = Hpa(max_workers=100, behavior=behavior)

    assert settle(hpa, 10, [6, 20], every_s=5) == [6, 11]


def test_a_failed_metric_freezes_the_size() -> None:
    assert settle(Hpa(max_workers=100), 7, [NAN, NAN]) == [7, 7]


def test_min_and_max_hold_even_when_the_metric_fails() -> None:
    assert settle(Hpa(min_workers=3, max_workers=5), 1, [NAN]) == [3]
    assert settle(Hpa(min_workers=3, max_workers=5), 9, [NAN]) == [5]


def test_a_manual_size_of_0_disables_the_autoscaler() -> None:
    assert settle(Hpa(max_workers=100), 0, [5, NAN]) == [0, 0]


def test_with_a_minimum_of_0_the_size_leaves_0_again() -> None:
    hpa = Hpa(min_workers=lanes(0, 1), max_workers=100)

    workers, _ = recommend(hpa, Memory(), lanes(0, 0), lanes(3, 3), 0.0)

    assert workers.tolist() == [3, 0]


def test_a_metric_of_0_gives_the_minimum() -> None:
    assert settle(Hpa(min_workers=2, max_workers=9, behavior=Behavior(down=AT_ONCE)), 5, [0]) == [2]


@pytest.mark.parametrize(
    ("served", "start", "expected"),
    [
        pytest.param(["20", "19", "22"], 20, [20, 19, 22], id="tolerance 0 follows exactly"),
        pytest.param(["20"] * 3, 3, [7, 14, 20], id="from 3 to 20 by the default way up"),
        pytest.param(["0"], 20, [1], id="0 goes to the minimum"),
        pytest.param(["40"] * 4, 3, [7, 14, 28, 30], id="more than the maximum climbs to it"),
        pytest.param(["20.0004"], 20, [21], id="a fraction is rounded up"),
        pytest.param(["3 4"], 20, [7], id="two items are added"),
        pytest.param(["NaN", ""], 20, [20, 20], id="NaN, an empty list and an error freeze"),
    ],
)
def test_the_arithmetic_agrees_with_a_real_controller(served: list[str], start: int, expected: list[int]) -> None:
    hpa, memory = Hpa(max_workers=30, behavior=Behavior(down=AT_ONCE)), Memory()
    workers, path = lanes(start), []
    for turn, items in enumerate(served):
        usage = sum(float(item) for item in items.split()) if items else NAN
        proposal = by_average_value(usage, 1.0, workers, EXACT)
        workers, memory = recommend(hpa, memory, workers, proposal, 16.0 * turn)
        path.append(int(workers[0]))

    assert path == expected


# --- laws

POLICIES = st.builds(
    RatePolicy,
    kind=st.sampled_from(["Pods", "Percent"]),
    value=st.integers(1, 400),
    period_s=st.sampled_from([1, 15, 30, 60, 1800]),
)
DIRECTIONS = st.builds(
    Direction,
    window_s=st.sampled_from([0, 15, 20, 45, 300, 3600]),
    policies=st.lists(POLICIES, min_size=1, max_size=3).map(tuple),
)
BEHAVIORS = st.none() | st.builds(Behavior, up=DIRECTIONS, down=DIRECTIONS)
PROPOSALS = st.floats(0, 60).map(round) | st.just(NAN)
STEPS_S = st.sampled_from([5.0, 10.0, 15.0, 15.25, 150.0])


def expected_path(hpa: Hpa, start: int, history: Sequence[tuple[float, float]]) -> list[int]:
    """What follows a proposal, in plain Python. history: (at_s, proposal) of every sync; the size after each."""
    cur, seen, changes, path = start, [(history[0][0], float(start))], [], []
    for now_s, proposal in history:
        new = min(max(cur, hpa.min_workers), hpa.max_workers)
        if new == cur and not math.isnan(proposal):
            new = min(max(allowed(hpa.behavior, changes, cur, stable(hpa.behavior, seen, cur, proposal, now_s), now_s),
                          hpa.min_workers), hpa.max_workers)  # fmt: skip
            seen.append((now_s, proposal))
        changes.append((now_s, new - cur))
        cur = int(new)
        path.append(cur)
    return path


def stable(
    behavior: Behavior | None, seen: Sequence[tuple[float, float]], cur: int, proposal: float, now_s: float
) -> float:
    if behavior is None:
        return max([proposal, *(p for at_s, p in seen if now_s - at_s <= 300)])
    if proposal >= cur:
        return max(cur, min([proposal, *(p for at_s, p in seen if now_s - at_s < behavior.up.window_s)]))
    return min(cur, max([proposal, *(p for at_s, p in seen if now_s - at_s < behavior.down.window_s)]))


def allowed(
    behavior: Behavior | None, changes: Sequence[tuple[float, float]], cur: int, wanted: float, now_s: float
) -> float:
    if behavior is None:
        return min(wanted, max(2 * cur, 4))
    half = behavior.up if wanted > cur else behavior.down
    if wanted == cur:
        return cur
    reached = []
    for policy in half.policies:
        start = cur - sum(added for at_s, added in changes if now_s - at_s < policy.period_s)
        if wanted > cur:
            up = start + policy.value if policy.kind == "Pods" else math.ceil(start * (1 + policy.value / 100))
            reached.append(max(up, cur))
        else:
            down = start - policy.value if policy.kind == "Pods" else int(start * (1 - policy.value / 100))
            reached.append(min(down, cur))
    furthest = max(reached, key=lambda size: abs(size - cur))
    return min(wanted, furthest) if wanted > cur else max(wanted, furthest)


def followed(hpa: Hpa, starts: np.ndarray, history: Sequence[tuple[float, np.ndarray]]) -> np.ndarray:
    """Sizes of every lane after each sync, shape (syncs, L)."""
    memory, workers, path = Memory(), starts, []
    for now_s, proposals in history:
        workers, memory = recommend(hpa, memory, workers, proposals, now_s)
        path.append(workers)
    return np.array(path)


@given(
    behavior=BEHAVIORS,
    start=st.integers(1, 50),
    history=st.lists(st.tuples(STEPS_S, PROPOSALS), min_size=1, max_size=40),
    bounds=st.sampled_from([(1, 60), (0, 60), (2, 40), (5, 5)]),
)
def test_the_arithmetic_agrees_with_a_scalar_model(
    behavior: Behavior | None, start: int, history: list[tuple[float, float]], bounds: tuple[int, int]
) -> None:
    hpa = Hpa(min_workers=bounds[0], max_workers=bounds[1], behavior=behavior)
    at_s = np.cumsum([step_s for step_s, _ in history]).tolist()
    result = [(now_s, requested) for now_s, (_, requested) in zip(at_s, history, strict=True)]
    path = followed(hpa, lanes(start), [(now_s, lanes(requested)) for now_s, requested in result])[:, 0].tolist()

    assert path == expected_path(hpa, start, result)


@given(behavior=BEHAVIORS, seed=st.integers(0, 2**32), every_s=STEPS_S)
def test_lanes_are_independent(behavior: Behavior | None, seed: int, every_s: float) -> None:
    rng = np.random.default_rng(seed)
    starts, most = rng.integers(0, 40, 7).astype(float), rng.integers(5, 60, 7).astype(float)
    requested = np.where(rng.random((30, 7)) < 0.1, np.nan, rng.integers(0, 70, (30, 7)))
    hpa = Hpa(min_workers=lanes(0, 1, 1, 2, 2, 3, 5), max_workers=most, behavior=behavior)
    together = followed(hpa, starts, [(turn * every_s, row) for turn, row in enumerate(requested)])

    for lane in range(7):
        one = slice(lane, lane + 1)
        alone = replace(hpa, min_workers=hpa.min_workers[one], max_workers=most[one])
        path = followed(alone, starts[one], [(turn * every_s, row[one]) for turn, row in enumerate(requested)])
        assert path.tobytes() == together[:, one].tobytes()


@given(
    ready=st.integers(1, 20),
    waiting=st.integers(0, 5),
    cpu_milli=st.integers(0, 2500),
    spec=st.integers(1, 25),
    target_percent=st.sampled_from([30, 80, 100, 250]),
)
def test_cpu_by_pod_equals_cpu_by_sums(
    ready: int, waiting: int, cpu_milli: int, spec: int, target_percent: int
) -> None:
    pods = [cpu_milli] * ready

    def ratio(of: list[int]) -> float:
        return (sum(of) * 100 // (1000 * len(of))) / target_percent

    def within(of: float) -> bool:
        return 0.9 <= of <= 1.1

    first = ratio(pods)
    if first <= 1 or not waiting:
        expected = spec if within(first) else math.ceil(first * ready)
    else:
        pods += [0] * waiting
        again = ratio(pods)
        expected = math.ceil(again * len(pods))
        if within(again) or (again - 1) * (first - 1) < 0 or (again - 1) * (expected - spec) < 0:
            expected = spec
    summed = PodCpu(ready=lanes(ready), usage_milli=lanes(cpu_milli * ready), unready=lanes(waiting))
    assert by_utilization(summed, target_percent, lanes(spec), DEFAULT) == expected


@given(
    start=st.integers(1, 50),
    proposals=st.lists(st.just(NAN) | st.integers(0, 1000), max_size=40),
    every_s=st.floats(1, 60),
)
def test_the_size_stays_within_its_bounds(start: int, proposals: list[float], every_s: float) -> None:
    hpa = Hpa(min_workers=2, max_workers=40)
    memory, size = Memory(), lanes(start)
    for turn, proposal in enumerate(proposals):
        size, memory = recommend(hpa, memory, size, lanes(proposal), turn * every_s)

        assert 2 <= size <= 40
        assert all(at_s >= turn * every_s - 300 for at_s, _ in memory.proposals or ())


def test_arguments_are_not_modified() -> None:
    hpa, given_workers = Hpa(max_workers=30), lanes(3, 8)
    first, memory = recommend(hpa, Memory(), given_workers, lanes(9, NAN), 0.0)
    again = [recommend(hpa, memory, first, lanes(20, 2), 20.0)[0].tolist() for _ in range(2)]
    given_workers[:] = 0

    assert again[0] == again[1] == recommend(hpa, memory, first, lanes(20, 2), 20.0)[0].tolist()
