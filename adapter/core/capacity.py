"""The capacity table: the throughput that sizes were observed to carry, and estimates for other sizes."""

from dataclasses import dataclass, fields

import numpy as np

from adapter.core.decisions import CONFIDENCE
from adapter.core.rates import Mask
from adapter.core.samples import Array, IntArray, first_known
from adapter.core.signals import is_processing

SLOTS = 8  # sizes in the table of a stage: about as many as twenty rescales a day visit
NONE, CARRIED, PRIOR, ESTIMATED, OBSERVED = (float(level) for level in range(len(CONFIDENCE)))

_BLEND = 0.3  # weight of a new observation: three or four correct a wrong first one
_SAME_RATIO = 0.02  # smaller changes are noise, and would rewrite the slow state every tick
_NEAR_RATIO = 1.1  # of the expected rate: workers and partitions differ by about as much
_OUTDATED_RATIO = 1.25  # an entry above this multiple of an observation shows workers that were faster
SHARE_RATIO = 2.0  # a smaller size whose share of a larger one exceeds its entry by more was observed wrongly
_REFRESH_S = 3600.0  # an older date is renewed, so that the table knows the least recent size
_LEAST_UTILIZATION = 0.2  # below, the quotient throughput / utilization is mostly noise
_BEYOND = 2.0**20  # above any worker count, so sizes below are linear; a power of two keeps products exact


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The capacity of each stage at the sizes it had (S4-11, S4-23); every array has the shape (SLOTS, stages).

    All four arrays are NaN where there is no entry. CARRIED is a lower bound: the throughput of workers that did not
    fall behind. ESTIMATED is throughput / utilization. OBSERVED is the throughput of saturated workers.
    """

    sizes: Array  # workers, ascending, NaN last
    rates: Array  # records/s that all of these workers carry
    confidence: Array  # a level of CONFIDENCE
    seen_at_s: Array  # when the size was last in use, to within an hour


TABLE_COLUMNS = tuple(column.name for column in fields(Table))


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one tick shows of each stage; every array has the shape (stages,)."""

    at_s: float
    workers: Array
    throughput_records_per_s: Array
    utilization_ratio: Array  # as measured, NaN unknown
    saturated: Mask  # the backlog never ended within the window, and the workers are warm
    doubtful: Mask  # the workers may still be slow after a rescale: the throughput is no more than an estimate
    overloaded: Mask  # the input exceeds the throughput, perhaps only since mid-window: it only raises a capacity
    clean: Mask  # rates are known and undisturbed; otherwise nothing is learned


def rate_at(table: Table, size: Array, exponent: Array) -> Array:
    """Records/s that size workers carry; shape (stages,), NaN where the table is empty or size is unknown.

    Linear between the entries, and through 0 below the smallest (S4-24, S4-26); above the largest one, of m workers,
    C(m) * (size / m) ** exponent (S4-25 has exponent 1). More workers never carry less.
    size: at least 0. exponent: in [0.5, 1]. Both of the shape (stages,).
    """
    return _interpolate(table.sizes, np.maximum.accumulate(table.rates), size, exponent)


def size_for(table: Table, rate: Array, exponent: Array) -> Array:
    """The fewest workers that carry rate, not rounded: the inverse of rate_at (S4-24..26, P-09).

    0 for rate 0: any rate above it needs a whole worker once rounded up.
    """
    return _interpolate(np.maximum.accumulate(table.rates), table.sizes, rate, 1.0 / exponent)


def confidence_at(table: Table, size: Array) -> Array:
    """The confidence in rate_at of that size: of its entry, otherwise the lesser of the neighbouring entries.

    Shape (stages,); NONE where the table is empty or size is unknown.
    """
    below = np.where(table.sizes <= size, table.sizes, -np.inf).max(axis=0)
    above = np.where(table.sizes >= size, table.sizes, np.inf).min(axis=0)
    least = np.where((table.sizes == below) | (table.sizes == above), table.confidence, np.inf).min(axis=0)
    return np.where(np.isinf(least), NONE, least)


def with_prior(table: Table, worker_capacity: Array) -> Table:
    """The table for lookups, with the configured capacity of one worker in records/s, NaN where it is not configured.

    The configured capacity counts, in proportion to the workers, until an estimate or observation replaces it. A higher
    lower bound raises it. `learn` takes the table without it.
    """
    rows = np.flatnonzero((worker_capacity > 0) & ~(table.confidence >= ESTIMATED).any(axis=0))
    if not len(rows):
        return table
    carried = np.fmax.reduce(table.rates[:, rows] / table.sizes[:, rows], axis=0)
    columns = np.full((len(TABLE_COLUMNS), SLOTS, len(rows)), np.nan)
    columns[:3, 0] = np.broadcast_arrays(_BEYOND, _BEYOND * np.fmax(worker_capacity[rows], carried), PRIOR)
    return _with_columns(table, rows, columns)


