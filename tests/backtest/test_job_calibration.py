"""Calibration recovers the parameters of a job from its history, and reports those that the history lacks."""

from dataclasses import replace

import numpy as np
import pytest
from builders import assemble
from recorded_job import BEGIN_S, JOB, PastJob, busy_day, wave

from adapter.backtest.calibration import CalibratedJob, Estimate, calibrate
from adapter.backtest.history import HistoryError
from adapter.backtest.report_content import Section
from adapter.backtest.rescales import rescales, worker_changes
from adapter.backtest.sections import history_section, simulate_histories
from adapter.backtest.simulation import simulate
from adapter.backtest.timelines import Timeline, timelines
from adapter.core.rules import Rules
from adapter.core.samples import Samples

HOURS_3 = 3 * 3600
RULES = Rules(rescale_pause_s=77.0, worker_start_s=88.0, metric_delay_s=15.0, max_workers=50)


def timeline_of(job: PastJob, until_s: int = HOURS_3, without: tuple[str, ...] = ()) -> Timeline:
    (found,) = timelines(job.samples(until_s, without), 15.0).values()
    return found


def section_of(found: Timeline, policies: tuple[str, ...]) -> Section:
    simulations = simulate_histories({JOB: found}, {JOB: Rules()}, policies)
    return history_section(found, (), Rules(), simulations[JOB])


def estimates(found: CalibratedJob) -> dict[str, Estimate]:
    return {estimate.name: estimate for estimate in found.estimates}


def two_stages(lost: frozenset[tuple[str, int]], signals: frozenset[str]) -> list[Samples]:
    """Half an hour of a job whose stages read far apart offsets. lost: (stage, tick) without these signals."""
    halves = {stage: PastJob(load=lambda at_s: 300.0, sizes={0: 5}) for stage in ("a", "b")}
    offset = {"a": 0.0, "b": 1e9}
    ticks = zip(*(job.rows(1800) for job in halves.values()), strict=True)
    return [
        assemble(
            float(seen[0][0]),
            [
                (JOB, stage, signal, value + offset[stage] * (signal in COUNTERS))
                for stage, (_, result) in zip(halves, seen, strict=True)
                for signal, value in result.items()
                if (stage, tick) not in lost or signal not in signals
            ],
        )
        for tick, seen in enumerate(ticks)
    ]


COUNTERS = frozenset({"appended_records", "processed_records"})
WORKERS = ("spec_workers", "workers", "ready_workers")
ALL = COUNTERS | {"backlog_records", "utilization_ratio"}


@pytest.fixture(scope="module")
def whole_day() -> CalibratedJob:
    return calibrate(timeline_of(busy_day()), RULES)


def test_a_timeline_has_input_backlog_and_workers() -> None:
    found = timeline_of(PastJob(load=lambda at_s: 500.0, sizes={0: 10}), 600)

    assert found.at_s[0] == BEGIN_S
    assert found.input_rate_records_per_s[1:] == pytest.approx(500)
    assert found.throughput_records_per_s[2:] == pytest.approx(500)
    assert found.workers.tolist() == [10] * 41
    assert np.isnan(found.input_rate_records_per_s[0])


def test_backlog_time_is_the_age_of_the_oldest_record() -> None:
    behind = timeline_of(PastJob(load=lambda at_s: 400.0, sizes={0: 2}), 600)  # 200/s of 400/s are processed

    assert behind.backlog_time_s[-1] == pytest.approx(300, rel=0.06)


def test_capacity_is_the_throughput_while_records_wait(whole_day: CalibratedJob) -> None:
    capacity = estimates(whole_day)["worker capacity"]

    assert capacity.value == pytest.approx(100, rel=0.02)
    assert capacity.observations > 8


def test_capacity_without_backlog_follows_from_utilization() -> None:
    calm = timeline_of(PastJob(load=lambda at_s: 600.0, sizes={0: 10}), 1800)

    assert estimates(calibrate(calm, RULES))["worker capacity"].value == pytest.approx(100, rel=0.02)


