"""The closed loop: the behaviour of a job under a policy, its score, and independence of other jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from adapter.core.samples import Array
from adapter.simulator import closed_loop, fluid
from adapter.simulator.closed_loop import SERIES, Outcome
from adapter.simulator.profiles import PROFILES, STEP_S, TICK_S, Profile
from adapter.simulator.score import LATE_S, scores
from adapter.simulator.world import SimulatedJob, World

pytestmark = pytest.mark.simulation

SMALL = replace(PROFILES["consumer-group-small"], missing_ratio=0.0, blackout_s=0.0)
REACTIVE = replace(PROFILES["flink-reactive"], workers=8, max_workers=12, partitions=36)
POOL = replace(SMALL, name="pool", partitions=0, max_workers=12)
HOUR = round(3600 / STEP_S)


def a_rate(hours: float, low: float = 2000.0, high: float = 5000.0) -> Array:
    """A slow wave with a burst that outruns everybody."""
    at_s = np.arange(round(hours * HOUR)) * STEP_S
    rate = (low + high) / 2 - (high - low) / 2 * np.cos(at_s / 3600 * 2 * np.pi)
    rate[HOUR // 2 : HOUR // 2 + 60] = 3 * high
    return rate


def a_case(
    policy: str, profile: Profile = SMALL, rate: Array | None = None, seed: int = 1, lead_steps: int = 0
) -> SimulatedJob:
    return SimulatedJob(a_rate(1.5) if rate is None else rate, lead_steps, policy, profile, seed)


def sums(outcome: Outcome, lane: int) -> Mapping[str, list[float]]:
    return {name: np.atleast_1d(numbers[lane]).tolist() for name, numbers in outcome.tally.sums.items()}


def test_a_static_job_is_never_rescaled_and_costs_its_workers() -> None:
    outcome = closed_loop.run([a_case("static-peak")], record=True)

    result = scores(outcome.tally)
    assert result["rescales"].tolist() == [0]
    assert result["mean_workers"].tolist() == [10]  # 8 and a fifth more
    assert set(outcome.series["ready_workers"].ravel()) == {10}
    assert result["paused_pct"].tolist() == [0]


def naive(case: SimulatedJob) -> dict[str, float | list[float]]:
    """A job that is never rescaled, step by step and partition by partition, delays by np.interp."""
    world = World([case])
    state = fluid.initial_state(np.ceil(1.2 * world.of_profile("workers")), world.partitions)
    worker_s = records = paused_s = max_delay_s = 0.0
    late_s, late_records = np.zeros(len(LATE_S)), np.zeros(len(LATE_S))
    total, times = world.arrivals.total_records[0], np.arange(len(case.rate_records_per_s) + 1) * STEP_S
    for step, rate in enumerate(case.rate_records_per_s):
        speed = world.speed(step * STEP_S)
        load = fluid.Conditions(
            rate_records_per_s=np.array([rate]), share=world.share, speed_ratio=speed, sink_ratio=np.ones(1)
        )
        before, state = state, fluid.step(world.job_model, state, load, STEP_S)
        worker_s += state.paid_workers[0] * STEP_S
        records += state.processed_records[0] - before.processed_records[0]
        paused_s += state.idle_s[0]
        behind = state.backlog_records[0] / world.share[0]
        end_s = (step + 1) * STEP_S
        ages_s = end_s - np.interp(total[step + 1] - behind, total[: step + 2], times[: step + 2])
        waited = before.backlog_records[0] + world.share[0] * rate * STEP_S
        late_s += (ages_s.max() > LATE_S) * STEP_S
        for row, limit_s in enumerate(LATE_S):
            in_time = world.share[0] * (total[step + 1] - np.interp(end_s - limit_s, times, total))
            late_records[row] += np.maximum(waited - np.maximum(state.backlog_records[0], in_time), 0.0).sum()
        max_delay_s = max(max_delay_s, ages_s.max())
    return {
        "worker_s": worker_s,
        "records": records,
        "paused_s": paused_s,
        "late_s": late_s.tolist(),
        "late_records": late_records.tolist(),
        "max_delay_s": max_delay_s,
        "scored_s": len(case.rate_records_per_s) * STEP_S,
    }


@pytest.mark.parametrize("profile", [pytest.param(SMALL, id="partitions"), pytest.param(POOL, id="pool")])
def test_the_tally_equals_a_naive_computation(profile: Profile) -> None:
    case = a_case("static-peak", profile)

    tally = closed_loop.run([case]).tally

    expected = naive(case)
    assert expected["max_delay_s"] > 60  # the burst is felt
    for name, value in expected.items():
        assert tally.sums[name][0] == pytest.approx(value, rel=1e-9), name


def test_the_series_add_up_to_the_tally() -> None:
    cases = [a_case(policy, REACTIVE) for policy in ("hpa-cpu-70", "keda-30s", "flink-fast")]
    outcome = closed_loop.run(cases, record=True)

    result, series = scores(outcome.tally), outcome.series
    ticks = len(cases[0].rate_records_per_s) * STEP_S / TICK_S
    assert set(series) == set(SERIES)
    assert {values.shape for values in series.values()} == {(ticks, len(cases))}
    changes = np.count_nonzero(np.diff(series["ready_workers"], axis=0), axis=0)
    assert (result["rescales"] >= changes).all()
    assert (result["rescales"] <= changes + 1).all()  # one may come before the first tick
    assert series["paid_workers"].mean(axis=0) == pytest.approx(result["mean_workers"], rel=0.02)
    assert (series["paid_workers"] >= series["ready_workers"]).all()
    assert series["delay_s"].max(axis=0) == pytest.approx(result["max_delay_s"], abs=TICK_S)
    assert ((series["delay_s"] == 0) <= (series["backlog_records"] < 1)).all()
    assert series["rate_records_per_s"][:, 0] == pytest.approx(cases[0].rate_records_per_s[2::3])


def test_series_are_recorded_only_on_request() -> None:
    assert closed_loop.run([a_case("static-peak")]).series == {}


def test_the_lead_in_is_simulated_but_not_scored() -> None:
    rate = a_rate(1.5)
    led, whole = (closed_loop.run([a_case("hpa-cpu-70", rate=rate, lead_steps=n)], record=True) for n in (HOUR, 0))

    assert scores(led.tally)["days"] == pytest.approx(0.5 / 24)
    for name in SERIES:
        assert np.array_equal(led.series[name], whole.series[name], equal_nan=True), name
    assert led.tally.sums["records"] < whole.tally.sums["records"]


def test_jobs_do_not_influence_each_other() -> None:
    """Bit for bit, for any neighbours and any position."""
    faulty, rate = replace(SMALL, faults=True), a_rate(0.75)
    cases = [
        a_case("drain", REACTIVE, rate),
        a_case("hpa-cpu-70", faulty, rate, seed=2),
        a_case("drain", replace(REACTIVE, metric_delay_s=60.0), rate, seed=3),
        a_case("netflix", rate=rate),
        a_case("flink-fast", rate=a_rate(0.75, 500, 9000)),
        a_case("static-peak", POOL, rate),
        a_case("drain:target_utilization_ratio=0.6", faulty, rate, seed=2),
    ]

    together, turned = closed_loop.run(cases), closed_loop.run(cases[::-1])

    for lane, case in enumerate(cases):
        assert sums(together, lane) == sums(turned, len(cases) - 1 - lane), case.policy
    for lane in (0, 1, 4):
        assert sums(together, lane) == sums(closed_loop.run([cases[lane]]), 0), cases[lane].policy


def test_equal_seeds_give_equal_runs_and_other_seeds_others() -> None:
    outcome = closed_loop.run([a_case("hpa-cpu-70", REACTIVE, seed=seed) for seed in (1, 1, 2)])

    assert sums(outcome, 0) == sums(outcome, 1)
    assert sums(outcome, 0) != sums(outcome, 2)


STEPPED = ("consumer-group-small", "flink-reactive", "flink-operator", "netflix")


@pytest.fixture(scope="module")
def stepped() -> Outcome:
    """The default policy of each profile after the input doubled."""
    rate = np.full(2 * HOUR, 3000.0)
    rate[HOUR // 2 :] = 6000.0
    profiles = [replace(PROFILES[name], max_workers=12, partitions=36) for name in STEPPED]
    return closed_loop.run([a_case("drain", profile, rate) for profile in profiles], record=True)


@pytest.mark.parametrize("name", STEPPED)
def test_after_a_step_the_default_policy_catches_up_and_stays(name: str, stepped: Outcome) -> None:
    lane = STEPPED.index(name)
    ready, delay_s = stepped.series["ready_workers"][:, lane], stepped.series["delay_s"][:, lane]

    assert ready[: HOUR // 6].max() < ready[-1]
    assert delay_s[-40:].max() < 10
    assert len(set(ready[-40:])) == 1
    assert delay_s.max() < 600


def test_replayed_records_are_not_counted_again() -> None:
    """However often a job restarts from its last checkpoint."""
    profile = replace(REACTIVE, checkpoint_s=120.0, pause_up_s=5.0, pause_down_s=5.0)
    case = a_case("hpa-cpu-70", profile)

    tally = closed_loop.run([case]).tally

    assert tally.sums["ups"][0] > 3
    assert tally.sums["records"][0] <= case.rate_records_per_s.sum() * STEP_S * (1 + 1e-9)
    assert (tally.sums["late_records"][0] <= tally.sums["records"][0]).all()


def test_a_stuck_worker_and_a_slow_sink_delay_records_for_a_while() -> None:
    rate = np.full(24 * HOUR, 4000.0)
    well, ill = (a_case("static-peak", replace(SMALL, faults=faults), rate) for faults in (False, True))

    over_60s = scores(closed_loop.run([well, ill]).tally)["over_60s_pct"]

    assert over_60s[0] == 0
    assert 1 < over_60s[1] < 15


def steady_profile(name: str) -> Profile:
    """A profile without missing samples, of workers that carry 100 records/s each."""
    steady = {"missing_ratio": 0.0, "blackout_s": 0.0, "worker_capacity_records_per_s": 100.0}
    return replace(PROFILES[name], workers=20, max_workers=200, partitions=0, **steady)


def required_by_profile(policy: str, rates: Sequence[Array]) -> dict[str, Array]:
    """The sizes that a policy requires in each profile: a row for each tick, a column for each rate."""
    cases = [a_case(policy, steady_profile(name), rate) for name in STEPPED for rate in rates]
    required = closed_loop.run(cases, record=True).series["required_workers"]
    return dict(zip(STEPPED, np.split(required, len(STEPPED), axis=1), strict=True))


@cache
def after_a_step_and_bursts() -> dict[str, Array]:
    """What `netflix` requires for a step, and for bursts."""
    at_s = np.arange(3 * HOUR) * STEP_S
    step = np.where(at_s < 5430, 600.0, 1500.0)
    bursts = np.where((at_s % 1800 < 630) & (at_s > 3600) & (at_s < 7200), 1500.0, 600.0)
    return required_by_profile("netflix", [step, bursts])


@pytest.mark.parametrize("name", STEPPED)
def test_netflix_does_not_extrapolate_a_step_or_a_burst(name: str) -> None:
    """15 workers carry the step, and 25 at exactly 60 % utilization (S4-27)."""
    after_step, after_bursts = np.nanmax(after_a_step_and_bursts()[name][240:], axis=0)
    assert after_step <= 25
    assert after_bursts <= 25


RAMP = 600 + 3 * np.clip(np.arange(HOUR) * STEP_S - 1800, 0, 600)


@cache
def after_steps_and_a_ramp() -> dict[str, Array]:
    """What `drain` requires for steps at different times between two ticks, and for RAMP in the last column."""
    at_s = np.arange(HOUR) * STEP_S
    steps = [np.where(at_s < 1800 + late_s, 600.0, 1500.0) for late_s in range(0, 15, 5)]
    return required_by_profile("drain", [*steps, RAMP])


@pytest.mark.parametrize("name", STEPPED)
def test_a_step_takes_the_same_size_whenever_it_comes_between_two_ticks(name: str) -> None:
    """80 % utilization takes 19 workers, and the backlog of the rescale a few more."""
    assert np.nanmax(after_steps_and_a_ramp()[name][:, :-1]) <= 24


@pytest.mark.parametrize("name", STEPPED)
def test_a_ramp_takes_a_larger_size_than_its_present_input(name: str) -> None:
    """From 600/s to 2400/s in ten minutes; the first scale-up comes at about 900/s."""
    first = after_steps_and_a_ramp()[name][:, -1]
    tick = int(np.argmax(first > first[100]))
    assert first[tick] > RAMP[round(tick * TICK_S / STEP_S)] / 80 + 1


@pytest.mark.parametrize("name", ["consumer-group-small", "flink-operator"])
def test_netflix_scales_up_on_a_ramp_before_there_is_lag(name: str) -> None:
    """By lag alone it would be at 1.2 times what the workers carry."""
    profile = steady_profile(name)
    rate = 600 + 0.5 * np.maximum(np.arange(HOUR) * STEP_S - 1200, 0)
    outcome = closed_loop.run([a_case("netflix:safe_utilization_ratio=1.0", profile, rate)], record=True)
    required, ready = (outcome.series[series][:, 0] for series in ("required_workers", "ready_workers"))
    first = int(np.argmax(required > ready[0] + 1))
    assert rate[round(first * TICK_S / STEP_S)] / (100 * ready[first]) < 1
    assert outcome.series["delay_s"][: first + 1, 0].max() == 0


@pytest.mark.parametrize("name", ["consumer-group-small", "flink-operator"])
def test_netflix_does_not_forecast_noise(name: str) -> None:
    """600/s with noise of 5 % or 10 % that changes once a minute; at 60 % utilization 10 workers carry it."""
    seeds = range(1, 5)
    noise = [np.random.default_rng(seed).standard_normal(90).repeat(60 // round(STEP_S)) for seed in seeds]
    rates = [600 * (1 + ratio * each) for ratio in (0.05, 0.1) for each in noise]
    outcome = closed_loop.run([a_case("netflix", steady_profile(name), rate) for rate in rates], record=True)
    most = np.nanmax(outcome.series["required_workers"], axis=0)
    assert most[: len(seeds)].max() <= 12
    assert most[len(seeds) :].max() <= 15
