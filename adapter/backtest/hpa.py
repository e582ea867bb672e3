"""The arithmetic of the HorizontalPodAutoscaler for external metrics: what is served -> how many replicas.

Follows the controller of Kubernetes 1.33 and later (replica_calculator.go and horizontal.go of its podautoscaler).
Not modelled: quantities from 1e16 on, which wrap around in its integers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Literal

MOST_WORKERS = 2**31 - 1
_MOST_MILLI = 2**63 - 1
_SUFFIXES = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Changes within it are ignored, both ends included. before_1_33: the older test |1 - ratio| > up_ratio,
    in which floats let 11 of 10 through and 1.33 and later do not."""

    up_ratio: float = 0.1
    down_ratio: float = 0.1
    before_1_33: bool = False

    def holds(self, ratio: float) -> bool:
        """Whether wanted/current is too near to 1 to act on. NaN and infinity are not."""
        if self.before_1_33:
            return abs(1.0 - ratio) <= self.up_ratio
        return 1.0 - self.down_ratio <= ratio <= 1.0 + self.up_ratio


class Select(StrEnum):
    """Which of several rate policies counts: the one that allows most, least, or none at all."""

    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class RatePolicy:
    """At most so many pods, or per cent of the replicas at the start of the period, in period_s."""

    kind: Literal["Pods", "Percent"]
    value: int
    period_s: int = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """One half of `behavior`."""

    window_s: int
    policies: tuple[RatePolicy, ...]
    select: Select = Select.MAX


