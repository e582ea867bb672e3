"""A source that repeats its last values after a gap, as a Prometheus that restarts does for up to 5 minutes."""

from dataclasses import dataclass
from functools import cache
from itertools import product

import pytest
from builders import book, counts, flow, history, history_each, job, tick

GAP_S, INPUT = 900, 1000.0
RULES = {"policy": "drain", "down_window_s": 60.0, "cooldown_down_s": 60.0}


@dataclass(frozen=True, kw_only=True)
class Gap:
    """A source of 6 workers that is away from GAP_S on, and then repeats its last samples for scrape_s."""

    away_s: int
    scrape_s: int
    input_scrape_s: int | None = None  # the same for appended_records, if they are of another exporter
    throughput: float = INPUT
    last_scrape_s: int = GAP_S - 15  # before it was away

    def name(self):
        """The name of its test."""
        input_scrape_s = self.scrape_s if self.input_scrape_s is None else self.input_scrape_s
        return f"{self.away_s} s away, repeats for {self.scrape_s} s, the input for {input_scrape_s} s"

    def seen(self, at_s):
        """Its signals at a time."""
        back_s = GAP_S + self.away_s
        if GAP_S <= at_s < back_s:
            return counts(6)
        spans = {"appended_records": self.scrape_s if self.input_scrape_s is None else self.input_scrape_s}
        flows = flow(at_s, self.throughput)
        for name in flows:
            if back_s <= at_s < back_s + spans.get(name, self.scrape_s):
                flows[name] = flow(self.last_scrape_s, self.throughput)[name]
        return counts(6) | flows


AWAY_S, SCRAPES_S = (45, 75, 210, 285), (0, 15, 30, 60)
GAPS = tuple(Gap(away_s=away_s, scrape_s=scrape_s) for away_s, scrape_s in product(AWAY_S, SCRAPES_S))
APART = tuple(
    Gap(away_s=210, scrape_s=scrape_s, input_scrape_s=input_scrape_s)
    for scrape_s, input_scrape_s in [(45, 15), (60, 15), (60, 0), (15, 60)]
)
NEWER = Gap(away_s=45, scrape_s=30, last_scrape_s=GAP_S - 1)
IDLE = Gap(away_s=210, scrape_s=0, throughput=0.0)


@cache
def decisions():
    """The decisions of each gap, by second."""
    decided = history_each((*GAPS, *APART, NEWER, IDLE), Gap.seen, range(0, 2400, 15), lambda _: RULES)
    return {gap: {int(d.at_s): d for d in each} for gap, each in decided.items()}


@pytest.mark.parametrize("gap", GAPS, ids=Gap.name)
def test_a_repeated_sample_is_no_progress_of_one_tick(gap):
    found = decisions()[gap]
    rates = {d.throughput_records_per_s for d in found.values() if d.throughput_records_per_s is not None}
    assert {round(rate) for rate in rates} == {1000}
    after = found[GAP_S + gap.away_s + gap.scrape_s + 60]
    assert (after.throughput_records_per_s, after.workers) == (pytest.approx(INPUT), 6)


def test_the_repeated_sample_may_be_newer_than_the_last_one_that_was_read():
    found = decisions()[NEWER].values()
    assert {round(rate) for d in found if (rate := d.throughput_records_per_s) is not None} == {1000}


@pytest.mark.parametrize("throughput", [1000, 0])
def test_a_missing_sample_costs_no_decision_in_a_window_of_two_ticks(throughput):
    missing = (4, 9, 13)
    ticks = [
        tick(60.0 * number, job(**counts(6), **({} if number in missing else flow(60.0 * number, throughput))))
        for number in range(18)
    ]
    found = history(ticks, book(**RULES, rate_window_s=120.0, stale_after_s=240.0, error_after_s=600.0))
    assert {d.throughput_records_per_s for d in found[3:]} == {throughput}
    assert {d.reason.name for number, d in enumerate(found) if number not in missing and number > 2} <= {
        "HOLD",
        "DOWN",
        "IDLE",
    }


@pytest.mark.parametrize("gap", APART, ids=Gap.name)
def test_two_exporters_are_scraped_at_different_times(gap):
    found = decisions()[gap].values()
    for name in ("throughput_records_per_s", "input_rate_records_per_s"):
        rates = {round(rate) for d in found if (rate := getattr(d, name)) is not None}
        assert rates == {1000}


def test_a_job_that_is_idle_after_the_gap_has_no_throughput_within_75_s():
    assert decisions()[IDLE][GAP_S + 210 + 75].throughput_records_per_s == 0


@pytest.mark.parametrize(("tick_s", "every"), [(15, 2), (15, 3), (30, 2)])
@pytest.mark.parametrize("gap", [range(0), range(20, 27)])
def test_a_source_that_is_read_at_some_ticks_only_has_no_gaps_between_them(tick_s, every, gap):
    ticks = [
        tick(at_s, job(**counts(6), **flow(at_s) if number % every == 0 and number not in gap else {}))
        for number, at_s in enumerate(range(0, 48 * tick_s, tick_s))
    ]
    found = history(ticks, book(**RULES, stale_after_s=4.0 * tick_s, error_after_s=400.0))
    assert {round(d.throughput_records_per_s) for d in found[8:]} == {1000}
    assert {d.reason.name for d in found[42::every]} <= {"HOLD", "DOWN"}


def test_the_input_during_a_pause_of_the_job_counts_as_soon_as_it_is_back():
    """The job and all its samples are away for 75 s, in which its input doubles. Its own counter has stood still."""
    ticks = []
    for at_s in range(0, 1020, 15):
        done, appended = INPUT * (min(at_s, GAP_S) + max(0, at_s - GAP_S - 75)), INPUT * (at_s + max(0, at_s - GAP_S))
        load = {"processed_records": done, "appended_records": appended, "backlog_records": appended - done}
        ticks.append(tick(at_s, job(**counts(6), **({} if GAP_S < at_s < GAP_S + 75 else load))))
    found = {d.at_s: d.input_rate_records_per_s for d in history(ticks, book(**RULES))}
    assert all(1600 < found[at_s] <= 2000 for at_s in (975, 990, 1005))
