"""Find what would change a decision: the nearest values of each input, and the target without a gate or bound."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, log

import numpy as np

from adapter.core.decide import decide
from adapter.core.decisions import Bound, Reason
from adapter.core.policies import policy_of
from adapter.core.rates import Mask
from adapter.core.record import INPUTS, RecordColumns, decision_input_of, with_input
from adapter.core.samples import Array
from adapter.operations.recorded_decision import RecordedDecision, gate_of, known

# Distances to try, as logarithms of a ratio: from a fifth of a percent to a hundredfold, each 3 % farther.
_DISTANCES = np.geomspace(0.002, log(100), 300)
_FROM_NOTHING = np.geomspace(1e-3, 1e9, 400)  # values to try if the present value is 0
_DIGITS = 4  # shown digits, so that a shown value was tried exactly
_COUNTED = ("partitions", "max_workers", "min_workers", "window_workers", "held_workers")
MEASURED = ("input_rate_records_per_s", "backlog_records", "capacity_records_per_s", "utilization_ratio")
_LEAST = {"partitions": 1.0, "max_workers": 1.0}
_MAY_BE_0 = (*_COUNTED, "input_rate_records_per_s", "backlog_records", "utilization_ratio")
_MOST = {"utilization_ratio": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The nearest value of one input, in one direction, that changes the target; None is no target."""

    name: str
    now: float
    value: float
    required_workers: float | None

    @property
    def distance(self) -> float:
        """The distance from the present value, as the logarithm of their ratio."""
        return abs(log(self.value / self.now)) if self.value > 0 and self.now > 0 else inf


@dataclass(frozen=True, slots=True, kw_only=True)
class UnboundedDecision:
    """The target without the closed gate or the bound."""

    name: Reason | Bound
    required_workers: float | None
    then: Reason | None  # the gate that would hold the target instead


def nearest_changes(recorded: RecordedDecision) -> tuple[Change, ...]:
    """Find the nearest change of each input in each direction, nearest first. One call decides all values."""
    tried = {name: _values(name, now) for name, now in _present(recorded)}
    if not tried:
        return ()
    # The present value comes first, because its result may differ slightly from the recorded one.
    parts = [_with(recorded.columns, name, values) for name, values in tried.items()]
    decided = decide(
        decision_input_of({name: np.concatenate([part[name] for part in parts]) for name in recorded.columns})
    )
    found, begin = [], 0
    for name, values in tried.items():
        served = decided.served[begin : begin + len(values)]
        begin += len(values)
        found += _changes_of(name, values, served, recorded.result.served[0])
    return tuple(sorted(found, key=lambda change: change.distance))


def without_bound(recorded: RecordedDecision) -> UnboundedDecision | None:
    """The target without the closed gate, or without a bound that is not an input; None without either."""
    name = recorded.gate or _bound(recorded)
    values = name.record.opened_by if isinstance(name, Reason) else name.record.lifted_by
    if not values:
        return None
    other = {
        key: recorded.columns[to] if isinstance(to, str) else np.array([to], np.float64) for key, to in values.items()
    }
    result = decide(decision_input_of({**recorded.columns, **other}))
    return UnboundedDecision(name=name, required_workers=known(result.served), then=gate_of(result))


def decided_by(recorded: RecordedDecision, changes: Iterable[Change]) -> str:
    """Name what decided: the closed gate, else the bound that applied, else the nearest measured input; "" for none.

    A bound that is an input has the input's name.
    """
    if recorded.gate is not None:
        return recorded.gate
    changes, bound = tuple(changes), _bound(recorded)
    limit = bound.record.limit if bound else _range_end(recorded)
    if any(change.name == limit and (bound or change.value > change.now) for change in changes):
        return limit
    follows = policy_of(recorded.decision.policy).follows_partitions
    measured = (*MEASURED, "partitions") if follows else MEASURED
    return bound or next((change.name for change in changes if change.name in measured), "")


def _bound(recorded: RecordedDecision) -> Bound:
    """The last bound that applied, or the sink if it also holds a size that the policy wants."""
    return Bound.SINK if recorded.held_by_sink and not recorded.bound.record.in_range else recorded.bound


def _range_end(recorded: RecordedDecision) -> str:
    """The end of the range that equals the target. Some policies stay in the range, so no bound applies."""
    if recorded.served != recorded.number("range.most"):
        return ""
    return "partitions" if recorded.by_partitions else "max_workers"


def _present(recorded: RecordedDecision) -> list[tuple[str, float]]:
    values = ((name, known(one.read(recorded.columns))) for name, one in INPUTS.items())
    return [(name, value) for name, value in values if value is not None]


def _values(name: str, now: float) -> Array:
    """The present value, followed by those to try."""
    ratios = np.exp(_DISTANCES)
    tried = np.concatenate([[0.0], now / ratios, now * ratios]) if now > 0 else _FROM_NOTHING
    tried = np.append(np.round(tried), [now - 1, now + 1]) if name in _COUNTED else _round(tried)
    least = _LEAST.get(name, 0.0)
    allowed = (tried >= least) & (tried <= _MOST.get(name, inf)) & (tried != now)
    if name not in _MAY_BE_0:
        allowed &= tried > 0
    return np.append(now, np.unique(tried[allowed]))


def _round(values: Array) -> Array:
    scale = 10.0 ** (_DIGITS - 1 - np.floor(np.log10(np.where(values > 0, values, 1.0))))
    return np.round(values * scale) / scale


def _with(columns: RecordColumns, name: str, values: Array) -> dict[str, Array]:
    repeated = {key: np.repeat(column, len(values)) for key, column in columns.items()}
    return with_input(repeated, name, values)


def _changes_of(name: str, values: Array, served: Array, now_served: float) -> list[Change]:
    differs = ~_same(served, now_served) & ~_same(served, served[0])
    found = []
    for side in (values < values[0], values > values[0]):
        places = np.flatnonzero(differs & side)
        if len(places):
            place = places[np.abs(values[places] - values[0]).argmin()]
            change = Change(
                name=name,
                now=float(values[0]),
                value=float(values[place]),
                required_workers=known(served[place : place + 1]),
            )
            found.append(change)
    return found


def _same(served: Array, other: float) -> Mask:
    same: Mask = (served == other) | (np.isnan(served) & np.isnan(other))
    return same
