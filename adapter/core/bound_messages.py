"""One decision -> the part of its sentence about the bound that changed the size."""

from collections.abc import Callable, Mapping
from math import ceil, inf

from adapter.core.decisions import Bound, Decision
from adapter.core.formatting import count, share, soon, times, workers
from adapter.core.policies import policy_of


def bound_text(d: Decision) -> str:
    """The bound that changed the size, "" for none."""
    return _BOUND_TEXTS[d.bound](d)


def _window(d: Decision) -> str:
    if policy_of(d.policy).waits_until_warm and d.window_workers == d.current_workers:
        return "; a scale-down does not pay yet: fewer workers must be enough for longer"
    return f"; the load needed {workers(d.window_workers)} within down_window_s"


def _shrinks(d: Decision) -> bool:
    here = d.current_workers
    return d.wanted_workers is not None and here is not None and d.wanted_workers < here


def _sink(d: Decision) -> str:
    if _shrinks(d):
        return "; no scale-down while the job is behind and its sink is unhealthy"
    return "; more workers will not help: the sink is unhealthy, repair it first"


def _hot(d: Decision) -> str:
    cause = f"one partition receives {times(d.hottest_partition_ratio)} the mean; split its keys"
    return f"; more than {workers(d.allowed_workers)} will not help: {cause}"


def _trial(d: Decision) -> str:
    behind = f"the job is behind at {share(d.utilization_ratio)} utilization"
    return f"; {behind}: more workers may not help, only the smallest step is tried"


def _latch(d: Decision) -> str:
    target = f"the target of {workers(d.held_workers)} from {soon(d.committed_age_s)} ago"
    return f"; {target} stands until it is enacted"


def _ineffective(d: Decision) -> str:
    why = "the last scale-up gained too little or its workers did not start"
    return f"; more workers will not help: {why}; next attempt in {soon(d.blocked_s)}"


_BOUND_TEXTS: Mapping[Bound, Callable[[Decision], str]] = {
    Bound.NONE: lambda d: "",
    Bound.WINDOW: _window,
    Bound.LATCH: _latch,
    Bound.PAUSE: lambda d: "; a pause blocks this direction",
    Bound.FAILOVER: lambda d: "; no scale-down while a failover is active",
    Bound.SINK: _sink,
    Bound.INEFFECTIVE: _ineffective,
    Bound.COOLDOWN: lambda d: f"; in cooldown, {soon(d.asked_age_s)} after the last change",
    Bound.BUDGET: lambda d: "; scale-downs have used up pause_budget_ratio for one day",
    Bound.TRIAL: _trial,
    Bound.HOT: _hot,
    Bound.STEP: lambda d: f"; max_step_{'down' if _shrinks(d) else 'up'}_workers limits the change",
    Bound.MAX: lambda d: f"; the maximum is {workers(d.max_workers)}",
    Bound.PARTITIONS: lambda d: "",  # short_of_partitions
    Bound.MIN: lambda d: f"; the minimum is {workers(d.min_workers)}",
    Bound.MEMORY: lambda d: f"; the memory for {_partitions(d)} requires {workers(d.min_workers)}",
}


def short_of_partitions(d: Decision) -> str:
    """How many partitions the load needs, where they limit the size."""
    if d.bound is not Bound.PARTITIONS:
        return ""
    few = f"; only {_partitions(d)}, more workers will not help"
    needed = _needed(d) * (d.slots_per_worker or 1)
    return f"{few}: the load needs {count(needed)} partitions" if needed > (d.partitions or inf) else few


def _partitions(d: Decision) -> str:
    """The partitions that bound the size: the last known number, if that is too old to show."""
    return "the partitions last known" if d.partitions is None else f"{count(d.partitions)} partitions"


def _needed(d: Decision) -> int:
    sizes = (d.wanted_workers, d.needed_workers, d.keep_up_workers, d.catch_up_workers)
    return max(ceil((size or 0) - 1e-9) for size in sizes)
