"""The performance table: what so many workers were seen to carry, and what other sizes should carry then."""

from dataclasses import dataclass

import numpy as np

from adapter.core.rates import Mask
from adapter.core.samples import Array, IntArray, first_known
from adapter.core.signals import moves

Columns = list[Array]  # the four arrays of a table, or some of its stages
SLOTS = 8  # sizes remembered for each stage: a day's ups and downs at twenty rescales visit about so many
CONFIDENCE = ("none", "carried", "prior", "estimated", "observed")  # the names of the levels, least first
NONE, CARRIED, PRIOR, ESTIMATED, OBSERVED = (float(level) for level in range(len(CONFIDENCE)))

_BLEND = 0.3  # a new look weighs so much: three or four make up for a wrong first one
_SAME_RATIO = 0.02  # smaller changes are noise, and would rewrite the slow state every tick
_REFRESH_S = 3600.0  # so old a date is renewed: often enough to know which size was left longest ago
_LEAST_UTILIZATION = 0.2  # below, the quotient throughput / utilization is mostly noise
_BEYOND = 2.0**20  # above any worker count: what lies below it is linear; a power of two keeps products exact


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What each stage was seen to carry (S4-11, S4-23); every array has the shape (SLOTS, stages).

    sizes: workers, ascending; NaN, and last, where there is no entry: then the other arrays hold NaN too.
    rates: records/s all of these workers carry. trust: the level in CONFIDENCE. seen_at_s: about when, last.
    CARRIED is a lower bound: so much was processed without falling behind. ESTIMATED is throughput / utilization.
    OBSERVED is the throughput of workers that had always more to do than they could.
    """

    sizes: Array
    rates: Array
    trust: Array
    seen_at_s: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one tick shows of each stage; every array has the shape (stages,).

    utilization_ratio: as measured, NaN when unknown. saturated: the backlog never ended within the window.
    overtaken: the input outran the workers; it may have begun to in mid-window, so such a look only raises what is
    known. clean: rates are known and nothing disturbed them; nothing is learned where False.
    """

    at_s: float
    workers: Array
    throughput_records_per_s: Array
    utilization_ratio: Array
    saturated: Mask
    overtaken: Mask
    clean: Mask


def empty(stages: int) -> Table:
    """The table of stages of which nothing is known."""
    unknown = np.full((SLOTS, stages), np.nan)
    return Table(sizes=unknown, rates=unknown, trust=unknown, seen_at_s=unknown)


def rate_at(table: Table, size: Array, exponent: Array) -> Array:
    """Records/s that size workers carry; shape (stages,), NaN where the table is empty or size is unknown.

    Linear between the entries, and through 0 below the smallest (S4-24, S4-26); above the largest one, of m workers,
    C(m) * (size / m) ** exponent (S4-25 has exponent 1). More workers never carry less.
    size: at least 0. exponent: in (0, 1]. Both of the shape (stages,).
    """
    return _interpolated(table.sizes, _never_falling(table.rates), size, exponent)


def size_for(table: Table, rate: Array, exponent: Array) -> Array:
    """The fewest workers that carry rate, not rounded: the inverse of rate_at (S4-24..26, P-09).

    0 for rate 0: any rate above it needs a whole worker once rounded up.
    """
    return _interpolated(_never_falling(table.rates), table.sizes, rate, 1.0 / exponent)


def trust_at(table: Table, size: Array) -> Array:
    """The level of trust in rate_at of that size: of its entry, else the lesser of the entries next to it.

    Shape (stages,); NONE where the table is empty or size is unknown.
    """
    below = np.where(table.sizes <= size, table.sizes, -np.inf).max(axis=0)
    above = np.where(table.sizes >= size, table.sizes, np.inf).min(axis=0)
    least = np.where((table.sizes == below) | (table.sizes == above), table.trust, np.inf).min(axis=0)
    return np.where(np.isinf(least), NONE, least)


