"""One decision -> the one sentence that API message, page, terminal and log say about it."""

from collections.abc import Callable, Mapping
from math import ceil, inf

from adapter.core.decisions import CONFIDENCE, Bound, Decision, Reason
from adapter.core.formatting import DAY_S, count, rate, seconds, share, soon, times
from adapter.core.missing_samples import expired, stale, uncounted, unseen
from adapter.core.policies import policy_of

_HIDDEN_S = 30.0  # less is nothing to tell of


def sentence(decision: Decision) -> str:
    """Why the number is what it is, with the numbers it was made from, and what would mend what is wrong."""
    decided = decision.reason in _DECIDED
    told = _SAYS[decision.reason](decision) + _CUTS[decision.bound](decision)
    if decided:
        told += (
            _short_of_partitions(decision) + _ill_sink(decision) + _stuck_partitions(decision) + _slow_worker(decision)
        )
    told += uncounted(decision)
    return f"{told}{'; ' if decided else ': '}{decision.fault}" if decision.fault else told


def _keep(d: Decision) -> str:
    return "no target yet" if d.required_workers is None else f"keep {count(d.required_workers)}"


def _current(d: Decision) -> float | None:
    return d.workers if d.spec_workers is None else d.spec_workers


def _scaled(d: Decision) -> str:
    return f"{count(_current(d))} -> {count(d.required_workers)}"


def _moved(d: Decision) -> str:
    return _keep(d) if d.required_workers in (None, _current(d)) else _scaled(d)


def _up(d: Decision) -> str:
    if d.wanted_workers is None:
        return f"{_scaled(d)}: raised to the minimum"
    if _is_counted_alone(d):
        return f"{_scaled(d)}: {_terms(d)}"
    stage = f" of stage {d.stage}" if d.stage else ""
    why = f"; {_what_if(d)}" if d.keep_behind_s is not None else f": {_terms(d)}"
    return f"{_scaled(d)}: {_behind(d)}{stage}{_capacity(d)}{why}"


def _down(d: Decision) -> str:
    if _is_counted_alone(d):
        return f"{_scaled(d)}: {_terms(d)}"
    busy = d.utilization_ratio
    spare = "fewer are tried" if busy is None else f"utilization {share(busy)} leaves room"
    room = f", {spare}" if d.bound not in _CAPS else ""
    same = d.change_workers is not None and d.change_workers == d.required_workers
    change = f"; {_change(d)}" if same and (d.change_behind_s or 0) >= 1 else ""
    return f"{_scaled(d)}: {_behind(d)}{_capacity(d)}{room}{change}"


def _is_counted_alone(d: Decision) -> bool:
    """Whether nothing is known but the segments, which are all that the policy looks at."""
    counted = policy_of(d.policy).follows_partitions
    return counted and d.throughput_records_per_s is None and d.backlog_records is None


def _hold(d: Decision) -> str:
    if _is_counted_alone(d):
        return f"{_keep(d)}: {_terms(d)}"
    spare = f", utilization {share(d.utilization_ratio)}" if d.utilization_ratio is not None else ""
    return f"{_keep(d)}: {_behind(d)}{_capacity(d)}{spare}{_declined(d)}"


def _declined(d: Decision) -> str:
    """What was not done: another size that a bound took back, or one that is not worth a rescale."""
    here = d.required_workers
    if here is not None and d.wanted_workers is not None and d.wanted_workers != here:
        more = d.keep_behind_s is not None and d.wanted_workers > here
        return f"; {_what_if(d)}" if more else f", {count(d.wanted_workers)} wanted"
    foreseen = f", at most {seconds(d.keep_behind_s)} behind" if d.keep_behind_s is not None else ""
    cut = d.bound is not Bound.NONE
    if cut or here is None or d.needed_workers is None or ceil(d.needed_workers - 1e-9) == here:
        return foreseen
    return f"{foreseen}; the load needs {count(ceil(d.needed_workers - 1e-9))}, not worth a rescale now"


def _behind(d: Decision) -> str:
    return (
        f"backlog time {seconds(d.backlog_time_s)}{_worst(d)}, input {rate(d.input_rate_records_per_s)}{_foreseen(d)} "
        f"against throughput {rate(d.throughput_records_per_s)}"
    )


def _worst(d: Decision) -> str:
    """The partition furthest behind, where the sum hides it."""
    if not d.highest_partition_backlog_records or not d.partitions or not d.throughput_records_per_s:
        return ""
    behind_s = d.highest_partition_backlog_records * d.partitions / d.throughput_records_per_s
    hidden = behind_s > max(_HIDDEN_S, 2 * (d.backlog_time_s or 0.0))
    return f" ({seconds(behind_s)} in the worst partition)" if hidden else ""