def learn(table: Table, observation: Observation, exponent: Array) -> Table:
    """The table after one observation; the same object if nothing was learned. exponent: as in rate_at.

    The capacity of a size is at least the throughput just observed there, except for very small changes.
    """
    was = _entry(table, observation.workers)
    level = _confidence_in(table, observation, exponent)
    rate = _updated_rate(was, level, observation)
    usable = observation.clean & (observation.workers > 0) & is_processing(observation.throughput_records_per_s)
    rows = np.flatnonzero(usable & ((level > was.confidence) | _is_outdated(was, rate, observation.at_s)))
    if not len(rows):
        return table
    confidence, at_s = np.fmax(level, was.confidence), np.full(len(rate), observation.at_s)
    entry = np.array([observation.workers, rate, confidence, at_s])[:, rows]
    columns = _without_low_bounds(_with_entry(table, rows, entry), entry, exponent[rows])
    full = (level == OBSERVED) | ((level == ESTIMATED) & observation.saturated & (was.confidence <= ESTIMATED))
    columns = _with_least_share(_with_fallen_capacity(columns, entry, full[rows]), entry, full[rows])
    return _with_columns(table, rows, columns)


def capacity_ratio(rate: Array, throughput: Array, saturated: Mask) -> Array:
    """The present capacity relative to the table: throughput / rate, 1 if unknown.

    A throughput above the table shows a higher capacity. Only saturated workers show a lower one, for example when
    records become larger. rate: of the table, for the present workers.
    """
    usable: Mask = (throughput > 0) & (rate > 0)
    ratio = np.where(usable, throughput / np.where(usable, rate, 1.0), 1.0)
    return np.where(saturated, ratio, np.maximum(ratio, 1.0))


