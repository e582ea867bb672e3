"""Recommendations for a recorded history: each policy decides as if alone, exactly as the live pipeline."""

import re
from dataclasses import replace

import numpy as np
import pytest
from builders import history
from recorded_job import BEGIN_S, JOB, PastJob, busy_day, wave

from adapter.backtest.calibration import calibrate
from adapter.backtest.open_loop import recommend
from adapter.backtest.report_content import Track
from adapter.backtest.simulation import PolicyRun, headroom_advice, late_ratio, overload_ratio, simulate, tick_ends_s
from adapter.backtest.timelines import timelines
from adapter.backtest.trace import Window
from adapter.core.messages import sentence
from adapter.core.periods import Period
from adapter.core.rule_book import RuleBook
from adapter.core.rules import POLICIES, Rules
from adapter.core.samples import EVERY, Dispute, Samples

pytestmark = pytest.mark.simulation

UNTIL_S = 1200
RULES = {JOB: Rules(policy="varga", max_workers=40)}


@pytest.fixture(scope="module")
def recorded() -> list[Samples]:
    """An HPA is deleted after 5 minutes, an assumption is made, and two sources contradict each other."""
    ticks = busy_day(sizes={0: 9, 450: 14, 900: 10}).samples(UNTIL_S)
    return [
        replace(
            tick,
            by_workload={**tick.by_workload, "max_workers": np.array([12.0 if tick.at_s < BEGIN_S + 300 else np.nan])},
            faults={JOB: "2 partitions have no committed offset, no backlog assumed"},
            assumed=frozenset({JOB}),
            disputes={JOB: Dispute(records=1e9, sentence="two sources contradict each other")},
        )
        for tick in ticks
    ]


@pytest.fixture(scope="module")
def recommendations(recorded: list[Samples]) -> dict[tuple[str, str], Track]:
    return recommend(recorded, RULES, POLICIES)


@pytest.mark.parametrize("policy", POLICIES)
def test_each_policy_decides_as_alone_and_as_in_the_live_pipeline(
    policy: str, recorded: list[Samples], recommendations: dict[tuple[str, str], Track]
) -> None:
    alone = history(recorded, RuleBook(by_workload={JOB: Rules(policy=policy, max_workers=40)}))
    found = recommendations[JOB, policy]

    required = [np.nan if d.required_workers is None else d.required_workers for d in alone]
    assert np.array_equal(found.workers, required, equal_nan=True)
    sentences = {decision.at_s: sentence(decision) for decision in alone}
    assert all(change.why == sentences[change.at_s] for change in found.changes)


def test_changes_are_the_ticks_with_another_target(
    recommendations: dict[tuple[str, str], Track],
) -> None:
    for found in recommendations.values():
        known = np.nan_to_num(found.workers, nan=-1)
        moments = found.at_s[np.flatnonzero(np.diff(known, prepend=-1))]
        assert [change.at_s for change in found.changes] == moments.tolist()
        assert all(change.after != change.before for change in found.changes)


def test_only_the_policy_of_the_workloads_rules_is_replaced(
    recommendations: dict[tuple[str, str], Track],
) -> None:
    assert all(np.nanmax(found.workers) <= 40 for found in recommendations.values())


def test_the_maximum_of_the_hpa_counts_where_the_rules_have_none() -> None:
    growing = PastJob(load=lambda at_s: 12_000.0, sizes={0: 110}, workload=JOB).samples(UNTIL_S)
    for seen in growing:
        seen.by_workload.update(max_workers=np.array([600.0]), partitions=np.array([720.0]))
    found = recommend(growing, {JOB: Rules()}, ("drain",))[JOB, "drain"]
    assert np.nanmax(found.workers) > 100


def test_another_workload_changes_no_decision() -> None:
    ours, theirs = busy_day(), PastJob(load=wave(300, 200, 900), sizes={0: 4}, workload="shop/carts")
    both = [
        Samples(
            at_s=one.at_s,
            workloads=(*other.workloads, *one.workloads),
            stages=(*other.stages, *one.stages),
            by_stage={name: np.concatenate([other.by_stage[name], one.by_stage[name]]) for name in one.by_stage},
            by_workload={n: np.concatenate([other.by_workload[n], one.by_workload[n]]) for n in one.by_workload},
            faults={EVERY: "slow"},
        )
        for one, other in zip(ours.samples(600), theirs.samples(600), strict=True)
    ]
    rules = RULES | {"shop/carts": Rules()}
    together, alone = recommend(both, rules, ("drain", "dataflow")), recommend(ours.samples(600), RULES, ("drain",))

    assert set(together) == {(name, policy) for name in ("shop/carts", JOB) for policy in ("drain", "dataflow")}
    same = together[JOB, "drain"].workers, alone[JOB, "drain"].workers
    assert np.array_equal(*same, equal_nan=True)


