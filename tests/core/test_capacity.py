"""The capacity table: lookups and learning."""

from dataclasses import fields
from itertools import accumulate, pairwise
from math import nan

import numpy as np
import pytest
from builders import column, empty_table
from hypothesis import assume, given
from hypothesis import strategies as st

from adapter.core.capacity import (
    CONFIDENCE,
    SLOTS,
    Observation,
    Table,
    confidence_at,
    learn,
    rate_at,
    size_for,
    utilization,
    with_prior,
)
from adapter.core.partitions import whole

NONE, CARRIED, PRIOR, ESTIMATED, OBSERVED = range(len(CONFIDENCE))
SLIDE = {4: 10_000, 10: 20_000, 18: 35_000}  # S4-23
HOUR_S = 3600
LINEAR = column(1)


def look(workers=4, throughput=10_000, at_s=0, **seen):
    """One look at one stage; seen: utilization, saturated, doubtful, overloaded, clean."""
    return Observation(
        at_s=at_s,
        workers=column(workers),
        throughput_records_per_s=column(throughput),
        utilization_ratio=column(seen.get("utilization", nan)),
        saturated=np.array([seen.get("saturated", False)]),
        doubtful=np.array([seen.get("doubtful", False)]),
        overloaded=np.array([seen.get("overloaded", False)]),
        clean=np.array([seen.get("clean", True)]),
    )


def update_estimates(*looks, table=None):
    """The table after these looks, one a tick."""
    table = empty_table(1) if table is None else table
    for number, one in enumerate(looks):
        at_s = one.at_s or 15 * number
        table = learn(table, look_at(one, at_s), column(1))
    return table


def look_at(one, at_s):
    return Observation(**{f.name: getattr(one, f.name) for f in fields(Observation)} | {"at_s": at_s})


def observed(records_by_workers):
    """A table of saturated looks."""
    return update_estimates(*(look(workers, rate, saturated=True) for workers, rate in records_by_workers.items()))


def rate(table, size, exponent=1.0):
    return rate_at(table, column(size), column(exponent))[0]


def size(table, wanted, exponent=1.0):
    return size_for(table, column(wanted), column(exponent))[0]


def confidence(table, size):
    return confidence_at(table, column(size))[0]


def entries(table):
    """workers -> (records/s, level) of the first stage."""
    held = zip(table.sizes[:, 0], table.rates[:, 0], table.confidence[:, 0], strict=True)
    return {workers: (carried, level) for workers, carried, level in held if not np.isnan(workers)}


@pytest.mark.parametrize(
    ("wanted", "exact", "workers"),
    [
        pytest.param(5_000, 2, 2, id="S4-26 below the lowest record"),
        pytest.param(10_000, 4, 4, id="S4-23 the first record"),
        pytest.param(12_500, 5.5, 6, id="S4-24 a quarter of the way"),
        pytest.param(15_000, 7, 7, id="S4-24 half of the way"),
        pytest.param(20_000, 10, 10, id="S4-23 the second record"),
        pytest.param(27_500, 14, 14, id="S4-24 half of the second way"),
        pytest.param(35_000, 18, 18, id="S4-23 the top record"),
        pytest.param(40_000, 40_000 / (35_000 / 18), 21, id="S4-25 above the top record"),
        pytest.param(70_000, 36, 36, id="S4-25 twice the top record"),
    ],
)
def test_s4_23_the_table_gives_the_sizes_of_the_talk(wanted, exact, workers):
    assert size(observed(SLIDE), wanted) == pytest.approx(exact, rel=1e-12)
    assert whole(size_for(observed(SLIDE), column(wanted), LINEAR))[0] == workers


def test_s4_27_at_60_percent_21_000_records_need_the_workers_that_carry_35_000():
    assert size(observed(SLIDE), 21_000 / 0.6) == 18