def test_without_utilization_or_backlog_the_configured_capacity_counts() -> None:
    calm = timeline_of(PastJob(load=lambda at_s: 600.0, sizes={0: 10}), 1800, without=("utilization_ratio",))
    result = estimates(calibrate(calm, Rules(worker_capacity_records_per_s=130.0)))["worker capacity"]

    assert (result.value, result.observations) == (130.0, 0)
    assert "worker_capacity_records_per_s" in result.source


def test_without_any_of_them_capacity_is_a_lower_bound() -> None:
    calm = timeline_of(PastJob(load=lambda at_s: 600.0, sizes={0: 10}), 1800, without=("utilization_ratio",))
    result = estimates(calibrate(calm, Rules()))["worker capacity"]
    (note,) = section_of(calm, ("static-peak",)).notes

    assert result.value == pytest.approx(60, rel=0.01)
    assert "lower bound" in result.source
    assert note.startswith("A worker carries at least 60/s. ")
    assert "may need fewer workers" in note


@pytest.mark.parametrize("pause_s", [0, 30, 60, 120])
@pytest.mark.parametrize("shows_while_down", [True, False])
def test_the_missing_throughput_gives_the_length_of_a_pause(pause_s: int, shows_while_down: bool) -> None:
    found = calibrate(timeline_of(busy_day(pause_s=pause_s, shows_while_down=shows_while_down)), RULES)

    for name in ("pause of a scale-up", "pause of a scale-down"):
        assert estimates(found)[name].value == pytest.approx(pause_s, abs=3)
        assert estimates(found)[name].observations == 2


def test_a_pause_shorter_than_a_tick_shows_in_part() -> None:
    short = estimates(calibrate(timeline_of(busy_day(pause_s=10)), RULES))["pause of a scale-up"]

    assert 4 <= short.value <= 11


def test_worker_start_is_the_time_from_desired_to_ready(whole_day: CalibratedJob) -> None:
    assert estimates(whole_day)["worker start"].value == pytest.approx(45, abs=15)
    assert estimates(whole_day)["worker start"].observations == 2


def test_a_warm_up_is_seen_while_records_wait() -> None:
    slow = calibrate(timeline_of(busy_day(pause_s=60, warm_up_s=180, warm_ratio=0.4)), RULES)

    assert estimates(slow)["warm-up"].value == pytest.approx(165, abs=30)
    assert estimates(slow)["initial speed"].value == pytest.approx(0.45, abs=0.1)


@pytest.mark.parametrize("start_s", [45, 50, 55])
def test_a_job_that_resumes_within_a_tick_has_no_warm_up(start_s: int) -> None:
    profile = calibrate(timeline_of(busy_day(start_s=start_s)), RULES).profile
    assert (profile.warm_up_s, profile.warm_up_ratio) == (0, 1)


@pytest.mark.parametrize("exponent", [0.8, 0.9, 1.0])
def test_the_simulated_workers_carry_what_the_recorded_ones_did(exponent: float) -> None:
    behind = timeline_of(PastJob(load=lambda at_s: 5000.0, sizes={0: 40}, exponent=exponent), 3600)
    profile = calibrate(behind, replace(RULES, scaling_exponent=exponent)).profile

    assert profile.worker_capacity_records_per_s == pytest.approx(100)
    assert profile.workers == pytest.approx(50 ** (1 / exponent) / 0.75, rel=0.02)


def test_a_job_whose_workers_scale_below_linear_is_simulated_on_time() -> None:
    calm = timeline_of(PastJob(load=lambda at_s: 2000.0, sizes={0: 61}, exponent=0.8), 3600)
    rules = replace(RULES, scaling_exponent=0.8, max_workers=200)
    run = simulate([calibrate(calm, rules)], ["drain"], BEGIN_S)[0]["drain"]

    assert run.workers[0] >= 42  # 42 ** 0.8 * 100 records/s are 2 000/s
    assert np.nanmax(run.backlog_time_s) < 60