def utilization(measured: Array, throughput: Array, backlog: Array, capacity: Array) -> Array:
    """Busy share of the workers: as measured, otherwise throughput / capacity, otherwise NaN.

    capacity: of all workers. Without input and backlog the utilization is 0, even if the capacity is unknown.
    """
    estimated = throughput / np.where(capacity > 0, capacity, np.nan)
    idle = (throughput <= 0) & (backlog <= 0)
    return first_known(measured, np.where(idle, 0.0, np.minimum(estimated, 1.0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """The table entry of one size of each stage, NaN and NONE without one; shape (stages,)."""

    rate: Array
    confidence: Array
    seen_at_s: Array


def _entry(table: Table, workers: Array) -> _Entry:
    slot, stage = (table.sizes == workers).argmax(axis=0), np.arange(len(workers))
    known: Mask = table.sizes[slot, stage] == workers
    return _Entry(
        rate=np.where(known, table.rates[slot, stage], np.nan),
        confidence=np.where(known, table.confidence[slot, stage], NONE),
        seen_at_s=np.where(known, table.seen_at_s[slot, stage], np.nan),
    )


def _confidence_in(table: Table, observation: Observation, exponent: Array) -> Array:
    """The confidence in an observation: NONE for a lower bound that the table already exceeds.

    A small excess over what the table derives from other sizes confirms it. A large one shows that it is wrong.
    """
    throughput, expected = observation.throughput_records_per_s, rate_at(table, observation.workers, exponent)
    exceeds = ~(throughput <= expected)
    confirms = exceeds & (throughput <= _NEAR_RATIO * expected) & (confidence_at(table, observation.workers) > CARRIED)
    full = observation.saturated | (observation.overloaded & exceeds)
    measured = ~observation.overloaded & (observation.utilization_ratio >= _LEAST_UTILIZATION)
    return np.select(
        [full & ~observation.doubtful, full | measured | confirms, exceeds], [OBSERVED, ESTIMATED, CARRIED], NONE
    )


def _updated_rate(was: _Entry, level: Array, observation: Observation) -> Array:
    """The rate after the observation: more confidence replaces, equal confidence blends, less only raises it."""
    shown = _shown_rate(level, observation)
    blended = was.rate + _BLEND * (shown - was.rate)
    rate = np.where(level > was.confidence, shown, np.where(level == was.confidence, blended, was.rate))
    return np.fmax(rate, observation.throughput_records_per_s)


def _shown_rate(level: Array, observation: Observation) -> Array:
    """The capacity that an observation shows: throughput / utilization for an estimate, otherwise the throughput.

    Saturated or overloaded workers are full whatever their utilization, for example while they wait for I/O.
    """
    busy, full = observation.utilization_ratio, observation.saturated | observation.overloaded
    estimated = (level == ESTIMATED) & ~full & (busy >= _LEAST_UTILIZATION)
    shown: Array = observation.throughput_records_per_s / np.where(estimated, busy, 1.0)
    return shown


def _is_outdated(was: _Entry, rate: Array, at_s: float) -> Mask:
    """Whether the rate or the date of an entry has to be written again."""
    outdated: Mask = (np.abs(rate - was.rate) > _SAME_RATIO * was.rate) | (at_s - was.seen_at_s > _REFRESH_S)
    return outdated


def _interpolate(keys: Array, values: Array, wanted: Array, power: Array) -> Array:
    """The value at `wanted`, linear between neighbouring keys; beyond the last key it grows with that power of the key.

    keys, values: (SLOTS, stages), neither falling, NaN last; (0, 0) precedes them. Of equal keys, the
    smaller value counts.
    """
    wanted, stage = np.maximum(wanted, 0.0), np.arange(len(wanted))
    count = (keys < wanted).sum(axis=0)
    before, after = np.maximum(count - 1, 0), np.minimum(count, SLOTS - 1)
    low_key, low = (np.where(count > 0, column[before, stage], 0.0) for column in (keys, values))
    high_key, high = keys[after, stage], values[after, stage]
    ratio = (wanted - low_key) / np.where(high_key > low_key, high_key - low_key, 1.0)
    found: Array = (1 - ratio) * low + ratio * high
    far = np.flatnonzero(~(high_key >= wanted))
    last_key = np.where(low_key > 0, low_key, np.nan)[far]
    found[far] = low[far] * (wanted[far] / last_key) ** power[far]
    return found


def _with_entry(table: Table, rows: IntArray, entry: Array) -> Array:
    """The columns of some stages with one more entry: at its size, in a free slot, or for the least recent entry.

    entry: a value of each of TABLE_COLUMNS, shape (4, rows).
    """
    columns = np.array([getattr(table, name)[:, rows] for name in TABLE_COLUMNS])
    sizes, _, _, seen_at_s = columns
    turn = np.select([sizes == entry[0], np.isnan(sizes)], [-np.inf, np.finfo(np.float64).min], seen_at_s)
    columns[:, turn.argmin(axis=0), np.arange(len(rows))] = entry
    return _sort_by_size(columns)


def _without_low_bounds(columns: Array, entry: Array, exponent: Array) -> Array:
    """The columns after a new entry without lower bounds that the other entries exceed.

    Such a bound would lower the curve.
    """
    sizes, rates, confidence, _ = columns
    bounds = (entry[2] > CARRIED) & (confidence == CARRIED)
    if not bounds.any():
        return columns
    firm = _table(_sort_by_size(np.where(confidence > CARRIED, columns, np.nan)))
    expected = np.array([rate_at(firm, size, exponent) for size in sizes])
    return _sort_by_size(np.where(bounds & (rates <= expected), np.nan, columns))


def _with_fallen_capacity(columns: Array, entry: Array, full: Mask) -> Array:
    """Replace entries far above one of full workers by its rate in proportion: the capacity has fallen since.

    Entries with more confidence stay. A smaller size carries no more than a larger one, and a larger size no more per
    worker.
    """
    (workers, rate, known, _), (sizes, rates, confidence, seen_at_s) = entry, columns
    outdated = full & (confidence <= known) & (rates > _OUTDATED_RATIO * rate * np.maximum(sizes / workers, 1.0))
    rates = np.where(outdated, rate * sizes / workers, rates)
    return np.array([sizes, rates, np.where(outdated, np.fmin(confidence, ESTIMATED), confidence), seen_at_s])


def _with_least_share(columns: Array, entry: Array, full: Mask) -> Array:
    """Raise smaller sizes that carry far less per worker than the full workers of the entry: a wrong measurement.

    An uneven spread of the partitions costs less than half of the share. Entries with more confidence stay.
    """
    (workers, rate, known, _), (sizes, rates, confidence, seen_at_s) = entry, columns
    share = rate * sizes / workers
    smaller = full & (sizes < workers) & (confidence > CARRIED) & (confidence <= known)
    outdated = smaller & (SHARE_RATIO * rates < share)
    return np.array([sizes, np.where(outdated, share, rates), np.where(outdated, ESTIMATED, confidence), seen_at_s])


def _sort_by_size(columns: Array) -> Array:
    """The columns in the order of the sizes; NaN last."""
    return np.take_along_axis(columns, columns[:1].argsort(axis=1, kind="stable"), axis=1)


def _with_columns(table: Table, rows: IntArray, columns: Array) -> Table:
    """The table with new columns of some stages, shape (4, SLOTS, rows)."""
    written = np.array([getattr(table, name) for name in TABLE_COLUMNS])
    written[:, :, rows] = columns
    return _table(written)


def _table(columns: Array) -> Table:
    return Table(**dict(zip(TABLE_COLUMNS, columns, strict=True)))