CORNERS = [
    pytest.param({}, 5_000, nan, id="an empty table has no answer"),
    pytest.param({}, 0, nan, id="not even for nothing"),
    pytest.param({4: 10_000}, 2_500, 1, id="one record is proportional below"),
    pytest.param({4: 10_000}, 20_000, 8, id="one record is proportional above"),
    pytest.param({4: 10_000}, 0, 0, id="nothing needs no worker"),
    pytest.param({4: 10_000, 8: 10_000}, 10_000, 4, id="of equal rates the smaller size"),
    pytest.param({4: 10_000, 8: 9_000}, 9_500, 3.8, id="a rate that falls with size counts as equal"),
    pytest.param({4: 10_000, 8: 9_000, 12: 14_000}, 12_000, 10, id="and is a step from there"),
    pytest.param({4: 10_000}, nan, nan, id="an unknown rate has no answer"),
]


@pytest.mark.parametrize(("table", "wanted", "expected"), CORNERS)
def test_s4_26_corner_cases_of_the_table(table, wanted, expected):
    assert size(observed(table), wanted) == pytest.approx(expected, nan_ok=True)


def test_s4_26_any_rate_needs_at_least_one_whole_worker():
    assert whole(size_for(observed(SLIDE), column(1), LINEAR))[0] == 1


@pytest.mark.parametrize(
    ("workers", "expected"), [(0, 0), (2, 5_000), (4, 10_000), (7, 15_000), (18, 35_000), (36, 70_000), (nan, nan)]
)
def test_the_rate_of_a_size(workers, expected):
    assert rate(observed(SLIDE), workers) == pytest.approx(expected, nan_ok=True)


def test_an_empty_table_gives_no_rate():
    assert np.isnan(rate(empty_table(1), 4))
    assert np.isnan(rate(empty_table(1), 0))


def test_beyond_the_largest_size_capacity_grows_with_the_exponent():
    table = observed({4: 10_000})
    assert rate(table, 8, exponent=0.9) == pytest.approx(10_000 * 2**0.9)
    assert size(table, 10_000 * 2**0.9, exponent=0.9) == pytest.approx(8)
    assert rate(table, 2, exponent=0.9) == pytest.approx(5_000)


def test_more_workers_never_carry_less():
    assert [rate(observed({4: 10_000, 8: 9_000}), workers) for workers in (4, 6, 8, 16)] == [10_000] * 3 + [20_000]


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        pytest.param(4, OBSERVED, id="an entry"),
        pytest.param(8, ESTIMATED, id="another entry"),
        pytest.param(6, ESTIMATED, id="the lesser of two neighbours"),
        pytest.param(1, OBSERVED, id="below all"),
        pytest.param(20, CARRIED, id="above all"),
        pytest.param(nan, NONE, id="an unknown size"),
    ],
)
def test_the_confidence_is_the_least_of_the_neighbouring_entries(workers, expected):
    table = update_estimates(look(4, 10_000, saturated=True), look(8, 9_000, utilization=0.5), look(12, 90_000))
    assert confidence(table, workers) == expected


def test_an_empty_table_has_no_confidence():
    assert CONFIDENCE[int(confidence(empty_table(1), 4))] == "none"