def _foreseen(d: Decision) -> str:
    ahead = d.forecast_input_rate_records_per_s
    told = ahead is not None and rate(ahead) != rate(d.input_rate_records_per_s)
    return f" (foreseen {rate(ahead)})" if told else ""


def _capacity(d: Decision) -> str:
    """What those policies that size by it know of it, unless it was observed."""
    if not policy_of(d.policy).reads_capacity or d.confidence == CONFIDENCE[-1]:
        return ""
    if d.capacity_records_per_s is None:
        return ", capacity not known yet"
    told = rate(d.capacity_records_per_s)
    return {
        "carried": f", capacity {told} or more",
        "prior": f", capacity {told} as configured",
        "estimated": f", capacity {told} estimated",
    }.get(d.confidence, "")


def _terms(d: Decision) -> str:
    wanted = count(d.wanted_workers)
    policy = policy_of(d.policy)
    if d.keep_up_workers is None:
        return f"{count(d.partitions)} segments, so {wanted}" if policy.follows_partitions else f"{wanted} wanted"
    told = f"{d.keep_up_workers:.1f} to keep up"
    if d.catch_up_workers is not None:
        told += f" {'+' if policy.adds_terms else 'or'} {d.catch_up_workers:.1f} to catch up"
    elif d.utilization_ratio is not None:
        told += f", utilization {share(d.utilization_ratio)}"
    return f"{told}, so {wanted}{_rounded(d)}"


def _rounded(d: Decision) -> str:
    total = ceil((d.keep_up_workers or 0) + (d.catch_up_workers or 0) - 1e-9)
    policy = policy_of(d.policy)  # the size of a policy that does not add its terms has other reasons to exceed them
    rounds = policy.adds_terms and policy.spreads_evenly
    return ", rounded up to an even spread" if rounds and (d.wanted_workers or 0) > total else ""


def _what_if(d: Decision) -> str:
    after = "now" if not d.keep_after_s else f"in {soon(d.keep_after_s)}"
    kept = f"keep {count(_current(d))}: {seconds(d.keep_behind_s)} behind {after}"
    return f"{kept}; {_change(d)}" if d.change_behind_s is not None else kept


def _change(d: Decision) -> str:
    never = d.caught_up_s is None or d.caught_up_s >= DAY_S
    end = "not caught up in sight" if never else f"caught up in {soon(d.caught_up_s)}"
    return f"{count(d.change_workers)}: peak {seconds(d.change_behind_s)}, {end}"


def _no_data(d: Decision) -> str:
    if d.decided_age_s is None:
        return unseen(d)
    if policy_of(d.policy).follows_partitions:
        return f"{_keep(d)}: the segments of {d.workload} are not known; check the source that counts them"
    return f"{_keep(d)}: too few samples of {d.workload} for a rate; the next ticks bring them"


def _in_flight(d: Decision) -> str:
    if d.workers is not None and d.spec_workers is not None and d.workers > d.spec_workers:
        return f"{_keep(d)}: {count(d.workers)} workers are there, {count(d.spec_workers)} will stay"
    return f"{_keep(d)}: {count(d.workers)} of {count(d.spec_workers)} workers are there"


def _unschedulable(d: Decision) -> str:
    ready = f"{count(d.ready_workers)} of {count(d.spec_workers)} workers are ready"
    return f"{_moved(d)}: {ready}, the others do not come; look at their pods, at quota and nodes"


def _stuck(d: Decision) -> str:
    waiting = f"{count(d.backlog_records)} records wait and none is processed"
    return f"{_keep(d)}: {waiting}; more workers will not help, look at the job"


def _not_enacted(d: Decision) -> str:
    target = d.required_workers if d.held_workers is None else d.held_workers
    told = f"nobody has enacted {count(target)} for {soon(d.committed_age_s)}: {count(_current(d))} run"
    return f"{told}; check the HPA's maxReplicas, tolerance, behavior, and quota"


_SAYS: Mapping[Reason, Callable[[Decision], str]] = {
    Reason.PAUSED: lambda d: f"{_keep(d)}: paused; remove the pause to go on",
    Reason.EXCLUDED: lambda d: f"{_keep(d)}: an excluded period is on; wait for its end or change excluded_periods",
    Reason.NO_DATA: _no_data,
    Reason.EXPIRED: expired,
    Reason.STALE: lambda d: f"{_keep(d)}: {stale(d)}",
    Reason.NO_WORKERS: lambda d: f"{_keep(d)}: the number of workers is unknown; check the HPA and its scale target",
    Reason.NOT_RUNNING: lambda d: f"{_keep(d)}: the job does not run; start it, or see why it ended",
    Reason.FAILURES: lambda d: f"{_keep(d)}: {count(d.restarts)} restarts of late; mend what makes the job fail",
    Reason.IN_FLIGHT: _in_flight,
    Reason.UNSCHEDULABLE: _unschedulable,
    Reason.SETTLING: lambda d: (
        f"{_keep(d)}: workers changed or stood still {seconds(d.changed_age_s)} ago, rates are not clean yet"
    ),
    Reason.DISCONTINUITY: lambda d: (
        f"{_keep(d)}: the backlog jumped to {count(d.backlog_records)} records; the next samples confirm it or not"
    ),
    Reason.STUCK: _stuck,
    Reason.NOT_ENACTED: _not_enacted,
    Reason.UP: _up,
    Reason.DOWN: _down,
    Reason.IDLE: lambda d: f"{_moved(d)}: nothing arrives and nothing waits",
    Reason.HOLD: _hold,
}
_DECIDED = (Reason.NOT_ENACTED, Reason.UP, Reason.DOWN, Reason.IDLE, Reason.HOLD)
_CAPS = (Bound.HOT, Bound.MAX, Bound.PARTITIONS)  # a cap brought the size down, not spare capacity


