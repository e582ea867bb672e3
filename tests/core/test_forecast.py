"""The forecast against S4's vectors, numpy's own fits and plain sums."""

from dataclasses import astuple, replace
from math import isnan, nan, sqrt

import numpy as np
import pytest
from builders import book, column, counts, job, replay, tick
from hypothesis import given
from hypothesis import strategies as st
from policy_inputs import terms

from adapter.core.forecast import (
    FIRM_POINTS,
    POINTS,
    STEP_S,
    Fit,
    append_point,
    fit_curve,
    is_trusted,
    recovery_rate,
    steady_rise,
    widen_sigma,
)

LINE, TROUGH, CREST = (10, 12, 14, 16), tuple((t + 2) ** 2 + 5 for t in range(-9, 1)), (1, 4, 5, 4, 1)
SLIDE = (-1, 1, 0, 0, 1, -1)  # the slide's errors in an order that leaves the fit level: no slope, and no trough
VECTORS = (0.0, 180.0, 300.0)  # t1, t2 and the catch-up, seconds; t3 is 480

rates = st.floats(0, 1e6, allow_subnormal=False).map(lambda rate: round(rate, 3))
histories = st.lists(st.one_of(st.just(nan), rates), min_size=POINTS, max_size=POINTS)
small = st.floats(-50, 50).map(lambda number: round(number, 3))


def history(*values):
    """One stage's points, the last of them known."""
    return column(*[nan] * (POINTS - len(values)), *values)[:, None]


def in_steps(fit):
    """The fit with its time in steps, in which the vectors are given."""
    return replace(fit, a=fit.a * STEP_S**2, b=fit.b * STEP_S)


def fit_of(*values, odd=0):
    return in_steps(fit_curve(history(*values), column(odd)))


def curve(a, b, c, sigma=0.0):
    return Fit(a=column(a), b=column(b), c=column(c), sigma=column(sigma))


def push(values, *newest, most=3):
    """The points a stage keeps and its count of outliers, after new points one by one."""
    points, odd = history(*values), column(0)
    for value in newest:
        points, odd = append_point(points, odd, fit_curve(points, odd), column(value), column(most))
    return [value for value in points[:, 0].tolist() if not isnan(value)], odd[0]


def same(one, other):
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


FITS = {
    # values a second, the last at t = 0: a, b, c as of there
    "forecast vector, linear: slope 2": (LINE, (0, 2, 16)),
    "forecast vector, quadratic trough: a = 1, bottom two seconds ago": (TROUGH, (1, 4, 9)),
    "S4-13, forecast vector, crest: linear, slope 0, intercept 3": (CREST, (0, 0, 3)),
    "S4-13: a parabola that only falls is no trough": ([k * k for k in range(11, 1, -1)], (0, -13, -8)),
    "S4-13: a parabola that only rises is no trough": ([k * k for k in range(2, 12)], (0, 13, 109)),
    "three points always lie on a parabola, so theirs is a line": ((9, 5, 9), (0, 0, 23 / 3)),
    "steady": ((7, 7, 7, 7, 7), (0, 0, 7)),
    "idle": ((0, 0, 0, 0), (0, 0, 0)),
    "gaps": ((10, nan, 14, nan, nan, 20, nan), (0, 2, 22)),
    "a trough with gaps": ((81, 64, 49, 36, nan, 16, 9, nan, 1, 0, 1, nan, nan, 16), (1, 8, 16)),
}


@pytest.mark.parametrize(("values", "expected"), FITS.values(), ids=FITS)
def test_s4_13_a_trough_is_a_parabola_and_everything_else_a_line(values, expected):
    found = fit_of(*values)
    assert [found.a[0], found.b[0], found.c[0]] == pytest.approx(expected, abs=1e-12)


FORECASTS = {
    # fit, then its value at a time from its newest point
    "forecast vector, linear: r(5) = 20": (LINE, 2, 20),
    "forecast vector, quadratic: r(3) = 14": (TROUGH, 1, 14),
    "forecast vector, crest: 3 for ever": (CREST, 100, 3),
    "S4-22, forecast vector, falling: r(4) = -10 is 0": ((20, 15, 10, 5), 3, 0),
}


@pytest.mark.parametrize(("values", "t_s", "expected"), FORECASTS.values(), ids=FORECASTS)
def test_the_rate_at_a_time(values, t_s, expected):
    assert fit_of(*values).at(t_s)[0] == pytest.approx(expected)