LESSONS = [
    pytest.param([look(saturated=True)], 10_000, OBSERVED, id="S4-11 what a saturated look shows is observed"),
    pytest.param([look(overloaded=True)], 10_000, OBSERVED, id="and what an overloaded stage shows"),
    pytest.param([look(utilization=0.5)], 20_000, ESTIMATED, id="throughput / utilization is an estimate"),
    pytest.param([look()], 10_000, CARRIED, id="without utilization it is a lower bound"),
    pytest.param([look(utilization=0.19)], 10_000, CARRIED, id="so it is at very low utilization"),
    pytest.param([look(utilization=0.2)], 50_000, ESTIMATED, id="but not at 0.2"),
    pytest.param([look(utilization=1.1)], 10_000, ESTIMATED, id="no estimate is below the throughput"),
    pytest.param([look(saturated=True)] * 2, 10_000, OBSERVED, id="the same again changes nothing"),
    pytest.param(
        [look(saturated=True, doubtful=True)], 10_000, ESTIMATED, id="a job that may be slow shows an estimate"
    ),
    pytest.param(
        [look(saturated=True, doubtful=True, utilization=0.3)], 10_000, ESTIMATED, id="whatever its utilization"
    ),
    pytest.param(
        [look(saturated=True), look(throughput=5_000, saturated=True, doubtful=True)],
        10_000,
        OBSERVED,
        id="which does not replace what was observed",
    ),
    pytest.param(
        [look(saturated=True), look(throughput=5_000, saturated=True)], 8_500, OBSERVED, id="less observed is blended"
    ),
    pytest.param(
        [look(saturated=True), look(throughput=12_000, saturated=True)], 12_000, OBSERVED, id="more counts at once"
    ),
    pytest.param(
        [look(saturated=True), look(throughput=5_000, overloaded=True)],
        10_000,
        OBSERVED,
        id="an overload lowers nothing",
    ),
    pytest.param(
        [look(utilization=0.5), look(throughput=12_000, overloaded=True)], 20_000, ESTIMATED, id="nor an estimate"
    ),
    pytest.param(
        [look(utilization=0.5), look(throughput=5_000, utilization=0.5, overloaded=True)],
        20_000,
        ESTIMATED,
        id="however busy it was",
    ),
    pytest.param(
        [look(saturated=True), look(throughput=9_000, utilization=0.5)], 10_000, OBSERVED, id="no estimate replaces it"
    ),
    pytest.param(
        [look(saturated=True), look(throughput=11_000, utilization=0.5)], 11_000, OBSERVED, id="but throughput raises"
    ),
    pytest.param([look(saturated=True), look(throughput=11_000)], 11_000, OBSERVED, id="known or not how busy"),
    pytest.param(
        [look(utilization=0.5), look(throughput=5_000, utilization=0.5)], 17_000, ESTIMATED, id="estimates are blended"
    ),
    pytest.param([look(utilization=0.5), look(saturated=True)], 10_000, OBSERVED, id="an observation replaces one"),
    pytest.param([look(), look(throughput=9_000, utilization=0.9)], 10_000, ESTIMATED, id="one replaces a bound"),
    pytest.param([look(), look(throughput=12_000)], 12_000, CARRIED, id="a bound rises"),
    pytest.param([look(), look(throughput=8_000)], 10_000, CARRIED, id="and never falls"),
    pytest.param(
        [look(saturated=True), look(throughput=10_150, saturated=True)], 10_000, OBSERVED, id="under 2 % is noise"
    ),
]


@pytest.mark.parametrize(("looks", "expected", "level"), LESSONS)
def test_the_capacity_after_observations(looks, expected, level):
    assert entries(update_estimates(*looks)) == {4: (pytest.approx(expected), level)}


@pytest.mark.parametrize(
    "seen",
    [{"clean": False}, {"workers": 0}, {"workers": nan}, {"throughput": 0}, {"throughput": nan}],
    ids=str,
)
@pytest.mark.parametrize("proof", [{"saturated": True}, {"overloaded": True}, {"utilization": 0.5}, {}], ids=str)
def test_a_disturbed_or_empty_observation_is_not_learned(seen, proof):
    table = empty_table(1)
    assert update_estimates(look(**seen, **proof), table=table) is table


@pytest.mark.parametrize(
    ("at_s", "throughput", "rewritten"),
    [(15, 10_000, False), (15, 9_500, False), (15, 9_000, True), (HOUR_S, 10_000, False), (HOUR_S + 1, 10_000, True)],
)
def test_a_table_is_rewritten_for_a_change_or_once_an_hour(at_s, throughput, rewritten):
    table = update_estimates(look(saturated=True))
    assert (
        update_estimates(look(throughput=throughput, at_s=at_s, saturated=True), table=table) is not table
    ) == rewritten


@pytest.mark.parametrize("proof", [{}, {"overloaded": True}], ids=["carried", "overloaded"])
def test_a_lower_bound_below_the_curve_is_not_learned(proof):
    table = observed({4: 10_000})
    assert update_estimates(look(8, 15_000, at_s=60, **proof), table=table) is table
    assert 8 in entries(update_estimates(look(8, 25_000, at_s=60, **proof), table=table))


@pytest.mark.parametrize(("throughput", "level"), [(21_000, ESTIMATED), (25_000, CARRIED)], ids=["small", "large"])
def test_only_a_large_excess_over_the_curve_makes_the_capacity_unknown(throughput, level):
    table = update_estimates(look(8, throughput, at_s=60), table=observed({4: 10_000}))
    assert (confidence(table, 8), entries(table)[8]) == (level, (throughput, level))


