"""The deviation of the simulator from measured runs, by profile."""

import pytest

from adapter.simulator.profiles import PROFILES
from bench.calibration import RUNS, Figures, measured_figures, simulated_figures, table

pytestmark = pytest.mark.simulation

# Error of the worker-hours, least and most, per cent; of the share of time with more than 10 s and 60 s of delay, in
# points. What is missed, and why:
# - flink-reactive: too dear. The capture shows no warm-up and pauses of about 6 s rather than 14, and its HPA seems to
#   see CPU over a minute: in the simulator one hot sample after each restart holds the size up for five minutes.
#   Without warm-up half of the error is gone, with all three three quarters.
# - flink-operator: far too few restarts, and so too little delay. The operator scales each vertex by the busiest of
#   its subtasks and restarts each five minutes under a constant load; a formula of one stage has no reason to.
BOUNDS = {
    "static 24": ((-1, 1), (-1, 1), (-1, 1)),
    "HPA CPU 35 %": ((30, 75), (0, 15), (-1, 1)),
    "HPA CPU 35 %, no warm-up": ((10, 45), (0, 10), (-1, 1)),
    "HPA CPU 35 %, as captured": ((-5, 25), (-1, 2), (-1, 1)),
    "Flink's operator": ((-25, 10), (-25, 0), (-10, 0)),
}


@pytest.fixture(scope="module")
def pairs() -> dict[str, tuple[Figures, Figures]]:
    """Measured and simulated."""
    return {run.name: (measured_figures(run), here) for run, here in zip(RUNS, simulated_figures(), strict=True)}


@pytest.mark.parametrize("name", list(BOUNDS))
def test_worker_hours_and_delays_deviate_as_stated(name: str, pairs: dict[str, tuple[Figures, Figures]]) -> None:
    there, here = pairs[name]
    hours_pct, over_10s, over_60s = BOUNDS[name]

    assert hours_pct[0] < 100 * (here.worker_hours / there.worker_hours - 1) < hours_pct[1]
    assert over_10s[0] < here.over_10s_pct - there.over_10s_pct < over_10s[1]
    assert over_60s[0] < here.over_60s_pct - there.over_60s_pct < over_60s[1]


def test_the_measured_runs_are_read_as_published() -> None:
    static, reactive, operator = (measured_figures(RUNS[place]) for place in (0, 1, -1))

    assert static.worker_hours == pytest.approx(432, rel=1e-3)
    assert 14.4 < reactive.mean_workers < 14.9
    assert 20.6 < operator.mean_workers < 21.1
    assert 99 <= operator.pauses <= 125


@pytest.mark.parametrize("name", [name for name in BOUNDS if name.startswith("HPA")])
def test_a_naive_metric_rescales_as_often_as_measured(name: str, pairs: dict[str, tuple[Figures, Figures]]) -> None:
    there, here = pairs[name]

    assert 0.8 < here.rescales / there.rescales < 1.6


def test_one_stage_restarts_less_than_the_measured_operator(pairs: dict[str, tuple[Figures, Figures]]) -> None:
    there, here = pairs["Flink's operator"]

    assert 5 <= here.pauses < there.pauses / 4


def test_a_simulated_pause_is_as_long_as_measured(pairs: dict[str, tuple[Figures, Figures]]) -> None:
    there, here = pairs["Flink's operator"]
    span_s = 18 * 3600

    measured_s, simulated_s = (one.paused_pct / 100 * span_s / one.pauses for one in (there, here))

    assert simulated_s == pytest.approx(PROFILES["flink-operator"].pause_up_s, rel=0.15)
    assert simulated_s == pytest.approx(measured_s, rel=0.25)


def test_the_table_has_every_run(pairs: dict[str, tuple[Figures, Figures]]) -> None:
    text = table([here for _, here in pairs.values()])

    assert all(f"| {run.name} |" in text for run in RUNS)