INTEGRALS = {
    "forecast vector, linear: integral 3..5 = 36": (fit_of(*LINE), 0, 2, 36),
    "forecast vector, quadratic: integral 2..3 = 19/3 + 5": (fit_of(*TROUGH), 0, 1, 19 / 3 + 5),
    "target vector: integral 0..180 = 1 962 000": (curve(0, 10, 10_000), 0, 180, 1_962_000),
    "S4-22: nothing arrives once a line is below 0": (curve(0, -5, 5), 0, 100, 2.5),
    "S4-22: nor before it is above": (curve(0, 5, -5), 0, 2, 2.5),
    "S4-22: a trough below 0 between its roots": (curve(1, 0, -1), -2, 2, 8 / 3),
    "S4-22: all of the span between the roots": (curve(1, 0, -4), -1, 1, 0),
    "S4-22: a trough that touches 0": (curve(1, 0, 0), -3, 3, 18),
    "S4-22: a level line below 0": (curve(0, 0, -5), 0, 60, 0),
    "no time": (curve(1, 2, 3), 60, 60, 0),
}


@pytest.mark.parametrize(("fit", "t1_s", "t2_s", "expected"), INTEGRALS.values(), ids=INTEGRALS)
def test_s4_22_the_integral_is_that_of_the_curve_clamped_at_0(fit, t1_s, t2_s, expected):
    assert fit.integral(t1_s, t2_s)[0] == pytest.approx(expected)


parabolas = st.builds(curve, st.floats(0, 50), small, small)


@given(parabolas, small, st.floats(0, 50))
def test_s4_22_the_integral_equals_a_plain_sum(fit, t1_s, span_s):
    step_s = span_s / 4000
    plain = sum(fit.at(t1_s + step_s * (np.arange(4000.0) + 0.5))) * step_s
    assert fit.integral(t1_s, t1_s + span_s)[0] == pytest.approx(plain, rel=1e-4, abs=1e-2)


@given(parabolas, small, st.floats(0, 50), st.floats(0, 1))
def test_no_rate_of_a_span_exceeds_its_highest(fit, t1_s, span_s, share):
    highest = fit.highest(t1_s, t1_s + span_s)
    assert highest in (fit.at(t1_s), fit.at(t1_s + span_s))
    assert fit.at(t1_s + share * span_s) <= highest * (1 + 1e-9) + 1e-6


@given(st.lists(st.booleans(), min_size=POINTS, max_size=POINTS).filter(lambda seen: sum(seen) > 3), rates, small)
def test_an_exact_line_is_recovered_and_has_no_errors(seen, newest, slope):
    t_s = np.arange(1.0 - POINTS, 1.0) * 60
    found = fit_curve(np.where(seen, newest + slope * t_s, nan)[:, None], column(0))
    assert [found.b[0], found.c[0]] == pytest.approx((slope, newest), abs=1e-8)
    assert [found.a[0], found.sigma[0]] == pytest.approx((0, 0), abs=1e-8)


@given(
    st.lists(st.booleans(), min_size=POINTS - 2, max_size=POINTS - 2).filter(lambda seen: sum(seen) >= FIRM_POINTS - 2),
    st.floats(0.1, 50), st.floats(1, POINTS - 2), rates,
)  # fmt: skip
def test_an_exact_trough_is_recovered_and_has_no_errors(seen, a, bottom, level):
    t = np.arange(1.0 - POINTS, 1.0)
    values = np.where([True, *seen, True], a * (t + bottom) ** 2 + level, nan)[:, None]
    found = fit_curve(values, column(0))
    assert [found.a[0] * 60**2, found.b[0] * 60] == pytest.approx((a, 2 * a * bottom), abs=1e-6)
    assert [found.c[0], found.sigma[0]] == pytest.approx((a * bottom**2 + level, 0), abs=1e-6)


@given(histories.filter(lambda values: sum(not isnan(value) for value in values) >= FIRM_POINTS))
def test_s4_14_any_points_give_numpys_own_fit_and_sigma_of_divisor_n(values):
    t_s, seen = np.arange(1.0 - POINTS, 1.0), np.isfinite(values)
    x, y = t_s[seen], np.array(values)[seen]
    found = in_steps(fit_curve(np.array(values)[:, None], column(0)))
    expected = np.polyfit(x, y, 2 if found.a > 0 else 1)
    errors = y - np.polyval(expected, x)
    assert np.polyval([found.a[0], found.b[0], found.c[0]], x) == pytest.approx(np.polyval(expected, x), abs=1e-6)
    assert found.sigma[0] == pytest.approx(sqrt(np.mean(errors**2)), abs=1e-6)