def test_a_lower_bound_is_dropped_once_better_entries_exceed_it():
    idle = update_estimates(look(2, 100), look(8, 6_000), look(12, 36_000))
    assert entries(idle) == {2: (100, CARRIED), 8: (6_000, CARRIED), 12: (36_000, CARRIED)}
    table = update_estimates(look(4, 10_000, at_s=60, saturated=True), table=idle)
    assert entries(table) == {4: (10_000, OBSERVED), 12: (36_000, CARRIED)}


@pytest.mark.parametrize(
    ("before", "seen", "after"),
    [
        pytest.param({4: 4000}, look(8, 3000, at_s=60, saturated=True), {4: 1500, 8: 3000}, id="a larger size: half"),
        pytest.param({4: 4000}, look(8, 1900, at_s=60, utilization=0.5), {4: 4000, 8: 3800}, id="within a quarter"),
        pytest.param({4: 4000}, look(8, 1500, at_s=60, utilization=0.5), {4: 4000, 8: 3000}, id="no estimate lowers"),
        pytest.param({8: 8000}, look(4, 2000, at_s=60, saturated=True), {4: 2000, 8: 4000}, id="a smaller size: half"),
        pytest.param({8: 8000}, look(4, 3600, at_s=60, saturated=True), {4: 3600, 8: 8000}, id="near the same"),
        pytest.param({8: 8000}, look(4, 2000, at_s=60), {8: 8000}, id="a lower bound proves nothing"),
    ],
)
def test_a_capacity_that_has_fallen_lowers_the_entries_of_other_sizes(before, seen, after):
    """A smaller size carries no more than a larger one, and a larger size no more per worker."""
    found = update_estimates(seen, table=observed(before))
    assert {size: rate for size, (rate, _) in entries(found).items()} == after


@pytest.mark.parametrize(
    ("before", "seen", "after"),
    [
        pytest.param({4: 900}, look(8, 4000, saturated=True), {4: 2000, 8: 4000}, id="less than half of its share"),
        pytest.param({11: 600}, look(12, 1200, saturated=True), {11: 600, 12: 1200}, id="11 workers of 12 partitions"),
        pytest.param({8: 1000}, look(4, 2000, saturated=True), {4: 2000, 8: 1000}, id="no larger size"),
        pytest.param({4: 900}, look(8, 2000, utilization=0.5), {4: 900, 8: 4000}, id="an estimate proves nothing"),
        pytest.param({4: 900}, look(8, 4000), {4: 900, 8: 4000}, id="a lower bound neither"),
    ],
)
def test_a_larger_size_raises_an_entry_far_below_its_share(before, seen, after):
    """A smaller size carries no less per worker. One that was measured too low would keep the job too large."""
    found = update_estimates(seen, table=observed(before))
    assert {size: rate for size, (rate, _) in entries(found).items()} == after


def test_busy_workers_raise_no_estimate_because_a_job_that_waits_may_be_full_at_a_low_utilization():
    estimated = update_estimates(look(4, 900, saturated=True, doubtful=True))
    found = update_estimates(look(8, 2000, at_s=60, utilization=0.5), table=estimated)
    assert entries(found) == {4: (900, ESTIMATED), 8: (4000, ESTIMATED)}


def test_full_workers_that_may_be_slow_lower_estimates_but_no_observation():
    """The CPU of a consumer that waits for I/O hides that it is full."""
    slow = look(8, 3000, at_s=60, saturated=True, doubtful=True)
    estimated = update_estimates(look(4, 1000, utilization=0.25))
    assert entries(update_estimates(slow, table=estimated)) == {4: (1500, ESTIMATED), 8: (3000, ESTIMATED)}
    assert entries(update_estimates(slow, table=observed({4: 4000})))[4] == (4000, OBSERVED)
    later = look(8, 2000, at_s=2 * HOUR_S, saturated=True, doubtful=True)
    assert entries(update_estimates(later, table=observed({8: 3000, 4: 4000})))[4] == (4000, OBSERVED)