UP = Direction(window_s=0, policies=(RatePolicy(kind="Pods", value=4), RatePolicy(kind="Percent", value=100)))
DOWN = Direction(window_s=300, policies=(RatePolicy(kind="Percent", value=100),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Behavior:
    """`spec.behavior`; the defaults are those of the API server for a behavior that is set."""

    up: Direction = UP
    down: Direction = DOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Hpa:
    """One HorizontalPodAutoscaler.

    behavior None is a spec without one: at most doubled, or 4, a sync; down after 300 s.
    """

    min_workers: int = 1
    max_workers: int
    behavior: Behavior | None = field(default_factory=Behavior)


@dataclass(frozen=True, slots=True)
class Memory:
    """What the controller remembers: (at_s, proposal) of every sync, (at_s, replicas added) of every change.

    proposals None is a controller that has just started: the size it finds is its first proposal.
    """

    proposals: tuple[tuple[float, int], ...] | None = None
    changes: tuple[tuple[float, int], ...] = ()


def milli(quantity: str) -> int:
    """A quantity such as "4", "4400m" or "4k" in thousandths, rounded up. Raises ValueError."""
    exponent = _SUFFIXES.get(quantity[-1:], 0)
    number = quantity[:-1] if exponent else quantity
    try:
        return math.ceil(Decimal(number).scaleb(exponent + 3))
    except (InvalidOperation, ValueError, OverflowError) as error:
        raise ValueError(f"a quantity such as 4 or 4400m, got {quantity!r}") from error


def usage(items_milli: Sequence[int]) -> int | None:
    """All items of an answer added up (X-08); a negative running sum reads as an overflow; None for an empty answer."""
    total = 0
    for item in items_milli:
        total += item
        if total < 0 or total > _MOST_MILLI:
            return _MOST_MILLI
    return total if items_milli else None


def by_average_value(usage_milli: int, target_milli: int, status_workers: int, tolerance: Tolerance) -> int:
    """External AverageValue: ceil(usage / target), or the present status inside the tolerance (X-07).

    At 0 replicas the ratio is infinite, or no number, and the tolerance never holds.
    """
    present = float(target_milli) * status_workers
    if present and tolerance.holds(float(usage_milli) / present):
        return status_workers
    return _workers(float(usage_milli) / float(target_milli))


def by_value(usage_milli: int, target_milli: int, scale: tuple[int, int], tolerance: Tolerance) -> int:
    """External Value: the ratio times the ready pods. scale: (spec, ready)."""
    spec_workers, ready_workers = scale
    ratio = float(usage_milli) / float(target_milli)
    if spec_workers == 0:
        return _workers(ratio)
    return spec_workers if tolerance.holds(ratio) else _workers(ratio * ready_workers)


def combine(proposals: Sequence[int | None], spec_workers: int) -> int | None:
    """Several metrics: the largest proposal. None, a metric that failed, forbids a scale down; all None give None."""
    known = [proposal for proposal in proposals if proposal is not None]
    if not known or (len(known) < len(proposals) and max(known) < spec_workers):
        return None
    return max(known)


def recommend(hpa: Hpa, memory: Memory, spec_workers: int, proposal: int | None, now_s: float) -> tuple[int, Memory]:
    """The replicas to write and what to remember. proposal None freezes the size; min and max hold even then.

    Order: min and max of the present size, stabilization window, rate policies, min and max of the answer.
    """
    if spec_workers == 0 and hpa.min_workers != 0:
        return 0, memory  # somebody scaled to 0 by hand: autoscaling is disabled
    if memory.proposals is None:
        memory = Memory(((now_s, spec_workers),))
    bounded = min(max(spec_workers, hpa.min_workers), hpa.max_workers)
    if bounded != spec_workers or proposal is None:
        return bounded, _remember(hpa, memory, bounded - spec_workers, None, now_s)
    stable = _stabilized(hpa, memory, spec_workers, proposal, now_s)
    workers = _limited(hpa, memory, spec_workers, stable, now_s)
    return workers, _remember(hpa, memory, workers - spec_workers, proposal, now_s)


def _workers(wanted: float) -> int:
    return min(math.ceil(wanted), MOST_WORKERS) if math.isfinite(wanted) else MOST_WORKERS


def _stabilized(hpa: Hpa, memory: Memory, spec_workers: int, proposal: int, now_s: float) -> int:
    """Up to the least proposal of the up window, down to the greatest of the down window, else unmoved."""
    proposals = memory.proposals or ()
    if hpa.behavior is None:
        return max([proposal, *(wanted for at_s, wanted in proposals if at_s >= now_s - DOWN.window_s)])
    up, down = hpa.behavior.up, hpa.behavior.down
    least = min([proposal, *(wanted for at_s, wanted in proposals if at_s > now_s - up.window_s)])
    greatest = max([proposal, *(wanted for at_s, wanted in proposals if at_s > now_s - down.window_s)])
    return min(max(spec_workers, least), greatest)


def _limited(hpa: Hpa, memory: Memory, spec_workers: int, wanted: int, now_s: float) -> int:
    if hpa.behavior is None:
        highest, lowest = max(2 * spec_workers, 4), 0
    else:
        highest = max(_limit(hpa.behavior.up, memory, spec_workers, now_s, 1), spec_workers)
        lowest = min(_limit(hpa.behavior.down, memory, spec_workers, now_s, -1), spec_workers)
    return min(max(wanted, hpa.min_workers, lowest), hpa.max_workers, highest)


def _limit(direction: Direction, memory: Memory, spec_workers: int, now_s: float, sign: int) -> int:
    """How far one direction may go; sign 1 up, -1 down."""
    if direction.select is Select.DISABLED:
        return spec_workers
    limits = [_reach(policy, memory, spec_workers, now_s, sign) for policy in direction.policies]
    widest = direction.select is Select.MAX
    return max(limits) if widest == (sign > 0) else min(limits)


def _reach(policy: RatePolicy, memory: Memory, spec_workers: int, now_s: float, sign: int) -> int:
    """The size one policy allows, from the size at the start of its period."""
    start = spec_workers - sum(added for at_s, added in memory.changes if at_s > now_s - policy.period_s)
    if policy.kind == "Pods":
        return start + sign * policy.value
    reach = start * (1 + sign * policy.value / 100)
    return math.ceil(reach) if sign > 0 else int(reach)


def _remember(hpa: Hpa, memory: Memory, added: int, proposal: int | None, now_s: float) -> Memory:
    """The memory with this sync, without what no window and no period looks at any more."""
    behavior = hpa.behavior or Behavior()
    window_s = max(behavior.up.window_s, behavior.down.window_s)
    period_s = max((policy.period_s for policy in behavior.up.policies + behavior.down.policies), default=0)
    proposals = tuple(seen for seen in memory.proposals or () if seen[0] >= now_s - window_s)
    changes = tuple(seen for seen in memory.changes if seen[0] > now_s - period_s)
    return Memory(
        proposals=proposals if proposal is None else (*proposals, (now_s, proposal)),
        changes=(*changes, (now_s, added)) if added else changes,
    )
