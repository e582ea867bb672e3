"""What was decided and from which numbers: by column inside the pipeline, by row at the edges."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from adapter.core.bounds import Bound
from adapter.core.policies import policy_of
from adapter.core.reasons import Reason

if TYPE_CHECKING:  # `serve` reads decisions by row and carries no numpy
    from adapter.core.samples import Array


__all__ = ["CONFIDENCE", "Bound", "Decision", "Decisions", "Reason", "StageSignals"]

# How far the capacity of a size is known; PRIOR is what the user says one worker carries, CARRIED a lower bound.
CONFIDENCE = ("none", "carried", "prior", "estimated", "observed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One workload at one tick. None is unknown. Times Unix seconds, rates records (or bytes) a second.

    required_workers: what is served; None when there is no number to serve.
    wanted_workers: the policy's own answer before bounds; None where no policy ran.
    keep_up_workers, catch_up_workers: its two terms, of the deciding stage. needed_workers: what the load needs now,
    whether or not a change is worth it. held_workers: the target before this tick, decided committed_age_s ago.
    window_workers: the largest size needed within the window of downs.
    capacity_records_per_s: of the workers at work, as far as `confidence` says.
    partitions: None also where they were last counted, partitions_age_s ago, too long ago to be told.
    stuck_backlog_records: of the backlog, what waits in partitions that do not move: no worker mends that.
    sink_healthy: 1 or 0. bad_annotations: how many of the HPA's are not understood.
    change_workers: the other size that was looked at; keep_* and change_*: how far behind the job would be at most, in
    seconds of backlog, and after how long (keep) or when it has caught up (change).
    asked_age_s: since another number of workers was asked for. restarts: those of late that nobody planned.
    allowed_workers: the cap of a hot partition. blocked_s: for so long more workers are not asked for.
    fault: what a source said about the missing samples, else "".
    stage: the stage that decided, "" for the whole workload.
    fleet: index of the fleet that found the workload, None for a configured one.
    """

    workload: str
    at_s: float
    policy: str
    reason: Reason
    bound: Bound = Bound.NONE
    confidence: str = CONFIDENCE[0]
    fault: str = ""
    stage: str = ""
    required_workers: float | None = None
    wanted_workers: float | None = None
    needed_workers: float | None = None
    keep_up_workers: float | None = None
    catch_up_workers: float | None = None
    held_workers: float | None = None
    window_workers: float | None = None
    spec_workers: float | None = None
    workers: float | None = None
    ready_workers: float | None = None
    min_workers: float | None = None
    max_workers: float | None = None
    partitions: float | None = None
    partitions_age_s: float | None = None
    slots_per_worker: float | None = None
    sink_healthy: float | None = None
    bad_annotations: float | None = None
    allowed_workers: float | None = None
    throughput_records_per_s: float | None = None
    input_rate_records_per_s: float | None = None
    forecast_input_rate_records_per_s: float | None = None
    backlog_records: float | None = None
    stuck_backlog_records: float | None = None
    highest_partition_backlog_records: float | None = None
    growth_records_per_s: float | None = None
    backlog_time_s: float | None = None
    drain_time_s: float | None = None
    relative_lag_change_ratio: float | None = None
    utilization_ratio: float | None = None
    hottest_partition_ratio: float | None = None
    slowest_worker_ratio: float | None = None
    worker_capacity_records_per_s: float | None = None
    capacity_records_per_s: float | None = None
    change_workers: float | None = None
    keep_behind_s: float | None = None
    keep_after_s: float | None = None
    change_behind_s: float | None = None
    caught_up_s: float | None = None
    backlog_time_target_s: float | None = None
    sample_age_s: float | None = None
    workers_age_s: float | None = None
    changed_age_s: float | None = None
    asked_age_s: float | None = None
    committed_age_s: float | None = None
    blocked_s: float | None = None
    restarts: float | None = None
    fleet: float | None = None

    @property
    def current_workers(self) -> float | None:
        """`spec.replicas` of the scale target; the running workers where it is unknown."""
        return self.workers if self.spec_workers is None else self.spec_workers

    @property
    def decided_age_s(self) -> float | None:
        """How old that was by which the size is decided: throughput and backlog, or the count that is followed."""
        return self.partitions_age_s if policy_of(self.policy).follows_partitions else self.sample_age_s


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSignals:
    """What one stage of a workload showed at one tick; units as in Decision."""

    workload: str
    stage: str
    throughput_records_per_s: float | None = None
    input_rate_records_per_s: float | None = None
    backlog_records: float | None = None
    growth_records_per_s: float | None = None
    backlog_time_s: float | None = None
    drain_time_s: float | None = None
    utilization_ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """All workloads of a shard at one tick, by column.

    text: field of Decision -> one string a workload (workload, policy, reason, bound, confidence, fault, stage).
    numbers: field of Decision -> shape (len(workloads),), NaN unknown.
    record: all that the decision was made from (core.record), name -> shape (len(workloads),).
    stages: (workload, stage) of every visible stage; stage_numbers: field of StageSignals -> shape (len(stages),).
    """

    at_s: float
    text: Mapping[str, tuple[str, ...]]
    numbers: Mapping[str, "Array"]
    stages: tuple[tuple[str, str], ...]
    stage_numbers: Mapping[str, "Array"]
    record: Mapping[str, "Array"] = field(default_factory=dict)
