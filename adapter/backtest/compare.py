"""Runs against runs: intervals over seeds, fronts, pairs, and the measures that need a rival."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from adapter.core.samples import Array

FLOOR_PCT = 0.01  # a measure of 0 would make the speedup infinite
_SPEEDUP = ("theta_u_pct", "theta_o_pct", "tau_u_pct", "tau_o_pct")
_RESAMPLES = 2000
_EXACT_PAIRS = 20  # 2 ** 20 signs are counted at once; beyond them the normal law is near enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A median and the 95 % bootstrap interval around it."""

    median: float
    low: float
    high: float


def interval(values: Array, seed: int = 0) -> Interval:
    """Median over runs, shape (runs,), with its percentile bootstrap interval; NaN of no runs, or with one unknown."""
    if not len(values) or np.isnan(values).any():
        return Interval(median=math.nan, low=math.nan, high=math.nan)
    drawn = np.random.default_rng((seed, len(values))).integers(len(values), size=(_RESAMPLES, len(values)))
    low, high = np.quantile(np.median(values[drawn], axis=1), (0.025, 0.975))
    return Interval(median=float(np.median(values)), low=float(low), high=float(high))


def deviation(measures: Sequence[float], p: float = 2.0) -> float:
    """SPEC RG's distance from the ideal autoscaler over the measures given, in their unit; tell p with it."""
    return float(sum(abs(measure) ** p for measure in measures) ** (1 / p))


def elastic_speedup(scores: Mapping[str, float], baseline: Mapping[str, float]) -> float:
    """SPEC RG's elastic speedup: the geometric mean of four ratios to a baseline, each measure at least 0.01 %."""
    ratios = [max(baseline[name], FLOOR_PCT) / max(scores[name], FLOOR_PCT) for name in _SPEEDUP]
    return math.prod(ratios) ** (1 / len(ratios))


def price_performance(worker_hours: float, dearest_worker_hours: float, late_ratio: float, weight: float) -> float:
    """weight of the price as a share of the dearest rival's, the rest of what was late (0..1); 0 is best."""
    return weight * worker_hours / dearest_worker_hours + (1 - weight) * late_ratio


def hypervolume(points: Array, reference: Array) -> float:
    """Volume between the front of the points, shape (runs, 3), less is better, and a reference, shape (3,).

    A point that is not better than the reference in every column adds nothing.
    """
    inside = points[(points < reference).all(axis=1)]
    levels = np.append(np.unique(inside[:, 2]), reference[2])
    areas = [_area(inside[inside[:, 2] <= level, :2], reference) for level in levels[:-1]]
    return float(np.sum(np.array(areas) * np.diff(levels)))


def _area(points: Array, reference: Array) -> float:
    area, lowest = 0.0, float(reference[1])
    for x, y in sorted(map(tuple, points.tolist())):
        if y < lowest:
            area += (float(reference[0]) - x) * (lowest - y)
            lowest = y
    return area


def signed_rank_p(ours: Array, theirs: Array) -> float:
    """Wilcoxon's signed-rank test of pairs, shape (pairs,): the two-sided p that neither is the lower; 1 of no pairs.

    Equal pairs are left out, equal differences share their ranks. Exact for up to 20 pairs, then the normal law with
    its correction for ties and continuity. Source: Wilcoxon 1945; Pratt's treatment of zeros is not used.
    """
    differences = ours - theirs
    differences = differences[differences != 0]
    if not len(differences):
        return 1.0
    ranks = _ranks(np.abs(differences))
    positive, mean = float(ranks[differences > 0].sum()), float(ranks.sum()) / 2
    if len(ranks) <= _EXACT_PAIRS:
        return _exact_p(ranks, abs(positive - mean))
    spread = math.sqrt(float((ranks**2).sum()) / 4)
    return math.erfc(max(abs(positive - mean) - 0.5, 0.0) / spread / math.sqrt(2))


def _ranks(values: Array) -> Array:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def _exact_p(ranks: Array, distance: float) -> float:
    sums = np.zeros(1)
    for rank in ranks:
        sums = np.concatenate((sums, sums + rank))
    return float(np.mean(np.abs(sums - ranks.sum() / 2) >= distance - 1e-9))


def cost_at(late_pct: Array, worker_hours: Array, target_pct: float = 0.1) -> float:
    """Worker-hours at which a sweep of one knob, shape (settings,) each, reaches the lateness.

    The cheapest cost of that lateness or less, between settings by a straight line; NaN if the sweep does not cross
    it and no setting is so punctual. A sweep all of whose settings are punctual costs its cheapest.
    """
    order = np.argsort(worker_hours, kind="stable")
    late, cost = late_pct[order], worker_hours[order]
    front = np.append(True, late[1:] < np.minimum.accumulate(late)[:-1])  # a dearer setting that is no better is none
    late, cost = late[front], cost[front]
    first = int(np.argmax(late <= target_pct))
    if late[first] > target_pct:
        return math.nan
    if first == 0:
        return float(cost[0])
    share = (late[first - 1] - target_pct) / (late[first - 1] - late[first])
    return float(cost[first - 1] + share * (cost[first] - cost[first - 1]))