def test_an_entry_that_another_size_lowers_is_an_estimate():
    table = update_estimates(look(8, 3000, at_s=60, saturated=True), table=observed({4: 4000}))
    assert entries(table) == {4: (1500, ESTIMATED), 8: (3000, OBSERVED)}


def test_a_full_table_drops_the_least_recent_size():
    looks = [look(workers, 1_000 * workers, at_s=workers, saturated=True) for workers in range(1, SLOTS + 1)]
    again = look(1, 1_000, at_s=2 * HOUR_S, saturated=True)
    more = look(2.5, 2_500, at_s=2 * HOUR_S + 15, saturated=True)
    assert list(entries(update_estimates(*looks, again, more))) == [1, 2.5, *range(3, SLOTS + 1)]


@pytest.mark.parametrize(
    ("looks", "expected", "level"),
    [
        pytest.param([], 1_200, PRIOR, id="over nothing"),
        pytest.param([look(8, 1_000)], 1_200, PRIOR, id="over a lower bound below it"),
        pytest.param([look(8, 4_000)], 2_000, PRIOR, id="raised by a lower bound above it"),
        pytest.param([look(8, 1_000, utilization=0.5)], 1_000, ESTIMATED, id="not over an estimate"),
        pytest.param([look(8, 1_000, saturated=True)], 500, OBSERVED, id="not over an observation"),
    ],
)
def test_a_configured_capacity_counts_until_an_estimate_exists(looks, expected, level):
    table = with_prior(update_estimates(*looks), column(300))
    assert (rate(table, 4, exponent=0.5), confidence(table, 4)) == (expected, level)


def test_a_configured_capacity_is_proportional_to_the_workers():
    table = with_prior(empty_table(1), column(100.1))
    assert [rate(table, n, exponent=0.5) for n in (0, 1, 3, 1000)] == [0, 100.1, 3 * 100.1, 1000 * 100.1]
    assert size(table, 12_345, exponent=0.5) == 12_345 / 100.1


@pytest.mark.parametrize("capacity", [nan, 0])
def test_without_a_configured_capacity_the_table_is_unchanged(capacity):
    assert np.isnan(rate(with_prior(empty_table(1), column(capacity)), 4))


@pytest.mark.parametrize(
    ("measured", "throughput", "backlog", "capacity", "expected"),
    [
        pytest.param(0.4, 500, 0, 1_000, 0.4, id="as measured"),
        pytest.param(nan, 500, 0, 1_000, 0.5, id="else throughput / capacity"),
        pytest.param(nan, 0, 0, nan, 0, id="idle whatever the capacity"),
        pytest.param(nan, 500, 0, nan, nan, id="unknown capacity"),
        pytest.param(nan, 500, 0, 0, nan, id="no capacity"),
    ],
)
def test_utilization(measured, throughput, backlog, capacity, expected):
    busy = utilization(column(measured), column(throughput), column(backlog), column(capacity))[0]
    assert busy == pytest.approx(expected, nan_ok=True)


STEPS = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 40_000)), min_size=1, max_size=SLOTS)
EXPONENTS = st.sampled_from([0.5, 0.9, 1.0])
RATES = st.floats(0, 1e6)
LOOKS = st.builds(
    look,
    workers=st.integers(0, 12),
    throughput=st.floats(0, 1e6),
    utilization=st.sampled_from([nan, 0.05, 0.3, 0.9, 1.2]),
    saturated=st.booleans(),
    overloaded=st.booleans(),
    clean=st.sampled_from([True, True, False]),
)


def rising(steps):
    """A table whose rate rises with the size."""
    sizes, rates = (list(accumulate(parts)) for parts in zip(*steps, strict=True))
    table = observed(dict(zip(sizes, rates, strict=True)))
    learned = [carried for carried, _ in entries(table).values()]
    assume(all(low < high for low, high in pairwise(learned)))  # one that is raised to its share may exceed the next
    return table


@given(STEPS, EXPONENTS)
def test_p_09_each_stored_rate_gives_its_stored_size_and_each_size_its_rate(steps, exponent):
    table = rising(steps)
    held = {workers: carried for workers, (carried, _) in entries(table).items()}
    assert {size(table, carried, exponent): rate(table, workers, exponent) for workers, carried in held.items()} == held