@given(histories.filter(lambda values: sum(not isnan(value) for value in values) >= FIRM_POINTS))
def test_s4_13_a_fit_is_a_trough_if_and_only_if_the_parabola_falls_and_rises_by_more_than_its_errors(values):
    t_s, seen = np.arange(1.0 - POINTS, 1.0), np.isfinite(values)
    x, y = t_s[seen], np.array(values)[seen]
    a, b, c = np.polyfit(x, y, 2)
    level = 1e-9 * max(y.max(), 1)  # within rounding either answer is right
    slopes = 2 * a * x[[0, -1]] + b
    depth = min(slopes**2) / (4 * a)  # of the bottom below the nearer end
    band = 3 * sqrt(np.mean((y - np.polyval([a, b, c], x)) ** 2))
    if min(abs(slopes)) > level and abs(depth - band) > level:
        is_trough = slopes[0] < 0 < slopes[1] and depth > band
        assert (fit_curve(np.array(values)[:, None], column(0)).a[0] > 0) == is_trough


STEP = (600,) * 20 + (1500,) * 5


def test_s4_13_a_step_and_noise_are_no_trough():
    assert fit_of(*STEP).a[0] == 0
    assert fit_of(*(1000 + error for error in (30, -20, 10, -30, 20, -10, 0, 30, -10, 20))).a[0] == 0


def test_s4_14_s4_15_sigma_of_the_slides_six_errors():
    fit = fit_of(*(50 + error for error in SLIDE))
    assert [fit.a[0], fit.b[0], fit.c[0]] == pytest.approx((0, 0, 50), abs=1e-12)
    assert fit.sigma[0] == pytest.approx(sqrt(4 / 6))
    assert 3 * fit.sigma[0] == pytest.approx(2.449, abs=0.001)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("error", "outliers"), [(2.44, 0), (2.46, 1)], ids=["2.44 is normal", "2.46 is an outlier"]
)  # fmt: skip
def test_s4_14_s4_15_an_outlier_is_more_than_three_sigma_away(error, outliers, sign):
    found, odd = push([50 + each for each in SLIDE], 50 + sign * error)
    assert (len(found), odd) == (7, outliers)


def test_s4_17_outliers_stay_out_of_the_fit():
    calm = fit_of(*LINE, nan, nan)
    spiked = fit_of(*LINE, 900, 800, odd=2)
    assert same(astuple(spiked), astuple(calm))


def test_s4_17_an_unknown_point_among_outliers_does_not_let_one_into_the_fit():
    assert same(astuple(fit_of(*LINE, 900, nan, 800, nan, odd=2)), astuple(fit_of(*LINE, nan, nan, nan, nan)))


def test_forecast_vector_spike_a_point_inside_the_band_drops_the_outliers():
    assert push(LINE, 900, 800) == ([*LINE, 900, 800], 2)
    assert push(LINE, 900, 800, 22) == ([*LINE, 22], 0)
    assert push(LINE, 900, 800, 22, 900, 800) == ([*LINE, 22, 900, 800], 2)


def test_s4_16_forecast_vector_spike_three_outliers_in_a_row_are_the_new_baseline():
    assert push(LINE, 900, 800, 850) == ([800, 850], 0)


def test_s4_16_the_point_between_two_levels_is_not_in_the_new_baseline():
    assert push([600] * 10, 1000, 1500, 1500, 1500) == ([1500, 1500, 1500], 0)


def test_s4_16_each_stage_has_its_own_number_of_outliers():
    points, odd = np.repeat(history(*LINE), 3, axis=1), column(0, 0, 0)
    for newest in (900, 800):
        points, odd = append_point(points, odd, fit_curve(points, odd), column(*[newest] * 3), column(1, 2, 3))
    assert np.isfinite(points).sum(axis=0).tolist() == [2, 1, 6]
    assert odd.tolist() == [0, 0, 2]


def test_s4_16_an_unknown_point_neither_counts_nor_resets():
    assert push(LINE, 900, nan, 800) == ([*LINE, 900, 800], 2)
    assert push(LINE, 900, nan, 800, nan, 850) == ([800, 850], 0)
    assert push(LINE, 900, nan, nan, 24) == ([*LINE, 24], 0)


def test_after_a_reset_the_fit_starts_from_the_spike():
    points, odd = history(*LINE), column(0)
    for newest in (900, 910, 920, 930):
        points, odd = append_point(points, odd, fit_curve(points, odd), column(newest), column(3))
    assert fit_curve(points, odd).at(STEP_S)[0] == pytest.approx(940)


