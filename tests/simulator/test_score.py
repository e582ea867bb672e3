"""Tallies: their sums, their scores, and the addition of windows."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.core.samples import Array
from adapter.simulator.score import LATE_S, SUMS, StepResult, Tally, scores

DT_S = 5.0


def moment(at_s: float = 0.0, lanes: int = 1, dt_s: float = DT_S, **given: Array | float) -> StepResult:
    """A step of two working workers without a fault; changes replace its values."""
    values = {
        "delay_s": 0.0,
        "paid_workers": 2.0,
        "working_workers": 2.0,
        "new_records": 100.0,
        "demand_workers": 2.0,
        "change": 0.0,
        "ready_workers": 2.0,
        "paused_s": 0.0,
        **given,
    }
    late = np.broadcast_to(np.asarray(values.pop("late_records", 0.0)), (len(LATE_S), lanes)).astype(float)
    arrays = {name: np.broadcast_to(np.asarray(value, dtype=float), lanes).copy() for name, value in values.items()}
    return StepResult(at_s=at_s, dt_s=dt_s, late_records=late, **arrays)


def result(moments: Sequence[StepResult]) -> dict[str, float]:
    return {name: float(numbers[0]) for name, numbers in scores(tallied(moments)).items()}


def tallied(moments: Sequence[StepResult]) -> Tally:
    tally = Tally.empty(len(moments[0].delay_s))
    for one in moments:
        tally.add(one)
    return tally


def steps(count: int, **given: Sequence[float]) -> list[StepResult]:
    return [moment(DT_S * step, **{name: values[step] for name, values in given.items()}) for step in range(count)]


def test_workers_are_paid_while_they_start_and_pause() -> None:
    found = result(
        steps(720, paid_workers=[3.0] * 360 + [5.0] * 360, working_workers=[0.0] * 720, paused_s=[5.0] * 720)
    )

    assert (found["worker_hours"], found["mean_workers"], found["paused_pct"]) == (4.0, 4.0, 100.0)


def test_late_records_are_a_share_of_the_records_and_late_time_of_the_time() -> None:
    late = [[30.0], [20.0], [10.0], [5.0]]
    found = result([moment(0.0, delay_s=400.0, late_records=np.array(late)), *steps(3)])

    assert [found[name] for name in ("late_10_pct", "late_60_pct", "late_120_pct", "late_pct")] == [7.5, 5, 2.5, 1.25]
    assert [found[f"over_{s:.0f}s_pct"] for s in LATE_S] == [25.0] * 4


def test_a_delay_of_exactly_the_limit_is_not_over_it() -> None:
    assert result(steps(1, delay_s=[60.0]))["over_60s_pct"] == 0


@pytest.mark.parametrize(
    ("delays_s", "p50_s", "p99_s"),
    [
        pytest.param([0.0] * 100, 0.0, 0.0, id="no delay is 0, not the first bin"),
        pytest.param([0.0] * 50 + [7.5] * 50, 0.0, 7.5, id="half the time is no delay"),
        pytest.param([7.2] * 99 + [500.0], 8.0, 8.0, id="the bin's end; one in a hundred is not the 99th"),
        pytest.param([7.2] * 98 + [500.0] * 2, 8.0, 500.0, id="never above the maximum"),
        pytest.param([200_000.0] * 100, 200_000.0, 200_000.0, id="beyond the last edge it is the maximum"),
    ],
)
def test_percentiles_of_the_delay_are_over_time(delays_s: list[float], p50_s: float, p99_s: float) -> None:
    found = result(steps(len(delays_s), delay_s=delays_s))

    assert (found["p50_delay_s"], found["p99_delay_s"]) == (p50_s, p99_s)


@pytest.mark.parametrize(
    ("changes", "rescales", "half_hour", "ten_minutes"),
    [
        pytest.param({0: 3, 600: 2}, 2, 0, 0, id="the same way again"),
        pytest.param({0: 3, 600: -1}, 2, 1, 1, id="back after ten minutes"),
        pytest.param({0: 3, 605: -1}, 2, 1, 0, id="back a little later"),
        pytest.param({0: 3, 1800: -1}, 2, 1, 0, id="back after half an hour"),
        pytest.param({0: 3, 1805: -1}, 2, 0, 0, id="back much later"),
        pytest.param({0: 1, 300: -1, 600: 1}, 3, 2, 2, id="each change is compared with the last one"),
    ],
)
def test_reversals_are_changes_against_the_last_one(
    changes: dict[int, float], rescales: int, half_hour: int, ten_minutes: int
) -> None:
    found = result([moment(float(at_s), change=changes.get(at_s, 0.0)) for at_s in range(0, 3600, 5)])

    assert (found["rescales"], found["reversals"], found["reversals_10min"]) == (rescales, half_hour, ten_minutes)
    assert found["rescales_per_day"] == 24 * rescales


def test_recovery_runs_from_the_change_through_the_pause_until_the_delay_is_small() -> None:
    found = result(
        steps(
            7,
            change=[0.0, 1, 0, 0, 0, 0, 0],
            paused_s=[0.0, 5, 5, 0, 0, 0, 0],
            delay_s=[0.0, 5, 12, 11, 9, 30, 0],
        )
    )

    assert (found["mean_recovery_s"], found["max_recovery_s"]) == (15, 15)  # the fault later is no change's


def test_a_change_during_a_recovery_prolongs_it_and_one_without_effect_takes_no_time() -> None:
    found = result(steps(6, change=[1.0, 0, 1, 0, 0, -1], delay_s=[20.0, 20, 20, 20, 0, 0]))

    assert (found["mean_recovery_s"], found["max_recovery_s"]) == (10, 20)


def test_spec_measures_of_a_worked_example() -> None:
    found = result(
        steps(
            5,
            demand_workers=[4.0, 4, 8, 8, 4],
            working_workers=[4.0, 2, 0, 8, 9],
        )
    )

    assert found["theta_u_pct"] == pytest.approx(100 * (0.5 + 1) / 5)
    assert found["theta_o_pct"] == pytest.approx(100 * (5 / 4) / 5)
    assert (found["tau_u_pct"], found["tau_o_pct"]) == pytest.approx((40, 20))
    assert found["nu_pct"] == pytest.approx(100)  # down-same, down-up, up-same, up-down


def test_without_input_the_demand_is_one_worker() -> None:
    assert result(steps(1, demand_workers=[0.0], working_workers=[3.0]))["theta_o_pct"] == 300


def test_scores_without_data_are_unknown() -> None:
    found = scores(Tally.empty(2))

    assert found["worker_hours"].tolist() == [0, 0]
    assert np.isnan([found[name] for name in ("late_pct", "over_60s_pct", "p99_delay_s", "nu_pct")]).all()


def test_windows_add_up_except_for_the_maxima() -> None:
    first, second = tallied(steps(4, delay_s=[70.0, 0, 0, 0])), tallied(steps(4, delay_s=[0.0, 90, 0, 0]))
    found = scores(first.plus(second))

    assert (found["over_60s_pct"], found["max_delay_s"], found["days"] * 86400) == (25, 90, 40)


def test_a_finished_tally_takes_no_more_steps() -> None:
    with pytest.raises(ValueError, match="takes no more steps"):
        tallied(steps(1)).take(np.array([0])).add(moment())


DELAYS = st.sampled_from([0.0, 0.0, 3.2, 9.99, 10.0, 59.0, 61.0, 250.0, 301.0, 90_000.0])
STEP = st.fixed_dictionaries(
    {
        "delay_s": DELAYS,
        "paid_workers": st.integers(1, 9).map(float),
        "working_workers": st.integers(0, 9).map(float),
        "new_records": st.integers(0, 99).map(float),
        "demand_workers": st.integers(0, 9).map(float),
        "change": st.sampled_from([0.0, 0.0, 0.0, 1.0, -2.0]),
        "paused_s": st.sampled_from([0.0, 0.0, 5.0]),
    }
)
LANES = st.integers(1, 4).flatmap(lambda lanes: st.lists(st.lists(STEP, min_size=lanes, max_size=lanes), min_size=1))


@given(LANES)
def test_lanes_are_scored_independently(timeline: list[list[dict[str, float]]]) -> None:
    lanes = len(timeline[0])
    tally = Tally.empty(lanes)
    for step, jobs in enumerate(timeline):
        tally.add(moment(400.0 * step, lanes, **{name: np.array([job[name] for job in jobs]) for name in jobs[0]}))

    found = scores(tally)
    for lane in range(lanes):
        alone = tallied([moment(400.0 * step, **jobs[lane]) for step, jobs in enumerate(timeline)])
        for name in SUMS:
            assert np.array_equal(tally.take(np.array([lane])).sums[name], alone.sums[name])
        for name, value in counted([jobs[lane] for jobs in timeline]).items():
            assert found[name][lane] == pytest.approx(value), name


def counted(timeline: list[dict[str, float]]) -> dict[str, float]:
    """The same numbers by a plain loop."""
    changes = [(400.0 * step, one["change"]) for step, one in enumerate(timeline) if one["change"]]
    turns = [b_s - a_s for (a_s, a), (b_s, b) in pairwise(changes) if a * b < 0]
    return {
        "worker_hours": sum(one["paid_workers"] for one in timeline) * DT_S / 3600,
        "rescales": len(changes),
        "reversals": sum(turn <= 1800 for turn in turns),
        "reversals_10min": sum(turn <= 600 for turn in turns),
        "over_60s_pct": 100 * sum(one["delay_s"] > 60 for one in timeline) / len(timeline),
        "max_delay_s": max(one["delay_s"] for one in timeline),
        "paused_pct": 100 * sum(one["paused_s"] for one in timeline) / DT_S / len(timeline),
        "tau_u_pct": 100 * sum(one["working_workers"] < one["demand_workers"] for one in timeline) / len(timeline),
        "theta_u_pct": 100
        * sum(
            max(0.0, one["demand_workers"] - one["working_workers"]) / max(1, one["demand_workers"]) for one in timeline
        )
        / len(timeline),
    }