@given(STEPS, EXPONENTS)
def test_p_09_the_size_has_no_jump_at_a_stored_rate(steps, exponent):
    table = rising(steps)
    for workers, (carried, _) in entries(table).items():
        for near in (carried * (1 - 1e-10), carried * (1 + 1e-10)):
            assert size(table, near, exponent) == pytest.approx(workers, abs=1e-2)


@given(st.lists(LOOKS, min_size=1, max_size=12), RATES, RATES, EXPONENTS)
def test_p_09_neither_size_nor_rate_ever_falls(looks, one, other, exponent):
    table, (low, high) = update_estimates(*looks), sorted((one, other))
    assume(entries(table))
    assert size(table, low, exponent) <= size(table, high, exponent) * (1 + 1e-9)
    assert rate(table, low, exponent) <= rate(table, high, exponent) * (1 + 1e-9)


@given(st.lists(LOOKS, min_size=1, max_size=12), RATES, EXPONENTS)
def test_the_size_for_a_rate_carries_that_rate(looks, wanted, exponent):
    table = update_estimates(*looks)
    assume(entries(table))
    assert rate(table, size(table, wanted, exponent), exponent) == pytest.approx(wanted, rel=1e-6, abs=1e-6)


@given(st.lists(LOOKS, max_size=20))
def test_a_learned_table_is_sorted_and_holds_a_size_once(looks):
    table = update_estimates(*looks)
    sizes = table.sizes[:, 0]
    known = int(np.isfinite(sizes).sum())
    assert np.all(np.diff(sizes[:known]) > 0)
    for part in (getattr(table, f.name)[:, 0] for f in fields(Table)):
        assert np.isfinite(part).tolist() == [True] * known + [False] * (SLOTS - known)


@given(st.lists(LOOKS, max_size=20), LOOKS)
def test_the_rate_of_a_size_is_at_least_its_last_throughput(looks, last):
    table = update_estimates(*looks, look_at(last, 15 * len(looks)))
    if last.clean[0] and last.workers[0] > 0 and last.throughput_records_per_s[0] > 1e-9:
        assert rate(table, last.workers[0]) * 1.02 >= last.throughput_records_per_s[0] * (1 - 1e-9)


@given(st.lists(LOOKS, max_size=20), LOOKS, st.floats(0, 100), RATES, EXPONENTS)
def test_a_table_with_an_entry_answers_for_every_size(looks, one, workers, wanted, exponent):
    table = update_estimates(*looks, one)
    known = bool(entries(table))
    answers = rate(table, workers, exponent), size(table, wanted, exponent), confidence(table, workers) or nan
    assert np.isfinite(answers).tolist() == [known] * 3


@given(st.lists(st.tuples(LOOKS, LOOKS, LOOKS), min_size=1, max_size=12), RATES, st.floats(0, 100))
def test_stages_learn_independently(ticks, wanted, workers):
    joined = empty_table(3)
    for number, stages in enumerate(ticks):
        together = {
            f.name: np.concatenate([getattr(one, f.name) for one in stages])
            for f in fields(Observation)
            if f.name != "at_s"
        }
        joined = learn(joined, Observation(at_s=15 * number, **together), np.ones(3))
    alone = [update_estimates(*(stages[number] for stages in ticks)) for number in range(3)]
    for f in fields(Table):
        assert np.array_equal(getattr(joined, f.name), np.hstack([getattr(t, f.name) for t in alone]), equal_nan=True)
    many = np.full(3, workers), np.ones(3)
    assert np.array_equal(rate_at(joined, *many), [rate(t, workers) for t in alone], equal_nan=True)
    assert np.array_equal(
        size_for(joined, np.full(3, wanted), np.ones(3)), [size(t, wanted) for t in alone], equal_nan=True
    )
    assert confidence_at(joined, many[0]).tolist() == [confidence(t, workers) for t in alone]


def test_no_stages_give_an_empty_table():
    none = column()
    table = with_prior(empty_table(0), none)
    assert len(rate_at(table, none, none)) == len(size_for(table, none, none)) == len(confidence_at(table, none)) == 0
