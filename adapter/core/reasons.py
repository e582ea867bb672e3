"""The reasons of a decision: every gate in its order, then every result of the policy and the bounds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, Any, Self

from adapter.core.formatting import count, counted, seconds, share, soon, waiting_records, workers
from adapter.core.policies import POLICIES, policy_of
from adapter.core.size_messages import hold, hold_prefix, ready_count, ready_workers, scale_down, scale_prefix, scale_up

if TYPE_CHECKING:
    from adapter.core.decisions import Decision

_BY_PARTITIONS = " or ".join(policy.name for policy in POLICIES if policy.follows_partitions)
_BUSY_RATIO = 0.2  # utilization of workers that are not idle
CHECK_COUNT = "check the source that counts them"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonRecord:
    """All that the program knows of a reason, except the condition of its gate (`core.gates`)."""

    name: str
    description: str  # docs/decisions.md shows the same text
    sentence: Callable[["Decision"], str]
    opens: str = ""  # when the gate opens, for `explain`; "" if the reason is no gate
    # The values in a record (core.record) that open the gate.
    opened_by: Mapping[str, float] = field(default_factory=dict)
    holds_without_samples: bool = False  # a user requested the hold, so the target does not expire with its samples
    needs_attention: bool = False  # the page lists such workloads first
    is_moving: bool = False  # its workers change, or it waits for its next ticks; the page lists it first


def _no_data(d: "Decision") -> str:
    uncounted = policy_of(d.policy).follows_partitions and d.partitions is None
    if d.decided_age_s is not None:
        if uncounted:
            return f"{hold_prefix(d)}: the segments of {d.workload} are unknown; {CHECK_COUNT}"
        return f"{hold_prefix(d)}: too few samples of {d.workload} for a rate; wait for the next ticks"
    if uncounted:
        return f"The segments of {d.workload} were never counted; {CHECK_COUNT}"
    if d.partitions is None:
        fix = "" if d.source_failed else "; check its sources in the configuration"  # the error of the source follows
        return f"No sample of {d.workload} yet{fix}"
    known = f"Only the number of partitions of {d.workload} is known ({count(d.partitions)})"
    return f"{known}; also read its throughput and backlog, or set the policy {_BY_PARTITIONS}"


def _expired(d: "Decision") -> str:
    if policy_of(d.policy).follows_partitions:
        return f"The segments of {d.workload} were last counted {seconds(d.partitions_age_s)} ago; {CHECK_COUNT}"
    return f"No sample of {d.workload} for {seconds(d.sample_age_s)}; check its sources"


def _stale(d: "Decision") -> str:
    if policy_of(d.policy).follows_partitions and d.partitions_age_s:
        return f"{hold_prefix(d)}: the segments were last counted {seconds(d.partitions_age_s)} ago"
    return f"{hold_prefix(d)}: the last sample is {seconds(d.sample_age_s)} old"


def _in_flight(d: "Decision") -> str:
    desired = d.reference_workers
    surplus = (ready_count(d) or 0.0) - (desired or 0.0)
    if surplus > 0:
        return f"{hold_prefix(d)}: more workers exist than the desired {count(desired)}; waiting for them to stop"
    if surplus == 0:
        return f"{hold_prefix(d)}: {ready_workers(d)}, but more or fewer exist; waiting for exactly {count(desired)}"
    return f"{hold_prefix(d)}: {ready_workers(d)}; waiting for the rest"


def _unschedulable(d: "Decision") -> str:
    check = "check their pods, the quota and the nodes"
    return f"{scale_prefix(d)}: {ready_workers(d)} and the others do not start; {check}"


def _stuck(d: "Decision") -> str:
    waiting = waiting_records(d.backlog_records) if d.backlog_records else "a backlog waits"
    text = f"{hold_prefix(d)}: {waiting} and nothing is processed; more workers will not help: check the job"
    if (d.utilization_ratio or 0.0) < _BUSY_RATIO:
        return text
    return f"{text}, or how often it commits, because its workers are {share(d.utilization_ratio)} busy"


def _settling(d: "Decision") -> str:
    event = "nothing was processed until" if d.is_stop_newer else "replicas changed"
    return f"{hold_prefix(d)}: {event} {seconds(d.changed_age_s)} ago; waiting for stable rates"


def _not_enacted(d: "Decision") -> str:
    target = d.required_workers if d.held_workers is None else d.held_workers
    late = f"The target of {workers(target)} has not been enacted for {soon(d.committed_age_s)}"
    check = "check the HPA's maxReplicas, tolerance and behavior, and the quota"
    return f"{late}: the scale target has {count(d.reference_workers)}; {check}"


def _holding(why: str) -> Callable[["Decision"], str]:
    return lambda d: f"{hold_prefix(d)}: {why}"


class Reason(StrEnum):
    """Why a target is what it is: the first rule that applied."""

    record: ReasonRecord

    def __new__(cls, record: Any) -> Self:  # Any: type checkers read Reason("name") as a call of it
        """The member whose value is the reason's name."""
        member = str.__new__(cls, record.name)
        member._value_, member.record = record.name, record
        return member

    @property
    def is_gate(self) -> bool:
        """Whether no policy decided."""
        return bool(self.record.opens)

    PAUSED = ReasonRecord(
        name="Paused",
        description="a pause is active: the target is held",
        sentence=_holding(
            "scaling is paused; to resume, remove the HPA's annotation backlog-adapter/pause, or `pause` in the "
            "configuration"
        ),
        opens="when the pause ends or is removed",
        opened_by={"gate_inputs.paused": 0, "workload_status.no_up": 0, "workload_status.no_down": 0},
        holds_without_samples=True,
        needs_attention=True,
    )
    EXCLUDED = ReasonRecord(
        name="ExcludedPeriod",
        description="an excluded period is active: the target is held until it ends",
        sentence=_holding("an excluded period is active; wait for its end or change excluded_periods"),
        opens="when the excluded period ends",
        opened_by={"gate_inputs.excluded": 0},
        holds_without_samples=True,
    )
    NO_DATA = ReasonRecord(
        name="NoDataYet",
        description="no sample yet, or too few for a rate: an existing target is held",
        sentence=_no_data,
        opens="when there are enough samples for a rate",
        opened_by={"gate_inputs.sample_age_s": 0, "gate_inputs.rates_known": 1},
    )
    EXPIRED = ReasonRecord(
        name="Expired",
        description="the last sample is older than error_after_s: no number is served",
        sentence=_expired,
        opens="with the next sample",
        opened_by={"gate_inputs.sample_age_s": 0},
        needs_attention=True,
    )
    STALE = ReasonRecord(
        name="Stale",
        description="this tick brought no new sample: the target is held",
        sentence=_stale,
        opens="with the next sample",
        opened_by={"gate_inputs.sample_age_s": 0},
        needs_attention=True,
    )
    NO_WORKERS = ReasonRecord(
        name="WorkersUnknown",
        description="the number of workers is unknown: the target is held",
        sentence=_holding(
            "the number of workers is unknown; check the HPA and its scale target, or the source that counts them"
        ),
        opens="when the number of workers is known again",
        opened_by={"gate_inputs.workers_age_s": 0},
        needs_attention=True,
    )
    NOT_RUNNING = ReasonRecord(
        name="NotRunning",
        description="the job reports that it is not running: the target is held",
        sentence=_holding("the job is not running; start it, or find out why it ended"),
        opens="when the job runs again",
        opened_by={"gate_inputs.stopped": 0},
        needs_attention=True,
    )
    FAILURES = ReasonRecord(
        name="RecentFailures",
        description="the job failed max_failures times, at most failures_window_s apart: the target is held",
        sentence=lambda d: f"{hold_prefix(d)}: the job had {counted(d.restarts, 'recent failure')}; fix their cause",
        opens="failures_window_s after the last failure",
        opened_by={"gate_inputs.failures": 0},
        needs_attention=True,
    )
    UNSCHEDULABLE = ReasonRecord(
        name="Unschedulable",
        description="more than a tenth of the workers were not ready within in_flight_timeout_s: the target is the "
        "number of ready ones",
        sentence=_unschedulable,
        opens="when at most a tenth of the workers are not ready",
        opened_by={"gate_inputs.too_few": 0, "gate_inputs.in_flight": 0},
        needs_attention=True,
    )
    IN_FLIGHT = ReasonRecord(
        name="ReplicasInFlight",
        description="workers are starting or stopping: the target is held until they are ready",
        sentence=_in_flight,
        opens="when all workers are ready, or in_flight_timeout_s after spec.replicas changed",
        opened_by={"gate_inputs.in_flight": 0},
        is_moving=True,
    )
    STUCK = ReasonRecord(
        name="Stuck",
        description="a backlog waits and no stage processes records: more workers would not help, the target is held",
        sentence=_stuck,
        opens="when the job processes records again",
        opened_by={"gate_inputs.nothing_moves": 0},
        needs_attention=True,
    )
    SETTLING = ReasonRecord(
        name="Settling",
        description="replicas changed or processing stopped: the target is held until rates are stable",
        sentence=_settling,
        opens="when the settling time is over and rates are stable",
        opened_by={"gate_inputs.changed_age_s": inf},
        is_moving=True,
    )
    DISCONTINUITY = ReasonRecord(
        name="BacklogDiscontinuity",
        description="the backlog jumped more than the input explains: the target is held until it is confirmed",
        sentence=lambda d: (
            f"{hold_prefix(d)}: the backlog jumped to {counted(d.backlog_records, 'record')}; "
            "waiting for the next samples to confirm it"
        ),
        opens="with the next samples",
        opened_by={"gate_inputs.discontinuous": 0},
        is_moving=True,
    )
    NOT_ENACTED = ReasonRecord(
        name="NotEnacted",
        description="the target is older than not_enacted_after_s and the replicas do not follow",
        sentence=_not_enacted,
        needs_attention=True,
    )
    UP = ReasonRecord(
        name="ScaleUp",
        description="more workers are needed to keep up with the input or to catch up with the backlog",
        sentence=scale_up,
        is_moving=True,
    )
    DOWN = ReasonRecord(
        name="ScaleDown",
        description="fewer workers can carry the load",
        sentence=scale_down,
        is_moving=True,
    )
    IDLE = ReasonRecord(
        name="Idle",
        description="no input and no backlog: workers go down to the minimum",
        sentence=lambda d: f"{scale_prefix(d)}: no input and no backlog",
        is_moving=True,
    )
    HOLD = ReasonRecord(
        name="Hold",
        description="the current number of workers fits the load, or a bound prevents a change",
        sentence=hold,
    )


REASONS = tuple(Reason)
