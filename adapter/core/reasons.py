"""One decision -> the one sentence that API message, page, terminal and log say about it."""

from collections.abc import Callable, Mapping

from adapter.core.decisions import Bound, Decision, Reason

MEANINGS: Mapping[Reason, str] = {
    Reason.PAUSED: "a pause is in force: the target is held",
    Reason.NO_DATA: "no sample yet, or too few for a rate: the target is held, if there is one",
    Reason.EXPIRED: "the last sample is older than error_after_s: there is no number",
    Reason.STALE: "the last sample is older than this tick: the target is held",
    Reason.NO_WORKERS: "nobody said how many workers run: the target is held",
    Reason.IN_FLIGHT: "workers are on their way: the target is held until they are ready",
    Reason.SETTLING: "the worker count has just changed: the target is held until rates are clean again",
    Reason.NO_PROGRESS: "a backlog waits and nothing is processed: more workers would not help, the target is held",
    Reason.UP: "more workers are needed to keep up with the input and to catch up with the backlog",
    Reason.DOWN: "fewer workers can carry the load",
    Reason.HOLD: "the workers that run are right",
}


def sentence(decision: Decision) -> str:
    """Why the number is what it is, with the numbers it was made from; for an unknown one, what would mend it."""
    told = _SAYS[decision.reason](decision) + _cut(decision)
    return f"{told}: {decision.fault}" if decision.fault and decision.reason not in _DECIDED else told


def _keep(d: Decision) -> str:
    return "no target yet" if d.required_workers is None else f"keep {_count(d.required_workers)}"


def _scaled(d: Decision) -> str:
    current = d.workers if d.spec_workers is None else d.spec_workers
    return f"{_count(current)} -> {_count(d.required_workers)}"


def _behind(d: Decision) -> str:
    return (
        f"backlog time {_seconds(d.backlog_time_s)}, input {_rate(d.input_rate_records_per_s)} "
        f"against throughput {_rate(d.throughput_records_per_s)}"
    )


def _up(d: Decision) -> str:
    stage = f" of stage {d.stage}" if d.stage else ""
    if d.keep_up_workers is None or d.wanted_workers is None:
        return f"{_scaled(d)}: raised to the minimum"
    terms = f"{d.keep_up_workers:.1f} to keep up + {d.catch_up_workers or 0:.1f} to catch up"
    return f"{_scaled(d)}: {_behind(d)}{stage}: {terms}, so {_count(d.wanted_workers)}"


def _down(d: Decision) -> str:
    room = f", utilization {_share(d.utilization_ratio)} leaves room" if d.bound not in _CAPS else ""
    return f"{_scaled(d)}: {_behind(d)}{room}"


def _hold(d: Decision) -> str:
    spare = f", utilization {_share(d.utilization_ratio)}" if d.utilization_ratio is not None else ""
    return f"{_keep(d)}: {_behind(d)}{spare}"


def _no_data(d: Decision) -> str:
    if d.sample_age_s is None:
        return f"no sample of {d.workload} yet; check its sources in the configuration"
    return f"{_keep(d)}: too few samples of {d.workload} for a rate; the next ticks bring them"


def _in_flight(d: Decision) -> str:
    if d.workers is not None and d.spec_workers is not None and d.workers > d.spec_workers:
        return f"{_keep(d)}: {_count(d.workers)} workers are there, {_count(d.spec_workers)} will stay"
    return f"{_keep(d)}: {_count(d.workers)} of {_count(d.spec_workers)} workers are there"


_SAYS: Mapping[Reason, Callable[[Decision], str]] = {
    Reason.PAUSED: lambda d: f"{_keep(d)}: paused; remove the pause to go on",
    Reason.NO_DATA: _no_data,
    Reason.EXPIRED: lambda d: f"no sample of {d.workload} for {_seconds(d.sample_age_s)}; bring its sources back",
    Reason.STALE: lambda d: f"{_keep(d)}: the last sample is {_seconds(d.sample_age_s)} old",
    Reason.NO_WORKERS: lambda d: f"{_keep(d)}: the number of workers is unknown; check the HPA and its scale target",
    Reason.IN_FLIGHT: _in_flight,
    Reason.SETTLING: lambda d: f"{_keep(d)}: workers changed {_seconds(d.changed_age_s)} ago, rates are not clean yet",
    Reason.NO_PROGRESS: lambda d: f"{_keep(d)}: {_count(d.backlog_records)} records wait and none is processed",
    Reason.UP: _up,
    Reason.DOWN: _down,
    Reason.HOLD: _hold,
}
_CAPS = (Bound.MAX, Bound.PARTITIONS)  # a cap brought the size down, not spare capacity
_DECIDED = (Reason.UP, Reason.DOWN, Reason.HOLD)


def _cut(d: Decision) -> str:
    limits = {
        Bound.NONE: "",
        Bound.MIN: f"; the minimum is {_count(d.min_workers)}",
        Bound.MAX: f"; the maximum is {_count(d.max_workers)}",
        Bound.PARTITIONS: f"; only {_count(d.partitions)} partitions, more workers would idle",
        Bound.STEP: "; cut to one step",
        Bound.PAUSE: "; a pause forbids this direction",
    }
    return limits[d.bound]


def _count(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.0f}".replace(",", " ")


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def _rate(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1f}/s" if 0 < value < 10 else f"{_count(value)}/s"


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0%}"