def with_prior(table: Table, worker_capacity: Array) -> Table:
    """The table to look things up in where a user said what one worker carries, records/s; NaN where nobody did.

    That word holds, in proportion to the workers, until something better than a lower bound is known; a lower bound
    above it raises it. To learn, take the table itself.
    """
    rows = np.flatnonzero((worker_capacity > 0) & ~(table.trust >= ESTIMATED).any(axis=0))
    if not len(rows):
        return table
    carried = np.fmax.reduce(table.rates[:, rows] / table.sizes[:, rows], axis=0)
    entry = (_BEYOND, _BEYOND * np.fmax(worker_capacity[rows], carried), PRIOR, np.nan)
    return _written(table, rows, [_alone(value, len(rows)) for value in entry])


def learn(table: Table, look: Observation, exponent: Array) -> Table:
    """The table after one look; the very same one where nothing was learned. exponent: as in rate_at.

    Greater trust replaces lesser, equal trust blends, lesser trust only raises. At a size never less is known than the
    throughput just seen there, but for changes too small to count.
    """
    was = _entry(table, look.workers)
    level = _level(look, rate_at(table, look.workers, exponent))
    rate = _taught(was, level, look)
    stale = (np.abs(rate - was.rate) > _SAME_RATIO * was.rate) | (look.at_s - was.seen_at_s > _REFRESH_S)
    counts = look.clean & (look.workers > 0) & moves(look.throughput_records_per_s)
    rows = np.flatnonzero(counts & ((level > was.trust) | (was.known & stale)))
    if not len(rows):
        return table
    trust = np.fmax(level, was.trust)
    entry = [column[rows] for column in (look.workers, rate, trust, np.full(len(rate), look.at_s))]
    return _written(table, rows, _placed(table, rows, entry, exponent))


def strength(rate: Array, throughput: Array, saturated: Mask) -> Array:
    """How much more, or less, workers carry now than the table says: throughput / rate, 1 where it tells nothing.

    Throughput beyond the table shows that they carry more; that they carry less (records change size) is shown only by
    those that always had work. rate: of the table, for the workers at work.
    """
    usable: Mask = (throughput > 0) & (rate > 0)
    ratio = np.where(usable, throughput / np.where(usable, rate, 1.0), 1.0)
    return np.where(saturated, ratio, np.maximum(ratio, 1.0))


