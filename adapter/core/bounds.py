"""The bounds: every limit on a size, in the order in which the limits apply. `core.clamps` computes their numbers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil, inf
from typing import TYPE_CHECKING, Any, Self

from adapter.core.formatting import counted, share, soon, times, workers
from adapter.core.policies import POLICIES, policy_of
from adapter.core.rules import MAX_WORKERS_IF_UNKNOWN

if TYPE_CHECKING:
    from adapter.core.decisions import Decision

_PATIENT = " or ".join(policy.name for policy in POLICIES if policy.waits_until_warm)
_EACH_MINUTE = " or ".join(policy.name for policy in POLICIES if policy.decides_each_minute)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundRecord:
    """All that the program knows of a bound, except its numbers."""

    name: str
    description: str  # docs/decisions.md shows the same text
    sentence: Callable[["Decision"], str]  # the part of a decision's sentence, with its separator
    # The values in a record (core.record) without which the bound does not apply; a text names the value to copy.
    lifted_by: Mapping[str, float | str] = field(default_factory=dict)
    limit: str = ""  # the input (core.record.INPUTS) that holds the limit, if the limit is an input
    is_cap: bool = False  # it lowers a size that the load needs
    in_range: bool = False  # it belongs to the range that no decision leaves


def _window(d: "Decision") -> str:
    if policy_of(d.policy).waits_until_warm and d.window_workers == d.reference_workers:
        return "; not scaling down yet: the saving has not yet covered the cost of a rescale"
    return f"; no smaller size yet: the load needed {workers(d.window_workers)} within down_window_s"


def _shrinks(d: "Decision") -> bool:
    """Whether the policy, or the target that a gate holds, wants fewer workers than there are."""
    here, size = d.reference_workers, d.held_workers if d.reason.is_gate else d.wanted_workers
    return size is not None and here is not None and size < here


def _sink(d: "Decision") -> str:
    if _shrinks(d):
        return "; no scale-down while the job is behind and its sink is unhealthy"
    return "; more workers will not help: the sink is unhealthy, repair it first"


def _hot_partition_sentence(d: "Decision") -> str:
    cause = f"one partition receives {times(d.hottest_partition_ratio)} the mean; split its keys"
    return f"; more than {workers(d.allowed_workers)} will not help: {cause}"


def _trial(d: "Decision") -> str:
    behind = f"the job is behind at {share(d.utilization_ratio)} utilization"
    return f"; {behind}: more workers may not help, so only the smallest step is tried"


def _latch(d: "Decision") -> str:
    if d.hpa_off:
        return ""
    decided = f"decided {soon(d.committed_age_s)} ago"
    if d.required_workers == d.held_workers:
        return f"; waiting for the HPA to enact the target of {workers(d.held_workers)}, {decided}"
    return f"; this replaces the target of {workers(d.held_workers)}, {decided}, which the HPA has not enacted"


def _cooldown(d: "Decision") -> str:
    if d.is_stop_newer and not _shrinks(d):  # a stop delays no scale-down
        return f"; in cooldown, because nothing was processed until {soon(d.stopped_age_s)} ago"
    return f"; in cooldown, {soon(d.spec_changed_age_s)} after the last change"


def _ineffective(d: "Decision") -> str:
    why = "the last scale-up gained too little or its workers did not start"
    return f"; more workers will not help: {why}; next attempt in {soon(d.blocked_s)}"


def _partitions(d: "Decision") -> str:
    """How many partitions the load needs, unless a gate is closed. Later stages need workers, and no partitions."""
    if d.reason.is_gate:
        return ""
    later = _later_stages(d)
    few = f"{later}; only {_partition_count(d)}, so no more workers"
    if later or (d.input_rate_records_per_s == 0 and d.backlog_records == 0):  # without either there is no load
        return few
    sizes = (d.wanted_workers, d.needed_workers, d.keep_up_workers, d.catch_up_workers)
    needed = max(ceil((size or 0) - 1e-9) for size in sizes) * (d.slots_per_worker or 1)
    return f"{few}: the load needs {counted(needed, 'partition')}" if needed > (d.partitions or inf) else few


def _later_stages(d: "Decision") -> str:
    """Why the size exceeds what the partitions feed; "" if it does not."""
    size, slots = d.required_workers or 0.0, d.slots_per_worker or 1.0
    if (size - 1) * slots < (d.partitions or inf):
        return ""
    if size > (d.reference_workers or 0.0):
        return f"; later stages can use {workers(size)}"
    return "; later stages keep this size"


def _partition_count(d: "Decision") -> str:
    """The partitions that bound the size: the last known number, if that is too old to show."""
    return "the partitions last known" if d.partitions is None else counted(d.partitions, "partition")


def _max(d: "Decision") -> str:
    """The maximum. It is not always d.max_workers: the partitions do not lower a target that a gate holds."""
    if d.max_by_default:
        default = f"the default maximum of {workers(d.required_workers)} applies"
        return f"; maxReplicas is unknown, so {default}: check the HPA, or set max_workers"
    return f"; the maximum is {workers(d.required_workers)}"


def _memory(d: "Decision") -> str:
    least = "at least " if d.min_workers == d.max_workers else ""  # the maximum may be too low for the memory
    return f"; max_partitions_per_worker requires {least}{workers(d.min_workers)} for {_partition_count(d)}"


class Bound(StrEnum):
    """What changed the size that the policy wants; of several bounds the last one."""

    record: BoundRecord

    def __new__(cls, record: Any) -> Self:  # Any: type checkers read Bound("name") as a call of it
        """The member whose value is the bound's name."""
        member = str.__new__(cls, record.name)
        member._value_, member.record = record.name, record
        return member

    NONE = BoundRecord(
        name="",
        description="no bound changed the size that the policy wants",
        sentence=lambda d: "",
    )
    WINDOW = BoundRecord(
        name="window",
        description=f"at least the largest size needed within down_window_s; {_PATIENT}: no scale-down before it pays",
        sentence=_window,
        limit="window_workers",
    )
    LATCH = BoundRecord(
        name="latch",
        description=(
            "a target that is not enacted is held for latch_s, or until a step of the input ends; a later target in "
            "the same direction does not restart that time"
        ),
        sentence=_latch,
        limit="held_workers",
    )
    MINUTE = BoundRecord(
        name="minute",
        description=f"{_EACH_MINUTE} decides once a minute: the target is held in between",
        sentence=lambda d: f"; {d.policy} decides once a minute",
        lifted_by={"workload_status.between_minutes": 0},
    )
    PAUSE = BoundRecord(
        name="pause",
        description="a pause blocks scale-ups, or blocks scale-downs",
        sentence=lambda d: f"; a pause blocks scale-{'down' if _shrinks(d) else 'up'}s",
        lifted_by={"workload_status.no_up": 0, "workload_status.no_down": 0},
    )
    FAILOVER = BoundRecord(
        name="failover",
        description="no scale-down while traffic of another region may come back",
        sentence=lambda d: "; no scale-down while a failover is active",
        lifted_by={"workload_status.failover": 0},
    )
    EXPECTED = BoundRecord(
        name="expected",
        description="no scale-down from shortly before an event of `expected` until its end",
        sentence=lambda d: "; no scale-down before the expected event ends",
        lifted_by={"workload_status.expecting": 0},
    )
    MISSING_METRICS = BoundRecord(
        name="missing metrics",
        description=(
            "no scale-down for an hour after a stage ceased to report its load or its utilization, or until a stage "
            "begins to report, and for ten minutes after the partitions became fewer"
        ),
        sentence=lambda d: "; no scale-down yet: metrics of a stage are missing or partitions became fewer",
        lifted_by={"workload_status.misses_metrics": 0},
    )
    SINK = BoundRecord(
        name="sink",
        description="the sink is unhealthy: no scale-up, and no scale-down while the job is behind",
        sentence=_sink,
        lifted_by={"workload_status.sink_unhealthy": 0},
    )
    INEFFECTIVE = BoundRecord(
        name="ineffective",
        description=(
            "the last scale-up gained too little or its workers did not start: none beyond the size before it for "
            "ineffective_block_s, or until the throughput shows the gain"
        ),
        sentence=_ineffective,
        lifted_by={"scale_up_blockers.blocked_s": 0},
    )
    COOLDOWN = BoundRecord(
        name="cooldown",
        description=(
            "the last change is more recent than cooldown_up_s or cooldown_down_s; or the job stood still within "
            "warm_up_s, and is behind at low utilization"
        ),
        sentence=_cooldown,
        lifted_by={
            "workload_status.spec_changed_age_s": inf,
            "workload_status.raised_age_s": inf,
            "gate_inputs.changed_age_s": inf,
        },
    )
    BUDGET = BoundRecord(
        name="pause budget",
        description="scale-downs have stopped the job for pause_budget_ratio of a day",
        sentence=lambda d: "; no scale-down yet: the pauses of earlier ones have used up pause_budget_ratio",
        lifted_by={"workload_status.budget_s": inf},
    )
    TRIAL = BoundRecord(
        name="trial",
        description="behind at a utilization below low_cpu_ratio: only the smallest step that an HPA takes",
        sentence=_trial,
        lifted_by={"scale_up_blockers.hottest_utilization_ratio": 1},
    )
    HOT = BoundRecord(
        name="hot partition",
        description="one partition receives so much that more workers than the input needs would not help",
        sentence=_hot_partition_sentence,
        lifted_by={"scale_up_blockers.hottest_partition_ratio": 1},
        is_cap=True,
    )
    STEP = BoundRecord(
        name="step",
        description="at most max_step_up_workers or max_step_down_workers in one decision",
        sentence=lambda d: f"; max_step_{'down' if _shrinks(d) else 'up'}_workers limits the change",
        lifted_by={"rules.max_step_up_workers": inf, "rules.max_step_down_workers": inf},
    )
    PARTITIONS = BoundRecord(
        name="partitions",
        description=(
            "at most as many workers as the partitions can feed, or as a later stage can use if that is more; where "
            "there is a later stage, it only limits scale-ups; it has no effect while a gate holds the target; after "
            "partitions became fewer, the former count applies for ten more minutes, unless the policy follows them"
        ),
        sentence=_partitions,
        limit="partitions",
        is_cap=True,
        in_range=True,
    )
    MAX = BoundRecord(
        name="max",
        description=(
            f"at most max_workers and the HPA's maxReplicas; if neither is known, {MAX_WORKERS_IF_UNKNOWN}, or the "
            "present size if that is larger"
        ),
        sentence=_max,
        limit="max_workers",
        is_cap=True,
        in_range=True,
    )
    MIN = BoundRecord(
        name="min",
        description="at least min_workers and the HPA's minReplicas",
        sentence=lambda d: f"; the minimum is {workers(d.min_workers)}",
        limit="min_workers",
        in_range=True,
    )
    MEMORY = BoundRecord(
        name="memory",
        description="a worker holds at most max_partitions_per_worker partitions",
        sentence=_memory,
        lifted_by={"range.least": "rules.min_workers"},
        in_range=True,
    )


BOUNDS = tuple(Bound)