def test_a_calibrated_job_is_run_by_policies_and_baselines() -> None:
    (timeline,) = timelines(busy_day().samples(3600), 15.0).values()
    runs = simulate([calibrate(timeline, Rules(max_workers=40))], ("drain", "static-peak"), BEGIN_S)[0]

    assert list(runs) == ["drain", "static-peak"]
    assert runs["drain"].at_s[[0, -1]].tolist() == [BEGIN_S + 15, BEGIN_S + 3615]
    assert runs["drain"].rate_records_per_s.mean() == pytest.approx(900, rel=0.05)
    assert runs["drain"].capacity_records_per_s == pytest.approx(runs["drain"].workers * 100, rel=0.5)
    assert runs["static-peak"].rescales == 0
    assert runs["static-peak"].pause_s == 0


def test_jobs_of_any_size_are_simulated_together_as_alone() -> None:
    (timeline,) = timelines(busy_day().samples(3600), 15.0).values()
    jobs = [calibrate(timeline, Rules(max_workers=most)) for most in (40, 300, 40)]
    policies = tuple(f"drain:min_workers={least}" for least in range(10, 35))  # more lanes than one run has
    shares: list[float] = []
    together = simulate(jobs, policies, BEGIN_S, progress=shares.append)

    assert [list(runs) for runs in together] == [list(policies)] * 3
    (small,), (large,) = (simulate([job], policies[:1], BEGIN_S) for job in jobs[:2])
    for alone, runs in zip((small, large, small), together, strict=True):
        assert np.array_equal(runs[policies[0]].workers, alone[policies[0]].workers)
        assert runs[policies[0]].worker_hours == alone[policies[0]].worker_hours
    hours = [run.worker_hours for run in together[0].values()]
    assert hours == sorted(set(hours))
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_rules_with_times_hold_at_the_times_of_the_history() -> None:
    (timeline,) = timelines(busy_day().samples(3600), 15.0).values()

    ended_s, thursday = BEGIN_S - 86_400.0, Period(days=(3,), begin_min=0, end_min=120)
    rules = Rules(max_workers=40)
    variants = [
        rules,
        replace(rules, pause_up_until_s=ended_s, pause_down_until_s=ended_s),
        replace(rules, excluded=(thursday,)),
        replace(rules, pause_up_until_s=np.inf, pause_down_until_s=np.inf),
    ]
    runs = simulate([calibrate(timeline, each) for each in variants], ("drain",), BEGIN_S)
    free, ended, excluded, paused = (run["drain"].workers for run in runs)
    assert np.array_equal(ended, free)
    assert len(set(free)) > 1
    assert len(set(excluded)) == len(set(paused)) == 1


@pytest.mark.parametrize(
    ("window", "ends_s"),
    [
        pytest.param(Window(index=0, begin=0, end=7, lead_steps=0), [15, 30], id="a load that ends within a tick"),
        pytest.param(Window(index=1, begin=4, end=13, lead_steps=3), [50, 65], id="a window that begins within a tick"),
        pytest.param(Window(index=1, begin=4, end=13, lead_steps=2), [35, 50, 65], id="a lead-in that ends in a tick"),
    ],
)
def test_the_ticks_of_a_window_have_the_times_of_the_load(window: Window, ends_s: list[float]) -> None:
    assert tick_ends_s([window]).tolist() == ends_s


def test_uneven_partitions_are_no_fault_of_the_rescales() -> None:
    samples = PastJob(load=wave(850, 30, 3600), sizes={0: 12}).samples(3600)
    for seen in samples:
        seen.by_workload["partitions"][:] = 12
    (timeline,) = timelines(samples, 15.0).values()
    found = simulate([calibrate(timeline, Rules(max_workers=10))], ("drain",), BEGIN_S)[0]["drain"]

    assert "exceeds the capacity" in headroom_advice(found, 60.0)


def run(rate: float, carried: float, waits_s: float) -> PolicyRun:
    many = np.ones(400)
    return PolicyRun(
        policy="drain",
        at_s=np.arange(400) * 15.0,
        rate_records_per_s=many * rate,
        workers=many,
        capacity_records_per_s=many * carried,
        backlog_time_s=many * waits_s,
        worker_hours=1.7,
        rescales=3,
        pause_s=90.0,
    )


@pytest.mark.parametrize(
    ("rate", "carried", "waits_s", "advice"),
    [
        pytest.param(900, 1000, 10, "below 60 s for 100.00% of the simulated time.$", id="it keeps the target"),
        pytest.param(1200, 1000, 10, "for 100.00% of the simulated time.$", id="above capacity, but not late"),
        pytest.param(900, 1000, 90, "raise rescale_worth_s. If a longer backlog time is", id="late from pauses alone"),
        pytest.param(1180, 1000, 90, "by 18%: raise min_workers, or with drain raise min_spare_workers", id="too few"),
    ],
)
def test_the_report_advises_headroom_only_if_the_input_exceeds_the_capacity(
    rate: float, carried: float, waits_s: float, advice: str
) -> None:
    assert re.search(advice, headroom_advice(run(rate, carried, waits_s), 60.0))


def test_lateness_is_a_share_of_the_known_time() -> None:
    assert late_ratio(np.array([10.0, 70.0, np.nan, 61.0]), 60.0) == pytest.approx(2 / 3)
    assert np.isnan(late_ratio(np.array([np.nan]), 60.0))
    assert overload_ratio(run(500, 1000, 0)) == pytest.approx(0.5)
