"""One decision -> the sentence that the API, the page, the terminal and the log show for it."""

from adapter.core.bounds import Bound
from adapter.core.decisions import Decision
from adapter.core.formatting import seconds, share, waiting_records
from adapter.core.reasons import CHECK_COUNT, Reason

_FULL_RATIO = 0.9  # busy time of a subtask that has no room left


def sentence(decision: Decision) -> str:
    """What happens, the numbers it follows from, and what to do if something is wrong."""
    text = decision.reason.record.sentence(decision) + _bound(decision)
    if not decision.reason.is_gate:
        text += _unhealthy_sink(decision) + _stuck_partitions(decision)
        text += _slow_worker(decision) + _full_subtask(decision)
    text += _old_count(decision)
    text += f"{': ' if decision.reason.is_gate else '; '}{decision.fault}" if decision.fault else ""
    return f"{text}; {decision.dispute}" if decision.dispute else text


def _bound(d: Decision) -> str:
    """The sentence of the bound. NotEnacted already names the target that the latch holds."""
    return "" if d.reason is Reason.NOT_ENACTED and d.bound is Bound.LATCH else d.bound.record.sentence(d)


def _unhealthy_sink(d: Decision) -> str:
    unhealthy = d.sink_healthy == 0 and d.bound is not Bound.SINK
    return "; no scale-up while the sink is unhealthy" if unhealthy else ""


def _stuck_partitions(d: Decision) -> str:
    waits = d.stuck_backlog_records
    where = "in partitions whose committed offset does not advance"
    return f"; {waiting_records(waits)} {where}: check their consumer" if waits else ""


def _slow_worker(d: Decision) -> str:
    ratio = d.slowest_worker_ratio
    slow = ratio is not None and ratio < 0.5  # S4-38
    return f"; the slowest worker reaches {share(ratio)} of the median throughput: replace it" if slow else ""


def _full_subtask(d: Decision) -> str:
    """One full subtask slows its whole stage, and more workers do not relieve it."""
    busiest, mean = d.busiest_subtask_ratio, d.utilization_ratio
    if d.held_back and mean is not None and mean < _FULL_RATIO:
        held = "" if d.reason in (Reason.UP, Reason.DOWN) else "no scale-down while "
        return f"; {held}one full subtask holds back the sources: spread its keys"
    uneven = busiest is not None and mean is not None and busiest > _FULL_RATIO and mean < busiest / 2
    return f"; one subtask is {share(busiest)} busy: spread its keys or partitions" if uneven else ""


def _old_count(d: Decision) -> str:
    """The age of the count of partitions, unless the sentence already states the age of all samples."""
    if d.partitions is not None or d.partitions_age_s is None:
        return ""
    if d.reason is Reason.EXPIRED and d.partitions_age_s <= (d.decided_age_s or 0.0):
        return ""
    return f"; the partitions were last counted {seconds(d.partitions_age_s)} ago: {CHECK_COUNT}"
