"""required_workers and required_workers_padded in an HPA: where the replicas end up, for every size and tolerance."""

from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pytest
from builders import JOB, TICK_S, Fluid, tick

from adapter.core.decisions import Decision, Reason
from adapter.core.engine import advance
from adapter.core.metrics import METRICS
from adapter.core.rates import Mask
from adapter.core.report import rows
from adapter.core.rule_book import RuleBook
from adapter.core.rules import Rules
from adapter.core.samples import Array
from adapter.core.state import EMPTY
from adapter.simulator.hpa import EXACT, Tolerance, by_average_value

SIZES = np.arange(1, 1001)


class OlderTolerance(Tolerance):
    """The test of Kubernetes before 1.33. Its rounding scales 10 to 11."""

    def holds(self, ratio: Array) -> Mask:
        return np.abs(1.0 - ratio) <= self.up_ratio


TOLERANCES = {"before-1.33": OlderTolerance(), "1.33": Tolerance(), "exact": EXACT}
LOAD = {0: 1000, 900: 1500, 1500: 600}  # records/s from these seconds on
MOST = 60


def metric(name: str, workers: float) -> float:
    """The number that serve answers for a decision with these required workers."""
    decision = Decision(workload=JOB, at_s=0.0, policy="drain", reason=Reason.HOLD, required_workers=workers)
    value = METRICS[name].read(decision)
    assert value is not None
    return round(value, 3)


@pytest.mark.parametrize(
    ("replicas", "wanted", "moves"),
    [
        pytest.param(9, 10, True, id="X-07 9 to 10 scales"),
        pytest.param(10, 11, True, id="X-07 10 to 11 scales: 1.1 is just over in floats"),
        pytest.param(11, 12, False, id="X-07 11 to 12 does not"),
        pytest.param(13, 14, False, id="X-07 13 to 14 does not"),
        pytest.param(10, 9, False, id="X-07 10 to 9 does not"),
        pytest.param(20, 18, False, id="X-07 20 to 18 does not"),
        pytest.param(50, 45, False, id="X-07 50 to 45 does not"),
        pytest.param(30, 34, True, id="X-07 30 to 34 scales"),
        pytest.param(30, 33, True, id="30 to 33 scales as well, by the same float"),
    ],
)
def test_the_tolerance_before_1_33(replicas: int, wanted: int, moves: bool) -> None:
    assert bool(by_average_value(wanted * 1000, 1000, replicas, TOLERANCES["before-1.33"]) == wanted) is moves


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [
        *(("required_workers", tolerance) for tolerance in TOLERANCES),
        *(("required_workers_padded", tolerance) for tolerance in ("before-1.33", "1.33")),
    ],
)
def test_an_hpa_stays_at_the_required_size(name: str, tolerance: str) -> None:
    asked = np.array([metric(name, size) for size in SIZES])
    np.testing.assert_array_equal(by_average_value(asked, 1.0, SIZES, TOLERANCES[tolerance]), SIZES)


@pytest.mark.parametrize("tolerance", ["before-1.33", "1.33"])
@pytest.mark.parametrize("required", [1, 2, 9, 10, 11, 12, 20, 21, 99, 100, 500])
def test_an_hpa_with_a_tolerance_reaches_the_padded_size_from_below_and_exceeds_it_by_at_most_a_tenth(
    required: int, tolerance: str
) -> None:
    asked, below = metric("required_workers_padded", required), np.arange(1, required)
    reached = by_average_value(asked, 1.0, below, TOLERANCES[tolerance])
    assert np.all((required <= reached) & (reached <= np.ceil(1.1 * required)))


@pytest.mark.parametrize("tolerance", ["before-1.33", "1.33"])
def test_an_hpa_with_a_tolerance_stays_below_the_size_without_padding(tolerance: str) -> None:
    assert by_average_value(21.0, 1.0, 20, TOLERANCES[tolerance]) == 20
    assert (
        by_average_value(metric("required_workers_padded", 21), 1.0, 20, TOLERANCES[tolerance]) == 23
    )  # the least above 1.1 * 20


@dataclass(frozen=True)
class Loop:
    """A policy, a metric and an HPA in a closed loop."""

    policy: str
    name: str
    tolerance: str
    target: float = 1.0

    def replicas(self, workers: int, required: float) -> float:
        """What the HPA sets."""
        asked = metric(self.name, required)
        return min(float(by_average_value(asked, self.target, workers, TOLERANCES[self.tolerance])), MOST)


SIZED_BY = ("drain", "beam-flink")
LOOPS = [
    *(
        Loop(policy, "required_workers_padded", tolerance)
        for policy in SIZED_BY
        for tolerance in ("before-1.33", "1.33")
    ),
    *(Loop(policy, "required_workers", "exact", target) for policy in SIZED_BY for target in (1.0, 0.8)),
]


@cache
def replicas() -> dict[Loop, list[int]]:
    """The replicas of each of LOOPS after each tick."""
    loops = {str(loop): loop for loop in LOOPS}
    load = partial(Fluid, lambda at_s: LOAD[max(start for start in LOAD if start <= at_s)], workers=4, each=200.0)
    jobs: dict[str, Fluid] = {name: load() for name in loops}
    rules = RuleBook(by_workload={name: Rules(policy=loop.policy, max_workers=MOST) for name, loop in loops.items()})
    state, found = EMPTY, {loop: list[int]() for loop in LOOPS}
    for at_s in np.arange(0.0, 1800.0, TICK_S).tolist():
        state, decisions = advance(state, tick(at_s, *(job.rows(name) for name, job in jobs.items())), rules)
        for current in rows(decisions):
            if current.required_workers is not None:
                job, loop = jobs[current.workload], loops[current.workload]
                job.scale(loop.replicas(job.workers, current.required_workers))
        for name, job in jobs.items():
            job.run(TICK_S)
            found[loops[name]].append(job.workers)
    return found


@pytest.mark.simulation
@pytest.mark.parametrize("tolerance", ["before-1.33", "1.33"])
@pytest.mark.parametrize("policy", SIZED_BY)
def test_the_padded_size_and_the_hpa_do_not_raise_each_other(policy: str, tolerance: str) -> None:
    padded = replicas()[Loop(policy, "required_workers_padded", tolerance)]
    exact = replicas()[Loop(policy, "required_workers", "exact")]
    assert max(padded) <= np.ceil(1.1 * max(exact)) + 1
    assert padded[59] >= 5  # 1 000 records/s, of which a worker processes 200


@pytest.mark.simulation
@pytest.mark.parametrize("policy", SIZED_BY)
def test_another_target_than_1_raises_the_replicas_to_the_maximum(policy: str) -> None:
    """Why such a target is a fault of the HPA (see the source of autoscalers)."""
    assert max(replicas()[Loop(policy, "required_workers", "exact", target=0.8)]) == MOST