@pytest.mark.parametrize(
    ("count", "sigma"),
    [(3, 0.03 * (10 / 3) ** 1.5), (5, 0.03 * 2**1.5), (9, 0.03 * (10 / 9) ** 1.5), (10, 0.0), (30, 0.0)],
)
def test_s4_32_a_forecast_of_few_points_has_a_wider_error(count, sigma):
    points = history(*[1000] * count)
    fit = widen_sigma(fit_curve(points, column(0)), points)
    assert [fit.at(600.0)[0], fit.sigma[0]] == pytest.approx([1000, 1000 * sigma], abs=1e-9)


def test_s4_13_a_trough_has_at_least_as_many_points_as_required():
    assert fit_of(*TROUGH[-FIRM_POINTS:]).a[0] == pytest.approx(1)
    assert fit_of(*TROUGH[1 - FIRM_POINTS :]).a[0] == 0


def test_s4_32_two_points_give_no_forecast():
    points = history(1000, 1000)
    assert np.isnan(widen_sigma(fit_curve(points, column(0)), points).sigma[0])


@pytest.mark.parametrize(("newest", "outliers"), [(1029, 0), (971, 0), (1031, 1), (969, 1)])
def test_s4_18_the_band_of_a_perfect_fit_is_three_percent_of_the_level(newest, outliers):
    assert push([1000] * 6, newest)[1] == outliers


@pytest.mark.parametrize("values", [(0, 0, 0, 0), (3 * 0.3, 2 * 0.3, 0.3)], ids=["idle", "a line that ends at 0"])
def test_s4_18_a_constant_input_is_no_outlier_even_at_0(values):
    assert push(values, 0)[1] == 0


@pytest.mark.parametrize("values", [(), (5,), (5, 900)], ids=["none", "one", "two"])
def test_too_few_points_give_no_fit_and_no_outlier(values):
    assert all(np.isnan(part).all() for part in astuple(fit_of(*values)))
    assert push(values, 1e6) == ([*values, 1e6], 0)


def test_the_oldest_point_leaves_and_the_newest_comes_last():
    points, _ = append_point(
        np.arange(POINTS + 0.0)[:, None], column(0), curve(0, 1 / STEP_S, POINTS - 1.0), column(30), column(3)
    )
    assert points[:, 0].tolist() == list(range(1, POINTS + 1))


TARGETS = {
    "S4-19 S4-20 target vector: total 3 162 000": (1_200_000, 10_540),
    "S4-19 S4-20 target vector: total 7 962 000": (6_000_000, 26_540),
    "an unknown backlog": (nan, nan),
}


@pytest.mark.parametrize(("buffered", "recovery"), TARGETS.values(), ids=TARGETS)
def test_s4_19_the_recovery_rate_of_the_target_vectors(buffered, recovery):
    fit = curve(0, 10, 10_000)
    assert fit.at(480.0) == 14_800
    assert recovery_rate(fit, column(buffered), *VECTORS)[0] == pytest.approx(recovery, nan_ok=True)


def test_s4_21_the_catch_up_includes_records_that_arrive_until_its_end():
    found = terms("netflix", 10, 1000, cpu=0.5, records=((10, 1000),), rescale_pause_s=60.0, catch_up_s=300.0)
    assert found[2] == pytest.approx(10 * 1.2)  # 360 s of the input within 300 s


@given(st.floats(0, 1e-3), st.floats(-1, 1), rates, st.floats(0, 1e9), st.floats(1, 3600))
def test_p_10_the_recovery_rate_clears_at_least_the_backlog(a, b, c, buffered, catch_up_s):
    found = recovery_rate(curve(a, b, c), column(buffered), 0.0, 60.0 + catch_up_s, catch_up_s)
    assert found[0] >= buffered / catch_up_s


RISES = {
    "a ramp of 60/s in a minute": ((100, 160, 220, 280), 1.0),
    "the least of three changes": ((100, 220, 280, 460), 1.0),
    "a step within a minute": ((100, 100, 250, 400), 0.0),
    "a step between two minutes": ((100, 100, 400, 400), 0.0),
    "a rate that falls": ((400, 300, 200, 100), 0.0),
    "one change is a fall": ((100, 160, 150, 280), 0.0),
    "the newest four of more": ((900, 100, 160, 220, 280), 1.0),
    "minutes without a point": ((100, nan, nan, 280, 340, 400), 1.0),
    "a newest minute without a point": ((100, 160, 220, 280, nan), 1.0),
    "three points": ((100, 160, 220), nan),
    "four points in nine minutes": ((100, nan, nan, nan, nan, nan, 160, 220, 280), nan),
}