def test_more_min_replicas_than_partitions_are_simulated() -> None:
    few = timeline_of(PastJob(load=lambda at_s: 500.0, sizes={0: 10}), 1800)
    profile = calibrate(few, replace(RULES, min_workers=70, max_workers=100)).profile
    assert (profile.partitions, profile.min_workers, profile.max_workers) == (60, 70, 70)


def test_a_short_history_is_refused() -> None:
    with pytest.raises(HistoryError, match="expected at least 300 s of history, got 255 s"):
        calibrate(timeline_of(PastJob(load=lambda at_s: 500.0, sizes={0: 10}), 240), RULES)


def test_values_missing_in_the_history_come_from_the_configuration() -> None:
    still = estimates(calibrate(timeline_of(PastJob(load=lambda at_s: 600.0, sizes={0: 10}), 1800), RULES))

    names = ("pause of a scale-up", "worker start", "metric delay")
    assert [still[name].value for name in names] == [77, 88, 15]
    assert all(
        still[name].observations == 0 for name in ("pause of a scale-down", "worker start", "metric delay", "warm-up")
    )
    assert "rescale_pause_s" in still["pause of a scale-up"].source


def test_the_job_is_simulated_in_its_own_unit(whole_day: CalibratedJob) -> None:
    assert whole_day.profile.worker_capacity_records_per_s == pytest.approx(100, rel=0.02)
    assert whole_day.rate_records_per_s.mean() == pytest.approx(900, rel=0.03)
    assert len(whole_day.rate_records_per_s) == (HOURS_3 // 15 + 1) * 3
    assert whole_day.profile.max_workers == 50
    assert whole_day.profile.partitions == 60


def test_a_short_gap_is_bridged_and_a_history_of_gaps_is_refused() -> None:
    samples = PastJob(load=wave(600, 100, 1800), sizes={0: 10}).samples(3600)
    (holed,) = timelines([seen for seen in samples if seen.at_s % 300], 15.0).values()
    assert np.isfinite(calibrate(holed, RULES).rate_records_per_s).all()

    silent = timeline_of(
        PastJob(load=wave(600, 100, 1800), sizes={0: 10}), 3600, without=("appended_records", "backlog_records")
    )
    with pytest.raises(HistoryError, match="input is unknown for 100% of the time"):
        calibrate(silent, RULES)


def test_a_long_outage_is_reported_and_interpolated() -> None:
    samples = PastJob(load=wave(600, 100, 1800), sizes={0: 10}).samples(HOURS_3)
    holes = [seen for seen in samples if seen.at_s - BEGIN_S in (*range(1800, 2820), *range(7200, 8220))]
    for seen in holes:
        for signal in ("appended_records", "backlog_records"):
            seen.by_stage[signal][:] = np.nan
    (holed,) = timelines(samples, 15.0).values()
    result = estimates(calibrate(holed, RULES))["input not recorded"]

    assert result.observations == 2
    assert result.value == pytest.approx(34 / 60, abs=0.02)
    assert "interpolated linearly" in result.source


def test_without_an_outage_none_is_reported(whole_day: CalibratedJob) -> None:
    assert "input not recorded" not in estimates(whole_day)


THROUGHPUT = ("processed_records", "backlog_records")
RESTLESS = PastJob(load=lambda at_s: 500.0, sizes={at_s: 10 + at_s // 60 % 2 for at_s in range(0, HOURS_3, 60)})


@pytest.mark.parametrize(
    ("job", "without", "cause"),
    [
        (busy_day(), WORKERS, "workers are unknown; read ready_workers with a `match` that fits, or set w"),
        (busy_day(), THROUGHPUT, "throughput is unknown; read processed_records with a `match` that fits, or set w"),
        (busy_day(), (*WORKERS, *THROUGHPUT), "throughput and workers are unknown; read processed_records and ready"),
        (RESTLESS, (), r"after a rescale, and the history has [0-7]; choose a longer period, or set w"),
        (PastJob(load=lambda at_s: 0.0, sizes={0: 10}), (), "processes no records; choose a period in which it runs"),
    ],
)
def test_the_cause_of_an_unknown_capacity_is_named(job: PastJob, without: tuple[str, ...], cause: str) -> None:
    with pytest.raises(HistoryError, match=f"the capacity of a worker is unknown because .*{cause}"):
        calibrate(timeline_of(job, without=without), replace(RULES, worker_capacity_records_per_s=None))


def test_counters_that_move_once_a_minute_are_read_at_their_own_pace() -> None:
    minutes = [(at_s, seen if at_s % 60 == 0 else None) for at_s, seen in busy_day(pause_s=120).rows(HOURS_3)]
    held, samples = {}, busy_day(pause_s=120).samples(HOURS_3)
    for place, (_, seen) in enumerate(minutes):
        held = seen or held
        for signal in ("appended_records", "processed_records", "backlog_records"):
            samples[place].by_stage[signal][0] = held[signal]  # type: ignore[index]  # a dict beneath
    (slow,) = timelines(samples, 15.0).values()

    assert slow.pace_s == 60
    assert calibrate(slow, RULES).profile.pause_up_s == pytest.approx(120, abs=35)


def test_a_restarted_counter_continues_and_a_reset_one_is_unknown() -> None:
    samples = PastJob(load=lambda at_s: 500.0, sizes={0: 10}).samples(1800)
    for seen in samples[60:]:
        seen.by_stage["processed_records"][:] -= 500.0 * 15 * 60 - 5
    for seen in samples[100:]:
        seen.by_stage["appended_records"][:] -= 10_000
    (found,) = timelines(samples, 15.0).values()

    assert found.throughput_records_per_s[61:] == pytest.approx(500)
    assert found.throughput_records_per_s[60] < 1
    assert np.isfinite(found.input_rate_records_per_s[100])  # by the backlog instead


def test_changes_in_quick_succession_are_merged() -> None:
    quick = timeline_of(busy_day(sizes={0: 10, 3000: 14, 3060: 16, 6000: 12}))

    assert [rescale.up for rescale in rescales(quick, 100.0)] == [True, False]


def test_a_change_behind_an_unknown_number_of_workers_is_a_change() -> None:
    assert worker_changes(np.array([np.nan, 3, 3, np.nan, 5, 5, np.nan, 5, np.nan])).tolist() == [4]


def timeline_without_changes(job: PastJob) -> Timeline:
    """The workers are unknown in each tick in which they change."""
    samples = job.samples(HOURS_3)
    for place in worker_changes(timeline_of(job).ready_workers):
        for signal in WORKERS:
            samples[place].by_workload[signal][:] = np.nan
    (found,) = timelines(samples, 15.0).values()
    return found


def test_a_rescale_behind_a_missing_sample_is_measured_as_any_other(whole_day: CalibratedJob) -> None:
    holed = timeline_without_changes(busy_day())

    assert [rescale.up for rescale in rescales(holed, 100.0)] == [True, False, True, False]
    found = estimates(calibrate(holed, RULES))
    for name, own in estimates(whole_day).items():
        assert found[name].value == pytest.approx(own.value, abs=15 if own.unit == "s" else 0.02 * own.value)
    assert found["worker start"].observations == 2


def test_the_warm_up_behind_a_missing_sample_is_no_capacity() -> None:
    job = busy_day(sizes={0: 12, 1800: 18, 2700: 12, 3600: 18}, pause_s=60, warm_up_s=600, warm_ratio=0.2)
    whole, holed = (calibrate(each, RULES) for each in (timeline_of(job), timeline_without_changes(job)))

    assert estimates(holed)["worker capacity"].value == estimates(whole)["worker capacity"].value


def test_a_rescale_in_an_outage_is_a_change_of_unknown_length() -> None:
    samples = [seen for seen in busy_day().samples(HOURS_3) if not 1800 < seen.at_s - BEGIN_S < 3000]
    kept = {seen.at_s: seen for seen in samples}
    ticks = [kept.get(at_s, Samples(at_s=at_s)) for at_s in BEGIN_S + np.arange(0.0, HOURS_3, 15)]
    (holed,) = timelines(ticks, 15.0).values()
    hidden, *others = rescales(holed, 100.0)

    assert (hidden.up, hidden.at_s) == (True, BEGIN_S + 3000)
    assert np.isnan([hidden.start_s, hidden.pause_s, hidden.first_ratio, hidden.warm_up_s]).all()
    assert [rescale.up for rescale in others] == [False, True, False]


@pytest.mark.parametrize(
    ("lost", "signals"),
    [
        pytest.param({("a", 50)}, ALL, id="the small one"),
        pytest.param({("b", 50)}, ALL, id="the large one"),
        pytest.param({("b", 50)}, {"backlog_records"}, id="the large one's backlog alone"),
        pytest.param({("a", 50)}, COUNTERS, id="the small one's counters alone"),
        pytest.param({("a", 40), ("b", 50), ("a", 60), ("b", 60)}, ALL, id="now one, now the other, now both"),
        pytest.param({("b", 0), ("a", 120)}, ALL, id="at the edges"),
    ],
)
def test_a_missing_sample_of_one_stage_changes_nothing(lost: set[tuple[str, int]], signals: set[str]) -> None:
    (found,) = timelines(two_stages(frozenset(lost), frozenset(signals)), 15.0).values()

    known = np.isfinite(found.input_rate_records_per_s)
    assert np.flatnonzero(~known).tolist() == [0]
    assert found.input_rate_records_per_s[3:-1] == pytest.approx(600)
    assert found.throughput_records_per_s[3:-1] == pytest.approx(600)
    assert calibrate(found, RULES).profile.workers == calibrate(timeline_of_both(), RULES).profile.workers


def timeline_of_both() -> Timeline:
    (whole,) = timelines(two_stages(frozenset(), ALL), 15.0).values()
    return whole


def test_a_later_stage_adds_its_rate_and_not_its_total() -> None:
    late = frozenset(("b", tick) for tick in range(60))
    (found,) = timelines(two_stages(late, ALL), 15.0).values()

    assert found.input_rate_records_per_s[5:60] == pytest.approx(300)
    assert found.input_rate_records_per_s[61:] == pytest.approx(600)


def test_while_one_stage_is_missing_for_long_the_input_is_unknown() -> None:
    hole = frozenset(("b", tick) for tick in range(30, 100))
    (found,) = timelines(two_stages(hole, ALL), 15.0).values()

    assert np.isnan(found.input_rate_records_per_s[30:100]).all()
    assert found.input_rate_records_per_s[101:] == pytest.approx(600)


def test_the_same_stages_count_at_every_tick() -> None:
    samples = two_stages(frozenset(("b", tick) for tick in range(121)), frozenset({"backlog_records"}))
    del samples[50].by_stage["backlog_records"]  # type: ignore[attr-defined]  # a dict beneath
    (found,) = timelines(samples, 15.0).values()

    assert found.input_rate_records_per_s[1:] == pytest.approx(300)


def test_the_simulated_job_stays_within_the_bounds_of_its_hpa() -> None:
    samples = PastJob(load=wave(700, 650, 2400), sizes={0: 10}).samples(3600)
    for seen in samples:
        seen.by_workload.update(min_workers=np.array([6.0]), max_workers=np.array([10.0]))
    (found,) = timelines(samples, 15.0).values()

    job = replace(calibrate(found, Rules()), rate_records_per_s=np.repeat([100.0, 900.0], 360))
    policies = ("drain", "keda-30s", "ds2", "flink-default", "dataflow-docs")
    for run in simulate([job], policies, BEGIN_S)[0].values():
        assert run.workers.min() >= 6
        assert run.workers.max() <= 10


@pytest.mark.parametrize(
    ("own", "of_hpa", "size", "most"),
    [(None, 600.0, 10, 600), (300, 600.0, 10, 300), (None, np.nan, 10, 100), (None, np.nan, 500, 500)],
)
def test_the_maximum_is_that_of_the_rules_and_the_hpa_as_far_as_known(
    own: int | None, of_hpa: float, size: int, most: int
) -> None:
    samples = PastJob(load=lambda at_s: 700.0, sizes={0: size, 900: 10}).samples(1800)
    for seen in samples:
        seen.by_workload.update(max_workers=np.array([of_hpa]), partitions=np.array([720.0]))
    (found,) = timelines(samples, 15.0).values()
    assert calibrate(found, Rules(max_workers=own)).profile.max_workers == most


def test_a_policy_with_a_smaller_minimum_stays_within_the_bounds_of_the_hpa() -> None:
    samples = PastJob(load=wave(700, 650, 2400), sizes={0: 10}).samples(3600)
    for seen in samples:
        seen.by_workload.update(min_workers=np.array([6.0]))
    (found,) = timelines(samples, 15.0).values()
    policy = "varga:min_workers=1"

    assert simulate([calibrate(found, Rules())], (policy,), BEGIN_S)[0][policy].workers.min() >= 6


@pytest.mark.parametrize("tick_s", [2.0, 15.0, 17.0])
def test_the_simulated_input_has_the_records_and_the_length_of_the_history(tick_s: float) -> None:
    found = timeline_of(PastJob(load=wave(700, 650, 600), sizes={0: 20}), 3600)
    found = replace(found, at_s=found.at_s[0] + tick_s * np.arange(len(found.at_s)), step_s=tick_s)

    simulated = calibrate(found, Rules()).rate_records_per_s

    assert len(simulated) * 5 == pytest.approx(len(found.at_s) * tick_s, abs=5)
    assert simulated.mean() == pytest.approx(np.nanmean(found.input_rate_records_per_s), rel=0.01)


def test_a_backlog_that_no_source_reports_is_not_a_missing_sample() -> None:
    found = timeline_of(PastJob(load=wave(700, 50, 600), sizes={0: 10}), 600, without=("backlog_records",))
    assert calibrate(found, Rules()).profile.missing_ratio == 0


def test_a_job_without_input_has_a_rescale_of_unknown_length() -> None:
    (found,) = rescales(timeline_of(PastJob(load=lambda at_s: 0.0, sizes={0: 10, 1800: 12}), 3600))
    assert np.isnan(found.pause_s)


@pytest.mark.parametrize(
    ("rules", "fault"),
    [
        pytest.param(
            Rules(rate_window_s=20.0), "expected rate_window_s >= 30, got 20", id="a rate window of two ticks"
        ),
        pytest.param(Rules(stale_after_s=10.0), "expected stale_after_s >= 15, got 10", id="an age of one tick"),
    ],
)
def test_rules_of_a_short_tick_are_not_simulated(rules: Rules, fault: str) -> None:
    found = timeline_of(PastJob(load=wave(300, 50, 600), sizes={0: 5}), 3600)
    simulation = simulate_histories({JOB: found}, {JOB: rules}, ("drain",))[JOB]
    assert simulation.runs == {}
    fix = "change it in a copy of the configuration"
    assert simulation.note == f"Not simulated: {JOB}: the simulation decides every 15 s: {fault}; {fix}."


def test_the_recorded_run_has_the_worker_hours_of_all_paid_workers() -> None:
    found = timeline_of(PastJob(load=wave(300, 50, 600), sizes={0: 5, 1800: 10}, start_s=600), 3600)
    actual, _ = section_of(found, ("varga",)).scores
    assert actual.worker_hours == pytest.approx(7.5, rel=0.01)


def test_unknown_workers_are_no_worker_hours() -> None:
    known = PastJob(load=wave(450, 50, 600), sizes={0: 6}).samples(HOURS_3)
    before = [assemble(float(BEGIN_S - ago_s), []) for ago_s in range(1800, 0, -15)]
    (found,) = timelines([*before, *known], 15.0).values()
    section = section_of(found, ("static-peak",))
    actual, simulated = section.scores

    assert actual.worker_hours == pytest.approx(18.0, rel=0.01)
    assert actual.known_ratio == pytest.approx(6 / 7, rel=0.01)
    assert simulated.known_ratio == 1.0
    begin, workers, rate = section.notes
    assert begin == "The history begins at 2026-01-01 00:00 UTC, 0.5 h after --from."
    assert workers.startswith("Workers are unknown for 14.3% of the time. Actual worker-hours")
    assert rate == "Input is unknown for 14.4% of the time. The simulation interpolates it."


def test_a_missing_sample_of_the_workers_is_bridged_in_the_worker_hours() -> None:
    samples = PastJob(load=wave(450, 50, 600), sizes={0: 6}).samples(HOURS_3)
    samples[60:100] = [assemble(seen.at_s, []) for seen in samples[60:100]]
    (found,) = timelines(samples, 15.0).values()
    section = section_of(found, ("static-peak",))

    assert section.scores[0].worker_hours == pytest.approx(18.0, rel=0.01)
    assert section.notes == ()


def test_offsets_of_other_partitions_are_no_input() -> None:
    samples = PastJob(load=lambda at_s: 500.0, sizes={0: 10}).samples(1800)
    for seen in samples[60:]:  # a second topic, or partitions that were missing until now
        for name in ("appended_records", "processed_records"):
            seen.by_stage[name][:] += 5e9
        seen.by_workload["partitions"][:] = 72
    (found,) = timelines(samples, 15.0).values()

    assert np.isnan(found.input_rate_records_per_s[60])
    assert found.input_rate_records_per_s[61:] == pytest.approx(500)
    assert found.throughput_records_per_s[61:] == pytest.approx(500)


@pytest.mark.parametrize("partitions", [(36.0, 72.0), (72.0, 36.0)], ids=["added", "removed"])
@pytest.mark.parametrize("signal", ["throughput_records_per_s", "processed_records"])
def test_the_backlog_of_other_partitions_and_a_smaller_sum_are_no_input(
    partitions: tuple[float, float], signal: str
) -> None:
    samples = PastJob(load=lambda at_s: 500.0, sizes={0: 10}).samples(1800)
    for number, seen in enumerate(samples):
        count = partitions[number >= 60]
        seen.by_workload["partitions"][:] = count
        for name in ("appended_records", "processed_records", "backlog_records"):
            seen.by_stage[name][:] += 3e7 + (5e9 if count == 72 else 0.0)
        if signal == "throughput_records_per_s":
            seen.by_stage[signal] = np.array([500.0])
    (found,) = timelines(samples, 15.0).values()

    assert np.nanmax(found.input_rate_records_per_s) < 600


def test_partitions_that_were_not_recorded_leave_the_input() -> None:
    samples = PastJob(load=lambda at_s: 500.0, sizes={0: 10}).samples(1800)
    for seen in samples[20:100]:
        seen.by_workload["partitions"][:] = np.nan
    for seen in samples[100:]:
        seen.by_workload["partitions"][:] = 72
    (found,) = timelines(samples, 15.0).values()

    assert np.isnan(found.input_rate_records_per_s).sum() <= 2


def test_a_backlog_that_was_never_reported_has_no_backlog_time() -> None:
    samples = [
        Samples(at_s=at_s, workloads=("a",), stages=(("a", ""),), by_stage={}, by_workload={"workers": np.array([2.0])})
        for at_s in range(0, 600, 15)
    ]
    (found,) = timelines(samples, 15.0).values()

    assert np.isnan(found.backlog_time_s).all()
