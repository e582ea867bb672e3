"""The input rate of the last half hour -> the curve that it follows, and the rate that a catch-up needs."""

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from adapter.core.rates import Mask, total
from adapter.core.samples import Array

POINTS = 30  # one a minute
STEP_S = 60.0  # from one point to the next: the bucket of S4-07
_LEAST_POINTS = 3  # for a line; through fewer points it fits without an error
FIRM_POINTS = 10  # with fewer, chance decides the slope, and a parabola through noise is a trough
_RISE_POINTS = 4  # three changes; a step affects at most two of them
_RISE_STEPS = 8  # the newest minutes to search for these points: a rescale hides the input for some
_BAND_SIGMAS = 3.0  # S4-14
_LEAST_SIGMA_RATIO = 0.01  # of the level: a policy need not react to a deviation of one percent (S4-18)
_FEW_SIGMA_RATIO = 0.03  # likewise, where chance may put few points on a line


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """r(t) = a t^2 + b t + c, records/s, t in seconds after the newest point: a line, a = 0, or a trough, a > 0.

    Every array has the shape (stages,), NaN with too few points.
    """

    a: Array
    b: Array
    c: Array
    sigma: Array  # standard deviation of the errors, divisor n (S4-14), records/s

    def at(self, t_s: Array | float) -> Array:
        """The rate at one time, at least 0 (S4-22), records/s."""
        return np.maximum((self.a * t_s + self.b) * t_s + self.c, 0.0)

    def highest(self, t1_s: Array | float, t2_s: Array | float) -> Array:
        """The highest rate of a span, records/s. A line or a trough has it at an end."""
        return np.maximum(self.at(t1_s), self.at(t2_s))

    def integral(self, t1_s: Array | float, t2_s: Array | float) -> Array:
        """The records that arrive from t1 to t2 >= t1: the integral of the clamped curve.

        The closed forms of S4-22, exact, over the time before and after r is below 0.
        """
        low_s, high_s = self._below_zero()
        before = self._area(t1_s, np.clip(low_s, t1_s, t2_s))
        return np.maximum(before + self._area(np.clip(high_s, t1_s, t2_s), t2_s), 0.0)

    def _area(self, t1_s: Array | float, t2_s: Array | float) -> Array:
        """The closed forms with t2 - t1 taken out, so that nothing cancels."""
        cubic = self.a / 3 * (t1_s * t1_s + t1_s * t2_s + t2_s * t2_s)
        return (cubic + self.b / 2 * (t1_s + t2_s) + self.c) * (t2_s - t1_s)

    def _below_zero(self) -> tuple[Array, Array]:
        """The span in which r is below 0: between the roots. A line has one root at infinity."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # without a root: NaN or infinity
            root = np.sqrt(self.b * self.b - 4 * self.a * self.c)
            larger = -(self.b + np.copysign(root, self.b)) / 2
            first_s, second_s = larger / self.a, self.c / larger
        low_s, high_s = np.minimum(first_s, second_s), np.maximum(first_s, second_s)
        rootless = np.isnan(low_s) | np.isnan(high_s)
        return np.where(rootless, 0.0, low_s), np.where(rootless, 0.0, high_s)


def fit_curve(points: Array, outlier_run: Array) -> Fit:
    """Least squares: a trough if the parabola falls and rises by more than its errors, else a line (S4-13).

    points: shape (POINTS, stages), records/s, oldest first, NaN unknown. outlier_run: shape (stages,), how many of the
    newest known points may be outliers; the fit leaves them out until later points confirm them (S4-17).
    """
    known = np.isfinite(points) & ~_unconfirmed_points(points, outlier_run)
    axes = _axes(known)
    level = total(np.where(known, points, 0.0)) / axes.count
    errors = [np.where(seen, point - level, 0.0) for seen, point in zip(known, points, strict=True)]
    slope, errors = _remove_term(errors, axes.first)
    curve, bent_errors = _remove_term(errors, axes.second)
    bent_sigma = np.sqrt(_sum_of_squares(bent_errors) / axes.count)
    trough = axes.is_trough(slope, curve, _BAND_SIGMAS * bent_sigma) & (axes.count >= FIRM_POINTS)
    curve = np.where(trough | np.isnan(curve), curve, 0.0)
    return Fit(
        a=curve / STEP_S**2,
        b=(slope - curve * (2 * axes.middle + axes.lean)) / STEP_S,
        c=level - slope * axes.middle + curve * (axes.middle * (axes.middle + axes.lean) - axes.spread),
        sigma=np.where(trough, bent_sigma, np.sqrt(_sum_of_squares(errors) / axes.count)),
    )


def widen_sigma(fit: Fit, points: Array) -> Fit:
    """The fit with a larger sigma where few points are known, so that a forecast begins with the third one (S4-32).

    The error of a slope falls with the count ** 1.5.
    points: as in fit_curve; some may wait for confirmation.
    """
    count = np.isfinite(points).sum(axis=0)
    sigma = np.maximum(fit.sigma, _FEW_SIGMA_RATIO * fit.at(0.0)) * (FIRM_POINTS / np.maximum(count, 1)) ** 1.5
    return replace(fit, sigma=np.where(count < FIRM_POINTS, sigma, fit.sigma))


def append_point(
    points: Array, outlier_run: Array, fit: Fit, newest: Array, most_outliers: Array
) -> tuple[Array, Array]:
    """Append the next point: points and outlier_run, as in fit_curve, one step later.

    An outlier waits for confirmation. The first point inside the band drops all waiting outliers. most_outliers in a
    row form the new baseline (S4-16). They drop the points before them, and the first of them: a step within a minute
    leaves a point between the two levels, and a line through it rises forever. Without a fit no point is an outlier.
    fit: of these points. newest: shape (stages,), NaN for a step without a value.
    """
    outlier = _is_outlier(fit, newest)
    run = outlier_run + outlier
    settled = np.isfinite(newest) & ~outlier
    overturned = outlier & (run >= most_outliers)
    confirmed = _unconfirmed_points(points, outlier_run - 1)
    dropped = (_unconfirmed_points(points, outlier_run) & settled) | (~confirmed & overturned)
    older = np.where(dropped[1:], np.nan, points[1:])
    return np.concatenate([older, newest[None]]), np.where(settled | overturned, 0.0, run)


def steady_rise(points: Array) -> Array:
    """How fast the input rises: the least of its last three changes from minute to minute, at least 0.

    A step shows in at most two of them, if each point is the mean of its own minute.
    points: as in fit_curve. Returns records/s^2, shape (stages,); NaN with fewer than four points in eight minutes.
    """
    newest_first = points[: -_RISE_STEPS - 1 : -1]
    ages = np.argsort(np.isnan(newest_first), axis=0, kind="stable")[:_RISE_POINTS]  # of the known points
    rates = np.take_along_axis(newest_first, ages, axis=0)
    rises = (rates[:-1] - rates[1:]) / (np.diff(ages, axis=0) * STEP_S)
    steady: Array = np.maximum(rises.min(axis=0), 0.0)
    return steady


def is_trusted(fit: Fit, level: Array, error_ratio: Array) -> Mask:
    """Whether there is a fit whose errors are small relative to the level (records/s); shape (stages,)."""
    known: Mask = fit.sigma < error_ratio * level
    return known


def recovery_rate(fit: Fit, buffered_records: Array, begin_s: Array, end_s: Array, catch_up_s: Array | float) -> Array:
    """Arriving and waiting records over the time allowed: totalEvents / catchUpTime (S4-19, S4-20).

    begin_s, end_s: t1 and t2 of S4-20, seconds after the newest point. catch_up_s: above 0.
    Returns records/s; NaN without a fit.
    """
    rate: Array = (fit.integral(begin_s, end_s) + buffered_records) / catch_up_s
    return rate


def _is_outlier(fit: Fit, newest: Array) -> Mask:
    """Whether the point is beyond 3 sigma of the curve (S4-14). A perfect fit has the least sigma (S4-18).

    The least sigma follows the higher of two levels. Otherwise a rounding error would be an outlier of a line at 0.
    """
    due = fit.at(STEP_S)
    sigma = np.maximum(fit.sigma, _LEAST_SIGMA_RATIO * np.maximum(due, fit.at(0.0)))
    outlier: Mask = np.abs(newest - due) > _BAND_SIGMAS * sigma
    return outlier


def _unconfirmed_points(points: Array, outlier_run: Array) -> Mask:
    """The newest outlier_run known points, and the unknown ones among and after them."""
    newer = np.cumsum(np.isfinite(points[::-1]), axis=0, dtype=np.int8)[::-1]
    waiting: Mask = newer <= outlier_run
    return waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axes:
    """Orthogonal polynomials of the time, in steps, over the known points of a stage.

    Each is fitted alone, and three neighbouring points are as well-conditioned as thirty.
    """

    count: Array
    middle: Array  # mean of the time
    lean: Array
    spread: Array
    first: list[Array]  # u, the time - middle: a row a point, 0 if the point is unknown
    second: list[Array]  # u^2 - lean u - spread, likewise

    def is_trough(self, slope: Array, curve: Array, band: Array) -> Mask:
        """Whether the parabola falls after the oldest known point and rises to the newest, each by more than the band.

        A parabola through a step or through noise has a bottom too, but not below its own errors.
        """
        oldest, newest = reduce(np.minimum, self.first), reduce(np.maximum, self.first)
        fall = slope + curve * (2 * oldest - self.lean)
        rise = slope + curve * (2 * newest - self.lean)
        depth = np.minimum(fall * fall, rise * rise)  # 4 curve times the depth of the bottom below the nearer end
        trough: Mask = (fall < 0) & (rise > 0) & (depth > 4 * curve * band)
        return trough


def _axes(known: Mask) -> _Axes:
    steps = np.arange(1.0 - len(known), 1.0)
    count = total(known.astype(np.float64))
    count = np.where(count < _LEAST_POINTS, np.nan, count)  # NaN reaches all results
    middle = total(seen * step for seen, step in zip(known, steps, strict=True)) / count
    first = [seen * (step - middle) for seen, step in zip(known, steps, strict=True)]
    width = _sum_of_squares(first)
    lean, spread = total(u * u * u for u in first) / width, width / count
    second = [u * (u - lean) - seen * spread for seen, u in zip(known, first, strict=True)]
    return _Axes(count=count, middle=middle, lean=lean, spread=spread, first=first, second=second)


def _remove_term(errors: list[Array], power: list[Array]) -> tuple[Array, list[Array]]:
    """The share of a polynomial in the errors, and the errors without it."""
    share = total(error * u for error, u in zip(errors, power, strict=True)) / _sum_of_squares(power)
    return share, [error - share * u for error, u in zip(errors, power, strict=True)]


def _sum_of_squares(rows: list[Array]) -> Array:
    return total(row * row for row in rows)