def _window(d: Decision) -> str:
    if policy_of(d.policy).waits_until_warm and d.window_workers == _current(d):
        return "; a down does not pay yet: fewer must have been enough for longer"
    return f"; {count(d.window_workers)} were needed within the window of downs"


def _sink(d: Decision) -> str:
    here = _current(d)
    if d.wanted_workers is not None and here is not None and d.wanted_workers < here:
        return "; no down while the job is behind and its sink is not healthy"
    return "; more workers will not help: the sink is not healthy, mend it first"


def _hot(d: Decision) -> str:
    cause = f"one partition takes {times(d.hottest_partition_ratio)} the mean: split its keys"
    return f"; more than {count(d.allowed_workers)} workers will not help: {cause}"


def _trial(d: Decision) -> str:
    return f"; behind at utilization {share(d.utilization_ratio)}: more workers will hardly help, one is tried"


def _latch(d: Decision) -> str:
    return f"; {count(d.held_workers)} was decided {soon(d.committed_age_s)} ago and stands until it is enacted"


def _ineffective(d: Decision) -> str:
    why = "the last ones gained too little or found no place"
    return f"; more workers will not help: {why}, {soon(d.blocked_s)} until the next try"


_CUTS: Mapping[Bound, Callable[[Decision], str]] = {
    Bound.NONE: lambda d: "",
    Bound.WINDOW: _window,
    Bound.LATCH: _latch,
    Bound.PAUSE: lambda d: "; a pause forbids this direction",
    Bound.FAILOVER: lambda d: "; no down while a failover is on",
    Bound.SINK: _sink,
    Bound.INEFFECTIVE: _ineffective,
    Bound.COOLDOWN: lambda d: f"; too soon, {soon(d.asked_age_s)} after the last change",
    Bound.BUDGET: lambda d: "; downs have paused the job long enough for a day (pause_budget_ratio)",
    Bound.TRIAL: _trial,
    Bound.HOT: _hot,
    Bound.STEP: lambda d: "; cut to one step",
    Bound.MAX: lambda d: f"; the maximum is {count(d.max_workers)}",
    Bound.PARTITIONS: lambda d: "",  # told below, also where the policy itself kept to the partitions
    Bound.MIN: lambda d: f"; the minimum is {count(d.min_workers)}",
    Bound.MEMORY: lambda d: f"; memory for {_partitions(d)} takes {count(d.min_workers)} workers",
}


def _short_of_partitions(d: Decision) -> str:
    """How many partitions it would take, where they cut the size."""
    if d.bound is not Bound.PARTITIONS:
        return ""
    few = f"; only {_partitions(d)}, more workers will not help"
    needed = _needed(d) * (d.slots_per_worker or 1)
    return f"{few}: {count(needed)} would be needed" if needed > (d.partitions or inf) else few


def _partitions(d: Decision) -> str:
    """As they bound the size: by the last known number of them, where that is too old to be told."""
    return "the partitions last known" if d.partitions is None else f"{count(d.partitions)} partitions"


def _needed(d: Decision) -> int:
    sizes = (d.wanted_workers, d.needed_workers, d.keep_up_workers, d.catch_up_workers)
    return max(ceil((size or 0) - 1e-9) for size in sizes)


def _stuck_partitions(d: Decision) -> str:
    waits = d.stuck_backlog_records
    return f"; {count(waits)} records wait in partitions that do not move: look at their consumer" if waits else ""


def _ill_sink(d: Decision) -> str:
    ill = d.sink_healthy == 0 and d.bound is not Bound.SINK
    return "; the sink is not healthy: more workers are not asked for" if ill else ""


def _slow_worker(d: Decision) -> str:
    ratio = d.slowest_worker_ratio
    slow = ratio is not None and ratio < 0.5  # S4-38
    return f"; the slowest worker does {share(ratio)} of the median: replace it" if slow else ""