@pytest.mark.parametrize(("values", "expected"), RISES.values(), ids=RISES)
def test_a_steady_rise_is_the_least_of_the_last_three_changes(values, expected):
    assert steady_rise(history(*values))[0] == pytest.approx(expected, nan_ok=True)


@given(st.floats(1, 1e4), st.floats(1, 1e4), st.floats(-300, 0))
def test_a_step_is_no_steady_rise_whenever_it_comes(before, after, step_s):
    """Each point is the mean of a minute."""
    ends_s = np.arange(-1740.0, 60.0, 60.0)
    share = np.clip((ends_s - step_s) / 60.0, 0.0, 1.0)

    assert steady_rise((before + (after - before) * share)[:, None])[0] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("sigma", "level", "expected"),
    [(99, 1000, True), (100, 1000, False), (nan, 1000, False), (99, nan, False), (0, 0, False)],
    ids=["errors below a tenth", "a tenth", "no fit", "unknown level", "no level"],
)
def test_a_forecast_is_trusted_while_its_errors_are_small(sigma, level, expected):
    assert is_trusted(curve(0, 0, 1000, sigma), column(level), column(0.1)).tolist() == [expected]


@given(st.lists(st.tuples(histories, st.integers(0, 4), st.one_of(st.just(nan), rates)), min_size=2, max_size=6))
def test_a_stage_does_not_depend_on_its_neighbours_to_the_last_bit(stages):
    def answers(chosen):
        points = np.array([values for values, _, _ in chosen]).T
        odd, newest = column(*[odd for _, odd, _ in chosen]), column(*[newest for _, _, newest in chosen])
        fit = fit_curve(points, odd)
        later, odd = append_point(points, odd, fit, newest, np.full(len(chosen), 3.0))
        return [*astuple(fit), *later, odd, recovery_rate(fit, newest, *VECTORS)]

    together, backward = answers(stages), answers(stages[::-1])
    assert same(together, [row[::-1] for row in backward])
    for number, stage in enumerate(stages):
        assert same([row[[number]] for row in together], answers([stage]))


def test_an_unknown_stage_stays_unknown_beside_known_ones():
    points, odd = np.column_stack([history(), history(*LINE)]), column(0, 0)
    fit = fit_curve(points, odd)
    found = [*astuple(fit), fit.at(5.0), fit.integral(0.0, 5.0), fit.highest(0.0, 5.0)]
    found.append(recovery_rate(fit, column(0, 0), *VECTORS))
    assert all(np.isnan(row[0]) and np.isfinite(row[1]) for row in found)
    later, odd = append_point(points, odd, fit, column(nan, nan), column(3, 3))
    assert np.isnan(later[:, 0]).all()
    assert odd.tolist() == [0, 0]


def test_no_stages_give_no_fit():
    points, none = np.empty((POINTS, 0)), column()
    fit = fit_curve(points, none)
    assert append_point(points, none, fit, none, none)[0].shape == (POINTS, 0)
    assert recovery_rate(fit, none, *VECTORS).shape == (0,)


def rising_job(times):
    """A job whose input rises by 4 records/s each second; the last curve, and the most outliers in a row."""
    ticks = [
        tick(at_s, job(**counts(), processed_records=done, appended_records=done, backlog_records=0.0))
        for at_s, done in ((at_s, 1000.0 * at_s + 2.0 * at_s**2) for at_s in times)
    ]
    slow = [state.slow for state, _ in replay(ticks, book(policy="drain", rate_window_s=600.0))]
    return slow[-1].fit, max(float(each.outlier_run[0]) for each in slow)


@pytest.mark.parametrize("tick_s", [15, 60, 120, 300])
def test_s4_13_a_steady_rise_is_a_line_whatever_the_tick(tick_s):
    fit, outliers = rising_job(range(0, 2101, tick_s))
    assert (outliers, fit.b[0]) == (0, pytest.approx(4, rel=0.15))  # the window is not full at first


@pytest.mark.parametrize("missed", [range(2415, 2700), range(2415, 4800)], ids=["5 minutes", "more than the points"])
def test_s4_14_missed_minutes_make_no_outlier_of_a_steady_rise(missed):
    _, outliers = rising_job([at_s for at_s in range(0, missed.stop + 16, 15) if at_s not in missed])
    assert outliers == 0