def utilization(measured: Array, throughput: Array, backlog: Array, capacity: Array) -> Array:
    """Busy share of the workers: as measured, else throughput / capacity, else NaN.

    capacity: of all workers. Who has nothing to do is idle, whatever they could carry.
    """
    estimated = np.where(capacity > 0, throughput / np.where(capacity > 0, capacity, 1.0), np.nan)
    idle = (throughput <= 0) & (backlog <= 0)
    return first_known(measured, np.where(idle, 0.0, np.minimum(estimated, 1.0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """What a table holds of one size of each stage: NaN and NONE where it is not known; (stages,)."""

    known: Mask
    rate: Array
    trust: Array
    seen_at_s: Array


def _entry(table: Table, workers: Array) -> _Entry:
    slot = (table.sizes == workers).argmax(axis=0)
    stage = np.arange(len(workers))
    known: Mask = table.sizes[slot, stage] == workers
    return _Entry(
        known=known,
        rate=np.where(known, table.rates[slot, stage], np.nan),
        trust=np.where(known, table.trust[slot, stage], NONE),
        seen_at_s=table.seen_at_s[slot, stage],
    )


def _level(look: Observation, expected: Array) -> Array:
    """How much trust a look earns. What only raises earns none where the table expects as much already."""
    raises = ~(look.throughput_records_per_s <= expected)
    measured = ~look.overtaken & (look.utilization_ratio >= _LEAST_UTILIZATION)
    proven = look.saturated | (look.overtaken & raises)
    return np.select([proven, measured, raises], [OBSERVED, ESTIMATED, CARRIED], NONE)


def _taught(was: _Entry, level: Array, look: Observation) -> Array:
    """The rate of the entry after the look."""
    throughput, busy = look.throughput_records_per_s, look.utilization_ratio
    estimate = throughput / np.where(busy >= _LEAST_UTILIZATION, busy, 1.0)
    claim = np.where(level == ESTIMATED, estimate, throughput)
    held = np.where(level == was.trust, was.rate + _BLEND * (claim - was.rate), was.rate)
    return np.fmax(np.where(level > was.trust, claim, held), throughput)


def _interpolated(keys: Array, values: Array, wanted: Array, power: Array) -> Array:
    """The value at wanted between the keys next to it; beyond all keys it grows with that power of the key.

    keys, values: (SLOTS, stages), neither falling, NaN last; before them lies (0, 0).
    Of equal keys the smaller value counts.
    """
    wanted, stage = np.maximum(wanted, 0.0), np.arange(len(wanted))
    count = (keys < wanted).sum(axis=0)
    before, after = np.maximum(count - 1, 0), np.minimum(count, SLOTS - 1)
    low_key, low = (np.where(count > 0, column[before, stage], 0.0) for column in (keys, values))
    high_key, high = keys[after, stage], values[after, stage]
    ratio = (wanted - low_key) / np.where(high_key > low_key, high_key - low_key, 1.0)
    found: Array = (1 - ratio) * low + ratio * high
    far = np.flatnonzero(~(high_key >= wanted))
    start = np.where(low_key[far] > 0, low_key[far], np.nan)
    with np.errstate(over="ignore"):  # a tiny exponent asks for infinitely many workers; a bound cuts them
        found[far] = low[far] * (wanted[far] / start) ** power[far]
    return found


def _never_falling(rates: Array) -> Array:
    risen = rates.copy()
    for slot in range(1, SLOTS):
        np.maximum(risen[slot - 1], risen[slot], out=risen[slot])
    return risen


def _alone(value: Array | float, rows: int) -> Array:
    """The column of an entry that is the only one."""
    column = np.full((SLOTS, rows), np.nan)
    column[0] = value
    return column


def _placed(table: Table, rows: IntArray, entry: Columns, exponent: Array) -> Columns:
    """The rows with one more entry each: in the place of its size, in a free one, or in that seen longest ago."""
    columns = [column[:, rows] for column in _columns(table)]
    sizes, _, _, seen_at_s = columns
    turn = np.select([sizes == entry[0], np.isnan(sizes)], [-np.inf, np.finfo(np.float64).min], seen_at_s)
    place = turn.argmin(axis=0)
    for column, value in zip(columns, entry, strict=True):
        column[place, np.arange(len(rows))] = value
    return _without_idle_bounds(_ordered(columns), entry[2] > CARRIED, exponent[rows])


def _without_idle_bounds(columns: Columns, asked: Mask, exponent: Array) -> Columns:
    """Without the lower bounds that lie below what the other entries say: they would pull it down."""
    sizes, rates, trust, _ = columns
    bounds = asked & (trust == CARRIED)
    if not bounds.any():
        return columns
    firm_sizes, firm_rates = _ordered([np.where(trust > CARRIED, column, np.nan) for column in (sizes, rates)])
    risen = _never_falling(firm_rates)
    expected = np.array([_interpolated(firm_sizes, risen, size, exponent) for size in sizes])
    return _ordered([np.where(bounds & (rates <= expected), np.nan, column) for column in columns])


def _ordered(columns: Columns) -> Columns:
    order = columns[0].argsort(axis=0, kind="stable")  # NaN last
    stage = np.arange(order.shape[1])
    return [column[order, stage] for column in columns]


def _written(table: Table, rows: IntArray, columns: Columns) -> Table:
    """The table with these rows replaced."""
    written = [column.copy() for column in _columns(table)]
    for column, new in zip(written, columns, strict=True):
        column[:, rows] = new
    sizes, rates, trust, seen_at_s = written
    return Table(sizes=sizes, rates=rates, trust=trust, seen_at_s=seen_at_s)


def _columns(table: Table) -> Columns:
    return [table.sizes, table.rates, table.trust, table.seen_at_s]
