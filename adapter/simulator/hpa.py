"""The arithmetic of the HorizontalPodAutoscaler for L lanes at once: metric values -> desired replicas.

Follows the controller of Kubernetes 1.33 and later (replica_calculator.go and horizontal.go of its podautoscaler).
Arrays have the shape (L,) and hold whole numbers as floats, as the controller's ratios do; NaN is no number.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Literal

import numpy as np

from adapter.core.rates import Mask
from adapter.core.samples import Array

MOST_WORKERS = 2**31 - 1
_REQUEST_MILLI = 1000.0  # CPU request of each pod
_SAMPLE_WINDOW_S = 15.0  # of a CPU sample: metrics-server's resolution


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Changes within the tolerance are ignored, both ends included."""

    up_ratio: float = 0.1
    down_ratio: float = 0.1

    def holds(self, ratio: Array) -> Mask:
        """Where the ratio wanted/current is within the tolerance. NaN and infinity are not."""
        return (1.0 - self.down_ratio <= ratio) & (ratio <= 1.0 + self.up_ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class RatePolicy:
    """The largest change within period_s: `value` pods, or per cent of the replicas at the start of the period."""

    kind: Literal["Pods", "Percent"]
    value: int
    period_s: int = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """`scaleUp` or `scaleDown` of a behavior, with the selectPolicy `Max`."""

    window_s: int
    policies: tuple[RatePolicy, ...]


UP = Direction(window_s=0, policies=(RatePolicy(kind="Pods", value=4), RatePolicy(kind="Percent", value=100)))
DOWN = Direction(window_s=300, policies=(RatePolicy(kind="Percent", value=100),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Behavior:
    """`spec.behavior`; the defaults are those of the API server for a behavior that is set."""

    up: Direction = UP
    down: Direction = DOWN


_PODS = RatePolicy(kind="Pods", value=1000)  # maxReplicas or more: one step may go all the way
_ANY = Direction(window_s=0, policies=(RatePolicy(kind="Percent", value=400), _PODS))
SHIPPED, EXACT = Behavior(up=_ANY, down=_ANY), Tolerance(up_ratio=0.0, down_ratio=0.0)  # as in our manifests


@dataclass(frozen=True, slots=True, kw_only=True)
class Hpa:
    """HorizontalPodAutoscalers of one behavior, whose bounds are the same or differ by lane."""

    min_workers: Array | float = 1
    max_workers: Array | float
    # None is a spec without a behavior: each sync at most doubles the replicas or sets 4; scale-down after 300 s.
    behavior: Behavior | None = field(default_factory=Behavior)


_SyncValue = tuple[float, Array]  # at_s, and a number of every lane


@dataclass(frozen=True, slots=True)
class Memory:
    """The state of the controller, oldest first: the proposal of every sync (NaN: none), and the replicas it added.

    proposals None is a controller that has just started: the present size is its first proposal.
    """

    proposals: tuple[_SyncValue, ...] | None = None
    changes: tuple[_SyncValue, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCpu:
    """The pods of each lane as the controller classifies them, and the CPU of the ready ones, shape (L,)."""

    ready: Array  # pods whose sample counts
    usage_milli: Array  # total CPU of the ready pods, whole
    unready: Array | float = 0.0  # see unready(); includes pending pods


def by_average_value(usage: Array | float, target: float, status_workers: Array | float, tolerance: Tolerance) -> Array:
    """External AverageValue: ceil(usage / target), or status.replicas within the tolerance (X-07).

    usage: the sum of the metric's items (X-08). At 0 replicas the ratio is infinite or NaN, so the tolerance does not
    apply.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.divide(usage, target * status_workers)
    return np.where(tolerance.holds(ratio), status_workers, _workers(np.divide(usage, target)))


def by_utilization(pods: PodCpu, target_percent: int, spec_workers: Array, tolerance: Tolerance) -> Array:
    """Resource with averageUtilization: the ratio of whole per cents times the counted pods.

    For a scale-up, unready pods count as idle. No change if this reverses the direction or brings the ratio into the
    tolerance. NaN where no pod is ready. Every ready pod has a sample.
    """
    waiting = np.where(_ratio(pods.usage_milli, pods.ready, target_percent) > 1, pods.unready, 0.0)
    counted = pods.ready + waiting
    ratio = _ratio(pods.usage_milli, counted, target_percent)
    wanted = _workers(ratio * counted)
    turned = (waiting > 0) & ((ratio < 1) | (wanted < spec_workers))
    return np.where(tolerance.holds(ratio) | turned, spec_workers, wanted)


def unready(age_s: Array, is_ready: Mask, turned_s: Array, sampled_s: Array) -> Mask:
    """Which running pods with a sample do not count for CPU, with the controller's defaults (300 s, 30 s); any shape.

    age_s: since the pod started. turned_s: since its readiness last changed. sampled_s: since its sample.
    After 300 s, a pod that was ever ready always counts.
    """
    starting = ~is_ready | (sampled_s > turned_s - _SAMPLE_WINDOW_S)
    never_ready = ~is_ready & (turned_s > age_s - 30.0)
    return np.where(age_s < 300.0, starting, never_ready)


def recommend(hpa: Hpa, memory: Memory, spec_workers: Array, proposal: Array, now_s: float) -> tuple[Array, Memory]:
    """One sync of the controller: the desired replicas and its new memory. proposal NaN keeps the size within min, max.

    Order: min and max of the present size, stabilization window, rate policies, min and max of the result.
    """
    if memory.proposals is None:
        memory = Memory(((now_s, spec_workers.copy()),))
    bounded = np.clip(spec_workers, hpa.min_workers, hpa.max_workers)
    # The controller reads no metric outside of min and max.
    proposal = np.where(bounded == spec_workers, proposal, np.nan)
    stable = _stabilize(hpa.behavior, memory.proposals or (), spec_workers, proposal, now_s)
    held = np.where(spec_workers == 0, 0.0, bounded)  # a manual scale to 0 disables autoscaling
    workers = np.where(np.isnan(proposal), held, _limit_change(hpa, memory.changes, spec_workers, stable, now_s))
    return workers, _remember(hpa.behavior or Behavior(), memory, workers - spec_workers, proposal, now_s)


def _workers(wanted: Array) -> Array:
    return np.clip(np.ceil(wanted), 0.0, MOST_WORKERS)


def _ratio(usage_milli: Array, counted: Array, target_percent: int) -> Array:
    requested = np.where(counted > 0, counted * _REQUEST_MILLI, np.nan)
    return np.floor(usage_milli * 100 / requested) / target_percent


def _stabilize(
    behavior: Behavior | None, proposals: Sequence[_SyncValue], spec_workers: Array, proposal: Array, now_s: float
) -> Array:
    """Scale up to the smallest proposal of the up window, down to the largest of the down window."""
    if behavior is None:
        return reduce(np.fmax, (wanted for at_s, wanted in proposals if at_s >= now_s - DOWN.window_s), proposal)
    up_from_s, down_from_s = now_s - behavior.up.window_s, now_s - behavior.down.window_s
    least = reduce(np.fmin, (wanted for at_s, wanted in proposals if at_s > up_from_s), proposal)
    greatest = reduce(np.fmax, (wanted for at_s, wanted in proposals if at_s > down_from_s), proposal)
    return np.minimum(np.maximum(spec_workers, least), greatest)


def _limit_change(hpa: Hpa, changes: Sequence[_SyncValue], spec_workers: Array, wanted: Array, now_s: float) -> Array:
    if hpa.behavior is None:
        highest, lowest = np.maximum(2.0 * spec_workers, 4.0), np.zeros_like(spec_workers)
    else:
        highest = np.maximum(_limit(hpa.behavior.up, changes, spec_workers, now_s, 1), spec_workers)
        lowest = np.minimum(_limit(hpa.behavior.down, changes, spec_workers, now_s, -1), spec_workers)
    least = np.maximum(np.maximum(wanted, hpa.min_workers), lowest)
    return np.minimum(np.minimum(least, hpa.max_workers), highest)


def _limit(direction: Direction, changes: Sequence[_SyncValue], spec_workers: Array, now_s: float, sign: int) -> Array:
    """The size that the rate policies of one direction allow; sign: 1 up, -1 down."""
    limits = [_allow(policy, changes, spec_workers, now_s, sign) for policy in direction.policies]
    return reduce(np.maximum if sign > 0 else np.minimum, limits)


def _allow(policy: RatePolicy, changes: Sequence[_SyncValue], spec_workers: Array, now_s: float, sign: int) -> Array:
    """The size that one rate policy allows, relative to the size at the start of its period."""
    start = spec_workers - sum(added for at_s, added in changes if at_s > now_s - policy.period_s)
    if policy.kind == "Pods":
        return start + sign * policy.value
    reach = start * (1 + sign * policy.value / 100)
    return np.ceil(reach) if sign > 0 else np.trunc(reach)


def _remember(behavior: Behavior, memory: Memory, added: Array, proposal: Array, now_s: float) -> Memory:
    """The memory with this sync, without the entries older than every window and period."""
    window_s = max(behavior.up.window_s, behavior.down.window_s)
    period_s = max((policy.period_s for policy in behavior.up.policies + behavior.down.policies), default=0)
    proposals = tuple(row for row in memory.proposals or () if row[0] >= now_s - window_s)
    changes = tuple(row for row in memory.changes if row[0] > now_s - period_s)
    return Memory(
        proposals=(*proposals, (now_s, proposal)),
        changes=(*changes, (now_s, added)) if added.any() else changes,
    )
